//! Recovery times and losses at their very limits, and what keeps either from being told.

use crate::world::{MS, World};
use crate::{finding, history, instant};
use quakeproof::check::ledger::LedgerAccount;
use quakeproof::check::{Finding, Judge, Verdict, judge};
use quakeproof::component::ComponentId;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Entry, Fact, JournalEvent};
use quakeproof::plan::{MinimumOperations, PlannedClient, PlannedStep};
use quakeproof::timeline::EvidenceInput;

/// Sets the limit of the recovery time of writes.
fn within(input: &mut EvidenceInput, ms: u64) {
    for planned in &mut input.plan.objectives {
        if let Objective::Rto(rto) = &mut planned.objective
            && rto.name == "writes-again"
        {
            rto.within = Span::millis(ms);
        }
    }
}

/// Sets the limits of what may be lost.
fn may_lose(input: &mut EvidenceInput, writes: Option<u64>, within: Option<Span>) {
    for planned in &mut input.plan.objectives {
        if let Objective::Rpo(rpo) = &mut planned.objective {
            (rpo.at_most_writes, rpo.within) = (writes, within);
        }
    }
}

fn writes_again(input: &EvidenceInput) -> Finding {
    finding(&judge(input), "writes-again").clone()
}

fn lost_writes(input: &EvidenceInput) -> Finding {
    finding(&judge(input), "lost-writes").clone()
}

fn account(input: &EvidenceInput) -> LedgerAccount {
    Judge::new(input).ledger.account
}

fn minimum<'a>(input: &'a mut EvidenceInput, client: &str) -> &'a mut MinimumOperations {
    &mut input.plan.clients.iter_mut().find(|c| c.name == client).unwrap().minimum
}

/// Takes objects out of every reading of etcd.
fn never_stored(input: &mut EvidenceInput, ids: &[u64]) {
    for record in history(input, "truth") {
        if let Record::Op(OpRecord { outcome: Outcome::Ok(answer), .. }) = record
            && let Some(objects) = &mut answer.objects
        {
            objects.retain(|(id, _)| !ids.contains(id));
        }
    }
}

fn write_of(input: &mut EvidenceInput, wanted: u64) -> &mut OpRecord {
    let ops = history(input, "orders").iter_mut().filter_map(|record| match record {
        Record::Op(op) => Some(op),
        _ => None,
    });
    ops.into_iter().find(|op| op.op == Op::Create { id: wanted }).unwrap()
}

// Recovery times.

#[test]
fn the_best_estimate_of_a_recovery_time_is_the_middle_of_its_bounds() {
    let found = writes_again(&World::honest().input());
    assert_eq!((found.lower, found.upper), (Some(475 * MS), Some(503 * MS)));
    assert_eq!(found.observed, Some(489 * MS));
}

#[test]
fn a_recovery_time_that_a_gap_may_hide_is_not_held_against_the_service() {
    let world = World::honest();
    let mut input = world.input();
    // Refused until 180 ms after the loss, not asked until 460, refused twice more.
    let quiet = world.lost_at() + 190..world.lost_at() + 455;
    history(&mut input, "orders").retain(|r| !quiet.contains(&instant(r)));
    for (limit, verdict) in [
        (394, Verdict::Fail),
        (430, Verdict::Inconclusive),
        (502, Verdict::Inconclusive),
        (503, Verdict::Pass),
    ] {
        within(&mut input, limit);
        let found = writes_again(&input);
        assert_eq!((found.lower, found.upper), (Some(475 * MS), Some(503 * MS)));
        assert_eq!(found.verdict, verdict, "{limit} ms: {}", found.reason);
    }
}

#[test]
fn a_time_is_missed_only_by_what_was_seen_to_work_before() {
    let mut input = World::honest().input();
    within(&mut input, 300);
    minimum(&mut input, "orders").before = 80;
    minimum(&mut input, "reader").before = 1_000;
    assert_eq!(
        writes_again(&input).verdict,
        Verdict::Fail,
        "as much as the plan asks for; others don't matter"
    );
    minimum(&mut input, "orders").before = 81;
    let found = writes_again(&input);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(
        found.reason.ends_with("orders: 80 operations before the fault, the plan asks for 81"),
        "{}",
        found.reason
    );
}

// What was lost.

#[test]
fn a_limit_on_lost_writes_that_is_just_reached_is_met() {
    let mut input = World::honest().input();
    for (limit, verdict) in [(40, Verdict::Pass), (39, Verdict::Fail)] {
        may_lose(&mut input, Some(limit), None);
        let found = lost_writes(&input);
        assert_eq!((found.verdict, found.target), (verdict, Some(limit)), "{}", found.reason);
        assert_eq!((found.lower, found.observed, found.upper), (Some(40), Some(40), Some(40)));
    }
}

#[test]
fn a_limit_on_lost_time_that_is_just_reached_is_met() {
    let mut input = World::honest().input();
    for (limit, verdict) in [
        (806, Verdict::Pass),
        (805, Verdict::Inconclusive),
        (794, Verdict::Inconclusive),
        (793, Verdict::Fail),
    ] {
        may_lose(&mut input, None, Some(Span::millis(limit)));
        assert_eq!(lost_writes(&input).verdict, verdict, "{limit} ms");
    }
}

#[test]
fn what_was_lost_is_said_with_what_was_refused_and_what_was_not_answered() {
    let mut input = World::honest().input();
    let LedgerAccount { refused, indeterminate, .. } = account(&input);
    assert_eq!((refused, indeterminate), (12, 12));
    let words = "40 of 80 writes acknowledged before the loss were lost";
    let time = "the last kept one is 800.0 ms older than the last acknowledged one";
    let refusals = "12 were refused and 12 got no definite answer";
    assert_eq!(lost_writes(&input).reason, format!("{words}; {refusals}; {time}"));
    let acked_or = |id: u64| {
        move |r: &Record| match r {
            Record::Op(op) => matches!(op.outcome, Outcome::Ok(_)) || op.op == Op::Create { id },
            _ => true,
        }
    };
    history(&mut input, "orders").retain(acked_or(501));
    let one = "1 were refused and 0 got no definite answer";
    assert_eq!(lost_writes(&input).reason, format!("{words}; {one}; {time}"));
    history(&mut input, "orders").retain(acked_or(0));
    assert_eq!(lost_writes(&input).reason, format!("{words}; {time}"));
}

#[test]
fn a_write_acknowledged_after_the_restore_and_missing_is_lost_too() {
    let mut input = World::honest().input();
    never_stored(&mut input, &[1_005]);
    for (limit, verdict) in [(41, Verdict::Pass), (40, Verdict::Fail)] {
        may_lose(&mut input, Some(limit), None);
        let found = lost_writes(&input);
        assert_eq!(found.verdict, verdict, "{}", found.reason);
        assert_eq!((found.lower, found.observed, found.upper), (Some(41), Some(41), Some(41)));
        assert!(
            found.reason.ends_with("1 acknowledged after the restore are missing too"),
            "{}",
            found.reason
        );
    }
    let account = account(&input);
    assert_eq!((account.lost, account.lost_after_restore, account.unsettled), (Some(40), Some(1), Some(0)));
    // How much time's worth that is, no restore explains.
    may_lose(&mut input, None, Some(Span::secs(10)));
    assert_eq!(lost_writes(&input).verdict, Verdict::Inconclusive);
}

/// Without the readings of etcd after `at`.
fn not_read_after(input: &mut EvidenceInput, at: u64) {
    history(input, "truth").retain(|r| instant(r) <= at || matches!(r, Record::Closed { .. }));
}

#[test]
fn writes_that_no_reading_settles_may_be_lost_or_not() {
    let world = World::honest();
    let mut input = world.input();
    // Etcd is read at 4607 for the last time. Of the writes every 20 ms from 3110 on, that of 4590 is in it.
    not_read_after(&mut input, 4_610);
    let open = (world.collect_at() - 4_607) / 20;
    assert!(open > 60);
    let account = account(&input);
    assert_eq!((account.lost_after_restore, account.unsettled), (Some(0), Some(open)));
    for (limit, verdict) in [
        (39, Verdict::Fail),
        (40, Verdict::Inconclusive),
        (39 + open, Verdict::Inconclusive),
        (40 + open, Verdict::Pass),
    ] {
        may_lose(&mut input, Some(limit), None);
        let found = lost_writes(&input);
        assert_eq!(found.verdict, verdict, "{limit}: {}", found.reason);
        assert_eq!((found.lower, found.observed, found.upper), (Some(40), Some(40), Some(40 + open)));
    }
}

#[test]
fn a_write_without_an_answer_was_applied_or_not_or_nobody_knows() {
    let mut input = World::honest().input();
    let before = account(&input);
    for id in [1_003, 1_149] {
        write_of(&mut input, id).outcome = Outcome::Unknown { reason: "timeout".to_owned() };
    }
    let after = account(&input);
    assert_eq!(after.indeterminate, before.indeterminate + 2);
    assert_eq!((after.applied, after.not_applied, after.unsettled), (Some(2), before.not_applied, Some(0)));
    not_read_after(&mut input, 4_610);
    let unread = account(&input);
    assert_eq!((unread.applied, unread.not_applied), (Some(1), before.not_applied));
}

// Objects that nobody wrote.

/// The writer's history breaks off after `at`.
fn writer_broke_off(input: &mut EvidenceInput, at: u64) {
    history(input, "orders").retain(|r| instant(r) <= at);
}

fn refuse(input: &mut EvidenceInput, id: u64) {
    write_of(input, id).outcome = Outcome::Failed { status: Some(500), reason: "server-error".to_owned() };
}

#[test]
fn writes_behind_the_end_of_a_broken_history_are_not_taken_for_phantoms() {
    let world = World::honest();
    let mut input = world.input();
    writer_broke_off(&mut input, 4_000);
    let broken = account(&input);
    assert_eq!(broken.phantom, None);
    let reason = "writes under way when a writer's history broke off can't be told from phantoms";
    assert_eq!(broken.reason.as_deref(), Some(reason));
    let found = lost_writes(&input);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.reason.contains("was not closed in order"), "{}", found.reason);
    // Nor when one that can't have been under way is among them.
    refuse(&mut input, 7);
    assert_eq!(account(&input).phantom, None);
}

#[test]
fn phantoms_among_what_a_broken_history_tells_are_counted() {
    let world = World::honest();
    let mut input = world.input();
    writer_broke_off(&mut input, world.collect_at());
    assert_eq!(account(&input).phantom, Some(0));
    for id in [7, 1_149] {
        refuse(&mut input, id);
    }
    assert_eq!(account(&input).phantom, Some(2), "the last one of the history among them");
}

#[test]
fn an_object_behind_the_last_write_of_a_whole_history_is_a_phantom() {
    let mut input = World::honest().input();
    let records = history(&mut input, "orders");
    let last = records.len() - 2;
    assert!(matches!(&records[last], Record::Op(op) if op.op == Op::Create { id: 1_149 }));
    records.remove(last);
    history(&mut input, "reader").pop();
    assert_eq!(account(&input).phantom, Some(1), "whatever breaks off but a writer's");
}

#[test]
fn a_write_tried_again_after_a_refusal_was_asked_for() {
    let mut input = World::honest().input();
    let again = write_of(&mut input, 7).clone();
    refuse(&mut input, 7);
    let records = history(&mut input, "orders");
    let Some(Record::Op(next)) =
        records.iter().find(|r| matches!(r, Record::Op(op) if op.op == Op::Create { id: 8 }))
    else {
        panic!("no such write")
    };
    let mut next = next.clone();
    (next.op, next.outcome) = (again.op, again.outcome);
    let at =
        records.iter().position(|r| matches!(r, Record::Op(op) if op.op == Op::Create { id: 8 })).unwrap();
    records[at] = Record::Op(next);
    never_stored(&mut input, &[8]);
    assert_eq!(account(&input).phantom, Some(0));
}

#[test]
fn of_several_lost_writes_the_first_and_the_last_are_quoted() {
    let input = World::honest().input();
    assert_eq!(lost_writes(&input).evidence, ["histories/orders.jsonl#42", "histories/orders.jsonl#81"]);
    let one = World { writes: [40, 1, 150], ..World::honest() }.input();
    assert_eq!(lost_writes(&one).evidence, ["histories/orders.jsonl#42"]);
    let none = World { writes: [40, 0, 150], ..World::honest() }.input();
    assert_eq!(lost_writes(&none).evidence, [""; 0]);
}

// Runs that restored nothing.

/// A fault after which etcd goes on where it was.
fn unbroken() -> (World, EvidenceInput) {
    let world = World { writes: [40, 0, 150], bump: None, ..World::honest() };
    let mut input = world.input();
    input.journal.retain(|e| !matches!(e.event, JournalEvent::Fact { fact: Fact::Restored { .. } }));
    (world, input)
}

#[test]
fn without_a_restore_whatever_was_acknowledged_has_to_be_there() {
    let (_, mut input) = unbroken();
    may_lose(&mut input, Some(0), None);
    let found = lost_writes(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Pass, Some(0)), "{}", found.reason);
    assert!(found.reason.starts_with("0 of 190 writes acknowledged were lost; "), "{}", found.reason);
    assert_eq!(found.evidence, [""; 0]);
    let whole = account(&input);
    assert_eq!((whole.acked_before_loss, whole.kept, whole.phantom), (190, Some(190), Some(0)));
    assert_eq!((whole.lost_after_restore, whole.unsettled), (Some(0), Some(0)));
    // One from before the fault, one from after it.
    never_stored(&mut input, &[20, 1_005]);
    let found = lost_writes(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(2)), "{}", found.reason);
    assert_eq!(found.evidence, ["histories/orders.jsonl#21"]);
    let judge = Judge::new(&input);
    assert_eq!(judge.ledger.lost_ids.to_ranges(), "20,1005");
    assert_eq!((judge.ledger.account.kept, judge.ledger.account.lost), (Some(188), Some(2)));
}

#[test]
fn without_a_restore_what_was_not_read_again_is_not_known_to_be_lost() {
    let (world, mut input) = unbroken();
    let last = 3_800;
    not_read_after(&mut input, last);
    let read = history(&mut input, "truth").iter().filter(|r| matches!(r, Record::Op(_))).map(instant).max();
    let open = world.restored().into_iter().filter(|(at, ..)| *at >= read.unwrap()).count() as u64;
    write_of(&mut input, 1_149).outcome = Outcome::Unknown { reason: "timeout".to_owned() };
    assert!(open > 60);
    let account = account(&input);
    assert_eq!((account.lost, account.unsettled), (Some(0), Some(open)));
    for (limit, verdict) in [(open - 1, Verdict::Inconclusive), (open, Verdict::Pass)] {
        may_lose(&mut input, Some(limit), None);
        let found = lost_writes(&input);
        assert_eq!((found.verdict, found.upper), (verdict, Some(open)), "{}", found.reason);
    }
}

// What keeps an objective from being met.

#[test]
fn a_client_that_an_objective_does_not_rest_on_keeps_it_from_nothing() {
    let mut input = World::honest().input();
    minimum(&mut input, "lister").before = 1_000;
    input.plan.clients.push(PlannedClient {
        name: "ready".to_owned(),
        kind: ClientKind::ApiReady,
        target: ComponentId("kube-apiserver-1".to_owned()),
        identity: "client".to_owned(),
        spec: None,
        every_ns: Some(100 * MS),
        minimum: MinimumOperations { before: 3, during: 0, after: 3 },
    });
    let judgement = judge(&input);
    for (name, verdict) in [
        ("writes-again", Verdict::Pass),
        ("lost-writes", Verdict::Pass),
        ("lists-right", Verdict::Inconclusive),
        ("no-client-on-lost-timeline", Verdict::Inconclusive),
    ] {
        let found = finding(&judgement, name);
        assert_eq!(found.verdict, verdict, "{name}: {}", found.reason);
    }
    minimum(&mut input, "lister").before = 3;
    let judgement = judge(&input);
    assert_eq!(
        judgement.verdict,
        Some(Verdict::Pass),
        "nothing is judged by readiness: {}",
        judgement.reason
    );
}

#[test]
fn of_several_steps_that_went_wrong_the_first_is_named() {
    let reason = |change: &dyn Fn(&mut EvidenceInput)| {
        let mut input = World::honest().input();
        change(&mut input);
        let found = lost_writes(&input);
        assert_eq!(found.verdict, Verdict::Inconclusive);
        found.reason
    };
    let insert = |input: &mut EvidenceInput, event: JournalEvent| {
        let mut entry = input.journal[10].clone();
        entry.event = event;
        input.journal.insert(11, entry);
    };
    let failed = reason(&|input| {
        for step in [4, 2] {
            insert(input, JournalEvent::StepFailed { step, reason: "no".to_owned() });
        }
    });
    assert!(failed.ends_with("but step 2 failed: no"), "{failed}");
    let interrupted = reason(&|input| {
        for by in ["SIGTERM", "SIGINT"] {
            insert(input, JournalEvent::Interrupted { by: by.to_owned() });
        }
    });
    assert!(interrupted.ends_with("but the run was interrupted by SIGINT"), "{interrupted}");
    let unfinished = reason(&|input| {
        let step = input.plan.steps[0].step.clone();
        input.plan.steps.extend([1, 2].map(|index| PlannedStep {
            index,
            step: step.clone(),
            targets: Vec::new(),
            fault: None,
        }));
    });
    assert!(unfinished.ends_with("but step 1 was not finished"), "{unfinished}");
}

#[test]
fn where_nothing_was_lost_the_last_write_kept_is_the_last_one_acknowledged() {
    let input = World { writes: [40, 0, 150], ..World::honest() }.input();
    let found = lost_writes(&input);
    assert_eq!(
        (found.verdict, found.lower, found.observed, found.upper),
        (Verdict::Pass, Some(0), Some(0), Some(0))
    );
    let (from, to) = (found.from.unwrap(), found.to.unwrap());
    assert_eq!((from.name.as_str(), to.name.as_str()), ("lastKeptWrite", "lastAcknowledgedWrite"));
    for mark in [from, to] {
        assert_eq!((mark.lower_ns, mark.upper_ns), (1_797 * MS, 1_803 * MS));
        assert_eq!(mark.source, "histories/orders.jsonl#41");
    }
}

#[test]
fn where_nothing_was_kept_all_that_was_written_is_gone_at_the_least() {
    let mut input = World { writes: [0, 40, 150], ..World::honest() }.input();
    // From the answer to the first write, at 1023, to the last one's call, at 1797.
    for (limit, verdict) in [(774, Verdict::Inconclusive), (773, Verdict::Fail)] {
        may_lose(&mut input, None, Some(Span::millis(limit)));
        let found = lost_writes(&input);
        assert_eq!(
            (found.verdict, found.lower, found.upper),
            (verdict, Some(774 * MS), None),
            "{}",
            found.reason
        );
        assert_eq!((found.observed, found.from), (None, None));
        assert!(
            found.reason.ends_with("none was kept: at least 774.0 ms worth of writes is gone"),
            "{}",
            found.reason
        );
    }
}

#[test]
fn of_two_restores_nobody_knows_what_was_lost() {
    let mut input = World::honest().input();
    let restored = |e: &&Entry| matches!(e.event, JournalEvent::Fact { fact: Fact::Restored { .. } });
    let again = input.journal.iter().find(restored).unwrap().clone();
    let at = input.journal.iter().position(|e| *e == again).unwrap();
    input.journal.insert(at + 1, again);
    let account = account(&input);
    assert_eq!((account.kept, account.lost), (None, None));
    let told = "2 restores in one run have no single restored timeline";
    assert_eq!(account.reason.as_deref(), Some(told));
}

#[test]
fn what_keeps_a_time_from_being_met_is_said_once() {
    let mut input = World::honest().input();
    within(&mut input, 600);
    minimum(&mut input, "orders").before = 81;
    let found = writes_again(&input);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert_eq!(found.reason.matches("the plan asks for 81").count(), 1, "{}", found.reason);
}

#[test]
fn a_run_says_how_many_objectives_it_had() {
    let mut input = World::honest().input();
    input.plan.objectives.truncate(1);
    assert_eq!(judge(&input).reason, "all 1 objectives met");
    input.plan.objectives.clear();
    assert_eq!(judge(&input).reason, "the drill has no objective");
}
