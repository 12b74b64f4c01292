//! A world with one restore, and twins of it that differ in one record.

use crate::objective::{answer_of, answered, history, id_of, linearizable, within};
use crate::world::{BOOT, MS, Manner, START, World};
use quakeproof::check::{Finding, Verdict};
use quakeproof::clock::{BootId, MonoNs};
use quakeproof::drill::spec::Step;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, EventRecord, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent};
use quakeproof::step::restore_spec::RestoreSnapshot;

fn missed(found: &Finding, words: &str) {
    assert_eq!(found.verdict, Verdict::Fail, "{}", found.reason);
    assert!(found.reason.contains(words), "{}", found.reason);
    assert!(!found.evidence.is_empty());
}

#[test]
fn an_honest_cluster_is_linearizable_on_either_side_of_a_restore() {
    let found = linearizable(&World::honest().input());
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    let (_, fit) = found.reason.split_once(" watch events fit ").unwrap();
    let either_side = "one order of revisions on either side of the restore";
    assert_eq!(fit, format!("{either_side}; 40 acknowledged writes were lost, as a restore may"));
    assert_eq!(
        (found.observed, found.lower, found.upper, found.target),
        (Some(0), Some(0), Some(0), Some(0))
    );
}

#[test]
fn without_a_restore_there_is_one_order() {
    let mut input = World { writes: [40, 0, 150], bump: None, ..World::honest() }.input();
    input.journal.retain(|e| !matches!(e.event, JournalEvent::Fact { fact: Fact::Restored { .. } }));
    let found = linearizable(&input);
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert!(found.reason.ends_with(" watch events fit one order of revisions"), "{}", found.reason);
}

#[test]
fn a_restore_without_a_bump_takes_revisions_back_and_leaves_watches_behind() {
    let found = linearizable(&World::api_server_kept().input());
    missed(&found, "a revision that went back for a client");
    missed(&found, "2 × an event missing in a live watch");
    let honest = World { bump: None, ..World::honest() };
    missed(&linearizable(&honest.input()), "a revision that went back for a client");
}

#[test]
fn a_lost_value_must_not_be_read_after_the_restore() {
    let world = World { get_lies: true, ..World::honest() };
    missed(&linearizable(&world.input()), "a read that no state explains");
    let world = World::honest();
    let mut input = world.input();
    let late = answered(&mut input, "reader", |op, _| op.call_ns.0 > world.judged_from() * MS).remove(0);
    late.op = Op::Get { id: 60 };
    answer_of(late).revision = Some(160);
    missed(&linearizable(&input), "a read of a lost value");
}

#[test]
fn what_the_snapshot_held_must_be_there_after_the_restore() {
    let world = World::honest();
    let mut input = world.input();
    let late = answered(&mut input, "reader", |op, _| op.call_ns.0 > world.judged_from() * MS).remove(0);
    late.op = Op::Get { id: 7 };
    late.outcome = Outcome::Failed { status: Some(404), reason: "not-found".to_owned() };
    missed(&linearizable(&input), "object 7 was not found, though it was there");
}

#[test]
fn one_changed_revision_of_a_write_is_found_on_either_side() {
    let world = World::honest();
    for restored in [false, true] {
        let mut input = world.input();
        let side = |op: &OpRecord| (op.call_ns.0 > world.serving_at() * MS) == restored;
        let write = answered(&mut input, "orders", |op, _| side(op)).remove(20);
        let revision = answer_of(write).revision.as_mut().unwrap();
        *revision += 1;
        assert_eq!(linearizable(&input).verdict, Verdict::Fail);
    }
}

#[test]
fn one_object_missing_from_one_range_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let reading = answered(&mut input, "truth", |_, _| true).remove(6);
    answer_of(reading).objects.as_mut().unwrap().remove(3);
    missed(&linearizable(&input), "a read that is not the state at its revision");
}

#[test]
fn one_id_missing_from_a_list_before_the_loss_is_found_and_after_it_only_named() {
    let world = World::honest();
    let mut input = world.input();
    let list = answered(&mut input, "lister", |_, _| true).remove(5);
    assert!(answer_of(list).ids.as_mut().unwrap().0.remove(&5));
    missed(&linearizable(&input), "lacks object 5");
    let mut input = world.input();
    let late = |op: &OpRecord| op.call_ns.0 > world.judged_from() * MS;
    let list = answered(&mut input, "lister", |op, _| late(op)).remove(0);
    assert!(answer_of(list).ids.as_mut().unwrap().0.remove(&5));
    let found = linearizable(&input);
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert!(found.reason.contains("1 LISTs after the restore were not etcd's state"), "{}", found.reason);
}

#[test]
fn an_event_left_out_sent_twice_or_out_of_order_is_found_on_either_side() {
    let world = World::honest();
    for (client, from) in
        [("watch", 1_200), ("raw", 1_200), ("watch", world.judged_from()), ("raw", world.judged_from())]
    {
        let at = |input: &quakeproof::timeline::EvidenceInput| {
            input.histories[client]
                .iter()
                .position(|r| matches!(r, Record::Event(e) if e.at_ns.0 > from * MS && matches!(e.event, Event::Put { .. })))
                .unwrap()
        };
        let mut input = world.input();
        let place = at(&input);
        history(&mut input, client).remove(place);
        missed(&linearizable(&input), "an event missing in a live watch");
        let mut input = world.input();
        let twice = input.histories[client][place].clone();
        history(&mut input, client).insert(place, twice);
        missed(&linearizable(&input), "a watch out of order");
        let mut input = world.input();
        history(&mut input, client).swap(place, place + 1);
        missed(&linearizable(&input), "a watch out of order");
    }
}

#[test]
fn an_event_below_a_bookmark_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let records = history(&mut input, "watch");
    let (place, mut bookmark) = records
        .iter()
        .enumerate()
        .find_map(|(i, r)| match r {
            Record::Event(e) if e.at_ns.0 > 1_300 * MS => Some((i, e.clone())),
            _ => None,
        })
        .unwrap();
    let Event::Put { revision, .. } = bookmark.event else { panic!("a put") };
    bookmark.event = Event::Bookmark { revision: revision + 1, initial_events_end: false };
    records.insert(place, Record::Event(bookmark));
    missed(&linearizable(&input), "a watch out of order");
}

#[test]
fn an_object_that_nobody_wrote_is_found_unless_the_writers_history_broke_off() {
    let world = World { watch: Manner::Invents(3_000), ..World::honest() };
    let mut input = world.input();
    missed(&linearizable(&input), "an object that nobody wrote");
    history(&mut input, "orders").pop();
    let found = linearizable(&input);
    assert!(!found.reason.contains("written by nobody"), "{}", found.reason);
}

#[test]
fn a_value_that_nobody_wrote_is_found() {
    let mut input = World::honest().input();
    answer_of(answered(&mut input, "reader", |_, _| true).remove(3)).wrong_value = true;
    missed(&linearizable(&input), "a value that nobody wrote");
}

#[test]
fn a_write_that_was_never_answered_counts_as_done_where_it_was_seen() {
    let world = World::honest();
    let mut input = world.input();
    let write = answered(&mut input, "orders", |_, _| true).remove(10);
    assert_eq!(id_of(write), 11);
    write.outcome = Outcome::Unknown { reason: "timeout".to_owned() };
    let found = linearizable(&input);
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
}

#[test]
fn an_exhausted_budget_proves_nothing() {
    let world = World::honest();
    let mut input = world.input();
    // Acknowledged without a revision and seen by nobody: these objects have to be searched.
    for (client, id) in [("orders", 11), ("orders", 12)] {
        let write = answered(&mut input, client, |op, _| id_of(op) == id).remove(0);
        answer_of(write).revision = None;
    }
    for records in input.histories.values_mut() {
        records
            .retain(|r| !matches!(r, Record::Event(e) if matches!(e.event, Event::Put { id: 11 | 12, .. })));
        for record in records {
            if let Record::Op(OpRecord { outcome: Outcome::Ok(Answer { ids, objects, .. }), .. }) = record {
                ids.iter_mut().for_each(|ids| ids.0.retain(|id| *id != 11 && *id != 12));
                objects.iter_mut().for_each(|all| all.retain(|(id, _)| *id != 11 && *id != 12));
            }
        }
    }
    history(&mut input, "reader")
        .retain(|r| !matches!(r, Record::Op(OpRecord { op: Op::Get { id: 11 | 12 }, .. })));
    let found = within(&input, 1);
    assert_eq!((found.verdict, found.observed), (Verdict::Inconclusive, None), "{}", found.reason);
    assert!(found.reason.contains("with a budget of 1 states: object 11 of epoch 1"), "{}", found.reason);
    missed(&linearizable(&input), "no order of 2 operations on object 11 explains their outcomes");
}

#[test]
fn without_the_snapshots_revision_nothing_is_proven() {
    let mut input = World::honest().input();
    input.journal.retain(|e| !matches!(e.event, JournalEvent::Fact { fact: Fact::SnapshotTaken { .. } }));
    let found = linearizable(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Inconclusive, None), "{}", found.reason);
    assert!(found.reason.contains("snapshot `backup`"), "{}", found.reason);
}

#[test]
fn a_planned_restore_that_is_not_on_record_leaves_the_epochs_unknown() {
    let mut input = World::honest().input();
    input.journal.retain(|e| !matches!(e.event, JournalEvent::Fact { fact: Fact::Restored { .. } }));
    let step: RestoreSnapshot = serde_json::from_value(serde_json::json!({"from": "backup"})).unwrap();
    input.plan.steps[0].step = Step::RestoreSnapshot(step);
    assert_eq!(linearizable(&input).verdict, Verdict::Inconclusive);
}

#[test]
fn a_client_that_was_cut_off_keeps_the_objective_from_passing() {
    for client in ["orders", "reader", "lister", "watch", "raw", "truth"] {
        let mut input = World::honest().input();
        history(&mut input, client).pop();
        let found = linearizable(&input);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{client}: {}", found.reason);
        assert!(found.reason.contains(client), "{}", found.reason);
    }
}

#[test]
fn the_same_evidence_gives_the_same_finding() {
    let input = World::api_server_kept().input();
    assert_eq!(linearizable(&input), linearizable(&input.clone()));
}

/// The honest world with a client that compares and swaps one object of its own. Its writes lie between
/// those of the ledger, at revisions that these leave free once they are spread out.
fn with_updates(held: [u64; 2]) -> quakeproof::timeline::EvidenceInput {
    let world = World { writes: [40, 40, 150], ..World::honest() };
    let mut input = world.input();
    let mut planned = input.plan.clients.iter().find(|c| c.name == "reader").unwrap().clone();
    (planned.name, planned.kind) = ("cas".to_owned(), ClientKind::CasUpdater);
    planned.minimum.before = 1;
    planned.minimum.after = 1;
    input.plan.clients.push(planned);
    let template = input.histories["reader"].clone();
    let (opened, closed) = (template.first().unwrap().clone(), template.last().unwrap().clone());
    let op = |seq: u64, at: u64, op: Op, revision: u64| {
        Record::Op(OpRecord {
            seq,
            boot: BootId(BOOT.to_owned()),
            due_ns: None,
            call_ns: MonoNs(at * MS),
            return_ns: MonoNs((at + 1) * MS),
            op,
            outcome: Outcome::Ok(Answer { revision: Some(revision), ..Answer::default() }),
            exchange: None,
        })
    };
    let restored = world.snapshot_revision() + 1_000_000;
    let late = world.judged_from();
    // Revision 100 precedes the ledger's first, and that of the bump marker the restored ledger's first.
    let records = vec![
        opened,
        op(0, START, Op::CasCreate { object: 0, value: 1 }, 100),
        op(1, START + 2, Op::CasRead { object: 0 }, held[0]),
        op(2, late, Op::CasUpdate { object: 0, held: held[1], value: 2 }, restored + 10_000),
        closed,
    ];
    input.histories.insert("cas".to_owned(), records);
    // Its last update comes after everything else, so that it takes no revision of the ledger.
    let end = world.collect_at() + 35;
    let Some(Record::Op(last)) = history(&mut input, "cas").get_mut(3) else { panic!("an operation") };
    (last.call_ns, last.return_ns) = (MonoNs(end * MS), MonoNs((end + 30) * MS));
    for truth in answered(&mut input, "truth", |op, _| op.call_ns.0 > (end - 30) * MS) {
        answer_of(truth).revision = Some(restored + 10_001);
        (truth.call_ns, truth.return_ns) = (MonoNs((end + 31) * MS), MonoNs((end + 32) * MS));
    }
    input
}

#[test]
fn a_compare_and_swap_must_rest_on_the_version_that_is_there() {
    let found = linearizable(&with_updates([100, 100]));
    assert_ne!(found.verdict, Verdict::Fail, "{}", found.reason);
    missed(&linearizable(&with_updates([100, 99])), "own object 0 of client 6");
    missed(&linearizable(&with_updates([99, 100])), "own object 0 of client 6");
}

#[test]
fn a_watch_that_begins_with_the_state_is_held_to_order_only_after_it() {
    let world = World::honest();
    let mut input = world.input();
    let records = history(&mut input, "watch");
    let list =
        records.iter().position(|r| matches!(r, Record::Op(op) if matches!(op.op, Op::List { .. }))).unwrap();
    let Record::Op(asked) = records.remove(list) else { panic!("a list") };
    let Record::Op(watch) = &mut records[list] else { panic!("a watch") };
    let Op::Watch { stream, .. } = watch.op else { panic!("a watch") };
    watch.op = Op::WatchList { stream };
    let at_ns = watch.return_ns;
    let Outcome::Ok(Answer { revision: Some(revision), ids: Some(ids), .. }) = asked.outcome else {
        panic!("a list")
    };
    let event = |event| Record::Event(EventRecord { stream, boot: BootId(BOOT.to_owned()), at_ns, event });
    let mut initial: Vec<Record> =
        ids.0.iter().rev().map(|id| event(Event::Put { id: *id, revision: 100 + id })).collect();
    initial.push(event(Event::Bookmark { revision, initial_events_end: true }));
    let at = list + 1;
    records.splice(at..at, initial);
    let found = linearizable(&input);
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    let first = history(&mut input, "watch")
        .iter()
        .rposition(|r| matches!(r, Record::Event(e) if matches!(e.event, Event::Put { id: 30, .. })))
        .unwrap();
    history(&mut input, "watch").remove(first);
    missed(&linearizable(&input), "an event missing in a live watch");
}
