//! The objective `retriesHide`.

use super::accounting;
use super::requests::{Kind, kinds};
use crate::check::coverage::cut_short;
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::check::{Finding, Judge};
use crate::drill::lint::{Lint, Place};
use crate::drill::spec::Client;
use crate::history::record::Op;
use crate::plan::PlannedObjective;
use crate::plan::predict::fates::RETRIES_HIDE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whoever asks through a library that retries sees every request succeed, although attempts were refused: at least one
/// for each request. Shows what retries make of a phase in which others are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetriesHide {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `retryingLoad`.
    pub client: String,
}

impl ObjectiveKind for RetriesHide {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let path = at.key("client");
        lint.needs_held_up(&path, "retryingLoad", &self.client);
        let refused = lint
            .drill
            .level_of(&self.client)
            .is_some_and(|(at, level)| lint.drill.shares_before(at, level) == 0);
        if lint.has_client("retryingLoad", &self.client) && !refused {
            let title = format!("nothing refuses the requests of `{}` when its load begins", self.client);
            lint.error(&path, title, "begin it by a `load` step while its level has no shares");
        }
    }

    fn predicted(&self, _: &Foreseen<'_>) -> Option<String> {
        Some(RETRIES_HIDE.to_owned())
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Judges it by the last attempt at each request and those before it.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &RetriesHide) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Requests, Some(0));
    let Some(log) = judge.log(&objective.client) else {
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
    finding.counted(seen, 0, unsure)
}
