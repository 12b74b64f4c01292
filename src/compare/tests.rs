//! Runs made up for the tests of this folder, and what holds of every comparison.

use super::*;
use crate::apf::range::Range;
use crate::check::apf::facts::{
    ApfAccounting, ApfControl, ApfFacts, ApfLatency, ApfLeak, ApfPhase, ApfPredicted, ApfPredictedRejected,
    ApfRejected, ApfSeats, ApfServer,
};
use crate::check::restore_facts::PredictionOutcome;
use crate::check::unit::Unit;
use crate::check::{Finding, Verdict};
use crate::journal::entry::RunOutcome;
use crate::plan::Versions;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(super) fn sides(a: Run, b: Run) -> Sides<Run> {
    Sides { a: vec![a], b: vec![b] }
}

pub(super) fn finding(verdict: Verdict, unit: Unit, (lower, upper): (Option<u64>, Option<u64>)) -> Finding {
    Finding {
        name: "holds".to_owned(),
        kind: "rto".to_owned(),
        cluster: "main".to_owned(),
        verdict,
        reason: "as it was".to_owned(),
        unit,
        target: Some(10),
        observed: upper.and(lower),
        lower,
        upper,
        predicted: None,
        from: None,
        to: None,
        capability: None,
        evidence: Vec::new(),
    }
}

pub(super) fn prediction(subject: &str, agrees: Option<bool>) -> PredictionOutcome {
    PredictionOutcome {
        subject: subject.to_owned(),
        what: "view".to_owned(),
        predicted: "equals etcd's state".to_owned(),
        observed: "equals etcd's state".to_owned(),
        agrees,
        source: "executed".to_owned(),
    }
}

/// 2 executed, 10 to 12 refused because the queue is full.
pub(super) fn load(name: &str) -> ApfPhase {
    let none = Range::exactly(0);
    ApfPhase {
        name: name.to_owned(),
        server: "kube-apiserver-1".to_owned(),
        limit_response: "queue".to_owned(),
        shares: 0,
        sent: 12,
        ok: 2,
        ok_after_restore: 0,
        rejected: ApfRejected { queue_full: 10, ..ApfRejected::default() },
        unanswered: 0,
        headers_matched: 12,
        headers_missing: 0,
        latency: ApfLatency::default(),
        latency_by_outcome: BTreeMap::new(),
        sent_after_due_max_ns: 0,
        retry_after_seconds: None,
        predicted: Some(ApfPredicted {
            ok: Range::exactly(2),
            rejected: ApfPredictedRejected {
                queue_full: Range { low: 10, high: 12 },
                time_out: none,
                concurrency_limit: none,
            },
            holds: true,
            source: "executed".to_owned(),
        }),
    }
}

pub(super) fn run() -> Run {
    let seats = ApfSeats { nominal: Some(0), lower: Some(0), upper: Some(0), current: Some(0) };
    let server = "kube-apiserver-1".to_owned();
    Run {
        head: Head {
            run: "0199aaaa".to_owned(),
            drill: "jail".to_owned(),
            drill_digest: "d".to_owned(),
            parameters: BTreeMap::new(),
            overrides: BTreeMap::new(),
            profile: None,
            versions: Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() },
            seed: 7,
            outcome: Some(RunOutcome::Completed),
            verdict: Some(Verdict::Pass),
            reason: "all 1 objectives met".to_owned(),
        },
        findings: vec![finding(Verdict::Pass, Unit::Nanoseconds, (Some(1), Some(5)))],
        apf: vec![ApfFacts {
            cluster: "main".to_owned(),
            level: "jail".to_owned(),
            existing: None,
            flow_schema: "qp-jail".to_owned(),
            servers: vec![ApfServer { name: server.clone(), version: "v1.37.2".to_owned(), seats }],
            phases: vec![load("batch")],
            control: ApfControl::default(),
            accounting: ApfAccounting { holds: Some(true), differences: Vec::new(), reason: None },
            leak: vec![ApfLeak {
                server,
                admitted_while_held: 0,
                sent_while_held: 20,
                admitted_after: 3,
                concurrent: 1,
            }],
        }],
        predictions: vec![prediction("lister", Some(true))],
        judged_by: [("batch".to_owned(), vec!["holds".to_owned()])].into(),
    }
}

#[test]
fn a_run_is_the_same_as_itself() {
    let found = compare(&sides(run(), run())).unwrap();
    assert_eq!(found.overall, Overall::Same, "{}", found.reason);
    assert_eq!(found.notes, ["run 0199aaaa was given more than once"]);
}

#[test]
fn one_thing_that_is_worse_outweighs_the_rest_and_what_is_better_outweighs_nothing() {
    let mut better = run();
    better.findings[0] = finding(Verdict::Pass, Unit::Nanoseconds, (Some(0), Some(0)));
    let found = compare(&sides(run(), better.clone())).unwrap();
    assert_eq!(found.overall, Overall::Same, "{}", found.reason);
    assert!(found.reason.contains("1 better"), "{}", found.reason);
    let mut unknown = better.clone();
    unknown.predictions[0].agrees = None;
    assert_eq!(compare(&sides(run(), unknown.clone())).unwrap().overall, Overall::NotDistinguishable);
    unknown.apf[0].phases[0].unanswered = 1;
    let found = compare(&sides(run(), unknown)).unwrap();
    assert_eq!(found.overall, Overall::Worse);
    assert!(found.reason.contains("batch on jail (unanswered)"), "{}", found.reason);
}

#[test]
fn nothing_to_compare_is_not_the_same() {
    let empty = || {
        let mut run = run();
        (run.findings, run.apf, run.predictions) = Default::default();
        run
    };
    assert_eq!(compare(&sides(empty(), empty())).unwrap().overall, Overall::NotDistinguishable);
}

#[test]
fn runs_of_different_drills_are_not_compared_and_other_texts_of_a_drill_are_noted() {
    let mut other = run();
    other.head.drill_digest = "e".to_owned();
    other.head.parameters.insert("bump".to_owned(), "auto".to_owned());
    other.head.run = "0199bbbb".to_owned();
    let notes = compare(&sides(run(), other.clone())).unwrap().notes;
    assert!(notes[0].contains("drillDigest") && notes[1].contains("`bump`"), "{notes:?}");
    other.head.drill = "wall".to_owned();
    let refused = compare(&sides(run(), other)).unwrap_err().to_string();
    assert!(refused.contains("`jail`, `wall`") && refused.contains("hint:"), "{refused}");
}

#[test]
fn another_version_needs_no_note() {
    let mut newer = run();
    newer.head.run = "0199bbbb".to_owned();
    newer.head.overrides.insert("cluster.kubernetes".to_owned(), "v1.37.2".to_owned());
    assert_eq!(compare(&sides(run(), newer)).unwrap().notes, Vec::<String>::new());
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![4 => Just(Verdict::Pass), 4 => Just(Verdict::Fail), 1 => Just(Verdict::Inconclusive)]
}

/// Small figures: equal ones, neighbours and overlaps are what matters.
fn any_run() -> impl Strategy<Value = Run> {
    let bounds = (0..4_u64, proptest::option::weighted(0.8, 0..3_u64));
    let figures = (verdict(), bounds);
    let counts = (0..5_u64, 0..3_u64, 8..14_u64, 0..3_u64, 0..3_u64);
    let around =
        (proptest::option::of(0..3_u64), 0..3_u64, proptest::option::of(any::<bool>()), any::<bool>());
    (figures, counts, around).prop_map(|(figures, counts, around)| {
        let mut run = run();
        let (verdict, (lower, wide)) = figures;
        run.findings[0] = finding(verdict, Unit::Nanoseconds, (Some(lower), wide.map(|wide| lower + wide)));
        let level = &mut run.apf[0];
        let (ok, after, queue_full, other, unanswered) = counts;
        let load = &mut level.phases[0];
        (load.ok, load.ok_after_restore) = (ok, after.min(ok));
        (load.rejected.queue_full, load.rejected.other, load.unanswered) = (queue_full, other, unanswered);
        let (seats, leaked, agrees, holds) = around;
        if let Some(predicted) = &mut load.predicted {
            predicted.holds = holds;
        }
        level.servers[0].seats.current = seats;
        level.leak[0].admitted_while_held = leaked;
        run.predictions[0].agrees = agrees;
        run
    })
}

fn sides_of(counted: bool, mut runs: Sides<Run>) -> Sides<Run> {
    for finding in runs.a.iter_mut().chain(&mut runs.b).flat_map(|run| &mut run.findings) {
        finding.unit = if counted { Unit::Writes } else { Unit::Nanoseconds };
    }
    runs
}

fn any_sides() -> impl Strategy<Value = Sides<Run>> {
    let side = || proptest::collection::vec(any_run(), 1..4);
    (any::<bool>(), side(), side()).prop_map(|(counted, a, b)| sides_of(counted, Sides { a, b }))
}

fn exchanged(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Worse => Outcome::Better,
        Outcome::Better => Outcome::Worse,
        other => other,
    }
}

proptest! {
    #[test]
    fn a_side_is_the_same_as_itself_but_for_what_is_unknown(sides in any_sides()) {
        let runs = sides.a;
        let unknown = runs.iter().any(|run| {
            run.findings[0].verdict == Verdict::Inconclusive
                || run.predictions[0].agrees.is_none()
                || run.apf[0].servers[0].seats.current.is_none()
        });
        let found = compare(&Sides { a: runs.clone(), b: runs }).unwrap();
        for item in &found.items {
            prop_assert!(item.outcome == Outcome::Same || unknown && item.outcome == Outcome::NotDistinguishable);
        }
        if !unknown {
            prop_assert_eq!(found.overall, Overall::Same);
        }
    }

    #[test]
    fn exchanged_sides_turn_worse_into_better_and_nothing_else(sides in any_sides()) {
        let there = compare(&sides).unwrap();
        let back = compare(&Sides { a: sides.b, b: sides.a }).unwrap();
        prop_assert_eq!(there.items.len(), back.items.len());
        for (there, back) in there.items.iter().zip(&back.items) {
            prop_assert_eq!(exchanged(there.outcome), back.outcome, "{:?} {:?}", there, back);
            prop_assert_eq!((&there.a, &there.b), (&back.b, &back.a));
        }
    }

    #[test]
    fn what_is_not_the_same_says_why(sides in any_sides()) {
        for item in compare(&sides).unwrap().items {
            prop_assert_eq!(item.reason.is_none(), item.outcome == Outcome::Same);
        }
    }
}
