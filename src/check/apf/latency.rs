//! The objective `latency`.

use super::requests::{Kind, fates, nearest_rank};
use crate::check::coverage::cut_short;
use crate::check::objective::ObjectiveKind;
use crate::check::unit::Unit;
use crate::check::{Finding, Judge, Verdict};
use crate::drill::lint::{Lint, Place, WAIT};
use crate::drill::values::Span;
use crate::plan::PlannedObjective;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests of a load are answered in time, counted from when they were due. What is refused, or not answered, is not
/// in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Latency {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `load` client.
    pub client: String,
    /// Of how many of a hundred requests.
    #[schemars(range(min = 1, max = 100))]
    pub percentile: u8,
    /// The limit.
    pub within: Span,
}

impl ObjectiveKind for Latency {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("within"), self.within, WAIT);
        if !(1..=100).contains(&self.percentile) {
            let title = format!("`percentile: {}` is out of range", self.percentile);
            lint.error(&at.key("percentile"), title, "write 1 to 100");
        }
        lint.needs_load(&at.key("client"), &self.client);
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Judges it: nearest rank over all requests, those that were not executed at the end.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &Latency) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Nanoseconds, Some(objective.within.as_ns()));
    let Some(log) = judge.log(&objective.client) else {
        finding.reason = format!("{} left no history", objective.client);
        return finding;
    };
    let all = fates(log, judge.input);
    let mut took: Vec<u64> =
        all.iter().filter(|request| request.kind == Kind::Ok).map(|r| r.done.since(r.due)).collect();
    took.sort_unstable();
    let refused = all.len() - took.len();
    let observed = nearest_rank(&took, all.len(), usize::from(objective.percentile));
    let percentile = objective.percentile;
    finding.reason = match observed {
        Some(ns) => format!(
            "{percentile} of 100 requests were answered within {}, {refused} of {} not at all or with a refusal",
            super::super::figures::human(ns),
            all.len()
        ),
        None => format!("{refused} of {} requests were refused or not answered", all.len()),
    };
    let lost = log.planned.spec.is_some() && all.is_empty();
    let unsure = log
        .incomplete()
        .or_else(|| cut_short(&judge.input.plan, judge.boundaries()))
        .or_else(|| lost.then(|| "nothing was recorded".to_owned()));
    if let Some(unsure) = unsure {
        return finding.unsure(&unsure);
    }
    (finding.observed, finding.lower, finding.upper) = (observed, observed, observed);
    let met = observed.is_some_and(|ns| ns <= objective.within.as_ns());
    finding.verdict = if met { Verdict::Pass } else { Verdict::Fail };
    finding
}
