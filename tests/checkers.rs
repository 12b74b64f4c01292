//! The checkers against a world whose state is known, against brute force, and
//! against twins of a good record that differ in one line.

#[path = "checkers/client_facts.rs"]
mod client_facts;
#[path = "checkers/holder_limits.rs"]
mod holder_limits;
#[path = "checkers/holders.rs"]
mod holders;
#[path = "checkers/limits.rs"]
mod limits;
#[path = "checkers/view_clients.rs"]
mod view_clients;
#[path = "checkers/windows.rs"]
mod windows;
#[path = "checkers/world.rs"]
mod world;

use proptest::prelude::*;
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Finding, Judgement, Verdict, judge};
use quakeproof::clock::{BootId, MonoNs};
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Answer, Event, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent, Phase, RunOutcome};
use quakeproof::timeline::EvidenceInput;
use std::collections::{BTreeMap, BTreeSet};
use world::{LOOK_EVERY, MAX_LAG, MS, Manner, WRITE_EVERY, World};

fn finding<'a>(judgement: &'a Judgement, name: &str) -> &'a Finding {
    judgement.findings.iter().find(|f| f.name == name).unwrap()
}

fn lost_timeline(input: &EvidenceInput) -> Finding {
    finding(&judge(input), "no-client-on-lost-timeline").clone()
}

fn history<'a>(input: &'a mut EvidenceInput, client: &str) -> &'a mut Vec<Record> {
    input.histories.get_mut(client).unwrap()
}

fn instant(record: &Record) -> u64 {
    match record {
        Record::Opened { mono_ns, .. } | Record::Closed { mono_ns, .. } => mono_ns.0 / MS,
        Record::Op(op) => op.return_ns.0 / MS,
        Record::Event(event) => event.at_ns.0 / MS,
    }
}

/// The first operation of a client that was called at or after `at`.
fn op_at<'a>(input: &'a mut EvidenceInput, client: &str, at: u64) -> &'a mut OpRecord {
    history(input, client)
        .iter_mut()
        .find_map(|r| match r {
            Record::Op(op) if op.call_ns.0 >= at * MS => Some(op),
            _ => None,
        })
        .unwrap()
}

fn answer_of(op: &mut OpRecord) -> &mut Answer {
    match &mut op.outcome {
        Outcome::Ok(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}

// What real versions do, in small.

#[test]
fn an_honest_cluster_passes_with_its_lost_writes_stated() {
    let world = World::honest();
    let judgement = judge(&world.input());
    assert_eq!(judgement.verdict, Some(Verdict::Pass), "{:#?}", judgement.findings);
    let facts = &judgement.etcd_restore[0];
    assert_eq!(facts.ledger.kept, Some(40));
    assert_eq!(facts.ledger.lost, Some(40));
    assert_eq!(facts.lost_ids, "41-80");
    assert_eq!(facts.ledger.acked, 80 + 150);
    assert_eq!(facts.ledger.phantom, Some(0));
    assert_eq!(facts.ledger.applied, Some(0));
    assert_eq!(facts.ledger.not_applied, Some(facts.ledger.indeterminate));
    assert!(facts.ledger.indeterminate > 0);
    assert_eq!(facts.revisions_lost, Some(40));
    let watch = facts.clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!((watch.gone410, watch.relists), (1, 1));
    assert_eq!((watch.events_missed, watch.phantom_objects), (Some(0), Some(0)));
    assert_eq!(watch.phases[0].observed, ObservedView::NotApplicable);
    assert!(watch.converged_after_ns.unwrap() <= 500 * MS);
    assert_eq!(judgement.recorder.lost, Some(0));
    let rpo = finding(&judgement, "lost-writes");
    assert_eq!(rpo.observed, Some(40 * WRITE_EVERY * MS));
    assert_eq!((rpo.lower, rpo.upper), (Some((800 - 6) * MS), Some((800 + 6) * MS)));
    let rto = finding(&judgement, "writes-again");
    assert_eq!(rto.upper, Some(503 * MS));
    assert!(
        judgement.predictions.iter().any(|p| p.agrees == Some(false)),
        "predicted otherwise, and said so"
    );
}

#[test]
fn an_api_server_kept_through_a_restore_without_bump_fails_in_both_phases() {
    let world = World::api_server_kept();
    let judgement = judge(&world.input());
    assert_eq!(judgement.verdict, Some(Verdict::Fail));
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(3)), "{}", found.reason);
    let facts = &judgement.etcd_restore[0];
    for name in ["lister", "watch", "raw"] {
        let client = facts.clients.iter().find(|c| c.name == name).unwrap();
        assert!(client.phases.iter().all(|p| p.observed == ObservedView::LostTimeline), "{client:#?}");
        // 40 lost objects still shown, 40 new ones skipped, and for good.
        assert_eq!(client.phantom_objects, Some(40));
        assert_eq!(client.absent_objects, Some(40));
        assert_eq!(client.phases[1].absent_at_end, Some(40));
        assert_eq!(client.converged_after_ns, None);
    }
    let watch = facts.clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!(watch.events_missed, Some(40));
    let silent = watch.silent_for_ns.unwrap() / MS;
    assert!((700..900).contains(&silent), "silent only until the revision is passed: {silent} ms");
    let lister = facts.clients.iter().find(|c| c.name == "lister").unwrap();
    assert!(lister.get_list_disagreements.unwrap() > 0);
    let reader = facts.clients.iter().find(|c| c.name == "reader").unwrap();
    assert_eq!(reader.stale_reads, Some(0), "a quorum GET shows what is");
    assert!(reader.get_list_disagreements.unwrap() > 0);
    assert!(judgement.predictions.iter().all(|p| p.agrees == Some(true)), "{:#?}", judgement.predictions);
    assert_eq!(finding(&judgement, "lists-right").verdict, Verdict::Fail);
    assert_eq!(finding(&judgement, "writes-again").verdict, Verdict::Pass);
}

#[test]
fn one_kind_of_client_on_the_lost_timeline_is_enough() {
    let worlds = [
        World { list: Manner::Frozen, bump: None, ..World::honest() },
        World { watch: Manner::Frozen, bump: None, ..World::honest() },
        World { etcd_watch: Manner::Frozen, bump: None, ..World::honest() },
        World { get_lies: true, bump: None, ..World::honest() },
    ];
    for world in worlds {
        let found = lost_timeline(&world.input());
        assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{world:?}: {}", found.reason);
    }
}

#[test]
fn a_watch_that_goes_quiet_is_stale_though_its_view_once_was_true() {
    let quiet_from = World::honest().judged_from() + 400;
    let world = World { watch: Manner::Stalls(quiet_from), ..World::honest() };
    let judgement = judge(&world.input());
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    let watch = judgement.etcd_restore[0].clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!(watch.phases[1].observed, ObservedView::Stale);
}

// Twins: a good record with one line changed.

#[test]
fn one_id_missing_from_one_list_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let ids = answer_of(op_at(&mut input, "lister", world.judged_from() + 700)).ids.as_mut().unwrap();
    assert!(ids.0.remove(&1_000));
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
}

#[test]
fn without_the_ledger_nobody_knows_that_nothing_was_lost() {
    for emptied in [false, true] {
        let mut input = World::honest().input();
        assert!(judge(&input).etcd_restore[0].ledger.lost.is_some());
        if emptied {
            history(&mut input, "orders").clear();
        } else {
            input.histories.remove("orders");
        }
        let judgement = judge(&input);
        let ledger = &judgement.etcd_restore[0].ledger;
        assert_eq!((ledger.kept, ledger.lost, ledger.phantom), (None, None, None));
        let why = if emptied { "the history of orders is empty" } else { "orders left no history" };
        assert_eq!(ledger.reason.as_deref(), Some(why));
        let rpo = judgement.findings.iter().find(|f| f.kind == "rpo").unwrap();
        assert_eq!((rpo.verdict, rpo.observed), (Verdict::Inconclusive, None), "{}", rpo.reason);
        assert_eq!(rpo.reason, why);
    }
}

#[test]
fn one_list_of_another_revision_is_found() {
    let world = World::honest();
    let mut input = world.input();
    *answer_of(op_at(&mut input, "lister", world.judged_from() + 700)).revision.as_mut().unwrap() -= 1;
    assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
}

#[test]
fn one_event_left_out_of_a_stream_is_found() {
    for client in ["watch", "raw"] {
        let world = World::honest();
        let mut input = world.input();
        let records = history(&mut input, client);
        let at = records
            .iter()
            .position(|r| matches!(r, Record::Event(e) if e.at_ns.0 > (world.judged_from() + 300) * MS));
        records.remove(at.unwrap());
        let found = lost_timeline(&input);
        assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    }
}

#[test]
fn one_wrong_answer_to_a_get_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let op = op_at(&mut input, "reader", world.judged_from() + 300);
    op.outcome = match op.outcome {
        Outcome::Ok(_) => Outcome::Failed { status: Some(404), reason: "not-found".to_owned() },
        _ => Outcome::Ok(Answer::default()),
    };
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    let mut input = world.input();
    op_at(&mut input, "reader", world.judged_from() + 300).outcome =
        Outcome::Ok(Answer { wrong_value: true, ..Answer::default() });
    assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
}

#[test]
fn one_object_missing_from_one_reading_of_etcd_makes_the_truth_unusable() {
    let world = World::honest();
    let mut input = world.input();
    answer_of(op_at(&mut input, "truth", world.judged_from() + 300)).objects.as_mut().unwrap().remove(3);
    let judgement = judge(&input);
    for name in ["no-client-on-lost-timeline", "lost-writes", "lists-right"] {
        let found = finding(&judgement, name);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{name}: {}", found.reason);
    }
    assert!(finding(&judgement, "lost-writes").reason.contains("contradict"));
}

#[test]
fn one_more_acknowledged_write_can_exceed_the_rpo() {
    let world = World::honest();
    let mut input = world.input();
    for planned in &mut input.plan.objectives {
        if let Objective::Rpo(rpo) = &mut planned.objective {
            rpo.within = Some(Span::secs(1));
            rpo.at_most_writes = Some(40);
        }
    }
    assert_eq!(finding(&judge(&input), "lost-writes").verdict, Verdict::Pass);
    op_at(&mut input, "orders", world.lost_at() + 300).outcome =
        Outcome::Ok(Answer { revision: Some(world.old_head() + 1), ..Answer::default() });
    let judgement = judge(&input);
    assert_eq!(finding(&judgement, "lost-writes").verdict, Verdict::Fail);
    assert_eq!(judgement.etcd_restore[0].ledger.lost, Some(41));
}

#[test]
fn a_write_that_hung_through_the_outage_is_not_the_last_one_before_it() {
    let world = World::honest();
    let mut input = world.input();
    let before = judge(&input);
    // Sent before the loss was felt; the restored etcd took it and answered.
    let hung = op_at(&mut input, "orders", world.serving_at());
    assert!(matches!(hung.outcome, Outcome::Ok(_)));
    hung.call_ns = MonoNs((world.lost_at() + 1) * MS);
    let after = judge(&input);
    let account = |judgement: &Judgement| judgement.etcd_restore[0].ledger.clone();
    assert_eq!(account(&after), account(&before));
    let (rpo, rpo_before) = (finding(&after, "lost-writes"), finding(&before, "lost-writes"));
    assert_eq!(
        (rpo.observed, rpo.lower, rpo.upper),
        (rpo_before.observed, rpo_before.lower, rpo_before.upper)
    );
    // Nor can anybody have been answered by the restored etcd before its data was in place.
    let rto = finding(&after, "writes-again");
    assert!(rto.lower >= Some((world.restored_at() - world.lost_at()) * MS), "{rto:?}");
}

#[test]
fn one_refused_write_moves_the_recovery_time() {
    let world = World::honest();
    let mut input = world.input();
    for planned in &mut input.plan.objectives {
        if let Objective::Rto(rto) = &mut planned.objective
            && rto.name == "writes-again"
        {
            rto.within = Span::millis(505);
        }
    }
    assert_eq!(finding(&judge(&input), "writes-again").verdict, Verdict::Pass);
    op_at(&mut input, "orders", world.serving_at() - 3).outcome =
        Outcome::Failed { status: Some(500), reason: "server-error".to_owned() };
    let judgement = judge(&input);
    let found = finding(&judgement, "writes-again");
    assert_eq!(found.verdict, Verdict::Inconclusive, "{}", found.reason);
    assert_eq!((found.lower, found.upper), (Some(492 * MS), Some(523 * MS)));
}

// Where evidence is missing.

#[test]
fn a_gap_at_the_decisive_moment_is_inconclusive() {
    let world = World::honest();
    let mut input = world.input();
    let (from, to) = (world.lost_at() + 100, world.serving_at() + 600);
    history(&mut input, "orders").retain(|r| !(from..to).contains(&instant(r)));
    let judgement = judge(&input);
    let found = finding(&judgement, "writes-again");
    assert_eq!(found.verdict, Verdict::Inconclusive, "{}", found.reason);
    let restored = (world.restored_at() - world.lost_at()) * MS;
    assert!(found.lower.unwrap() <= restored && found.upper.unwrap() > 1_000 * MS);
}

#[test]
fn a_reader_that_did_not_look_for_too_long_proves_nothing() {
    let world = World::honest();
    let from = world.judged_from() + 200;
    for client in ["lister", "reader"] {
        let mut input = world.input();
        history(&mut input, client).retain(|r| !(from..from + MAX_LAG + 250).contains(&instant(r)));
        let found = lost_timeline(&input);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{client}: {}", found.reason);
        assert!(found.reason.contains(client), "{}", found.reason);
    }
}

#[test]
fn without_etcds_own_state_nothing_is_proven_about_views() {
    let mut input = World::api_server_kept().input();
    input.histories.remove("truth");
    let judgement = judge(&input);
    for name in ["no-client-on-lost-timeline", "lost-writes", "lists-right"] {
        assert_eq!(finding(&judgement, name).verdict, Verdict::Inconclusive, "{name}");
    }
    assert_eq!(judgement.etcd_restore[0].ledger.lost, None);
    assert!(judgement.etcd_restore[0].ledger.reason.is_some());
}

#[test]
fn too_few_operations_prove_nothing() {
    for (client, objective) in
        [("watch", "no-client-on-lost-timeline"), ("orders", "writes-again"), ("orders", "lost-writes")]
    {
        let mut input = World::honest().input();
        let planned = input.plan.clients.iter_mut().find(|c| c.name == client).unwrap();
        planned.minimum.before = 1_000;
        let judgement = judge(&input);
        let found = finding(&judgement, objective);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{client}: {}", found.reason);
        assert!(found.reason.contains("the plan asks for 1000"), "{}", found.reason);
    }
}

#[test]
fn records_of_another_boot_are_not_compared() {
    let world = World::honest();
    let mut input = world.input();
    let from = world.judged_from() + 400;
    for record in history(&mut input, "lister").iter_mut().filter(|r| instant(r) >= from) {
        match record {
            Record::Op(op) => op.boot = BootId("deadbeef".to_owned()),
            Record::Closed { boot, .. } => *boot = BootId("deadbeef".to_owned()),
            _ => {}
        }
    }
    let found = lost_timeline(&input);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    let judgement = judge(&input);
    assert_eq!(judgement.recorder.scheduled, None);
    assert!(judgement.recorder.reason.as_ref().unwrap().contains("another boot"));
}

#[test]
fn a_failed_step_or_an_interruption_keeps_every_objective_from_passing() {
    let world = World::honest();
    let events = [
        JournalEvent::StepFailed { step: 0, reason: "no".to_owned() },
        JournalEvent::Interrupted { by: "SIGINT".to_owned() },
    ];
    for event in events {
        let mut input = world.input();
        let mut entry = input.journal[10].clone();
        entry.event = event;
        input.journal.insert(11, entry);
        let judgement = judge(&input);
        assert_eq!(judgement.verdict, Some(Verdict::Inconclusive));
        assert!(judgement.findings.iter().all(|f| f.verdict == Verdict::Inconclusive));
    }
}

#[test]
fn a_run_that_never_got_to_collecting_passes_nothing() {
    let mut input = World::honest().input();
    input.journal.retain(|e| e.event != JournalEvent::Phase { phase: Phase::Collect });
    let judgement = judge(&input);
    assert!(judgement.findings.iter().all(|f| f.verdict == Verdict::Inconclusive));
}

#[test]
fn a_wait_in_vain_keeps_views_from_passing() {
    let mut input = World::honest().input();
    for (step, held) in [(3, false), (2, false), (1, true)] {
        let mut entry = input.journal[10].clone();
        let (detail, at_ns) = ("60 s passed".to_owned(), entry.mono_ns);
        entry.event = JournalEvent::Fact { fact: Fact::Observed { step, held, detail, at_ns } };
        input.journal.insert(11, entry);
    }
    let judgement = judge(&input);
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.reason.ends_with("step 2 waited in vain: 60 s passed"), "{}", found.reason);
    assert_eq!(finding(&judgement, "lost-writes").verdict, Verdict::Pass);
}

#[test]
fn a_list_in_pages_is_judged_as_one_and_a_lost_page_is_not_taken_for_absent_objects() {
    let world = World::honest();
    let mut whole = world.input();
    let records = history(&mut whole, "lister");
    let mut paged = Vec::new();
    for record in records.drain(..) {
        match record {
            Record::Op(op) if matches!(op.outcome, Outcome::Ok(_)) => {
                let (Op::List { list, .. }, Outcome::Ok(answer)) = (&op.op, &op.outcome) else {
                    panic!("a list reader only lists")
                };
                let list = *list;
                let ids: Vec<u64> = answer.ids.iter().flat_map(|ids| ids.0.iter().copied()).collect();
                let half = ids.len() / 2;
                for (page, part) in [&ids[..half], &ids[half..]].into_iter().enumerate() {
                    let answer = Answer {
                        ids: Some(part.iter().copied().collect()),
                        more: page == 0,
                        ..answer.clone()
                    };
                    let page = u32::try_from(page).unwrap();
                    paged.push(Record::Op(OpRecord {
                        op: Op::List { list, page, resource_version: None, limit: Some(500) },
                        outcome: Outcome::Ok(answer),
                        ..op.clone()
                    }));
                }
            }
            other => paged.push(other),
        }
    }
    let pages = paged.iter_mut().filter_map(|r| if let Record::Op(op) = r { Some(op) } else { None });
    (0..).zip(pages).for_each(|(seq, op)| op.seq = seq);
    *records = paged;
    assert_eq!(lost_timeline(&whole).verdict, Verdict::Pass);
    let records = history(&mut whole, "lister");
    let second_page = records
        .iter()
        .position(|r| {
            instant(r) > world.judged_from() + 300
                && matches!(r, Record::Op(OpRecord { op: Op::List { page: 1, .. }, .. }))
        })
        .unwrap();
    records.remove(second_page);
    let judgement = judge(&whole);
    let lister = judgement.etcd_restore[0].clients.iter().find(|c| c.name == "lister").unwrap();
    assert_eq!((lister.phases[1].false_views, lister.phases[1].unjudged), (0, 1));
}

#[test]
fn a_write_kept_behind_a_lost_one_does_not_shorten_the_lost_time() {
    let world = World::honest();
    let mut input = world.input();
    // Etcd forgets object 20 in every reading, as no restore of a snapshot can explain.
    for record in history(&mut input, "truth") {
        if let Record::Op(OpRecord { outcome: Outcome::Ok(answer), .. }) = record
            && let Some(objects) = &mut answer.objects
        {
            objects.retain(|(id, _)| *id != 20);
        }
    }
    let judgement = judge(&input);
    assert_eq!(judgement.etcd_restore[0].lost_ids, "20,41-80");
    assert_eq!(finding(&judgement, "lost-writes").observed, Some(61 * WRITE_EVERY * MS));
}

#[test]
fn an_object_that_nobody_wrote_is_a_phantom_of_the_ledger() {
    let mut input = World::honest().input();
    for record in history(&mut input, "orders") {
        if let Record::Op(op) = record
            && op.op == (Op::Create { id: 7 })
        {
            op.outcome = Outcome::Failed { status: Some(500), reason: "server-error".to_owned() };
        }
    }
    let judgement = judge(&input);
    assert_eq!(judgement.etcd_restore[0].ledger.phantom, Some(1));
    assert_eq!(finding(&judgement, "lost-writes").verdict, Verdict::Inconclusive);
}

#[test]
fn a_phase_that_is_over_before_clients_settle_proves_nothing() {
    let world = World { writes: [40, 10, 100], bump: None, ..World::honest() };
    let found = lost_timeline(&world.input());
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.reason.contains("longer hold"), "{}", found.reason);
}

#[test]
fn a_refused_run_has_no_verdict() {
    let mut input = World::honest().input();
    input.journal.truncate(1);
    let mut closed = input.journal[0].clone();
    closed.event =
        JournalEvent::RunClosed { outcome: RunOutcome::Refused, reason: Some("unhealthy".to_owned()) };
    input.journal.push(closed);
    input.histories = BTreeMap::new();
    let judgement = judge(&input);
    assert_eq!(judgement.verdict, None);
    assert!(judgement.reason.contains("unhealthy"));
}

/// What a killed run leaves: everything up to an instant.
fn cut(input: &EvidenceInput, at: u64) -> EvidenceInput {
    let mut cut = input.clone();
    cut.journal.retain(|e| e.mono_ns <= MonoNs(at * MS));
    for records in cut.histories.values_mut() {
        let keep = records.iter().position(|r| instant(r) > at).unwrap_or(records.len());
        records.truncate(keep);
    }
    cut
}

#[test]
fn a_run_killed_at_any_time_never_passes_and_what_is_proven_stays_missed() {
    let world = World::honest();
    let input = world.input();
    let closed = world.collect_at() + 42;
    let mut at = 900;
    while at < closed {
        let judgement = judge(&cut(&input, at));
        assert_eq!(judgement.verdict, Some(Verdict::Inconclusive), "killed at {at}: {}", judgement.reason);
        at += 61;
    }
    assert_eq!(judge(&cut(&input, closed)).verdict, Some(Verdict::Pass));

    let world = World::api_server_kept();
    let input = world.input();
    let mut missed_since = None;
    let mut at = 900;
    while at < closed {
        let found = lost_timeline(&cut(&input, at));
        assert_ne!(found.verdict, Verdict::Pass);
        match found.verdict {
            Verdict::Fail => missed_since = missed_since.or(Some(at)),
            _ => assert_eq!(missed_since, None, "proven at {missed_since:?}, taken back at {at}"),
        }
        at += 61;
    }
    assert!(missed_since.unwrap() < world.judged_from() + 3 * LOOK_EVERY);
}

#[test]
fn the_same_evidence_gives_the_same_judgement() {
    let input = World::api_server_kept().input();
    assert_eq!(judge(&input), judge(&input.clone()));
}

// Brute force.

/// Clients that are wrong between settling and collecting, found by comparing
/// every view with the world itself.
fn brute_force(world: &World, input: &EvidenceInput) -> BTreeSet<&'static str> {
    let (from, to) = (world.judged_from(), world.collect_at());
    let state = |revision: u64| -> BTreeSet<u64> {
        world.restored().into_iter().filter(|(_, _, r)| *r <= revision).map(|(_, id, _)| id).collect()
    };
    let is_wrong = |ids: &BTreeSet<u64>, revision: u64, call: u64, ret: u64| {
        if revision > world.now(ret).0 {
            let (must, may) = (world.now(call - 5).1, world.now(ret).1);
            return !ids.is_subset(&may) || !must.is_subset(ids);
        }
        let stale = world
            .restored()
            .into_iter()
            .any(|(when, _, r)| when > 0 && when + 3 + MAX_LAG <= call && r > revision);
        *ids != state(revision) || stale
    };
    let mut wrong = BTreeSet::new();
    for record in &input.histories["lister"] {
        let Record::Op(OpRecord { call_ns, return_ns, outcome: Outcome::Ok(answer), .. }) = record else {
            continue;
        };
        let (call, ret) = (call_ns.0 / MS, return_ns.0 / MS);
        if (from..to).contains(&call)
            && is_wrong(&answer.ids.as_ref().unwrap().0, answer.revision.unwrap(), call, ret)
        {
            wrong.insert("lister");
        }
    }
    for record in &input.histories["reader"] {
        let Record::Op(OpRecord { call_ns, op: Op::Get { id }, outcome, .. }) = record else { continue };
        let call = call_ns.0 / MS;
        if (from..to).contains(&call) && world.now(call).1.contains(id) != matches!(outcome, Outcome::Ok(_)) {
            wrong.insert("reader");
        }
    }
    for client in ["watch", "raw"] {
        for look in input.histories["truth"].iter().filter_map(|r| match r {
            Record::Op(op) => Some(op.call_ns.0 / MS),
            _ => None,
        }) {
            if !(from..to).contains(&look) {
                continue;
            }
            let (ids, revision) = fold_until(&input.histories[client], look);
            if is_wrong(&ids, revision, look, look) {
                wrong.insert(if client == "watch" { "watch" } else { "raw" });
            }
        }
    }
    wrong
}

fn fold_until(records: &[Record], until: u64) -> (BTreeSet<u64>, u64) {
    let (mut ids, mut revision) = (BTreeSet::new(), 0);
    for record in records.iter().filter(|r| instant(r) <= until) {
        match record {
            Record::Op(OpRecord { outcome: Outcome::Ok(answer), op, .. })
                if !matches!(op, Op::Watch { .. }) =>
            {
                ids = match (&answer.ids, &answer.objects) {
                    (Some(ids), _) => ids.0.clone(),
                    (_, Some(objects)) => objects.iter().map(|(id, _)| *id).collect(),
                    _ => unreachable!("a list or a range"),
                };
                revision = answer.revision.unwrap();
            }
            Record::Event(event) => {
                if let Event::Put { id, revision: at } = event.event {
                    ids.insert(id);
                    revision = at;
                }
            }
            _ => {}
        }
    }
    (ids, revision)
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        4 => Just(Manner::Honest),
        2 => Just(Manner::Frozen),
        1 => (2_000u64..5_500).prop_map(Manner::Omits),
        1 => (2_000u64..5_500).prop_map(Manner::Invents),
        1 => (3_500u64..5_500).prop_map(Manner::Stalls),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_finds_exactly_the_clients_that_brute_force_finds(
        before in 12u64..40,
        lost in 0u64..60,
        after in 60u64..120,
        bump in prop_oneof![Just(None), Just(Some(3)), Just(Some(1_000_000))],
        list in manner(),
        watch in manner(),
        etcd_watch in manner(),
        get_lies in proptest::bool::weighted(0.2),
    ) {
        let world = World { writes: [before, lost, after], bump, list, watch, etcd_watch, get_lies };
        let input = world.input();
        let expected = brute_force(&world, &input);
        let judgement = judge(&input);
        let found = finding(&judgement, "no-client-on-lost-timeline");
        let wrong: BTreeSet<&str> = judgement.etcd_restore[0]
            .clients
            .iter()
            .filter(|c| c.phases.iter().any(|p| p.is_wrong()))
            .map(|c| c.name.as_str())
            .collect();
        prop_assert_eq!(&wrong, &expected, "{}", found.reason);
        prop_assert_eq!(found.lower, Some(expected.len() as u64));
        if expected.is_empty() {
            prop_assert_ne!(found.verdict, Verdict::Fail);
            // Where both phases could be observed, nothing stands against passing.
            let facts = &judgement.etcd_restore[0];
            let all_known = facts.clients.iter().flat_map(|c| &c.phases).all(|p| p.observed != ObservedView::Unknown);
            prop_assert_eq!(found.verdict == Verdict::Pass, all_known, "{}", found.reason);
            if bump == Some(1_000_000) {
                prop_assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
            }
        } else {
            prop_assert_eq!(found.verdict, Verdict::Fail);
        }
        let ledger = &judgement.etcd_restore[0].ledger;
        prop_assert_eq!(ledger.kept, Some(before));
        prop_assert_eq!(ledger.lost, Some(lost));
        prop_assert_eq!(ledger.acked_after_restore, after);
        let rpo = finding(&judgement, "lost-writes");
        prop_assert_eq!(rpo.observed, Some(lost * WRITE_EVERY * MS));
    }

    #[test]
    fn one_record_gone_from_anywhere_never_makes_a_missed_objective_pass(
        client in prop_oneof![Just("lister"), Just("watch"), Just("raw"), Just("truth"), Just("orders"), Just("reader")],
        at in 0usize..200,
    ) {
        let mut input = World::api_server_kept().input();
        let records = history(&mut input, client);
        let at = at % records.len();
        records.remove(at);
        prop_assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
    }
}
