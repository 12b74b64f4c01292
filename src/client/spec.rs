//! The clients of a drill file.

use crate::drill::values::{Rate, Span};
use crate::load::arrivals::Arrivals;
use crate::provider::component::ComponentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends requests at instants that are fixed before the first one, whatever the server does with them. Begins when
/// a `load` step says so, and ends with the last answer. Nothing is sent twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Load {
    /// kebab-case name, unique in the drill; the client has a user of its own.
    pub name: String,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// What is asked.
    #[serde(default)]
    pub request: LoadRequest,
    /// The `timeout` parameter of each request; absent: not sent. A quarter of it is what a request waits in a
    /// queue of flow control at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What is spoken.
    #[serde(default)]
    pub protocol: LoadProtocol,
    /// Connections. HTTP/1.1 carries one request on each at a time, HTTP/2 up to 100.
    #[serde(default = "Load::default_connections")]
    #[schemars(range(min = 1, max = 1000))]
    pub connections: u32,
    /// Requests that are out at the same time, at most; what is due beyond that is not sent and counted as lost.
    #[serde(default = "Load::default_in_flight")]
    #[schemars(range(min = 1, max = 100_000))]
    pub in_flight: u32,
    /// The API server that is asked, as `kube-apiserver-1`. Default: one after the other, client by client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ComponentId>,
    /// A client whose one request lasts longer than all of these: the level is never idle meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_held_by: Option<String>,
}

impl Load {
    fn default_connections() -> u32 {
        2
    }

    fn default_in_flight() -> u32 {
        1000
    }
}

/// A load of GETs that are sent again when they are refused, as a client library does by itself. Every attempt is
/// recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryingLoad {
    /// kebab-case name, unique in the drill; the client has a user of its own.
    pub name: String,
    /// The library.
    pub like: RetriesLike,
    /// When requests are due; not `serial`.
    pub arrivals: Arrivals,
    /// The API server that is asked, as `kube-apiserver-1`. Default: one after the other, client by client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ComponentId>,
}

/// Whose retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetriesLike {
    /// client-go, over HTTP/2.
    ClientGo,
    /// The kube crate, over HTTP/1.1.
    Kube,
}

/// What a load asks for, on objects of the drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum LoadRequest {
    /// GET of one ConfigMap.
    Get {},
    /// LIST of the drill's ConfigMaps.
    List {
        /// The `limit` parameter: the first page of so many objects. Absent: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000))]
        limit: Option<u32>,
        /// Asks for the pages after the first one too, each one once the one before it is there, by its `continue`.
        #[serde(default, rename = "allPages", skip_serializing_if = "std::ops::Not::not")]
        all_pages: bool,
    },
    /// PATCH (merge) of the one ConfigMap that GETs read.
    Patch {},
    /// WATCH of the drill's ConfigMaps that is to end after two seconds; its answer is there when it is open.
    Watch {},
    /// POST of a ConfigMap of its own.
    Create {
        /// Bytes of its value, 1 to 500,000.
        #[serde(default = "LoadRequest::one_byte", rename = "valueBytes")]
        #[schemars(range(min = 1, max = 500_000))]
        value_bytes: u32,
    },
    /// DELETE of a ConfigMap, one after the other, that another load has made.
    Delete {
        /// Name of the client whose requests are `create`; its load has come to its end before.
        of: String,
    },
    /// POST of a ConfigMap whose body ends only after a while: it holds its seat for so long.
    SlowCreate {
        /// From the begin of the request to the end of its body.
        #[serde(rename = "for")]
        duration: Span,
    },
}

impl LoadRequest {
    /// Whether an answer is followed by requests for further pages.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        matches!(self, Self::List { all_pages: true, .. })
    }

    fn one_byte() -> u32 {
        1
    }
}

impl Default for LoadRequest {
    fn default() -> Self {
        Self::Get {}
    }
}

/// What is spoken inside TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadProtocol {
    /// HTTP/1.1, as kube-rs does.
    #[serde(rename = "http1")]
    Http1,
    /// HTTP/2, as client-go does.
    #[default]
    #[serde(rename = "http2")]
    Http2,
}

/// Creates one ConfigMap per operation, each with a unique value, at a fixed
/// open-loop rate. Acknowledged writes are kept outside the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LedgerWriter {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Writes per second, due whatever the server does.
    pub rate: Rate,
}

/// Reads single objects that the ledger names, without resourceVersion (a quorum read).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two reads.
    pub every: Span,
}

/// Lists the ledger's objects and records every id of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two lists.
    pub every: Span,
    /// The resourceVersion parameter that is sent.
    #[serde(default)]
    pub resource_version: ListResourceVersion,
    /// Objects per page; absent: one page.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The resourceVersion parameter of a LIST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListResourceVersion {
    /// Not sent: the most recent state is asked for.
    #[default]
    Unset,
    /// `0`: any state will do, the cache answers.
    #[serde(rename = "0")]
    Zero,
    /// That of the last list, as `resourceVersionMatch=NotOlderThan`. After a refusal as too
    /// large (504) or too old (410) the next list goes without one, as client-go's does.
    #[serde(rename = "lastSeen")]
    LastSeen,
}

/// A WATCH through the API server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watcher {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// From where a broken watch goes on.
    #[serde(default)]
    pub resume: Resume,
    /// Asks for bookmarks (`allowWatchBookmarks`) and goes on from their resourceVersion too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bookmarks: bool,
    /// How it gets the state that the watch goes on from.
    #[serde(default, skip_serializing_if = "InitialState::is_list")]
    pub initial: InitialState,
    /// Asked of the server as `timeoutSeconds`, whole seconds from 5 s to 24 h: the stream ends in
    /// order then and is opened anew. An API server sends a bookmark shortly before. Absent: 24 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// How a watcher gets the state that its watch goes on from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InitialState {
    /// By a LIST.
    #[default]
    List,
    /// By the watch itself (`sendInitialEvents=true`, `resourceVersionMatch=NotOlderThan`, bookmarks).
    /// Where the server refuses that as invalid it lists from then on, as client-go does.
    WatchList,
}

impl InitialState {
    fn is_list(&self) -> bool {
        *self == Self::List
    }
}

/// From where a broken watch goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// From the last resourceVersion seen; a 410 makes it list again.
    #[default]
    LastSeen,
}

/// Makes one Secret, then in turns reads it and lists the namespace's Secrets. That shows
/// whether API servers can decrypt what etcd holds; the value never enters a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two reads.
    pub every: Span,
}

/// A watch on etcd itself, beside the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdWatcher {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

/// Updates objects of its own by PUT, each with a unique value and the resourceVersion that it
/// holds. It goes on with what it holds whatever happens, and reads anew only when it is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CasUpdater {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two updates; the objects take turns.
    pub every: Span,
    /// Number of objects.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "default_objects")]
    pub objects: u32,
}

fn default_objects() -> u32 {
    5
}

/// The watcher and reflector of the kube crate with its default backoff: its own rules for
/// retries and relists are what is tested. Every request that it makes is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reflector {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

/// Holds raw etcd leases beside the API server: one that is kept alive at a third of
/// its time to live, and short ones, a new one each tenth of it, of which the newest is
/// kept alive and each is given back after a fifth. Whenever a snapshot is taken, some
/// of them are given back, and others granted, after it: a restore brings the first
/// back with their full time to live, and the others are gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseKeeper {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time to live of every lease, whole seconds, 10 s to 1 h.
    #[serde(default = "default_lease_ttl")]
    pub ttl: Span,
    /// Time between two rounds of operations.
    #[serde(default = "default_round")]
    pub every: Span,
}

fn default_lease_ttl() -> Span {
    Span::secs(20)
}

fn default_round() -> Span {
    Span::secs(1)
}

/// Candidates for one coordination.k8s.io Lease in the drill's namespace, by client-go's
/// rules: the record observed last with local time, optimistic locking by
/// resourceVersion, one transition more at each takeover. A candidate believes that it
/// leads until it has failed to renew for the whole of `renewDeadline`; it then starts
/// over under a new identity, as a component that exits does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderElector {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of the Lease; clients that name the same one compete. Default: the client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Candidates in this client, 1 to 5.
    #[schemars(range(min = 1, max = 5))]
    #[serde(default = "default_candidates")]
    pub candidates: u8,
    /// How long others leave a record alone that they saw change, whole seconds.
    #[serde(default = "default_lease_duration")]
    pub lease_duration: Span,
    /// How long a leader tries to renew before it gives up; less than `leaseDuration`.
    #[serde(default = "default_renew_deadline")]
    pub renew_deadline: Span,
    /// Time between two tries; `renewDeadline` is more than 1.2 of it.
    #[serde(default = "default_retry_period")]
    pub retry_period: Span,
    /// The leader gives the Lease up after this long, keeps its identity and stands
    /// again, as a controller does that is told to step down and runs on. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<Span>,
    /// The candidates stand only after this long, so that others lead first. Absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_after: Option<Span>,
}

impl LeaderElector {
    /// Name of the Lease.
    #[must_use]
    pub fn lease_name(&self) -> &str {
        self.lease.as_deref().unwrap_or(&self.name)
    }
}

fn default_candidates() -> u8 {
    2
}

fn default_lease_duration() -> Span {
    Span::secs(15)
}

fn default_renew_deadline() -> Span {
    Span::secs(10)
}

fn default_retry_period() -> Span {
    Span::secs(2)
}

/// Creates core/v1 Events. API servers store them under an etcd lease that they cache
/// for up to a minute: one that was granted after the snapshot is gone after a restore,
/// and an API server that keeps running fails to create Events until it takes another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventWriter {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Events.
    #[serde(default = "default_event")]
    pub every: Span,
}

fn default_event() -> Span {
    Span::millis(500)
}

/// Creates a Deployment of one replica and looks, with quorum reads, until the
/// controller manager has made its ReplicaSet with the Deployment's UID as owner. Goes on
/// looking at earlier ones: a Deployment that a restore lost must not be acted upon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployer {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Deployments.
    #[serde(default = "default_round")]
    pub every: Span,
}

/// Creates a Pod that no node can take and looks, with quorum reads, until the scheduler
/// has said so in its condition `PodScheduled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodCreator {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Pods.
    #[serde(default = "default_round")]
    pub every: Span,
}
