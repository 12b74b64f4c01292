//! Hosts, components, and what can be done to them without knowing what they are.

pub mod capability;
pub mod network;
pub mod placeholder;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Name of a component within its cluster: `etcd-1`, `kube-apiserver-2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ComponentId(pub String);

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of a host within its cluster: something with a network identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostId(pub String);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a component is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An etcd member.
    Etcd,
    /// A kube-apiserver.
    KubeApiserver,
    /// A kube-controller-manager.
    KubeControllerManager,
    /// A kube-scheduler.
    KubeScheduler,
}

/// How a component is stopped; named in every recovery time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopMethod {
    /// SIGKILL, or what amounts to it: no chance to say goodbye.
    Kill,
    /// SIGTERM, or what amounts to it, awaited until the component is gone.
    Terminate,
}

/// A component as its provider sees it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Which one.
    pub component: ComponentId,
    /// What it is for.
    pub role: Role,
    /// Where it runs.
    pub host: HostId,
    /// What it is doing.
    pub state: ComponentState,
    /// Changes whenever the component is started anew (a pid, a container id).
    pub incarnation: String,
}

/// What a component is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ComponentState {
    /// Running.
    Running,
    /// Stopped by us, or never started.
    Stopped,
    /// Frozen by us.
    Paused,
    /// Ended by itself.
    Exited {
        /// How, in words, with the last lines of its log.
        how: String,
    },
}

/// Where a component's data lies: in use, or put aside under a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DataSlot {
    /// The directory that the component uses when started.
    InUse,
    /// A sibling directory, `data.<label>`.
    Aside(String),
}

/// A tool that is run on a component's host, with its files and network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRun {
    /// Whose host, binaries and identity are used.
    pub component: ComponentId,
    /// Which tool.
    pub tool: Tool,
    /// Arguments, with the placeholders of [`placeholder`].
    pub args: Vec<String>,
}

/// Tools that a provider can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `etcdctl` of the etcd that runs, connected to its client URL with a client certificate.
    Etcdctl,
    /// `etcdutl` of the etcd that will run.
    Etcdutl,
}

/// What a tool printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Exit code; -1 when killed by a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Why a component could not be controlled.
#[derive(Debug, Clone, Error, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ControlError {
    /// No such component.
    #[error("no component `{component}` in cluster `{cluster}`; it has {known}")]
    NoSuchComponent {
        /// As asked for.
        component: ComponentId,
        /// Where.
        cluster: String,
        /// What there is.
        known: String,
    },
    /// The one that carries out the control can't be reached.
    #[error("the cluster's control socket does not answer: {reason}; see `quakeproof cluster list`")]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// It was tried and failed.
    #[error("{what}: {reason}")]
    Failed {
        /// What was tried.
        what: String,
        /// Why it failed.
        reason: String,
    },
}

/// Result of a control call.
pub type Controlled<'a, T> = BoxFuture<'a, Result<T, ControlError>>;

/// Stops, starts and moves the parts of a cluster. Hides whether a component is
/// a process, a static pod or a machine service. Every call is idempotent:
/// stopping what is stopped and moving what has been moved succeed.
pub trait ComponentControl: Send + Sync {
    /// Every component and what it is doing.
    fn list(&self) -> Controlled<'_, Vec<ComponentStatus>>;
    /// Starts a component; returns when it has been started, not when it is ready.
    fn start<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()>;
    /// Stops a component and returns once it is gone.
    fn stop<'a>(&'a self, component: &'a ComponentId, how: StopMethod) -> Controlled<'a, ()>;
    /// Freezes a component.
    fn pause<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()>;
    /// Lets a frozen component go on.
    fn resume<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()>;
    /// Moves a stopped component's data between slots. The target must be free;
    /// nothing happens when the source is gone and the target is there.
    fn move_data<'a>(
        &'a self,
        component: &'a ComponentId,
        from: &'a DataSlot,
        to: &'a DataSlot,
    ) -> Controlled<'a, ()>;
    /// Path of a data slot as the component's host sees it; `None` when there is no such data.
    fn data_dir<'a>(
        &'a self,
        component: &'a ComponentId,
        slot: &'a DataSlot,
    ) -> Controlled<'a, Option<PathBuf>>;
    /// Runs a tool to its end.
    fn run_tool<'a>(&'a self, run: &'a ToolRun) -> Controlled<'a, ToolOutput>;
}
