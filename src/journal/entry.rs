//! What the journal says: one variant per thing that happened to the run.
//!
//! Each line of `journal.jsonl` is one [`Entry`]. A line's hash is
//! `SHA-256(previous hash ‖ length of the line as u64 big-endian ‖ line without newline)`
//! (see [`crate::chained::chain`]) and the previous hash stands in the line, so a reader sees where a chain breaks.

use crate::agent::undo::{InjectionId, OnLapse, Undo};
use crate::clock::{BootId, MonoNs, Stamp, WallTime};
use crate::component::{ComponentId, StopMethod};
use crate::plan::Binding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Major.minor of the journal's format. A newer minor is read, a newer major refused.
pub const FORMAT_VERSION: &str = "1.0";

/// Cause of an undo that the agent carried out by itself, because nobody renewed its lease, and of the end of a run
/// that learns of it.
pub const DEAD_MAN: &str = "deadMan";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Hash of the previous line, hexadecimal; 64 zeros for the first.
    pub prev: String,
    /// 0, 1, 2, ….
    pub seq: u64,
    /// Wall time, for people.
    pub at: WallTime,
    /// Monotonic time.
    pub mono_ns: MonoNs,
    /// Boot of `mono_ns`.
    pub boot: BootId,
    /// What happened.
    pub event: JournalEvent,
}

impl Entry {
    /// When it was written.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp { at: self.at.clone(), mono_ns: self.mono_ns, boot: self.boot.clone() }
    }
}

/// What happened to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum JournalEvent {
    /// First line.
    RunOpened {
        /// [`FORMAT_VERSION`] of the writer.
        format_version: String,
        /// Run id, UUID version 7.
        run: String,
        /// Drill name.
        drill: String,
        /// SHA-256 of `drill.yaml`.
        drill_digest: String,
        /// SHA-256 of `plan.json`.
        plan_digest: String,
        /// Version of the tool.
        tool: String,
        /// Who ran it: user and host name.
        operator: String,
    },
    /// A process took over the run: `recover` after the runner's death.
    RunAdopted {
        /// `recover` or `abort`.
        by: String,
        /// Bytes of a torn last line that were put aside.
        torn_bytes: u64,
    },
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// Before a cluster is made: it is owed to be taken down again.
    ClusterCreating {
        /// Name in the state directory.
        cluster: String,
    },
    /// A check of the steady state, before the fault or for recovery.
    SteadyState {
        /// Which condition.
        condition: String,
        /// Whether it held.
        held: bool,
        /// What was seen.
        detail: String,
    },
    /// First entry after preflight: what only exists once the cluster does.
    Bound {
        /// UIDs, fingerprints, addresses, digests.
        binding: Box<Binding>,
    },
    /// A step began.
    StepStarted {
        /// Index in the plan.
        step: usize,
        /// Its kind, as in the drill file.
        kind: String,
    },
    /// A step ended well.
    StepFinished {
        /// Index in the plan.
        step: usize,
    },
    /// A step failed; the run is aborted and undone.
    StepFailed {
        /// Index in the plan.
        step: usize,
        /// Why.
        reason: String,
    },
    /// Durable before any effect: how the injection is undone.
    UndoArmed {
        /// The inverse.
        undo: Undo,
        /// Targets, re-checked by identity.
        targets: Vec<ComponentId>,
        /// Lease.
        ttl_ns: u64,
    },
    /// The undo changed: from here on another way back is right.
    UndoAmended {
        /// The inverse from now on.
        undo: Undo,
        /// Why.
        reason: String,
    },
    /// About to inject. The effect begins no earlier than this entry.
    Injecting {
        /// Which.
        injection: InjectionId,
        /// Kind of fault, as in the drill file.
        kind: String,
        /// Targets.
        targets: Vec<ComponentId>,
        /// How components are stopped, where they are.
        stop_method: Option<StopMethod>,
    },
    /// The injection's calls have returned. The effect began no later than this entry.
    Injected {
        /// Which.
        injection: InjectionId,
    },
    /// An independent observation saw the fault.
    InjectionVerified {
        /// Which.
        injection: InjectionId,
        /// What was seen.
        observation: String,
    },
    /// The disturbance was taken away by a step.
    Ended {
        /// Which.
        injection: InjectionId,
        /// Index of the step that ended it.
        by_step: usize,
    },
    /// An independent observation saw that the disturbance is gone.
    EndVerified {
        /// Which.
        injection: InjectionId,
        /// What was seen.
        observation: String,
    },
    /// An undo began.
    UndoStarted {
        /// Which.
        injection: InjectionId,
        /// Revert, hold or roll forward.
        mode: OnLapse,
        /// `abort`, `recover`, `runEnd`, `step N` or [`DEAD_MAN`].
        cause: String,
    },
    /// An undo was carried out and verified.
    UndoFinished {
        /// Which.
        injection: InjectionId,
    },
    /// An undo failed: something is left faulted.
    UndoFailed {
        /// Which.
        injection: InjectionId,
        /// Why.
        reason: String,
    },
    /// Nothing is owed for the injection any more.
    Discharged {
        /// Which.
        injection: InjectionId,
        /// Why nothing is owed.
        reason: String,
    },
    /// A figure that a step established, for the checkers.
    Fact {
        /// What it is about.
        fact: Fact,
    },
    /// A named instant.
    Mark {
        /// Name as objectives use it.
        name: String,
        /// Earliest.
        lower_ns: MonoNs,
        /// Latest.
        upper_ns: MonoNs,
        /// What it rests on.
        source: String,
    },
    /// Bytes `0..bytes` of a history have this digest.
    HistoryAnchored {
        /// File below the run directory.
        file: String,
        /// Length of the anchored prefix.
        bytes: u64,
        /// Lines in it.
        records: u64,
        /// SHA-256 of the prefix.
        sha256: String,
    },
    /// A step of the wall clock against the monotonic one.
    WallClockStepped {
        /// Nanoseconds; positive is forward.
        step_ns: i64,
    },
    /// The lease of the dead-man could not be renewed.
    RenewFailed {
        /// Why.
        reason: String,
    },
    /// Somebody asked the run to end.
    Interrupted {
        /// `SIGINT`, `abort`, `maxDuration`, ….
        by: String,
    },
    /// The cluster was taken down; everything owed on it is discharged.
    ClusterRemoved {
        /// Name in the state directory.
        cluster: String,
    },
    /// Last line of a run that ended in order.
    RunClosed {
        /// How the run ended (not what it proved).
        outcome: RunOutcome,
        /// Why, where it is not `completed`.
        reason: Option<String>,
    },
    /// An event that a newer minor version wrote and this one does not know. Only readers make it.
    #[serde(skip)]
    Other {
        /// Its name.
        kind: String,
    },
}

/// Phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// The cluster is made, or attached to.
    Provision,
    /// Is it healthy, is it the right one?
    Preflight,
    /// Clients run, nothing is disturbed.
    Baseline,
    /// The drill's steps.
    Steps,
    /// Waiting for sustained good.
    Recovery,
    /// Last readings, histories closed.
    Collect,
    /// Everything owed is undone; a cluster made for the run is taken down.
    Cleanup,
}

/// How a run ended; separate from the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunOutcome {
    /// Every step was carried out.
    Completed,
    /// The runner died and `recover` ended the run.
    Recovered,
    /// Somebody ended it, everything was reverted.
    Aborted,
    /// A guard or preflight check refused it before anything was harmed.
    Refused,
    /// An undo failed.
    Faulted,
}

/// A figure that a step established.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A snapshot was saved.
    SnapshotTaken {
        /// Name in the drill.
        name: String,
        /// Member it was taken from.
        member: ComponentId,
        /// Revision in the file, as `etcdutl snapshot status` counts.
        revision: u64,
        /// Keys that exist at that revision.
        #[serde(default)]
        keys: Option<u64>,
        /// The digest that etcd appended is that of the file; `null`: it has none, or none was looked for.
        #[serde(default)]
        sha256_ok: Option<bool>,
        /// Size of the file.
        size_bytes: u64,
        /// SHA-256 of the file; the file itself stays outside the evidence.
        sha256: String,
        /// Saving began.
        call_ns: MonoNs,
        /// It ended.
        return_ns: MonoNs,
    },
    /// etcd's revision, read by a linearizable range just before the loss.
    RevisionBefore {
        /// Revision.
        revision: u64,
        /// Raft term.
        raft_term: u64,
        /// When it was read.
        at_ns: MonoNs,
    },
    /// The restore procedure and its effect.
    Restored {
        /// Snapshot name in the drill.
        from: String,
        /// Revisions added; absent for no bump.
        bump: Option<u64>,
        /// First revision that the restored store reported.
        revision_after: u64,
        /// Raft term after it.
        raft_term: u64,
        /// The restore command was given.
        command_ns: MonoNs,
        /// `etcdutl` had returned.
        restored_ns: MonoNs,
        /// Components restarted as part of the procedure, and how they were stopped.
        restarted: BTreeMap<ComponentId, StopMethod>,
    },
    /// Shares of a level were changed.
    SharesChanged {
        /// Index of the step.
        step: usize,
        /// Name of the level in the drill.
        level: String,
        /// Shares from then on.
        shares: u32,
        /// The change was sent.
        call_ns: MonoNs,
        /// It was acknowledged.
        return_ns: MonoNs,
        /// Every API server's own metrics showed the new limits.
        in_force_ns: MonoNs,
    },
    /// Names of what a response's headers name by UID, as of one instant.
    FlowObjects {
        /// PriorityLevelConfigurations: name by UID.
        levels: BTreeMap<String, String>,
        /// FlowSchemas: name by UID.
        schemas: BTreeMap<String, String>,
        /// When they were asked for.
        call_ns: MonoNs,
        /// When they had been answered.
        return_ns: MonoNs,
    },
    /// Where one request of a client went, before its load began.
    FlowProbed {
        /// The client.
        client: String,
        /// The API server that it asked.
        server: ComponentId,
        /// HTTP status.
        status: u16,
        /// `X-Kubernetes-PF-FlowSchema-UID`.
        schema: Option<String>,
        /// `X-Kubernetes-PF-PriorityLevel-UID`.
        level: Option<String>,
        /// When it was sent.
        call_ns: MonoNs,
        /// When it was answered.
        return_ns: MonoNs,
    },
    /// How many requests an API server says that one of the drill's levels has, while loads are answered.
    QueueFill {
        /// The API server.
        server: ComponentId,
        /// Name of the level in the drill.
        level: String,
        /// In its queues.
        waiting: u64,
        /// Being executed.
        executing: u64,
        /// When it was asked.
        call_ns: MonoNs,
        /// When it answered.
        return_ns: MonoNs,
    },
    /// What an API server's own metrics say of one of the drill's levels.
    FlowMetrics {
        /// The API server.
        server: ComponentId,
        /// Name of the level in the drill.
        level: String,
        /// `process_start_time_seconds`, in nanoseconds.
        process_start_ns: Option<u64>,
        /// `nominal_limit_seats`, `lower_…`, `upper_…`, `current_…`.
        seats: BTreeMap<String, u64>,
        /// Requests of the drill's own schema on the level: `dispatched`, `rejected:<reason>`, `inQueue`,
        /// `executing`, `waitsExecuteTrue`, `waitsExecuteFalse`.
        requests: BTreeMap<String, u64>,
        /// UID and generation of the level, as `<uid>/<generation>`; `None` when it is gone.
        level_is: Option<String>,
        /// The same of its schema.
        schema_is: Option<String>,
        /// When they were asked for.
        call_ns: MonoNs,
        /// When they had been answered.
        return_ns: MonoNs,
    },
    /// What an `observe` step waited for.
    Observed {
        /// Index of the step.
        step: usize,
        /// The condition held in time.
        held: bool,
        /// What was seen.
        detail: String,
        /// When it first held, or the wait ended.
        at_ns: MonoNs,
    },
}
