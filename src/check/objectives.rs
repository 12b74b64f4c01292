//! The objectives of a drill file.

use crate::drill::values::{Percent, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recovery time: from one named mark to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rto {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Where the time starts.
    pub from: RtoFrom,
    /// Where it ends.
    pub to: RtoTo,
    /// Upper limit; the mark's uncertainty counts against the objective.
    pub within: Span,
}

/// Where a recovery time starts. The two are different figures and never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RtoFrom {
    /// The instant of the fault.
    Fault,
    /// The instant at which the restore command was given.
    RestoreCommand,
}

/// Where a recovery time ends: the first of a stretch of sustained good samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RtoTo {
    /// etcd answered a linearizable range.
    EtcdServing,
    /// Every API server's `/readyz` is ok.
    ApiReady,
    /// A ledger write was acknowledged.
    FirstGoodWrite,
    /// A quorum GET gave the right answer.
    FirstGoodGet,
    /// A LIST equal to etcd's own state at the same revision.
    FirstTrueList,
    /// Secrets are read and listed, with the value that was written.
    SecretsReadable,
    /// The controller manager made the ReplicaSet of a `deployer`'s Deployment.
    ControllersAct,
    /// The scheduler judged a `podCreator`'s Pod.
    SchedulerActs,
    /// An `eventWriter`'s Event was acknowledged.
    EventsWritten,
}

/// Acknowledged writes that were lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rpo {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Upper limit on the time between the last kept and the last acknowledged write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// Upper limit on the number of lost writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_writes: Option<u64>,
}

/// No client's view differs from etcd's own state at the same revision, neither
/// before nor after the new timeline has passed the old revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NoClientOnLostTimeline {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time after the restore in which clients may still be converging.
    pub settle: Span,
    /// A view older than this, while writes were acknowledged, is stale.
    pub max_lag: Span,
}

impl Default for NoClientOnLostTimeline {
    fn default() -> Self {
        Self { name: "no-client-on-lost-timeline".to_owned(), settle: Span::secs(3), max_lag: Span::secs(5) }
    }
}

/// At no instant do two candidates of one Lease believe that they lead, before, during
/// or after the fault. Judged by what `leaderElector` clients believe, not by what the
/// Lease says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NoTwoLeaders {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

impl Default for NoTwoLeaders {
    fn default() -> Self {
        Self { name: "no-two-leaders".to_owned() }
    }
}

/// Each of these loads met the fates that the model of flow control gives it, as counts within bounds.
///
/// Bounds follow from how late things may be, which is declared here. Where they don't exclude what the counts
/// would be with borrowing on, on another level, without the leak or without restored shares, the objective is
/// inconclusive. A drill is refused where the counts do not follow from its steps: when others use the level at the
/// same time, more requests than seats and queue take are sent at once to a level with seats, or nobody knows when
/// shares come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApfOutcomes {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Names of `load` clients.
    pub clients: Vec<String>,
    /// From when a request is due until the API server has taken it in, at most.
    #[serde(default = "ApfOutcomes::default_arrival")]
    pub arrival: Span,
    /// From the end of a wait until its place is free, at most; also the longest execution.
    #[serde(default = "ApfOutcomes::default_holding")]
    pub holding: Span,
    /// From a change of shares until every API server has taken it in, at most.
    #[serde(default = "ApfOutcomes::default_propagation")]
    pub propagation: Span,
}

impl ApfOutcomes {
    fn default_arrival() -> Span {
        Span::millis(100)
    }

    fn default_holding() -> Span {
        Span::millis(500)
    }

    fn default_propagation() -> Span {
        Span::secs(1)
    }
}

/// A watch that was open when a level was made goes on delivering while the level lasts: nothing ends it, and every
/// acknowledged write arrives. Opening a watch goes through flow control, delivering on it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchDelivers {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `watcher`.
    pub client: String,
    /// How long after its acknowledgement a write may arrive.
    #[serde(default = "WatchDelivers::default_within")]
    pub within: Span,
}

impl WatchDelivers {
    fn default_within() -> Span {
        Span::secs(2)
    }
}

/// A leader elector whose requests are held up loses its Lease when its own rules say so: `renewDeadline` after its
/// last renewal, which was at most `retryPeriod` before the level was in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LosesLease {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `leaderElector`.
    pub client: String,
    /// How much later than its rules say, at most.
    #[serde(default = "LosesLease::default_slack")]
    pub slack: Span,
}

impl LosesLease {
    fn default_slack() -> Span {
        Span::secs(1)
    }
}

/// Whoever asks through a library that retries sees every request succeed, although attempts were refused: at least one
/// for each request. Shows what retries make of a phase in which others are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetriesHide {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `retryingLoad`.
    pub client: String,
}

/// Requests of a load are answered in time, counted from when they were due. What is refused, or not answered, is not
/// in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Latency {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `load` client.
    pub client: String,
    /// Of how many of a hundred requests.
    #[schemars(range(min = 1, max = 100))]
    pub percentile: u8,
    /// The limit.
    pub within: Span,
}

/// So many requests of a load are executed with success. One limit: `atLeast` for clients that are to be served, or
/// `atMost` for those that are to be kept out. What is refused, or not answered, is no success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SuccessRate {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `load` client.
    pub client: String,
    /// At least so many of its requests succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Percent>,
    /// At most so many of its requests succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Percent>,
}

/// What clients were answered fits one order of writes, on either side of a restore.
///
/// Writes and quorum reads are linearizable, and their revisions agree with the order in real time. A list or
/// range is the state at its revision; the outcome of a conditional write fits the state that it met. After a
/// restore the same holds from the snapshot's state on, so a value that the restore lost is not read again. No
/// client is shown a revision that goes back. A watch delivers every event once and in order, also when it lives
/// through a restore.
///
/// Writes that a restore loses don't count against it, see `rpo`. What caches show
/// in LISTs after a restore is judged by `noClientOnLostTimeline`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Linearizable {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Most states that are explored for objects whose order revisions leave open,
    /// 1 to 100,000,000. When it is used up, the objective is inconclusive.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub budget: u64,
}

impl Default for Linearizable {
    fn default() -> Self {
        Self { name: "linearizable".to_owned(), budget: 1_000_000 }
    }
}
