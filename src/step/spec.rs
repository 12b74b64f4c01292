//! The steps of a drill file that are not faults.

use super::bump::Bump;
use super::restart::Restart;
use crate::drill::values::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Saves an etcd snapshot from the first member, and verifies it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakeSnapshot {
    /// Name by which later steps refer to the snapshot.
    #[serde(rename = "as")]
    pub name: String,
    /// How it is saved.
    #[serde(default)]
    pub method: SnapshotMethod,
}

/// How a snapshot is saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotMethod {
    /// `etcdctl snapshot save` of the running version: the server appends a SHA-256 digest.
    #[default]
    Save,
    /// A copy of the running member's database file, as a backup of its disk has it: without a digest,
    /// and without what is only in the write-ahead log yet.
    CopyDatabase,
}

/// Lets the clients run for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// How long.
    #[serde(rename = "for")]
    pub duration: Span,
}

/// Restores every lost etcd member from a snapshot with the `etcdutl` of the
/// etcd that will run, starts it, and restarts what is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// Name given by an earlier `takeSnapshot`.
    pub from: String,
    /// How far the revision is moved forward. Anything but `none` also marks
    /// the old revisions compacted: etcdutl refuses either alone.
    #[serde(default)]
    pub bump_revision: Bump,
    /// Which components are stopped before the restore and started after it.
    #[serde(default)]
    pub restart: Restart,
    /// Which cluster token the restored members are given.
    #[serde(default)]
    pub cluster_token: ClusterToken,
    /// What the API servers find as the encryption key when they are started again. Anything
    /// but `present` is part of the fault, and takes API servers that are restarted.
    #[serde(default)]
    pub encryption_key: EncryptionKey,
    /// Restore a copy of a database, which has no digest: nothing shows that its values are what etcd wrote.
    #[serde(default)]
    pub skip_hash_check: bool,
    /// How long each restored member, and then each restarted API server, may take to answer.
    #[serde(default = "RestoreSnapshot::default_ready_within")]
    pub ready_within: Span,
}

impl RestoreSnapshot {
    fn default_ready_within() -> Span {
        Span::secs(60)
    }
}

/// The key with which API servers are started again after a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptionKey {
    /// That of the lost cluster.
    #[default]
    Present,
    /// None: their configuration encrypts nothing and decrypts nothing.
    Missing,
    /// Another one under the same name.
    Wrong,
}

impl EncryptionKey {
    /// Label of the data slot in which an embedded cluster holds that configuration ready.
    #[must_use]
    pub fn slot(self) -> Option<&'static str> {
        match self {
            EncryptionKey::Present => None,
            EncryptionKey::Missing => Some("key-missing"),
            EncryptionKey::Wrong => Some("key-wrong"),
        }
    }
}

/// Which cluster token the restored members are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterToken {
    /// One of its own: a member of the lost cluster that comes back can't join.
    #[default]
    New,
    /// That of the lost cluster.
    Kept,
}

/// Changes the shares of a level that an `apfLevel` made, and waits until every API server counts with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApfShares {
    /// Name of the level.
    pub level: String,
    /// `nominalConcurrencyShares` from now on.
    #[schemars(range(max = 10_000))]
    pub shares: u32,
}

/// Starts the load of clients that have not begun yet, and waits. Before a load begins, a request of each client
/// proves by its headers which level it is on, and the metrics of every API server are read; when all answers
/// are there they are read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunLoad {
    /// Names of `load` clients.
    pub clients: Vec<String>,
    /// What is waited for.
    #[serde(default)]
    pub until: LoadUntil,
    /// The step fails when that takes longer.
    #[serde(default = "RunLoad::default_at_most")]
    pub at_most: Span,
}

impl RunLoad {
    fn default_at_most() -> Span {
        Span::secs(60)
    }
}

/// How far a load has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadUntil {
    /// Every request was sent, or could not be.
    Sent,
    /// Every request has its answer, or will get none.
    #[default]
    Answered,
}

/// Ends a fault by its undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct End {
    /// Kind of the fault that an earlier step injected, as `quorumLoss`.
    pub fault: String,
}

/// Waits for a condition while the clients record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Observe {
    /// The condition.
    pub until: Until,
    /// The step ends here even if the condition does not hold; the objectives
    /// that needed it are then inconclusive.
    pub at_most: Span,
    /// How long to go on recording once the condition holds.
    #[serde(default = "Observe::default_then")]
    pub then: Span,
}

impl Observe {
    fn default_then() -> Span {
        Span::secs(3)
    }
}

/// What an `observe` step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// etcd's revision is higher than any revision that the lost timeline reached.
    RevisionPassedLost,
    /// Every API server answers `/readyz` with ok.
    ApiReady,
}
