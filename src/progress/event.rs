//! What a run tells those who watch it.

use crate::check::Verdict;
use crate::clock::{MonoNs, WallTime};
use crate::journal::entry::{Phase, RunOutcome};
use serde::Serialize;

/// Something that happened, and when. As JSON: `{"at", "monoNs", "event", …}`,
/// the fields of the event beside the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEvent {
    /// Wall time.
    pub at: WallTime,
    /// CLOCK_BOOTTIME, nanoseconds.
    pub mono_ns: MonoNs,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened. `event` names the variant in camelCase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// The run has a directory and an id.
    RunOpened {
        /// Run id.
        run: String,
        /// Drill name.
        drill: String,
        /// Where the evidence is written.
        directory: String,
    },
    /// A phase began.
    PhaseChanged {
        /// Which.
        phase: Phase,
    },
    /// A step began.
    StepStarted {
        /// Index in the plan.
        step: usize,
        /// Number of steps in the plan.
        of: usize,
        /// Its kind, as in the drill file.
        kind: String,
    },
    /// A step ended.
    StepFinished {
        /// Index in the plan.
        step: usize,
        /// Why it failed; `null` when it did not.
        failed: Option<String>,
    },
    /// A client's samples so far. Sent when the state changes, and now and then.
    ClientState {
        /// Client name.
        client: String,
        /// Its last sample.
        state: ClientState,
        /// Good samples so far.
        good: u64,
        /// Bad samples so far.
        bad: u64,
        /// Samples so far of which nothing is known.
        unknown: u64,
        /// What the last sample saw, such as `503 etcd unavailable`.
        last: Option<String>,
    },
    /// A condition that must hold, and how far it is from holding for long enough.
    Condition {
        /// Which.
        condition: String,
        /// It holds now.
        holds: bool,
        /// Consecutive good samples.
        samples: u32,
        /// Of how many.
        needed: u32,
    },
    /// An independent observation saw a fault.
    FaultInjected {
        /// Injection id.
        injection: String,
        /// Kind, as in the drill file.
        kind: String,
        /// Components that it hit.
        targets: Vec<String>,
    },
    /// A fault is gone.
    FaultEnded {
        /// Injection id.
        injection: String,
        /// What ended it: `step 3`, `undo`.
        by: String,
    },
    /// Something that people should read.
    Message {
        /// How urgent.
        level: MessageLevel,
        /// One line.
        text: String,
    },
    /// The run is over and judged.
    Finished {
        /// How it ended.
        outcome: RunOutcome,
        /// What it proved; `null` when nothing was judged.
        verdict: Option<Verdict>,
        /// One sentence.
        text: String,
    },
}

/// A client's last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Not to be told.
    Unknown,
}

impl ClientState {
    pub(super) fn word(self) -> &'static str {
        match self {
            ClientState::Good => "good",
            ClientState::Bad => "bad",
            ClientState::Unknown => "unknown",
        }
    }
}

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageLevel {
    /// Good to know.
    Info,
    /// Something is not as planned.
    Warning,
    /// Somebody has to act.
    Error,
}
