//! Histories recorded on a real cluster (Kubernetes v1.37.2, etcd v3.7.3), and twins of them.

use crate::objective::{answer_of, answered, history, linearizable};
use crate::recorded_run::recorded_run;
use quakeproof::check::Verdict;
use quakeproof::history::record::{Event, Outcome, Record};
use quakeproof::timeline::EvidenceInput;

/// A recorded run of a scenario.
pub fn recorded(scenario: &str) -> EvidenceInput {
    recorded_run("consistency", scenario)
}

#[test]
fn a_real_restore_with_a_bump_is_linearizable_on_either_side() {
    let found = linearizable(&recorded("restore-bump-and-mark"));
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert!(found.reason.contains("on either side of the restore"), "{}", found.reason);
}

#[test]
fn a_real_restore_without_a_bump_takes_revisions_back_and_skips_events() {
    let found = linearizable(&recorded("restore-without-bump"));
    assert_eq!(found.verdict, Verdict::Fail, "{}", found.reason);
    assert!(found.reason.contains("2 × an event missing in a live watch"), "{}", found.reason);
    assert!(found.reason.contains("a revision that went back for a client"), "{}", found.reason);
}

type Twin = (&'static str, fn(&mut EvidenceInput));

/// Twins of the good run: one record changed, each of which makes it impossible.
pub const TWINS: [Twin; 8] = [
    ("a write acknowledged at the next revision", |input| {
        *answer_of(answered(input, "orders", |_, _| true).remove(100)).revision.as_mut().unwrap() += 1;
    }),
    ("a write acknowledged at an old revision", |input| {
        *answer_of(answered(input, "orders", |_, _| true).remove(900)).revision.as_mut().unwrap() -= 40;
    }),
    ("an acknowledged object not found", |input| {
        answered(input, "reader", |_, _| true).remove(50).outcome =
            Outcome::Failed { status: Some(404), reason: "not-found".to_owned() };
    }),
    ("an object read at another revision", |input| {
        *answer_of(answered(input, "reader", |_, _| true).remove(60)).revision.as_mut().unwrap() += 1;
    }),
    ("an object missing from a range", |input| {
        let range =
            answered(input, "etcd-truth", |_, a| a.objects.as_ref().is_some_and(|o| o.len() > 50)).remove(3);
        answer_of(range).objects.as_mut().unwrap().remove(20);
    }),
    ("a range at an old revision", |input| {
        let range =
            answered(input, "etcd-truth", |_, a| a.objects.as_ref().is_some_and(|o| o.len() > 50)).remove(3);
        answer_of(range).revision = Some(3);
    }),
    ("a write that was refused and yet is there", |input| {
        answered(input, "orders", |_, _| true).remove(30).outcome =
            Outcome::Failed { status: Some(403), reason: "forbidden".to_owned() };
    }),
    ("a lost object read after the restore", |input| {
        let lost = answered(input, "orders", |_, _| true);
        let (id, revision) = lost
            .into_iter()
            .rev()
            .map(|op| (crate::objective::id_of(op), answer_of(op).revision))
            .find(|(_, revision)| revision.unwrap() < 1_000_000)
            .unwrap();
        let late = answered(input, "reader", |_, _| true).pop().unwrap();
        late.op = quakeproof::history::record::Op::Get { id };
        answer_of(late).revision = revision;
    }),
];

#[test]
fn each_broken_twin_of_a_real_history_is_flagged_with_its_records() {
    let good = recorded("restore-bump-and-mark");
    for (name, change) in TWINS {
        let mut twin = good.clone();
        change(&mut twin);
        let found = linearizable(&twin);
        assert_eq!(found.verdict, Verdict::Fail, "{name}: {}", found.reason);
        assert!(
            found.evidence.iter().all(|e| e.starts_with("histories/")) && !found.evidence.is_empty(),
            "{name}"
        );
    }
}

#[test]
fn one_event_gone_from_a_real_watch_is_flagged() {
    let good = recorded("restore-bump-and-mark");
    for client in ["watch", "etcd-watch"] {
        let puts: Vec<usize> = good.histories[client]
            .iter()
            .enumerate()
            .filter(|(_, r)| matches!(r, Record::Event(e) if matches!(e.event, Event::Put { .. })))
            .map(|(i, _)| i)
            .collect();
        for at in [puts[10], puts[puts.len() - 10]] {
            let mut twin = good.clone();
            history(&mut twin, client).remove(at);
            let found = linearizable(&twin);
            assert_eq!(found.verdict, Verdict::Fail, "{client}: {}", found.reason);
            assert!(found.reason.contains("an event missing in a live watch"), "{}", found.reason);
        }
    }
}
