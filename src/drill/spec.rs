//! A drill as written: the types of `kind: Drill`, `apiVersion: quakeproof.dev/v1alpha1`.
//!
//! Steps, clients and objectives are externally tagged enums, so that an error
//! in one of them points at the exact key. Each variant's type lives in the file
//! of the thing it configures; this file only lists them, one line for each.

use super::kinds::kinds;
use super::values::Span;
use crate::check::objective::ObjectiveKind;
use crate::client::under_test::ClientUnderTest;
use crate::step::kind::StepKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

pub use crate::check::apf::latency::Latency;
pub use crate::check::apf::lease::LosesLease;
pub use crate::check::apf::outcomes::ApfOutcomes;
pub use crate::check::apf::retries::RetriesHide;
pub use crate::check::apf::success::SuccessRate;
pub use crate::check::apf::watch::WatchDelivers;
pub use crate::check::linearizable::Linearizable;
pub use crate::check::lost_timeline::NoClientOnLostTimeline;
pub use crate::check::rpo::Rpo;
pub use crate::check::rto::Rto;
pub use crate::check::two_leaders::NoTwoLeaders;
pub use crate::client::cas_updater::CasUpdater;
pub use crate::client::deployer::Deployer;
pub use crate::client::etcd_watcher::EtcdWatcher;
pub use crate::client::event_writer::EventWriter;
pub use crate::client::get_reader::GetReader;
pub use crate::client::leader_elector::LeaderElector;
pub use crate::client::lease_keeper::LeaseKeeper;
pub use crate::client::ledger_writer::LedgerWriter;
pub use crate::client::list_reader::ListReader;
pub use crate::client::load_spec::{Load, RetryingLoad};
pub use crate::client::pod_creator::PodCreator;
pub use crate::client::reflector::Reflector;
pub use crate::client::secret_reader::SecretReader;
pub use crate::client::watcher::Watcher;
pub use crate::fault::apf_level::ApfLevel;
pub use crate::fault::lose_etcd::LoseEtcd;
pub use crate::fault::lose_members::{MemberLoss, QuorumLoss};
pub use crate::probe::spec::{ApiReady, WriteSucceeds};
pub use crate::step::apf_shares::ApfShares;
pub use crate::step::end::End;
pub use crate::step::hold::Hold;
pub use crate::step::load::RunLoad;
pub use crate::step::observe::Observe;
pub use crate::step::restore_spec::RestoreSnapshot;
pub use crate::step::take_snapshot::TakeSnapshot;

/// The only API version this build reads.
pub const API_VERSION: &str = "quakeproof.dev/v1alpha1";

/// A drill file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drill {
    /// `quakeproof.dev/v1alpha1`.
    pub api_version: String,
    /// `Drill`.
    pub kind: String,
    /// Who the drill belongs to and why it exists.
    pub metadata: Metadata,
    /// What is done, to what, and what must hold.
    pub spec: Spec,
}

/// Who the drill belongs to and why it exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// kebab-case, unique within a suite.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The team that answers for the drill.
    pub owner: String,
    /// Why the drill is worth running.
    pub reason: String,
    /// Verdict that a run on the named versions is expected to reach. For
    /// suites and CI; it never influences the judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_verdict: Option<ExpectedVerdict>,
}

/// The verdict that the drill's author expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedVerdict {
    /// Every objective met.
    Pass,
    /// At least one objective missed.
    Fail,
}

/// What is done, to what, and what must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// The cluster under test; reports call it `main`.
    pub cluster: ClusterSpec,
    /// Values that `--set` or a profile may change; used as `$(name)`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
    /// Named sets of parameter values; `--profile fast` picks one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<String, BTreeMap<String, String>>,
    /// Bounds that the run never crosses.
    #[serde(default)]
    pub limits: Limits,
    /// What must hold before the fault, and again for recovery.
    pub steady_state: Vec<SteadyState>,
    /// Real clients that live through the drill and record what they see.
    pub clients: Vec<Client>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// What must hold; each is judged by its own checker.
    pub objectives: Vec<Objective>,
}

/// The cluster under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// Who owns the cluster's life cycle.
    pub provider: ProviderKind,
    /// A standing cluster made by `quakeproof cluster up NAME`. Absent: a fresh
    /// cluster is made for the run and removed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kubernetes version, as `v1.37.2`. Default: the newest pair that `toolchain/` pins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// etcd version, as `v3.7.3`. Default: the pair of `kubernetes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<String>,
    /// How many of each component.
    #[serde(default)]
    pub topology: Topology,
    /// Secrets are encrypted in etcd; absent: they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_at_rest: Option<EncryptionAtRest>,
}

/// How the API servers encrypt Secrets in etcd, with a key made for the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EncryptionAtRest {
    /// Provider in the API servers' EncryptionConfiguration.
    #[serde(default)]
    pub provider: EncryptionProvider,
    /// Whether the key is kept where a restore finds it: apart from the API servers' disks,
    /// and not in the snapshot.
    #[serde(default)]
    pub key_backup: KeyBackup,
}

/// An encryption provider that takes a local key of 32 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptionProvider {
    /// XSalsa20 and Poly1305.
    #[default]
    Secretbox,
    /// AES-CBC.
    Aescbc,
    /// AES-GCM.
    Aesgcm,
}

/// Whether an encryption key outlives the API servers' disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyBackup {
    /// It is kept.
    #[default]
    Present,
    /// It is not: a drill that restores has to declare that as its fault.
    Missing,
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

/// Who owns a cluster's life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Real upstream binaries as processes in namespaces of this machine.
    Local,
}

impl ProviderKind {
    /// Every provider, by its word in drill files and overrides.
    pub const BY_WORD: [(&'static str, Self); 1] = [("local", Self::Local)];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::BY_WORD.into_iter().find(|(_, kind)| *kind == self).map_or("unknown", |(word, _)| word)
    }
}

/// How many of each control-plane component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Topology {
    /// etcd members: 1 or 3.
    #[schemars(extend("enum" = [1, 3]))]
    pub etcd: u8,
    /// API servers: 1 or 2.
    #[schemars(range(min = 1, max = 2))]
    pub api_servers: u8,
    /// Controller managers: 0 to 2.
    #[schemars(range(max = 2))]
    pub controller_managers: u8,
    /// Schedulers: 0 to 2.
    #[schemars(range(max = 2))]
    pub schedulers: u8,
}

impl Default for Topology {
    fn default() -> Self {
        Self { etcd: 1, api_servers: 1, controller_managers: 1, schedulers: 1 }
    }
}

/// A value that `--set` or a profile may change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameter {
    /// Value when nothing else is said.
    pub default: String,
    /// The only values allowed; empty allows any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Bounds that the run never crosses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// The run is aborted and undone when it takes longer.
    pub max_duration: Span,
    /// Lease of every injection: faults end by themselves when the runner has
    /// been silent for this long. 5 s to 10 min.
    pub dead_man: Span,
    /// How long the service may take to be good again after the last step.
    pub recovery: Span,
    /// What counts as recovered.
    pub sustained: Sustained,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_duration: Span::secs(300),
            dead_man: Span::secs(30),
            recovery: Span::secs(60),
            sustained: Sustained::default(),
        }
    }
}

/// Sustained good: this many consecutive good samples over at least this time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Sustained {
    /// Consecutive good samples, at least 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub samples: u32,
    /// Time that they must span.
    pub over: Span,
}

impl Default for Sustained {
    fn default() -> Self {
        Self { samples: 5, over: Span::secs(1) }
    }
}

/// One condition of the steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SteadyState {
    /// Every API server answers `/readyz` with ok.
    ApiReady(ApiReady),
    /// A write through every API server is acknowledged.
    WriteSucceeds(WriteSucceeds),
}

kinds! {
    /// One client of the drill.
    pub enum Client: ClientUnderTest {
        /// Creates uniquely valued objects and keeps the acknowledged ones in a ledger.
        "ledgerWriter" => LedgerWriter(LedgerWriter),
        /// Reads single objects with quorum.
        "getReader" => GetReader(GetReader),
        /// Lists the ledger's objects.
        "listReader" => ListReader(ListReader),
        /// Watches through the API server, resuming from its last resourceVersion.
        "watcher" => Watcher(Watcher),
        /// Watches etcd directly, resuming from its last revision.
        "etcdWatcher" => EtcdWatcher(EtcdWatcher),
        /// Reads and lists a Secret of its own.
        "secretReader" => SecretReader(SecretReader),
        /// Updates objects by compare-and-swap, from the resourceVersion that it holds.
        "casUpdater" => CasUpdater(CasUpdater),
        /// Keeps a copy of the ledger as programs built on the kube crate do.
        "reflector" => Reflector(Reflector),
        /// Holds raw etcd leases.
        "leaseKeeper" => LeaseKeeper(LeaseKeeper),
        /// Candidates for one Lease.
        "leaderElector" => LeaderElector(LeaderElector),
        /// Creates Events.
        "eventWriter" => EventWriter(EventWriter),
        /// Creates Deployments and waits for their ReplicaSets.
        "deployer" => Deployer(Deployer),
        /// Creates Pods and waits for the scheduler.
        "podCreator" => PodCreator(PodCreator),
        /// Sends requests at instants that are fixed beforehand.
        "load" => Load(Load),
        /// The same, and sends again what is refused, as client libraries do.
        "retryingLoad" => RetryingLoad(RetryingLoad),
    }
}

kinds! {
    /// One step of the drill.
    pub enum Step: StepKind {
        /// Saves an etcd snapshot under a name.
        "takeSnapshot" => TakeSnapshot(TakeSnapshot),
        /// Lets the clients run for a while.
        "hold" => Hold(Hold),
        /// Kills etcd members and takes their data directories away.
        "loseEtcd" => LoseEtcd(LoseEtcd),
        /// Kills one etcd member; the others keep quorum.
        "memberLoss" => MemberLoss(MemberLoss),
        /// Kills so many etcd members that the rest has no quorum.
        "quorumLoss" => QuorumLoss(QuorumLoss),
        /// Makes a priority level of API Priority and Fairness, and sends clients to it.
        "apfLevel" => ApfLevel(ApfLevel),
        /// Changes the shares of a level that the drill made.
        "apfShares" => ApfShares(ApfShares),
        /// Starts the load of clients, and waits for it.
        "load" => Load(RunLoad),
        /// Ends a fault by its undo.
        "end" => End(End),
        /// Restores etcd from a snapshot and starts it.
        "restoreSnapshot" => RestoreSnapshot(RestoreSnapshot),
        /// Waits for a condition while the clients record.
        "observe" => Observe(Observe),
    }
}

impl Client {
    /// Name in the drill.
    #[must_use]
    pub fn name(&self) -> &str {
        self.kind().about().name
    }
}

impl Step {
    /// How long the holds among these steps last in all.
    pub(crate) fn held<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Duration {
        let each = steps.into_iter().map(|step| match step {
            Step::Hold(hold) => hold.duration.0,
            _ => Duration::ZERO,
        });
        each.fold(Duration::ZERO, Duration::saturating_add)
    }
}

kinds! {
    /// One objective of the drill.
    pub enum Objective: ObjectiveKind {
        /// Time between two named marks.
        "rto" => Rto(Rto),
        /// Acknowledged writes lost, in time or in number.
        "rpo" => Rpo(Rpo),
        /// No client's view differs from etcd's own state at the same revision.
        "noClientOnLostTimeline" => NoClientOnLostTimeline(NoClientOnLostTimeline),
        /// No two candidates of one Lease believe at the same time that they lead.
        "noTwoLeaders" => NoTwoLeaders(NoTwoLeaders),
        /// What clients were answered fits one order of writes, on either side of a restore.
        "linearizable" => Linearizable(Linearizable),
        /// Requests met the fates that flow control was predicted to give them.
        "apfOutcomes" => ApfOutcomes(ApfOutcomes),
        /// An open watch goes on delivering while its client is held up.
        "watchDelivers" => WatchDelivers(WatchDelivers),
        /// A leader elector that is held up loses its Lease when its rules say so.
        "losesLease" => LosesLease(LosesLease),
        /// Requests of a load are answered in time.
        "latency" => Latency(Latency),
        /// So many requests of a load succeed, at least or at most.
        "successRate" => SuccessRate(SuccessRate),
        /// Retries hide refusals from whoever asked.
        "retriesHide" => RetriesHide(RetriesHide),
    }
}
