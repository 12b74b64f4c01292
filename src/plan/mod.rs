//! A plan is a drill with nothing left open: parameters filled in, versions
//! pinned, seed fixed, selectors resolved to names, predictions made.
//!
//! Its digest is what an approver signs: the SHA-256 of `plan.json`, the same
//! for every run of the same thing. What only exists once the cluster does is
//! in the [`Binding`].

pub mod capability;
pub mod digest;
mod expand;
pub mod faithful;
mod minimum;
mod overrides;
pub mod predict;
pub mod render;
pub mod resolve;
mod steps;
pub mod versions;

pub use expand::components;
pub use steps::of_role;

use crate::agent::undo::OnLapse;
use crate::apf::level::wait_limit;
use crate::apf::range::Outcomes;
use crate::client::load_spec::Load;
use crate::client::under_test::TalksTo;
use crate::component::{ComponentId, HostId, Role};
use crate::drill::levels::REQUEST_TIMEOUT;
use crate::drill::spec::{
    Client, Drill, EncryptionAtRest, Limits, Objective, ProviderKind, SteadyState, Step, Topology,
};
use crate::history::kind::ClientKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Major.minor of the plan's format.
pub const FORMAT_VERSION: &str = "1.0";

/// A drill with nothing left open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: String,
    /// The drill with every parameter filled in and every default written out.
    pub drill: Drill,
    /// SHA-256 of the drill file's bytes.
    pub drill_digest: String,
    /// Values of the parameters.
    pub parameters: BTreeMap<String, String>,
    /// What `--set`, `--kubernetes` and `--profile` changed, as given.
    pub overrides: BTreeMap<String, String>,
    /// Profile that was asked for; absent: real timings.
    pub profile: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// The cluster as it will be.
    pub cluster: PlannedCluster,
    /// Clients and probes, in the order in which they start.
    pub clients: Vec<PlannedClient>,
    /// Steps, in order.
    pub steps: Vec<PlannedStep>,
    /// Conditions of the steady state.
    pub steady_state: Vec<SteadyState>,
    /// Objectives with what is predicted for them.
    pub objectives: Vec<PlannedObjective>,
    /// What each client is predicted to see.
    pub predictions: Vec<Prediction>,
    /// What leases, leaders and the cluster's own consumers are predicted to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<ConsumerPrediction>,
    /// What becomes of the requests of loads, objective by objective.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<FlowPrediction>,
    /// Bounds of the run.
    pub limits: Limits,
}

/// The cluster as it will be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCluster {
    /// `main`, unless the drill names several.
    pub name: String,
    /// Who owns its life cycle.
    pub provider: ProviderKind,
    /// A standing cluster that is attached to; absent: made for the run.
    pub standing: Option<String>,
    /// Exact versions: `kubernetes`, `etcd`.
    pub versions: Versions,
    /// How many of each component.
    pub topology: Topology,
    /// Every component, in start order.
    pub components: Vec<PlannedComponent>,
    /// Secrets are encrypted in etcd; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_at_rest: Option<EncryptionAtRest>,
}

/// Exact versions of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// As `v1.37.2`.
    pub kubernetes: String,
    /// As `v3.7.3`; `etcdctl` and `etcdutl` are the same version.
    pub etcd: String,
}

/// A component and where it will run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedComponent {
    /// Name.
    pub component: ComponentId,
    /// What it is for.
    pub role: Role,
    /// Its host.
    pub host: HostId,
}

/// A client or probe with its minimum evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedClient {
    /// Unique in the run; names the history file.
    pub name: String,
    /// Kind.
    pub kind: ClientKind,
    /// Component that it talks to.
    pub target: ComponentId,
    /// User name in its certificate; never an exempt or `system:masters` identity, but for the observer's.
    pub identity: String,
    /// The drill's own words; absent for probes that the plan adds.
    pub spec: Option<Client>,
    /// Time between two operations of a paced client, nanoseconds.
    pub every_ns: Option<u64>,
    /// Fewer completed operations (for watches: events) than these make objectives that rest on the client inconclusive.
    pub minimum: MinimumOperations,
}

impl PlannedClient {
    /// It is connected to etcd itself, not to an API server.
    #[must_use]
    pub fn talks_to_etcd(&self) -> bool {
        match &self.spec {
            Some(client) => client.kind().about().talks_to == TalksTo::Etcd,
            // A probe that a plan adds.
            None => self.kind == ClientKind::EtcdTruth,
        }
    }

    /// The drill's words, of a load without retries.
    #[must_use]
    pub fn load(&self) -> Option<&Load> {
        match self.spec.as_ref()? {
            Client::Load(load) => Some(load),
            _ => None,
        }
    }

    /// How long one of its requests may wait in a queue of flow control.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        self.load().map_or(wait_limit(None, REQUEST_TIMEOUT), Load::wait_limit)
    }
}

/// Least number of operations of a client in each part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinimumOperations {
    /// Before the first injection.
    pub before: u64,
    /// While the fault lasts; 0 where nothing can complete.
    pub during: u64,
    /// After the fault has ended.
    pub after: u64,
}

/// A step with its targets resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// Index.
    pub index: usize,
    /// As written, parameters filled in.
    pub step: Step,
    /// Components that it acts on.
    pub targets: Vec<ComponentId>,
    /// Present for faults.
    pub fault: Option<PlannedFault>,
}

/// What a fault step harms and how that ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFault {
    /// What will not work, in words.
    pub blast_radius: String,
    /// Index of the step that ends it; absent: the undo does.
    pub closed_by: Option<usize>,
    /// What happens when the runner falls silent.
    pub on_lapse: OnLapse,
    /// The undo in words.
    pub undo: String,
    /// Upper limit of the undo, nanoseconds.
    pub undo_within_ns: u64,
}

/// An objective with its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedObjective {
    /// Name, unique in the run.
    pub name: String,
    /// As written.
    pub objective: Objective,
    /// What is expected, in words; absent where nothing is predicted.
    pub predicted: Option<String>,
}

/// What a client is predicted to see after the restore, for this version and procedure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// Name of the client.
    pub client: String,
    /// Before the new timeline has passed the old revision.
    pub before_passing: PredictedView,
    /// After it.
    pub after_passing: PredictedView,
    /// The watch ends with 410 and the client lists again.
    pub gone_410: bool,
    /// Classes of refusal that it is predicted to meet in the run, or not to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, bool>,
    /// Where the rule comes from.
    pub source: String,
}

/// What is predicted about leases, a leader or a consumer, for this version and procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerPrediction {
    /// Name of the client.
    pub client: String,
    /// What is asked.
    pub question: Question,
    /// The answer.
    pub expected: Expected,
    /// Where the rule comes from.
    pub source: String,
}

/// What is predicted of the requests of one load, for this version and these levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowPrediction {
    /// Name of the objective whose slack the bounds rest on.
    pub objective: String,
    /// Name of the client.
    pub client: String,
    /// Name of the drill's level that it is on; absent: none of the drill's.
    pub level: Option<String>,
    /// Requests.
    pub total: u64,
    /// Requests by what becomes of them.
    pub expected: Outcomes,
    /// What it would be instead, by what would have to be so.
    pub alternatives: BTreeMap<String, Outcomes>,
    /// Where the rule comes from.
    pub source: String,
}

/// What a prediction about leases, a leader or a consumer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    /// Leases given back after the snapshot come back with all of their time.
    LeasesComeBack,
    /// Leases granted after the snapshot are not found.
    LeasesAreGone,
    /// Two candidates believe at the same time that they lead.
    TwoLead,
    /// Events are refused because their etcd lease is gone.
    EventsRefused,
    /// Everything that is made after the restore is acted upon.
    ActsOnAll,
}

/// Answer of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expected {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It depends on what can't be known in advance.
    Perhaps,
}

/// Whether a client's view is predicted to equal etcd's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PredictedView {
    /// Equal to etcd's state at the same revision.
    True,
    /// Phantom or absent objects.
    LostTimeline,
    /// The phase does not occur: the restored timeline starts above the old revision.
    NotApplicable,
}

impl PredictedView {
    /// In words, those of what is seen.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            PredictedView::True => "equals etcd's state",
            PredictedView::LostTimeline => "on the lost timeline",
            PredictedView::NotApplicable => "does not occur",
        }
    }
}

/// What only exists once the cluster does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// UID of the namespace `kube-system`.
    pub cluster_uid: String,
    /// Name of the cluster in the state directory.
    pub cluster_name: String,
    /// SHA-256 of the cluster CA certificate (DER).
    pub ca_fingerprint: String,
    /// Versions that the binaries report of themselves, per component.
    pub reported_versions: BTreeMap<ComponentId, String>,
    /// SHA-256 of each binary and tool.
    pub binary_digests: BTreeMap<String, String>,
    /// Address of each host in the cluster's private network.
    pub addresses: BTreeMap<HostId, String>,
    /// Incarnation of each component at binding time.
    pub incarnations: BTreeMap<ComponentId, String>,
    /// Namespace that the ledger's objects live in.
    pub ledger_namespace: String,
    /// `os`, `kernel`, `arch`, `cpus` and the like.
    pub machine: BTreeMap<String, String>,
}
