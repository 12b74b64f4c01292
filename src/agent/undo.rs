//! An undo is data: what another process, on another day, needs to end a fault.

use crate::component::{ComponentId, DataSlot, StopMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Identity of one injection within a run: `<step index>-<fault kind>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct InjectionId(pub String);

impl std::fmt::Display for InjectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happens when the lease of an injection lapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnLapse {
    /// The disturbance is taken back.
    Revert,
    /// Things stay as they are, which is safe.
    HoldSafe,
    /// The procedure is carried to its end; going back would do harm.
    RollForward,
}

impl OnLapse {
    /// The undo is carried out by itself then.
    #[must_use]
    pub fn acts(self) -> bool {
        match self {
            Self::Revert | Self::RollForward => true,
            Self::HoldSafe => false,
        }
    }
}

/// The inverse of an injection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Undo {
    /// Which injection it ends.
    pub injection: InjectionId,
    /// What happens when the lease lapses.
    pub on_lapse: OnLapse,
    /// Carried out in order; each is idempotent, so a half-done undo is done again from the start.
    pub ops: Vec<UndoOp>,
    /// Declared upper limit of the whole undo, in nanoseconds.
    pub within_ns: u64,
}

/// One idempotent operation of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UndoOp {
    /// Stops a component, whatever it is doing.
    Stop {
        /// Which.
        component: ComponentId,
        /// How.
        how: StopMethod,
    },
    /// Starts a component unless it runs.
    Start {
        /// Which.
        component: ComponentId,
    },
    /// Lets a frozen component go on.
    Resume {
        /// Which.
        component: ComponentId,
    },
    /// Brings the data in `from` back into use; what is in use meanwhile goes to
    /// `displaced`. Nothing happens when `from` does not exist.
    BringDataBack {
        /// Whose.
        component: ComponentId,
        /// Where the original lies.
        from: DataSlot,
        /// Where data in use goes.
        displaced: DataSlot,
    },
    /// Waits until the component answers its health check.
    AwaitReady {
        /// Which.
        component: ComponentId,
    },
    /// Waits until LIST through every API server equals etcd's own state.
    AwaitListEqualsEtcd,
    /// Removes objects of the API that carry the run's label, in order, through the first
    /// API server that answers. What is gone already, or is not the run's, is left alone.
    RemoveObjects {
        /// Whom to ask.
        servers: Vec<ComponentId>,
        /// Value of the label.
        run: String,
        /// Paths of the objects.
        paths: Vec<String>,
    },
    /// Brings one object of the API that carries the run's label back to what it was, through the
    /// first API server that answers: spec, annotations, labels, of the same UID. What is gone, or
    /// does not carry the label, is left alone.
    PutObjectBack {
        /// Whom to ask.
        servers: Vec<ComponentId>,
        /// Value of the label.
        run: String,
        /// Path of the object.
        path: String,
        /// The object as it was read.
        object: Value,
    },
}
