//! Objectives, by name: verdicts, and figures with their bounds.

use super::interval::{Interval, Relation, relate};
use super::item::{About, Item, Outcome, Ruling, SAME, Value, ruled};
use super::{Run, Sides};
use crate::check::unit::Unit;
use crate::check::{Finding, Verdict};
use crate::report::figure::{met, quantity};
use std::collections::BTreeMap;

const AREA: &str = "objective";
const VERDICT: &str = "verdict";

/// A verdict and, where there is one, a figure of every objective.
pub(super) fn items(runs: &Sides<Run>) -> Vec<Item> {
    let names = runs.names(|run| run.findings.iter().map(|finding| finding.name.as_str()));
    names.into_iter().flat_map(|name| of_objective(runs, name)).collect()
}

/// What became of the verdict of each objective.
pub(super) fn decided(items: &[Item]) -> BTreeMap<&str, Outcome> {
    let verdicts = items.iter().filter(|item| item.area == AREA && item.what == VERDICT);
    verdicts.map(|item| (item.subject.as_str(), item.outcome)).collect()
}

fn of_objective(runs: &Sides<Run>, name: &str) -> Vec<Item> {
    let about = |what: &str, unit: &str| About {
        area: AREA,
        subject: name.to_owned(),
        what: what.to_owned(),
        unit: unit.to_owned(),
    };
    let Some(findings) = runs.present(|run| finding(run, name)) else {
        return vec![about(VERDICT, "").missing(&runs.map(|run| finding(run, name).is_some()))];
    };
    let ruling = verdict(&findings);
    let decided = ruling.0;
    let words = findings.map(|finding| Value::word(met(finding.verdict)));
    let mut items = vec![about(VERDICT, "").item(words, ruling)];
    if findings.iter().any(|finding| has_figure(finding)) {
        let unit = findings.a.first().map_or("", |finding| finding.unit.as_str());
        let values = findings.map(|finding| Value::figure(finding));
        items.push(about("figure", unit).item(values, figure(&findings, decided)));
    }
    items
}

fn finding<'a>(run: &'a Run, name: &str) -> Option<&'a Finding> {
    run.findings.iter().find(|finding| finding.name == name)
}

fn has_figure(finding: &Finding) -> bool {
    finding.observed.or(finding.lower).or(finding.upper).is_some()
}

fn verdict(findings: &Sides<&Finding>) -> Ruling {
    if !findings.agree(|finding| (&finding.kind, &finding.unit)) {
        return ruled(Outcome::NotDistinguishable, "objectives of this name ask different things");
    }
    if !findings.agree(|finding| finding.target) {
        let mut limits = findings.names(|finding| [limit(finding)]);
        limits.sort_unstable();
        let limits = limits.join(" and ");
        return ruled(Outcome::NotDistinguishable, format!("the limits are not the same: {limits}"));
    }
    if let Some(ruling) = inconclusive(findings) {
        return ruling;
    }
    let missed = findings.map(|finding| Interval::exactly(u64::from(finding.verdict == Verdict::Fail)));
    let of_missed = |side: &[&Finding]| {
        let missed = side.iter().find(|finding| finding.verdict == Verdict::Fail);
        missed.map(|finding| finding.reason.clone()).unwrap_or_default()
    };
    match relate(&missed) {
        Relation::Equal => SAME,
        Relation::Higher => ruled(Outcome::Worse, of_missed(&findings.b)),
        Relation::Lower => ruled(Outcome::Better, format!("of A: {}", of_missed(&findings.a))),
        Relation::Overlapping => {
            ruled(Outcome::NotDistinguishable, "the runs of one side do not agree with each other")
        }
    }
}

fn limit(finding: &Finding) -> String {
    finding.target.map_or_else(|| "none".to_owned(), |target| quantity(target, finding.unit))
}

fn inconclusive(findings: &Sides<&Finding>) -> Option<Ruling> {
    let on = |side: &[&Finding], name: &str| {
        let unknown = side.iter().find(|finding| finding.verdict == Verdict::Inconclusive)?;
        Some(format!("inconclusive on {name}: {}", unknown.reason))
    };
    let reason = on(&findings.a, "A").or_else(|| on(&findings.b, "B"))?;
    Some(ruled(Outcome::NotDistinguishable, reason))
}

/// Kind of objectives whose figure is a percentile: a sample, not a bound.
const LATENCY: &str = "latency";

/// Of time, more is worse. Counts depend on what happened to be under way, so there the verdict says what more means.
fn figure(findings: &Sides<&Finding>, verdict: Outcome) -> Ruling {
    if !findings.agree(|finding| (&finding.kind, &finding.unit)) {
        return ruled(Outcome::NotDistinguishable, "objectives of this name ask different things");
    }
    if inconclusive(findings).is_some() {
        return ruled(Outcome::NotDistinguishable, "a figure of an inconclusive objective proves nothing");
    }
    if findings.iter().any(|finding| finding.lower.or(finding.upper).is_none()) {
        return ruled(Outcome::NotDistinguishable, "its bounds are not known on both sides");
    }
    let relation = relate(&findings.map(|finding| Interval::between(finding.lower, finding.upper)));
    let decides = matches!(verdict, Outcome::Worse | Outcome::Better);
    if findings.iter().any(|finding| finding.kind == LATENCY) && !decides && relation != Relation::Equal {
        return ruled(
            Outcome::Same,
            "a percentile of one run says little about the next; the verdicts agree",
        );
    }
    let of_time = findings.iter().all(|finding| finding.unit == Unit::Nanoseconds);
    match (relation, of_time, verdict) {
        (Relation::Equal, _, _) => SAME,
        (Relation::Overlapping, _, _) => ruled(Outcome::NotDistinguishable, "the bounds overlap"),
        (Relation::Higher, true, _) => ruled(Outcome::Worse, "B is above A, bounds included"),
        (Relation::Lower, true, _) => ruled(Outcome::Better, "B is below A, bounds included"),
        (_, false, Outcome::Worse | Outcome::Better) => ruled(verdict, "as the verdict"),
        (_, false, _) => ruled(Outcome::Changed, "the count changed, the verdict did not"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{finding as made, run, sides};

    fn outcomes(a: Finding, b: Finding) -> Vec<(String, Outcome)> {
        let with = |finding: Finding| {
            let mut run = run();
            run.findings = vec![finding];
            run
        };
        items(&sides(with(a), with(b))).into_iter().map(|item| (item.what, item.outcome)).collect()
    }

    fn only(outcome: Outcome) -> Vec<(String, Outcome)> {
        vec![(VERDICT.to_owned(), outcome), ("figure".to_owned(), outcome)]
    }

    fn each(verdict: Outcome, figure: Outcome) -> Vec<(String, Outcome)> {
        vec![(VERDICT.to_owned(), verdict), ("figure".to_owned(), figure)]
    }

    #[test]
    fn time_differs_when_bounds_have_nothing_in_common() {
        let short = || made(Verdict::Pass, Unit::Nanoseconds, (Some(1), Some(5)));
        let long = || made(Verdict::Pass, Unit::Nanoseconds, (Some(6), Some(9)));
        let middle = || made(Verdict::Pass, Unit::Nanoseconds, (Some(5), Some(6)));
        assert_eq!(outcomes(short(), long()), each(Outcome::Same, Outcome::Worse));
        assert_eq!(outcomes(long(), short()), each(Outcome::Same, Outcome::Better));
        assert_eq!(outcomes(short(), middle()), each(Outcome::Same, Outcome::NotDistinguishable));
        assert_eq!(outcomes(short(), short()), only(Outcome::Same));
    }

    #[test]
    fn a_percentile_differs_only_with_its_verdict() {
        let of_latency = |verdict, ns| Finding {
            kind: LATENCY.to_owned(),
            ..made(verdict, Unit::Nanoseconds, (Some(ns), Some(ns)))
        };
        let (short, long) = (of_latency(Verdict::Pass, 55), of_latency(Verdict::Pass, 76));
        assert_eq!(outcomes(short.clone(), short.clone()), only(Outcome::Same));
        assert_eq!(outcomes(short.clone(), long), only(Outcome::Same));
        let missed = of_latency(Verdict::Fail, 900);
        assert_eq!(outcomes(short.clone(), missed.clone()), only(Outcome::Worse));
        assert_eq!(outcomes(missed, short), only(Outcome::Better));
    }

    #[test]
    fn what_was_not_reached_is_later_than_what_was() {
        let reached = made(Verdict::Pass, Unit::Nanoseconds, (Some(1), Some(5)));
        let never = made(Verdict::Fail, Unit::Nanoseconds, (Some(30), None));
        assert_eq!(outcomes(reached.clone(), never.clone()), only(Outcome::Worse));
        assert_eq!(outcomes(never, reached), only(Outcome::Better));
    }

    #[test]
    fn nothing_is_concluded_from_an_inconclusive_objective_not_even_that_it_is_the_same() {
        let proven = || made(Verdict::Pass, Unit::Nanoseconds, (Some(1), Some(5)));
        let unknown = || made(Verdict::Inconclusive, Unit::Nanoseconds, (Some(60), Some(70)));
        for (a, b) in [(proven(), unknown()), (unknown(), proven()), (unknown(), unknown())] {
            assert_eq!(outcomes(a, b), only(Outcome::NotDistinguishable));
        }
    }

    #[test]
    fn more_of_a_count_is_worse_only_by_the_verdict() {
        let count = |verdict, n| made(verdict, Unit::Writes, (Some(n), Some(n)));
        let (pass, fail) = (Verdict::Pass, Verdict::Fail);
        assert_eq!(outcomes(count(pass, 3), count(pass, 4)), each(Outcome::Same, Outcome::Changed));
        assert_eq!(outcomes(count(pass, 3), count(fail, 4)), only(Outcome::Worse));
        assert_eq!(outcomes(count(fail, 4), count(pass, 3)), only(Outcome::Better));
        assert_eq!(outcomes(count(fail, 4), count(fail, 4)), only(Outcome::Same));
    }

    #[test]
    fn a_tighter_limit_is_no_worse_cluster() {
        let mut tight = made(Verdict::Fail, Unit::Nanoseconds, (Some(1), Some(5)));
        tight.target = Some(2);
        let loose = made(Verdict::Pass, Unit::Nanoseconds, (Some(1), Some(5)));
        assert_eq!(outcomes(loose, tight), each(Outcome::NotDistinguishable, Outcome::Same));
    }

    #[test]
    fn an_objective_that_one_side_does_not_have_is_not_the_same() {
        let with = run();
        let mut without = run();
        without.findings.clear();
        let found = items(&sides(with, without));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].outcome, Outcome::NotDistinguishable);
    }
}
