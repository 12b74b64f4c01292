//! The objective `successRate`.

use super::requests::{Kind, kinds};
use crate::check::coverage::cut_short;
use crate::check::objective::ObjectiveKind;
use crate::check::unit::Unit;
use crate::check::{Finding, Judge};
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Percent;
use crate::plan::PlannedObjective;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// So many requests of a load are executed with success. One limit: `atLeast` for clients that are to be served, or
/// `atMost` for those that are to be kept out. What is refused, or not answered, is no success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuccessRate {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `load` client.
    pub client: String,
    /// At least so many of its requests succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Percent>,
    /// At most so many of its requests succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Percent>,
}

impl ObjectiveKind for SuccessRate {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.needs_load(&at.key("client"), &self.client);
        if self.at_least.is_some() == self.at_most.is_some() {
            let title = "a `successRate` has one limit";
            let help = "write `atLeast: 99.9%` or `atMost: 1%`; two limits are two objectives";
            lint.error(&at.key("client"), title, help);
        }
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Judges it by what a limit speaks of: requests that did not succeed, or those that did.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &SuccessRate) -> Finding {
    let mut finding = judge.finding(planned);
    let Some(log) = judge.log(&objective.client) else {
        finding.reason = format!("{} left no history", objective.client);
        return finding;
    };
    let all: Vec<Kind> = kinds(log, judge.input).map(|(_, _, kind)| kind).collect();
    let total = all.len() as u64;
    let succeeded = all.iter().filter(|kind| **kind == Kind::Ok).count() as u64;
    let (counted, unit, most) = match (objective.at_least, objective.at_most) {
        (Some(least), _) => (total - succeeded, Unit::FailedRequests, least.rest().of(total)),
        (None, Some(most)) => (succeeded, Unit::SuccessfulRequests, most.of(total)),
        (None, None) => {
            "it has no limit".clone_into(&mut finding.reason);
            return finding;
        }
    };
    (finding.unit, finding.target) = (unit, Some(most));
    finding.reason = format!("{succeeded} of {total} requests were executed with success");
    let unsure = log
        .incomplete()
        .or_else(|| cut_short(&judge.input.plan, judge.boundaries()))
        .or_else(|| (total == 0).then(|| "nothing was recorded".to_owned()));
    finding.counted(counted, most, unsure)
}
