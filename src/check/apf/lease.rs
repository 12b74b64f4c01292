//! The objective `losesLease`.

use super::{holding_up, in_force};
use crate::check::coverage::cut_short;
use crate::check::leaders::beliefs;
use crate::check::objectives::LosesLease;
use crate::check::{Finding, Judge, Verdict};
use crate::clock::MonoNs;
use crate::plan::PlannedObjective;

/// Judges it by what the elector believes. The level began to hold it up somewhere between the begin of the injection
/// and the moment at which it was seen in force; both ends count for the bounds.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, objective: &LosesLease) -> Finding {
    let mut finding = judge.finding(planned, "losesLease");
    finding.unit = "ns".to_owned();
    let log = judge.logs.iter().find(|log| log.name() == objective.client);
    let bounds = judge.input.plan.drill.lease_lost(objective);
    let (Some(log), Some((seen, ended)), Some((earliest, latest))) =
        (log, in_force(judge, &objective.client), bounds)
    else {
        finding.reason = format!("{} was not seen while its level was in force", objective.client);
        return finding;
    };
    let begun = holding_up(judge, &objective.client)
        .and_then(|fault| fault.injecting.as_ref())
        .map_or(seen, |m| m.mono_ns);
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (first, last) = (begun.plus(nanos(earliest)), seen.plus(nanos(latest)));
    finding.target = Some(nanos(latest));
    let held: Vec<_> =
        beliefs(&[log]).into_iter().filter(|belief| belief.from <= begun && belief.to >= begun).collect();
    let unsure =
        log.incomplete().or_else(|| cut_short(&judge.input.plan, judge.boundaries())).or_else(|| {
            (last > ended).then(|| "the level was not in force for as long as that takes".to_owned())
        });
    let Some(belief) = held.first() else {
        finding.reason = format!("{} did not lead when its level was made", objective.client);
        return finding;
    };
    finding.evidence.clone_from(&belief.lines);
    let lost = (belief.ended && belief.to <= ended).then_some(belief.to);
    finding.reason = match lost {
        Some(at) => format!(
            "{} stopped leading {} after its level was in force",
            belief.candidate,
            super::super::figures::human(at.since(seen))
        ),
        None => format!("{} led on while its level was in force", belief.candidate),
    };
    if let Some(unsure) = unsure {
        finding.reason = format!("{}; but {unsure}", finding.reason);
        return finding;
    }
    let since = |at: MonoNs| (Some(at.since(seen)), Some(at.since(begun)));
    if let Some(at) = lost {
        (finding.lower, finding.upper) = since(at);
        finding.observed = finding.lower;
    }
    let as_predicted = lost.is_some_and(|at| first <= at && at <= last);
    finding.verdict = if as_predicted { Verdict::Pass } else { Verdict::Fail };
    finding
}
