//! The objective `successRate`.

use super::requests::{Kind, kinds};
use crate::check::coverage::cut_short;
use crate::check::objectives::SuccessRate;
use crate::check::{Finding, Judge, Verdict};
use crate::plan::PlannedObjective;

/// Judges it by what a limit speaks of: requests that did not succeed, or those that did.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, objective: &SuccessRate) -> Finding {
    let mut finding = judge.finding(planned, "successRate");
    let Some(log) = judge.logs.iter().find(|log| log.name() == objective.client) else {
        finding.reason = format!("{} left no history", objective.client);
        return finding;
    };
    let all: Vec<Kind> = kinds(log, judge.input).map(|(_, _, kind)| kind).collect();
    let total = all.len() as u64;
    let succeeded = all.iter().filter(|kind| **kind == Kind::Ok).count() as u64;
    let (counted, what, most) = match (objective.at_least, objective.at_most) {
        (Some(least), _) => (total - succeeded, "failed requests", least.rest().of(total)),
        (None, Some(most)) => (succeeded, "successful requests", most.of(total)),
        (None, None) => {
            "it has no limit".clone_into(&mut finding.reason);
            return finding;
        }
    };
    (finding.unit, finding.target) = (what.to_owned(), Some(most));
    finding.reason = format!("{succeeded} of {total} requests were executed with success");
    let unsure = log
        .incomplete()
        .or_else(|| cut_short(&judge.input.plan, judge.boundaries()))
        .or_else(|| (total == 0).then(|| "nothing was recorded".to_owned()));
    if let Some(unsure) = unsure {
        finding.reason = format!("{}; but {unsure}", finding.reason);
        return finding;
    }
    (finding.observed, finding.lower, finding.upper) = (Some(counted), Some(counted), Some(counted));
    finding.verdict = if counted <= most { Verdict::Pass } else { Verdict::Fail };
    finding
}
