//! Whether there is enough evidence for an objective to be met.
//!
//! Nothing here ever makes an objective missed; it only keeps one from passing.

use crate::history::kind::{ClientKind, Knows};
use crate::journal::entry::Phase;
use crate::plan::Plan;
use crate::timeline::boundaries::Boundaries;
use crate::timeline::clients::ClientLog;
use crate::timeline::phases::operations;

/// Whoever writes the ledger or has a view of it, and what they are held against.
#[must_use]
pub fn is_about_ledger(kind: ClientKind) -> bool {
    kind.knows() != Knows::Nothing
}

/// Why the run as a whole did not get to the end of its plan, or `None` when it did.
#[must_use]
pub fn cut_short(plan: &Plan, boundaries: &Boundaries) -> Option<String> {
    if let Some((step, reason)) = boundaries.steps_failed.first() {
        return Some(format!("step {step} failed: {reason}"));
    }
    if let Some(by) = boundaries.interrupted.first() {
        return Some(format!("the run was interrupted by {by}"));
    }
    if let Some(step) = plan.steps.iter().find(|s| !boundaries.steps_finished.contains(&s.index)) {
        return Some(format!("step {} was not finished", step.index));
    }
    if boundaries.phase(Phase::Collect).is_none() {
        return Some("the run ended before its evidence was collected".to_owned());
    }
    None
}

/// Why the clients of these kinds did not observe enough, or `None` when they did.
#[must_use]
pub fn too_little(
    logs: &[ClientLog],
    boundaries: &Boundaries,
    rests_on: impl Fn(ClientKind) -> bool,
) -> Option<String> {
    logs.iter().filter(|log| rests_on(log.kind())).find_map(|log| {
        log.incomplete().or_else(|| {
            operations(log, boundaries)
                .short_of(&log.planned.minimum)
                .map(|short| format!("{}: {short}", log.name()))
        })
    })
}

/// Why clients of these kinds can't have shown a change: they did too little before the fault.
#[must_use]
pub fn no_baseline(
    logs: &[ClientLog],
    boundaries: &Boundaries,
    rests_on: impl Fn(ClientKind) -> bool,
) -> Option<String> {
    logs.iter().filter(|log| rests_on(log.kind())).find_map(|log| {
        let (had, needed) = (operations(log, boundaries).before, log.planned.minimum.before);
        (had < needed)
            .then(|| format!("{}: {had} operations before the fault, the plan asks for {needed}", log.name()))
    })
}
