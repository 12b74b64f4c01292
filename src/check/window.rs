//! The two phases in which views are judged: before and after the restored
//! timeline has passed the highest revision of the lost one.

use crate::clock::MonoNs;
use crate::journal::entry::Phase as RunPhase;
use crate::timeline::clients::ClientLog;
use crate::timeline::{Timeline, marks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Before or after the restored timeline has passed the old revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Revisions that clients have seen on the lost timeline are not all used again yet.
    BeforePassing,
    /// The store's revision is higher than any seen before the loss.
    AfterPassing,
}

impl Phase {
    /// Both, in order.
    pub const BOTH: [Phase; 2] = [Phase::BeforePassing, Phase::AfterPassing];

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Phase::BeforePassing => "before the old revision was passed",
            Phase::AfterPassing => "after the old revision was passed",
        }
    }
}

/// When a phase lasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// From, to.
    Of(MonoNs, MonoNs),
    /// It does not occur, and why.
    NotApplicable(String),
    /// It was not observed, and why.
    Unknown(String),
}

/// Both windows.
#[derive(Debug, Clone)]
pub struct Windows {
    /// See [`Phase::BeforePassing`].
    pub before: Window,
    /// See [`Phase::AfterPassing`].
    pub after: Window,
}

impl Windows {
    /// The windows of a run, where clients get `settle_ns` after the verified end of the fault to converge.
    #[must_use]
    pub fn of(timeline: &Timeline, logs: &[ClientLog], settle_ns: u64) -> Self {
        let unknown =
            |reason: String| Self { before: Window::Unknown(reason.clone()), after: Window::Unknown(reason) };
        let Some(restored) = &timeline.restored else {
            return unknown(timeline.boundaries.restore().err().unwrap_or_default());
        };
        let ended = match timeline.boundaries.fault_end() {
            Some(moment) => moment.mono_ns,
            None => match timeline.marks.get(marks::ETCD_SERVING) {
                Ok(mark) => mark.upper,
                Err(reason) => return unknown(format!("it is not known when etcd served again: {reason}")),
            },
        };
        let start = ended.max(restored.since).plus(settle_ns);
        let Some(finish) = finish(timeline, logs).filter(|finish| *finish > start) else {
            return unknown("the record ends before clients had time to settle".to_owned());
        };
        let Some(head) = restored.lost_head else {
            return unknown("no revision was seen before the loss".to_owned());
        };
        if restored.base >= head {
            return Self {
                before: Window::NotApplicable(format!(
                    "the restored timeline starts at revision {}, the lost one ended at {head}",
                    restored.base
                )),
                after: Window::Of(start, finish),
            };
        }
        match timeline.marks.get(marks::REVISION_PASSED) {
            // Views between the two ends of the mark belong to the phase that is under way.
            Ok(passed) if passed.lower > start => Self {
                before: Window::Of(start, passed.upper.min(finish)),
                after: if finish > passed.upper {
                    Window::Of(passed.upper, finish)
                } else {
                    Window::Unknown("the record ends as the old revision is passed".to_owned())
                },
            },
            Ok(_) => Self {
                before: Window::Unknown(
                    "the old revision was passed before clients had time to settle; \
                     a longer hold before the loss makes this phase last"
                        .to_owned(),
                ),
                after: Window::Of(start, finish),
            },
            Err(reason) => Self { before: Window::Of(start, finish), after: Window::Unknown(reason) },
        }
    }

    /// The window of a phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> &Window {
        match phase {
            Phase::BeforePassing => &self.before,
            Phase::AfterPassing => &self.after,
        }
    }
}

/// Where observation ends: the begin of collecting, else the latest instant of the record.
fn finish(timeline: &Timeline, logs: &[ClientLog]) -> Option<MonoNs> {
    match timeline.boundaries.phase(RunPhase::Collect) {
        Some(moment) => Some(moment.mono_ns),
        None => logs.iter().filter_map(ClientLog::end).chain(timeline.boundaries.last).max(),
    }
}
