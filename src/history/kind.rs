//! Kinds of client: who writes a history, and what can be told from one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of client, probes included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ClientKind {
    /// Creates uniquely valued ConfigMaps.
    LedgerWriter,
    /// Quorum GET of single objects.
    GetReader,
    /// LIST of the ledger's objects.
    ListReader,
    /// Plain WATCH through the API server.
    Watcher,
    /// Watch on etcd itself.
    EtcdWatcher,
    /// The harness's own observer: etcd ranges, the truth that views are held against.
    EtcdTruth,
    /// `/readyz` of one API server.
    ApiReady,
    /// The lease of a leader-elected component.
    LeaderLease,
    /// GET and LIST of a Secret.
    SecretReader,
    /// Compare-and-swap updates of objects of its own.
    CasUpdater,
    /// The watcher and reflector of the kube crate.
    Reflector,
    /// Raw etcd leases, some kept alive and some given back.
    LeaseKeeper,
    /// Candidates for one Lease, by the rules of client-go.
    LeaderElector,
    /// Creates core/v1 Events.
    EventWriter,
    /// Deployments that the controller manager has to act upon.
    Deployer,
    /// Pods that the scheduler has to look at.
    PodCreator,
    /// Requests at instants that are fixed beforehand.
    Load,
    /// The same, sent again when they are refused.
    RetryingLoad,
}

/// What a client knows of the ledger's objects, and how: by this alone its history is held against the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knows {
    /// It has nothing to do with them.
    Nothing,
    /// It makes them.
    Writes,
    /// Single objects, by asking for each.
    Objects,
    /// All of them, by listing.
    Lists,
    /// All of them, by what a watch delivers.
    Watch,
    /// It is what the others are held against.
    Truth,
}

impl ClientKind {
    /// What it knows of the ledger's objects.
    #[must_use]
    pub fn knows(self) -> Knows {
        match self {
            Self::LedgerWriter => Knows::Writes,
            Self::GetReader | Self::CasUpdater => Knows::Objects,
            Self::ListReader => Knows::Lists,
            Self::Watcher | Self::EtcdWatcher | Self::Reflector => Knows::Watch,
            Self::EtcdTruth => Knows::Truth,
            Self::ApiReady
            | Self::LeaderLease
            | Self::SecretReader
            | Self::LeaseKeeper
            | Self::LeaderElector
            | Self::EventWriter
            | Self::Deployer
            | Self::PodCreator
            | Self::Load
            | Self::RetryingLoad => Knows::Nothing,
        }
    }

    /// It keeps a state up to date by what a watch delivers.
    #[must_use]
    pub fn is_watch(self) -> bool {
        self.knows() == Knows::Watch
    }
}

impl Knows {
    /// A view of the whole ledger.
    #[must_use]
    pub fn all(self) -> bool {
        matches!(self, Self::Lists | Self::Watch)
    }

    /// Answers that show which timeline it is on.
    #[must_use]
    pub fn shows_timeline(self) -> bool {
        self.all() || self == Self::Objects
    }
}
