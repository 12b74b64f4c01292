//! The objective `retriesHide`.

use super::accounting;
use super::requests::{Kind, kinds};
use crate::check::coverage::cut_short;
use crate::check::objectives::RetriesHide;
use crate::check::{Finding, Judge, Verdict};
use crate::drill::spec::Client;
use crate::history::record::Op;
use crate::plan::PlannedObjective;
use std::collections::BTreeMap;

/// Judges it by the last attempt at each request and those before it.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, objective: &RetriesHide) -> Finding {
    let mut finding = judge.finding(planned, "retriesHide");
    (finding.unit, finding.target) = ("requests".to_owned(), Some(0));
    let Some(log) = judge.logs.iter().find(|log| log.name() == objective.client) else {
        finding.reason = format!("{} left no history", objective.client);
        return finding;
    };
    let mut attempts: BTreeMap<u64, Vec<Kind>> = BTreeMap::new();
    for (_, op, kind) in kinds(log, judge.input) {
        if let Op::Request { of: Some(attempt), .. } = &op.op {
            attempts.entry(attempt.request).or_default().push(kind);
        }
    }
    let total = match &log.planned.spec {
        Some(Client::RetryingLoad(load)) => load.arrivals.offsets(judge.input.plan.seed).len(),
        _ => 0,
    };
    let hidden = |kinds: &Vec<Kind>| kinds.len() > 1 && kinds.last() == Some(&Kind::Ok);
    let refused: usize =
        attempts.values().map(|kinds| kinds.iter().filter(|kind| **kind != Kind::Ok).count()).sum();
    let seen = attempts.values().filter(|kinds| !hidden(kinds)).count() as u64;
    finding.reason = format!(
        "{} of {total} requests succeeded for whoever asked, after {refused} refused attempts that nobody saw",
        attempts.values().filter(|kinds| kinds.last() == Some(&Kind::Ok)).count()
    );
    let few =
        (attempts.len() != total).then(|| format!("{} of {total} requests were recorded", attempts.len()));
    let doubts = accounting::doubts(judge.input, &judge.logs);
    let unsure = few
        .or_else(|| log.incomplete())
        .or_else(|| cut_short(&judge.input.plan, judge.boundaries()))
        .or_else(|| (!doubts.is_empty()).then(|| doubts.join("; ")));
    if let Some(unsure) = unsure {
        finding.reason = format!("{}; but {unsure}", finding.reason);
        return finding;
    }
    let count = Some(seen);
    (finding.observed, finding.lower, finding.upper) = (count, count, count);
    finding.verdict = if seen == 0 { Verdict::Pass } else { Verdict::Fail };
    finding
}
