//! What the agent and the faults can observe of a cluster, apart from what controls it.

use crate::component::ComponentId;
use futures::future::BoxFuture;

/// What one look at a cluster showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is so; what was seen.
    Holds(String),
    /// It is not so, and that was observed: refused, an error answer, a difference.
    Fails(String),
    /// It can't be told: the observer itself failed.
    Unknown(String),
}

impl std::fmt::Display for Look {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Look::Holds(seen) | Look::Fails(seen) => f.write_str(seen),
            Look::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

/// Where an etcd store stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtcdState {
    /// Revision.
    pub revision: u64,
    /// Raft term.
    pub raft_term: u64,
}

/// Single looks at a cluster, with the harness's observer identity. Each opens its own
/// connection (a kept one would show a component that is long gone), takes at most a
/// few seconds, and never retries: who waits for something looks again.
pub trait ClusterView: Send + Sync {
    /// The member answers a linearizable range on its own client port. `Fails` when the
    /// port refuses, the TLS handshake or the call fails, or no answer comes in time;
    /// `Unknown` when no socket could be had to try with.
    fn etcd_healthy<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Look>;
    /// Revision and raft term of the store, from a linearizable read.
    fn etcd_state<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Result<EtcdState, String>>;
    /// The API server answers `/readyz` with 200.
    fn api_ready<'a>(&'a self, server: &'a ComponentId) -> BoxFuture<'a, Look>;
    /// LIST of all ConfigMaps of all namespaces (resourceVersion unset, one page) through
    /// *every* API server equals a linearizable etcd range over `/registry/configmaps/`
    /// *at the revision that the LIST names*: the same names, and each object's
    /// resourceVersion is its key's mod revision; see [`super::truth::difference`].
    /// A LIST revision that etcd has not reached yet is `Fails`: that API server serves
    /// a timeline that no longer exists.
    fn list_equals_etcd(&self) -> BoxFuture<'_, Look>;
}
