use super::super::small::{answered as at_revision, closed, event, failed, list, log, op, restored};
use super::*;
use crate::history::record::{Answer, Event};

fn unknown(reason: &str) -> Outcome {
    Outcome::Unknown { reason: reason.to_owned() }
}

/// What each record of a client says, by its call.
fn states(kind: ClientKind, records: Vec<Record>, restored: Option<&Restored>) -> Vec<State> {
    lane(&log(kind, records), restored).samples.into_iter().map(|sample| sample.state).collect()
}

fn get(call: u64, ret: u64, outcome: Outcome) -> Record {
    op(call, ret, Op::Get { id: 1 }, outcome)
}

#[test]
fn what_was_stopped_was_not_observed_and_what_was_not_answered_is_unknown() {
    let records = vec![
        get(10, 11, at_revision(5)),
        get(20, 21, failed(500)),
        get(30, 31, unknown("timeout")),
        get(40, 41, unknown(STOPPED)),
    ];
    let expected = [
        State::Good,
        State::Bad("status 500".to_owned()),
        State::Unknown("timeout".to_owned()),
        State::Unobserved(STOPPED.to_owned()),
    ];
    assert_eq!(states(ClientKind::GetReader, records, None), expected);
}

#[test]
fn a_lease_is_well_when_it_has_a_holder_who_renewed_it_since_the_restore() {
    let lease = |call, ret, holder: Option<&str>, revision| {
        let answer = Answer { holder: holder.map(str::to_owned), revision, ..Answer::default() };
        let asked = Op::Lease { name: "kube-scheduler".to_owned() };
        let records = vec![op(call, ret, asked, Outcome::Ok(answer))];
        states(ClientKind::LeaderLease, records, Some(&restored(Vec::new()))).remove(0)
    };
    let bad = |why: &str| State::Bad(why.to_owned());
    assert_eq!(lease(110, 111, None, Some(11)), bad("no holder"));
    assert_eq!(lease(110, 111, Some(""), Some(11)), bad("no holder"));
    assert_eq!(lease(110, 111, Some("a"), Some(11)), State::Good);
    assert_eq!(lease(110, 111, Some("a"), Some(10)), bad("not renewed since the restore"));
    assert_eq!(lease(90, 101, Some("a"), Some(10)), bad("not renewed since the restore"));
    assert_eq!(lease(90, 100, Some("a"), Some(10)), State::Good, "answered before it");
    let unrecorded = State::Unobserved("the lease's revision was not recorded".to_owned());
    assert_eq!(lease(110, 111, Some("a"), None), unrecorded);
}

#[test]
fn a_refusal_of_what_an_updater_holds_is_a_good_answer_and_one_of_a_create_is_not() {
    let all = |since: u64| {
        let create = |call, outcome| op(call, call + 1, Op::CasCreate { object: 1, value: 1 }, outcome);
        let update =
            |call, held, outcome| op(call, call + 1, Op::CasUpdate { object: 1, held, value: 2 }, outcome);
        let read = |call, outcome| op(call, call + 1, Op::CasRead { object: 1 }, outcome);
        vec![
            create(since, failed(409)),
            create(since + 2, at_revision(14)),
            update(since + 4, 13, failed(409)),
            update(since + 6, 13, failed(500)),
            read(since + 8, failed(404)),
            read(since + 10, failed(500)),
        ]
    };
    let refused = |status: u16| State::Bad(format!("status {status}"));
    let expected = [refused(409), State::Good, State::Good, refused(500), State::Good, refused(500)];
    assert_eq!(states(ClientKind::CasUpdater, all(10), None), expected);
    assert_eq!(states(ClientKind::CasUpdater, all(10), Some(&restored(Vec::new()))), expected);
    assert_eq!(states(ClientKind::CasUpdater, all(110), Some(&restored(Vec::new()))), expected);
}

#[test]
fn after_the_restore_an_update_is_judged_by_what_it_rested_on() {
    let records = vec![
        op(50, 51, Op::CasRead { object: 1 }, at_revision(12)),
        op(60, 61, Op::CasUpdate { object: 1, held: 12, value: 2 }, at_revision(13)),
        op(120, 121, Op::CasUpdate { object: 1, held: 13, value: 3 }, at_revision(14)),
    ];
    let found = states(ClientKind::CasUpdater, records, Some(&restored(Vec::new())));
    assert_eq!(found.len(), 3, "each counts once");
    assert_eq!(found[..2], [State::Good, State::Good]);
    assert!(matches!(found[2], State::Wrong(_)), "{found:?}");
}

#[test]
fn a_watch_that_ends_as_asked_is_well_and_its_events_count_up_to_the_instant_of_the_restore() {
    let ended = |at, reason: &str| event(at, Event::Ended { reason: reason.to_owned() });
    let records = vec![ended(98, ENDED_AS_ASKED), ended(99, "eof")];
    let expected = [State::Good, State::Unknown("eof".to_owned())];
    assert_eq!(states(ClientKind::Watcher, records, None), expected);
    let until = |at| {
        let records = vec![list(10, 11, 5, &[1]), event(at, Event::Other { revision: 6 })];
        states(ClientKind::Watcher, records, Some(&restored(Vec::new()))).len()
    };
    assert_eq!((until(100), until(101)), (1, 0));
}

#[test]
fn a_paced_client_that_falls_silent_was_not_observing_until_its_history_was_closed() {
    let reader = log(ClientKind::GetReader, vec![get(10, 11, at_revision(5)), closed(100)]);
    let planned = crate::plan::PlannedClient { every_ns: Some(10), ..reader.planned.clone() };
    let found = lane(&ClientLog { planned: &planned, ..reader.clone() }, None).samples;
    let gap = found.last().unwrap();
    assert_eq!((found.len(), gap.call, gap.ret), (2, MonoNs(11), MonoNs(100)));
    assert!(matches!(gap.state, State::Unobserved(_)), "{gap:?}");
}

#[test]
fn a_gap_is_no_observation_and_an_answer_is_slow_after_more_than_half_a_second() {
    let sample = |call, took, line: Option<&str>, state| Sample {
        call: MonoNs(call),
        ret: MonoNs(call + took),
        state,
        line: line.map(str::to_owned),
    };
    let samples = vec![
        sample(0, SLOW_NS, Some("a"), State::Good),
        sample(1, 1, Some("b"), State::Good),
        sample(600_000_000, SLOW_NS + 1, Some("c"), State::Good),
        sample(2_000_000_000, 9, None, State::Unobserved("no operation".to_owned())),
    ];
    let reader = Lane { client: "reader".to_owned(), kind: ClientKind::GetReader, samples };
    let found: Vec<(LaneState, u64)> = reader.stretches().iter().map(|s| (s.state, s.samples)).collect();
    assert_eq!(found, [(LaneState::Good, 2), (LaneState::Unknown, 1), (LaneState::Unobserved, 0)]);
}
