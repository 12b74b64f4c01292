//! Providers own the life cycle of clusters; they give hosts and components, never faults.

pub mod binaries;
pub mod live_api;
pub mod live_view;
#[cfg(target_os = "linux")]
pub mod local;
pub mod observer;
pub mod ready;

use crate::agent::protocol::{Request, Response};
use crate::component::capability::Capability;
use crate::component::network::{Dialer, Endpoint, Identity};
use crate::component::{ComponentControl, ComponentId, ControlError};
use crate::plan::{Binding, PlannedCluster};
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A line of progress while a cluster comes up or goes down.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Makes, finds and removes clusters.
pub trait Provider: Send + Sync {
    /// What its clusters can do; the plan refuses early what they can't.
    fn capabilities(&self) -> BTreeSet<Capability>;
    /// Makes a cluster named `name` and returns once it is ready: every readyz ok,
    /// a write acknowledged, controller manager and scheduler leading.
    fn up<'a>(
        &'a self,
        name: &'a str,
        plan: &'a PlannedCluster,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>>;
    /// Attaches to a cluster that exists, healthy or not.
    fn attach<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>>;
    /// Removes a cluster and everything of it; succeeds when there is none.
    fn down<'a>(&'a self, name: &'a str, progress: Progress<'a>) -> BoxFuture<'a, Result<(), ProviderError>>;
}

/// A cluster that runs, or at least exists.
pub trait Cluster: Send + Sync {
    /// Name in the state directory.
    fn name(&self) -> &str;
    /// Stops, starts and moves its parts.
    fn control(&self) -> Arc<dyn ComponentControl>;
    /// Opens sockets on its hosts.
    fn dialer(&self) -> Arc<dyn Dialer>;
    /// Where a component listens: an API server's HTTPS port, an etcd member's client port.
    fn endpoint(&self, component: &ComponentId) -> Result<Endpoint, ProviderError>;
    /// A client certificate for the API servers with user name `user` and these groups.
    /// The observer `quakeproof:observer` exists from the start, mapped to APF level `exempt`.
    fn identity(&self, user: &str, groups: &[&str]) -> Result<Identity, ProviderError>;
    /// A client certificate for etcd.
    fn etcd_identity(&self) -> Result<Identity, ProviderError>;
    /// What only exists now that the cluster does. `ledger_namespace` is left empty.
    fn binding(&self) -> BoxFuture<'_, Result<Binding, ProviderError>>;
    /// Sends one request to the agent and awaits its answer.
    fn agent<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, ControlError>>;
    /// Path for a file that must stay outside the evidence, such as a snapshot.
    fn private_file(&self, name: &str) -> PathBuf;
    /// Files of secrets that the evidence must not hold, such as private keys.
    fn secret_files(&self) -> Vec<PathBuf>;
    /// Where the components' logs are, by component.
    fn logs(&self) -> Vec<(ComponentId, PathBuf)>;
    /// The agent's own chained log, for the evidence; `None` where it can't be had.
    fn agent_log(&self) -> Option<PathBuf>;
}

/// Why a provider could not do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No such cluster.
    #[error("no cluster named `{name}`; `quakeproof cluster list` shows what there is")]
    NoSuchCluster {
        /// As asked for.
        name: String,
    },
    /// A cluster of that name exists.
    #[error("cluster `{name}` exists already; `quakeproof cluster down {name}` removes it")]
    Exists {
        /// As asked for.
        name: String,
    },
    /// The machine lacks something; nothing was made.
    #[error("{what}\n  hint: {hint}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// What to do.
        hint: String,
    },
    /// A component did not become ready.
    #[error("{component} did not become ready: {reason}")]
    NotReady {
        /// Which.
        component: String,
        /// Why, with the last lines of its log.
        reason: String,
    },
    /// Controlling a component failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A file or process operation failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}
