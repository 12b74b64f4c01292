//! Where evidence is missing, nothing passes and what is proven stays proven.

use crate::world::{LOOK_EVERY, MAX_LAG, MS, WRITE_EVERY, World};
use crate::{finding, history, instant, lost_timeline};
use quakeproof::check::{Verdict, judge};
use quakeproof::clock::{BootId, MonoNs};
use quakeproof::history::record::{Answer, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent, Phase, RunOutcome};
use quakeproof::timeline::EvidenceInput;
use std::collections::BTreeMap;

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

#[test]
fn an_account_in_which_more_is_late_or_lost_than_was_scheduled_is_none() {
    let account = |of_scheduled: [u64; 3]| {
        let mut input = World::honest().input();
        let Some(Record::Closed { scheduled, late, lost, .. }) = history(&mut input, "orders").last_mut()
        else {
            panic!("the history has no end")
        };
        [*scheduled, *late, *lost] = of_scheduled;
        judge(&input).recorder
    };
    let whole = account([5, 2, 3]);
    assert_eq!((whole.late, whole.lost, whole.reason), (Some(2), Some(3), None));
    let more = account([5, 3, 3]);
    assert_eq!((more.scheduled, more.recorded), (None, None));
    let told = "the account of orders does not add up: 5 scheduled, 3 late, 3 lost";
    assert_eq!(more.reason.as_deref(), Some(told));
}
