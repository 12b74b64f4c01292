//! What a report is made from, beside the evidence itself: the judge's answer.

use crate::check::{Finding, Verdict};
use crate::clock::MonoNs;
use crate::journal::entry::RunOutcome;
use crate::timeline::Marked;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything the judge says about a run; a pure function of the evidence.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Worst verdict of the findings; absent when nothing could be judged (a refused run).
    pub verdict: Option<Verdict>,
    /// One sentence on the verdict.
    pub reason: String,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// One per objective, in the order of the plan.
    pub findings: Vec<Finding>,
    /// Named instants, or why there is none.
    pub marks: Vec<(String, Marked)>,
    /// Figures of each etcd restore.
    pub etcd_restore: Vec<EtcdRestoreFacts>,
    /// Samples scheduled, recorded, late and lost, over all histories.
    pub recorder: RecorderAccount,
    /// What each client went through, for the timeline.
    pub lanes: Vec<Lane>,
    /// Predictions held against what was seen.
    pub predictions: Vec<PredictionRow>,
}

/// What the recorders lost. Unknown figures are `null` with the reason beside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecorderAccount {
    /// Operations that were due.
    pub scheduled: Option<u64>,
    /// Operations written to a history.
    pub recorded: Option<u64>,
    /// Of those, sent later than one interval after they were due.
    pub late: Option<u64>,
    /// Operations that were due but never sent.
    pub lost: Option<u64>,
    /// Why a figure above is unknown.
    pub reason: Option<String>,
}

/// One client's way through the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Client name.
    pub client: String,
    /// Kind, as in the drill file.
    pub kind: String,
    /// Stretches in ascending order. Time that no stretch covers is a gap.
    pub spans: Vec<LaneSpan>,
}

/// A stretch of time in which a client's samples were alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSpan {
    /// Start.
    pub from: MonoNs,
    /// End.
    pub to: MonoNs,
    /// What the samples were.
    pub state: LaneState,
    /// Why the first of them was not good.
    pub note: Option<String>,
}

/// What a stretch of samples was, from the least to the most alarming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneState {
    /// Answered, and true.
    Good,
    /// Not to be told.
    Unknown,
    /// No good answer.
    Failed,
    /// Answered as if all were well, but not with etcd's state.
    Wrong,
}

impl LaneState {
    /// As reports call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LaneState::Good => "good",
            LaneState::Unknown => "unknown",
            LaneState::Failed => "no good answer",
            LaneState::Wrong => "wrong answer",
        }
    }
}

/// One prediction of the plan and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PredictionRow {
    /// Client or objective that it is about.
    pub subject: String,
    /// What is predicted of it, such as `view before the old revision is passed`.
    pub what: String,
    /// What the plan says.
    pub predicted: String,
    /// What was seen, or why that is unknown.
    pub observed: String,
    /// Whether they agree; `null` when it can't be told.
    pub agrees: Option<bool>,
    /// Where the rule behind the prediction comes from.
    pub source: String,
}

/// Figures of one etcd loss and restore.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdRestoreFacts {
    /// Cluster that it is about.
    pub cluster: String,
    /// The snapshot restored from.
    pub snapshot: Option<SnapshotFacts>,
    /// Store revision just before the loss.
    pub revision_before: Option<u64>,
    /// First revision of the restored store.
    pub revision_after: Option<u64>,
    /// Revisions of the lost timeline that the snapshot lacks.
    pub revisions_lost: Option<u64>,
    /// Revisions that the restore added; `null` is none.
    pub bump: Option<u64>,
    /// Whether the procedure restarted the API servers.
    pub api_servers_restarted: bool,
    /// What became of the acknowledged writes.
    pub ledger: LedgerFacts,
    /// What each client saw.
    pub clients: Vec<ClientFacts>,
    /// Why a figure above is `null`, where it is not simply none.
    pub reason: Option<String>,
}

/// The snapshot a restore used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFacts {
    /// Revision in the file.
    pub revision: u64,
    /// Size of the file.
    pub size_bytes: u64,
    /// When `etcdctl snapshot save` returned.
    pub taken_at: super::model::Instant,
}

/// What became of the ledger's writes. Each id is in exactly one of `kept`,
/// `lost` (both acknowledged), `indeterminate` or `phantom`, or was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerFacts {
    /// Acknowledged writes.
    pub acked: Option<u64>,
    /// Acknowledged and in etcd at the end.
    pub kept: Option<u64>,
    /// Acknowledged and gone.
    pub lost: Option<u64>,
    /// Never answered; may or may not have taken effect.
    pub indeterminate: Option<u64>,
    /// In etcd at the end although refused or never sent.
    pub phantom: Option<u64>,
    /// Ids of the lost writes as ranges, `215-462`.
    pub lost_ids: Option<String>,
    /// Why a figure above is unknown.
    pub reason: Option<String>,
}

/// What one client saw of a restore. `null` figures carry their reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientFacts {
    /// Client name.
    pub name: String,
    /// Kind, as in the drill file.
    pub kind: String,
    /// Operations recorded; for watches, events.
    pub operations: u64,
    /// Answers older than etcd's state by more than the objective allows, or from the lost timeline.
    pub stale_reads: Option<u64>,
    /// Objects on which LIST and a quorum GET contradicted each other.
    pub get_list_disagreements: Option<u64>,
    /// Longest silence of a watch while writes were acknowledged, nanoseconds.
    pub silent_for_ns: Option<u64>,
    /// Acknowledged writes of the new timeline that a watch never delivered.
    pub events_missed: Option<u64>,
    /// Objects shown that do not exist.
    pub phantom_objects: Option<u64>,
    /// Objects that exist and were not shown.
    pub absent_objects: Option<u64>,
    /// Times that a watch ended with code 410.
    pub gone410: u64,
    /// Times that the client listed anew.
    pub relists: u64,
    /// Failed and unknown operations by class.
    pub errors: BTreeMap<String, u64>,
    /// Why figures above are `null`: they don't apply to this kind, or were not observed.
    pub reason: Option<String>,
}

impl ClientFacts {
    /// Whether the client was on the lost timeline: its view differed from
    /// etcd's state. `None` when nothing about its view is known.
    #[must_use]
    pub fn on_lost_timeline(&self) -> Option<bool> {
        let views = [self.events_missed, self.phantom_objects, self.absent_objects];
        views.iter().any(Option::is_some).then(|| views.into_iter().flatten().any(|n| n > 0))
    }
}
