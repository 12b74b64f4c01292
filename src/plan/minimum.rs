//! How much each client has to record before its silence means anything.
//!
//! Expected operations follow from the pace and from the durations that the drill
//! fixes; the minimum is a fraction of them, small enough that a slow machine does
//! not make a run inconclusive, large enough that an idle client does:
//! * before: half of what is due in `sustained.over` and the holds before the first fault;
//! * during: 0 for a fault that takes etcd's quorum, which lets nothing complete; a quarter of what
//!   is due in the holds while one member of several is lost;
//! * after: a tenth of what is due in holds and `observe.then` after the fault is
//!   ended, for the service needs time to come back. 0 for watches: that nothing
//!   arrives on them is an observation, and what they miss is counted against etcd.

use super::MinimumOperations;
use crate::drill::spec::{Drill, Step};
use std::time::Duration;

/// Known durations of a drill around its fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Windows {
    before: Duration,
    during: Duration,
    after: Duration,
}

impl Windows {
    /// Durations that the drill fixes; waits for conditions count only for what follows them.
    pub fn of(drill: &Drill) -> Self {
        let steps = &drill.spec.steps;
        let fault = steps.iter().position(|s| s.kind().fault().is_some());
        let ended = steps.iter().rposition(|s| matches!(s, Step::RestoreSnapshot(_) | Step::End(_)));
        let sum = |steps: &[Step]| {
            steps.iter().map(|step| step.kind().lasts()).fold(Duration::ZERO, Duration::saturating_add)
        };
        let before = sum(&steps[..fault.unwrap_or(steps.len())]);
        let during = match (fault, ended) {
            (Some(begin), Some(ended)) if others_go_on(&steps[begin]) => sum(&steps[begin..ended]),
            _ => Duration::ZERO,
        };
        let after = match (fault, ended) {
            (Some(_), Some(ended)) => sum(&steps[ended..]),
            _ => Duration::ZERO,
        };
        Self { before: before.saturating_add(drill.spec.limits.sustained.over.0), during, after }
    }

    /// Minimum of a client that is due every `every`.
    pub fn paced(&self, every: Duration) -> MinimumOperations {
        MinimumOperations {
            before: due(self.before, every) / 2,
            during: due(self.during, every) / 4,
            after: due(self.after, every).div_ceil(10),
        }
    }

    /// Minimum of a watch that sees what is written every `every`; `None`: nothing is written.
    pub fn watching(&self, every: Option<Duration>) -> MinimumOperations {
        let before = every.map_or(0, |e| due(self.before, e) / 2);
        MinimumOperations { before, during: 0, after: 0 }
    }
}

fn due(window: Duration, every: Duration) -> u64 {
    let every = every.as_nanos().max(1);
    u64::try_from(window.as_nanos() / every).unwrap_or(u64::MAX)
}

fn others_go_on(step: &Step) -> bool {
    step.kind().fault().is_some_and(|fault| fault.others_go_on())
}
