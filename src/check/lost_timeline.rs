//! The objective `noClientOnLostTimeline`: after a restore every client's view is
//! etcd's own state at the same revision, before and after the restored timeline
//! has passed the old revision. How long a watch was silent is not the criterion:
//! one that goes on after a short silence may have skipped objects for good.

use super::coverage::{cut_short, too_little};
use super::facts::on_lost_state;
use super::seen::{ObservedView, Seen, accepted_on_lost_state, is_judged, seen};
use super::window::{Phase, Windows};
use super::{Finding, Judge, Verdict};
use crate::check::objectives::NoClientOnLostTimeline;
use crate::history::record::ClientKind;
use crate::plan::PlannedObjective;
use crate::timeline::gets::Right;

/// Clients whose evidence the objective rests on.
const RESTS_ON: [ClientKind; 8] = [
    ClientKind::LedgerWriter,
    ClientKind::GetReader,
    ClientKind::ListReader,
    ClientKind::Watcher,
    ClientKind::EtcdWatcher,
    ClientKind::EtcdTruth,
    ClientKind::CasUpdater,
    ClientKind::Reflector,
];

/// What every planned client saw, in the plan's order.
#[must_use]
pub fn all_seen(judge: &Judge, objective: &NoClientOnLostTimeline) -> Vec<Seen> {
    let windows = Windows::of(&judge.timeline, &judge.logs, objective.settle.as_ns());
    judge
        .logs
        .iter()
        .map(|log| seen(log, judge.timeline.restored.as_ref(), &windows, objective.max_lag.as_ns()))
        .collect()
}

/// Judges it.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, objective: &NoClientOnLostTimeline) -> Finding {
    let mut finding = judge.finding(planned, "noClientOnLostTimeline");
    (finding.unit, finding.target) = ("clients".to_owned(), Some(0));
    if let Err(reason) = judge.boundaries().restore() {
        finding.reason = format!("there is no restored timeline: {reason}");
        return finding;
    }
    let seen = all_seen(judge, objective);
    let judged = || judge.logs.iter().zip(&seen).filter(|(log, _)| is_judged(log.kind()));
    let total = judged().count() as u64;
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    for (log, seen) in judged() {
        if log.kind() == ClientKind::CasUpdater {
            // Also while clients may still be converging: what was overwritten stays so.
            match on_lost_state(log.kind(), seen) {
                Ok(0) => {}
                Ok(updates) => {
                    wrong.push(format!("{} ({})", log.name(), accepted_on_lost_state(updates)));
                    let lines = seen.updates.iter().filter(|u| matches!(u.right, Right::No(_)));
                    finding.evidence.extend(lines.map(|u| u.line.clone()));
                    continue;
                }
                Err(why) => {
                    unknown.push(format!("{}: {why}", log.name()));
                    continue;
                }
            }
        }
        if let Some(phase) = seen.phases.iter().find(|p| p.is_wrong()) {
            let phases: Vec<&str> =
                seen.phases.iter().filter(|p| p.is_wrong()).map(|p| p.phase.words()).collect();
            let reason = phase.reason.clone().unwrap_or_default();
            let phases = match phases.as_slice() {
                [one] => one,
                _ => "in both phases",
            };
            wrong.push(format!("{} ({phases}; {reason})", log.name()));
            finding.evidence.extend(seen.phases.iter().filter_map(|p| p.first_wrong.clone()));
        } else if let Some(phase) = seen.phases.iter().find(|p| p.observed == ObservedView::Unknown) {
            let reason = phase.reason.clone().unwrap_or_default();
            unknown.push(format!("{} {}: {reason}", log.name(), phase.phase.words()));
        }
    }
    finding.observed = Some(wrong.len() as u64);
    finding.lower = Some(wrong.len() as u64);
    finding.upper = Some((wrong.len() + unknown.len()) as u64);
    if !wrong.is_empty() {
        finding.verdict = Verdict::Fail;
        finding.reason = format!("{} of {total} clients: {}", wrong.len(), wrong.join(", "));
        return finding;
    }
    if total == 0 {
        finding.observed = None;
        finding.reason = "no client of the drill reads or watches the ledger".to_owned();
        return finding;
    }
    if let Some(first) = unknown.first() {
        finding.observed = None;
        finding.reason = format!("{} of {total} clients can't be judged: {first}", unknown.len());
        return finding;
    }
    finding.verdict = Verdict::Pass;
    finding.reason = format!("every view of {total} clients was etcd's state at the same revision");
    if let Some(phase) = seen.iter().flat_map(|s| &s.phases).find(|p| p.phase == Phase::BeforePassing)
        && phase.observed == ObservedView::NotApplicable
    {
        let why = phase.reason.clone().unwrap_or_default();
        finding.reason = format!("{}; one phase only: {why}", finding.reason);
    }
    finding.cannot_pass_if(
        cut_short(&judge.input.plan, judge.boundaries())
            .or_else(|| too_little(&judge.logs, judge.boundaries(), &RESTS_ON))
            .or_else(|| {
                let unmet = judge.boundaries().observed.iter().find(|o| !o.held)?;
                Some(format!("step {} waited in vain: {}", unmet.step, unmet.detail))
            }),
    );
    finding
}
