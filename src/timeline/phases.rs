//! How much each client did before, while and after the fault lasted.

use super::boundaries::Boundaries;
use super::clients::ClientLog;
use super::{cas, consumed, gets};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::Event;
use crate::plan::MinimumOperations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Completed operations of a client; events for watches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operations {
    /// Returned before the fault can have begun.
    pub before: u64,
    /// Returned between that and the (verified) end of the fault.
    pub during: u64,
    /// Returned after it.
    pub after: u64,
}

impl Operations {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.before + self.during + self.after
    }

    /// What falls short of `minimum`, in words.
    #[must_use]
    pub fn short_of(&self, minimum: &MinimumOperations) -> Option<String> {
        [
            ("before the fault", self.before, minimum.before),
            ("during the fault", self.during, minimum.during),
            ("after the fault", self.after, minimum.after),
        ]
        .into_iter()
        .find(|(_, had, needed)| had < needed)
        .map(|(part, had, needed)| format!("{had} operations {part}, the plan asks for {needed}"))
    }
}

/// Counts a client's completed operations by part of the run. A GET that was
/// answered with 404 is completed; a LIST counts once, whatever its pages.
#[must_use]
pub fn operations(log: &ClientLog, boundaries: &Boundaries) -> Operations {
    let begin = boundaries.fault().and_then(|f| f.injecting.as_ref()).map(|m| m.mono_ns);
    let end = boundaries.fault_end().map(|m| m.mono_ns);
    let mut counts = Operations::default();
    for at in completed(log) {
        if begin.is_none_or(|begin| at < begin) {
            counts.before += 1;
        } else if end.is_some_and(|end| at >= end) {
            counts.after += 1;
        } else {
            counts.during += 1;
        }
    }
    counts
}

fn completed(log: &ClientLog) -> Vec<MonoNs> {
    use crate::history::record::Outcome;
    match log.kind() {
        ClientKind::ListReader => {
            log.listings().iter().filter(|l| l.complete().is_some()).map(|l| l.ret).collect()
        }
        kind if kind.is_watch() => log
            .events()
            .filter(|(_, e)| {
                matches!(e.event, Event::Put { .. } | Event::Delete { .. } | Event::Other { .. })
            })
            .map(|(_, e)| e.at_ns)
            .collect(),
        ClientKind::GetReader => {
            log.ops().filter(|(_, op)| gets::answer(op).is_some()).map(|(_, op)| op.return_ns).collect()
        }
        ClientKind::CasUpdater => {
            log.ops().filter(|(_, op)| cas::is_answered(op)).map(|(_, op)| op.return_ns).collect()
        }
        // What was acted upon, not what was asked for.
        ClientKind::Deployer | ClientKind::PodCreator => {
            consumed::items(log).values().filter_map(|item| item.acted.as_ref().map(|a| a.ret)).collect()
        }
        _ => log
            .ops()
            .filter(|(_, op)| matches!(op.outcome, Outcome::Ok(_)))
            .map(|(_, op)| op.return_ns)
            .collect(),
    }
}

#[cfg(test)]
#[path = "phases_tests.rs"]
mod tests;
