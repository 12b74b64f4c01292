//! The objective `rto`: time from the fault, or from the restore command, to a capability's return.

use super::coverage::{cut_short, no_baseline, too_little};
use super::figures::{human, judge_limit};
use super::objectives::{Rto, RtoFrom, RtoTo};
use super::{Finding, FindingMark, Judge, Verdict};
use crate::history::record::ClientKind;
use crate::plan::PlannedObjective;
use crate::timeline::{Mark, marks};

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
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, rto: &Rto) -> Finding {
    let mut finding = judge.finding(planned, "rto");
    let limit = rto.within.as_ns();
    let (to_name, rests_on) = to_mark(rto.to);
    finding.capability = Some(to_name.to_owned());
    (finding.unit, finding.target) = ("ns".to_owned(), Some(limit));
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
    let gap = cut_short(&judge.input.plan, judge.boundaries())
        .or_else(|| too_little(&judge.logs, judge.boundaries(), rests_on));
    finding.cannot_pass_if(gap);
    if finding.verdict == Verdict::Fail
        && let Some(reason) = no_baseline(&judge.logs, judge.boundaries(), rests_on)
    {
        finding.verdict = Verdict::Inconclusive;
        finding.reason = format!("{}; but {reason}", finding.reason);
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
