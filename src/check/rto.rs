//! The objective `rto`: time from the fault, or from the restore command, to a capability's return.

use super::coverage::{cut_short, no_baseline, too_little};
use super::figures::{human, judge_limit};
use super::{Finding, FindingMark, Judge, Verdict};
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::drill::lint::{Lint, Place, WAIT, WRITER};
use crate::drill::spec::Step;
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::plan::{PlannedObjective, predict};
use crate::timeline::{Mark, marks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recovery time: from one named mark to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rto {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Where the time starts.
    pub from: RtoFrom,
    /// Where it ends.
    pub to: RtoTo,
    /// Upper limit; the mark's uncertainty counts against the objective.
    pub within: Span,
}

/// Where a recovery time starts. The two are different figures and never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RtoFrom {
    /// The instant of the fault.
    Fault,
    /// The instant at which the restore command was given.
    RestoreCommand,
}

/// Where a recovery time ends: the first of a stretch of sustained good samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RtoTo {
    /// etcd answered a linearizable range.
    EtcdServing,
    /// Every API server's `/readyz` is ok.
    ApiReady,
    /// A ledger write was acknowledged.
    FirstGoodWrite,
    /// A quorum GET gave the right answer.
    FirstGoodGet,
    /// A LIST equal to etcd's own state at the same revision.
    FirstTrueList,
    /// Secrets are read and listed, with the value that was written.
    SecretsReadable,
    /// The controller manager made the ReplicaSet of a `deployer`'s Deployment.
    ControllersAct,
    /// The scheduler judged a `podCreator`'s Pod.
    SchedulerActs,
    /// An `eventWriter`'s Event was acknowledged.
    EventsWritten,
}

impl ObjectiveKind for Rto {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("within"), self.within, WAIT);
        let from = at.key("from");
        match self.from {
            RtoFrom::Fault if !lint.has_step(|s| s.kind().fault().is_some()) => {
                let title = "the time starts at the fault, and no step injects one";
                lint.error(&from, title, "add a `loseEtcd` step");
            }
            RtoFrom::RestoreCommand if !lint.has_step(|s| matches!(s, Step::RestoreSnapshot(_))) => {
                let title = "the time starts at the restore command, and no step gives it";
                lint.error(&from, title, "add a `restoreSnapshot` step");
            }
            RtoFrom::Fault | RtoFrom::RestoreCommand => {}
        }
        if let Some(client) = self.to.measured_by() {
            let title = format!("no client measures where this time ends: that takes a `{}`", client.0);
            lint.needs_kind(&at.key("to"), title, client);
        }
    }

    fn rests_on_truth(&self) -> bool {
        matches!(self.to, RtoTo::EtcdServing | RtoTo::FirstTrueList | RtoTo::FirstGoodGet)
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        predict::rto(foreseen.drill, self, foreseen.views)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

impl RtoTo {
    /// The kind of client that measures it, and one of it; `None`: probes do that every plan adds.
    fn measured_by(self) -> Option<(&'static str, &'static str)> {
        match self {
            RtoTo::EtcdServing | RtoTo::ApiReady => None,
            RtoTo::FirstGoodWrite => Some(WRITER),
            RtoTo::FirstGoodGet => Some(("getReader", "{name: reader, every: 50ms}")),
            RtoTo::FirstTrueList => Some(("listReader", "{name: lister, every: 200ms}")),
            RtoTo::SecretsReadable => Some(("secretReader", "{name: secrets, every: 500ms}")),
            RtoTo::ControllersAct => Some(("deployer", "{name: deployer}")),
            RtoTo::SchedulerActs => Some(("podCreator", "{name: pods}")),
            RtoTo::EventsWritten => Some(("eventWriter", "{name: events}")),
        }
    }
}

/// Name of the mark where a recovery time starts.
#[must_use]
pub fn from_mark(from: RtoFrom) -> &'static str {
    match from {
        RtoFrom::Fault => marks::FAULT,
        RtoFrom::RestoreCommand => marks::RESTORE_COMMAND,
    }
}

/// Name of the mark where it ends, and the clients that it rests on.
#[must_use]
pub fn to_mark(to: RtoTo) -> (&'static str, &'static [ClientKind]) {
    match to {
        RtoTo::EtcdServing => (marks::ETCD_SERVING, &[ClientKind::EtcdTruth]),
        RtoTo::ApiReady => (marks::API_READY, &[ClientKind::ApiReady]),
        RtoTo::FirstGoodWrite => (marks::FIRST_GOOD_WRITE, &[ClientKind::LedgerWriter]),
        RtoTo::FirstGoodGet => (marks::FIRST_GOOD_GET, &[ClientKind::GetReader, ClientKind::EtcdTruth]),
        RtoTo::SecretsReadable => (marks::SECRETS_READABLE, &[ClientKind::SecretReader]),
        RtoTo::FirstTrueList => (marks::FIRST_TRUE_LIST, &[ClientKind::ListReader, ClientKind::EtcdTruth]),
        RtoTo::ControllersAct => (marks::CONTROLLERS_ACT, &[ClientKind::Deployer]),
        RtoTo::SchedulerActs => (marks::SCHEDULER_ACTS, &[ClientKind::PodCreator]),
        RtoTo::EventsWritten => (marks::EVENTS_WRITTEN, &[ClientKind::EventWriter]),
    }
}

/// Judges it.
fn check(judge: &Judge, planned: &PlannedObjective, rto: &Rto) -> Finding {
    let mut finding = judge.finding(planned);
    let limit = rto.within.as_ns();
    let (to_name, rests_on) = to_mark(rto.to);
    finding.capability = Some(to_name.to_owned());
    (finding.unit, finding.target) = (Unit::Nanoseconds, Some(limit));
    let from = match judge.timeline.marks.get(from_mark(rto.from)) {
        Ok(mark) => mark,
        Err(reason) => {
            finding.reason = format!("the time has no start: {reason}");
            return finding;
        }
    };
    finding.from = Some(quoted(&from));
    finding.evidence.push(from.source.clone());
    let Some(recovery) = judge.timeline.marks.recoveries.get(to_name) else {
        finding.reason = format!("the time has no start that `{to_name}` can be measured from");
        return finding;
    };
    // Nothing that gaps may hide is held against the service.
    let proven = recovery.not_before.since(from.upper);
    match &recovery.mark {
        Ok(to) => {
            let (lower, upper) = (to.lower.since(from.upper), to.upper.since(from.lower));
            (finding.lower, finding.upper) = (Some(lower), Some(upper));
            finding.observed = Some(lower + (upper - lower) / 2);
            finding.to = Some(quoted(to));
            finding.evidence.push(to.source.clone());
            finding.verdict = judge_limit(Some(proven.min(lower)), Some(upper), limit);
            finding.reason = format!(
                "{to_name} between {} and {} after {}; limit {}",
                human(lower),
                human(upper),
                from.name,
                human(limit)
            );
        }
        Err(reason) => {
            finding.lower = Some(proven);
            finding.verdict = judge_limit(Some(proven), None, limit);
            finding.reason = format!(
                "{to_name} was not reached: {reason}; not before {} after {}, limit {}",
                human(proven),
                from.name,
                human(limit)
            );
        }
    }
    if let Some(method) = judge.boundaries().fault().and_then(|f| f.stop_method) {
        let method = serde_json::to_value(method).ok();
        if let Some(method) = method.as_ref().and_then(|m| m.as_str()) {
            finding.reason = format!("{} (stopped by {method})", finding.reason);
        }
    }
    let rests_on = |kind| rests_on.contains(&kind);
    let gap = cut_short(&judge.input.plan, judge.boundaries())
        .or_else(|| too_little(&judge.logs, judge.boundaries(), rests_on));
    finding.cannot_pass_if(gap);
    if finding.verdict == Verdict::Fail
        && let Some(reason) = no_baseline(&judge.logs, judge.boundaries(), rests_on)
    {
        return finding.unsure(&reason);
    }
    finding
}

fn quoted(mark: &Mark) -> FindingMark {
    FindingMark {
        name: mark.name.clone(),
        lower_ns: mark.lower.0,
        upper_ns: mark.upper.0,
        source: mark.source.clone(),
    }
}
