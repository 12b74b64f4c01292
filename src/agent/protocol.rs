//! What runner and agent say to each other: one JSON document per line over a
//! Unix stream socket, one answer per request.

use super::undo::{InjectionId, OnLapse, Undo};
use crate::clock::MonoNs;
use serde::{Deserialize, Serialize};

/// A request to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Request {
    /// Stores the undo durably and grants a lease. Must succeed before the injection.
    /// The same arm again is `Done`; another undo under the same name is an error.
    Arm {
        /// Run that owns the lease.
        run: String,
        /// What to do when it lapses.
        undo: Undo,
        /// Lease length, nanoseconds.
        ttl_ns: u64,
    },
    /// Replaces the undo of an armed injection, durably: the point of no return.
    /// Renews its lease. An error when the lease has lapsed: the old undo is due or under way.
    Amend {
        /// Run that owns the lease.
        run: String,
        /// The undo that holds from now on.
        undo: Undo,
    },
    /// Keeps every lease of the run alive for another TTL. An error when one of them has
    /// lapsed: the run's fault was ended without it (the others are renewed all the same).
    Renew {
        /// Run that owns the leases.
        run: String,
    },
    /// Carries out an undo now and answers when that has ended; also one that was carried out
    /// on lapse, since the run may have gone on after it. `Done` when nothing is owed
    /// any more because the injection was discharged, or undone before the machine rebooted.
    Revert {
        /// Run that owns the lease.
        run: String,
        /// Which.
        injection: InjectionId,
    },
    /// The fault was ended by a step; nothing is left to undo. An error once the undo has begun.
    Discharge {
        /// Run that owns the lease.
        run: String,
        /// Which.
        injection: InjectionId,
    },
    /// Every injection that the agent knows.
    List,
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Response {
    /// Done.
    Done,
    /// An undo was carried out.
    Reverted {
        /// When it began.
        started_ns: MonoNs,
        /// When it was verified.
        finished_ns: MonoNs,
    },
    /// The state of every injection.
    Injections {
        /// In the order in which they were armed.
        injections: Vec<Held>,
    },
    /// Not done.
    Error {
        /// Why, with a hint.
        message: String,
    },
}

/// One injection as the agent holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Run that owns it.
    pub run: String,
    /// Which.
    pub injection: InjectionId,
    /// What happens on lapse.
    pub on_lapse: OnLapse,
    /// Where it stands.
    pub state: HeldState,
    /// When the lease lapses.
    pub expires_ns: MonoNs,
    /// Declared upper limit of its undo, nanoseconds.
    pub within_ns: u64,
}

/// Where an injection stands with the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HeldState {
    /// The undo is owed.
    Armed,
    /// The undo is being carried out.
    Undoing,
    /// Nothing is owed any more.
    Discharged,
    /// The lease lapsed and things were left as they are, which is safe; the undo can still be asked for.
    Lapsed,
    /// The undo was carried out and verified.
    Undone {
        /// The lease lapsed; otherwise the runner asked.
        by_lapse: bool,
    },
    /// The undo was tried and failed; it is tried again on request.
    UndoFailed {
        /// Why.
        reason: String,
    },
}
