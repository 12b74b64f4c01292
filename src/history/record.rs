//! The lines of a history file: `histories/<client>.jsonl`.
//!
//! One client, one file, one recorder. The first line is [`Record::Opened`];
//! every further line is an operation, a stream event, or an account of loss.

use super::ids::IdSet;
use super::kind::ClientKind;
use crate::apf::answer::Class;
use crate::clock::{BootId, MonoNs, WallTime};
use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every record holds an answer; a box each would cost more than it saves"
)]
pub enum Record {
    /// First line of each time that the recorder was opened.
    Opened {
        /// Client name.
        client: String,
        /// Kind of client.
        kind: ClientKind,
        /// User name that the client's certificate carries.
        identity: String,
        /// What it talks to: `api/<component>` or `etcd/<component>`.
        target: String,
        /// Wall time, for people.
        at: WallTime,
        /// Monotonic time.
        mono_ns: MonoNs,
        /// Boot that every following record belongs to.
        boot: BootId,
    },
    /// One operation that was sent.
    Op(OpRecord),
    /// Something that arrived on an open watch.
    Event(EventRecord),
    /// Last line of an orderly end.
    Closed {
        /// Monotonic time.
        mono_ns: MonoNs,
        /// Boot of `mono_ns`.
        boot: BootId,
        /// Operations that were due.
        scheduled: u64,
        /// Operations written to this history.
        recorded: u64,
        /// Of those, sent later than one interval after they were due.
        late: u64,
        /// Operations that were due but never sent.
        lost: u64,
    },
}

/// What is done to an etcd lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseAction {
    /// Granted anew.
    Grant,
    /// A key is put under it.
    Attach,
    /// Kept alive.
    KeepAlive,
    /// Asked for the time that it has left.
    TimeToLive,
    /// Given back.
    Revoke,
    /// Every lease that exists is asked for.
    List,
}

/// What a candidate does to the Lease that it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ElectAction {
    /// Reads it.
    Get,
    /// Makes it, as its holder.
    Create,
    /// Writes itself into it, at the resourceVersion last seen.
    Update,
    /// Gives it up.
    Release,
}

/// Objects that clients make so that something is done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Made {
    /// A core/v1 Event.
    Event,
    /// A Deployment of one replica.
    Deployment,
    /// A Pod that no node can take.
    Pod,
}

/// One operation: called, perhaps returned, with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpRecord {
    /// Ascending within the history.
    pub seq: u64,
    /// Boot of the instants below.
    pub boot: BootId,
    /// When the pacer wanted it sent; absent for operations that follow from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_ns: Option<MonoNs>,
    /// Just before the first byte was handed to the kernel (connecting included).
    pub call_ns: MonoNs,
    /// After the whole answer was read, or the operation was given up.
    pub return_ns: MonoNs,
    /// What was asked.
    pub op: Op,
    /// What came of it.
    pub outcome: Outcome,
    /// What flow control said of it, of a load's requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
}

/// What is recorded of one request of a load beside its outcome. What is absent did not happen, or was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exchange {
    /// The request was handed to a connection that could take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<MonoNs>,
    /// The head of the answer was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<MonoNs>,
    /// Which answer, or which refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// UID of the FlowSchema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// UID of the PriorityLevelConfiguration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// One attempt at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Number of the request within the load.
    pub request: u64,
    /// 0 for the first attempt.
    pub number: u64,
}

/// What a load asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asked {
    /// GET of one ConfigMap.
    Get,
    /// LIST of ConfigMaps.
    List,
    /// PATCH of one ConfigMap.
    Patch,
    /// WATCH of ConfigMaps.
    Watch,
    /// POST of a ConfigMap.
    Create,
    /// DELETE of a ConfigMap.
    Delete,
    /// The same with a body that takes its time.
    SlowCreate,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Op {
    /// Create ledger object `id`.
    Create {
        /// Ledger id.
        id: u64,
    },
    /// Quorum GET of ledger object `id`.
    Get {
        /// Ledger id.
        id: u64,
    },
    /// One page of a LIST of the ledger's objects.
    List {
        /// Pages of one LIST share the `seq` of the first one.
        list: u64,
        /// 0 for the first page.
        page: u32,
        /// The parameter as sent; absent when unset.
        #[serde(skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
        /// The parameter as sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    },
    /// Opening of a watch; it returns when the server has accepted or refused it.
    Watch {
        /// Ascending number of the stream within the history.
        stream: u64,
        /// Exclusive start through the API server, inclusive on etcd.
        from: u64,
    },
    /// Linearizable etcd range of the ledger's prefix.
    EtcdRange {
        /// Absent: the current revision.
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// Create of a client's own Secret.
    CreateSecret,
    /// Quorum GET of it.
    GetSecret,
    /// LIST of the namespace's Secrets without resourceVersion.
    ListSecrets,
    /// GET `/readyz`.
    Ready,
    /// GET of a Lease.
    Lease {
        /// Name of the Lease in `kube-system`.
        name: String,
    },
    /// Opening of a watch that is to begin with the state as it is (`sendInitialEvents`),
    /// without a list before it.
    WatchList {
        /// As for a watch.
        stream: u64,
    },
    /// Create of an object that compare-and-swap updates then change.
    CasCreate {
        /// Number of the object within the client.
        object: u64,
        /// Unique number of the value within the client.
        value: u64,
    },
    /// PUT that names the resourceVersion it rests on.
    CasUpdate {
        /// Number of the object within the client.
        object: u64,
        /// resourceVersion that the client held, and sent.
        held: u64,
        /// Unique number of the value within the client.
        value: u64,
    },
    /// Quorum GET of an object of compare-and-swap updates, after a refusal.
    CasRead {
        /// Number of the object within the client.
        object: u64,
    },
    /// Something done to an etcd lease.
    EtcdLease {
        /// What.
        action: LeaseAction,
        /// Its id, hexadecimal as etcd's tools write it; absent when it gets one.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease: Option<String>,
        /// Time to live asked for, of a grant.
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl_seconds: Option<u64>,
    },
    /// A candidate's operation on the Lease that it wants.
    Elect {
        /// Identity of the candidate.
        candidate: String,
        /// Name of the Lease.
        lease: String,
        /// What.
        action: ElectAction,
    },
    /// Creation of the `id`-th object of a client.
    Make {
        /// What.
        what: Made,
        /// Ascending within the client.
        id: u64,
    },
    /// GET of such an object, to see what was done about it.
    Look {
        /// What.
        what: Made,
        /// As it was made.
        id: u64,
    },
    /// A request of a load.
    Request {
        /// For what.
        asked: Asked,
        /// Which attempt at which request, of a load that retries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Attempt>,
    },
    /// GET of the ReplicaSet that Deployment `id` names, or once named.
    Owned {
        /// As the Deployment was made.
        id: u64,
        /// Name of the ReplicaSet.
        name: String,
    },
}

/// What the revision in an answer is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionOf<'a> {
    /// The store as it then was: of a list, an etcd header, or a write that was acknowledged.
    Store,
    /// The same, and one of the object's own sequence: a compare-and-swap write of the client's numbered object.
    Write(u64),
    /// An object that was read, a number of the client: the store's may be any that is higher.
    Object(u64),
    /// A named object that was read.
    Named(&'a str),
    /// An object that never changes, a stream, or nothing that has a revision: it says nothing about time.
    Nothing,
}

impl Op {
    /// What the revision in its answer is of.
    #[must_use]
    pub fn revision_of(&self) -> RevisionOf<'_> {
        match self {
            Op::Create { .. } | Op::List { .. } | Op::EtcdRange { .. } => RevisionOf::Store,
            Op::CasCreate { object, .. } | Op::CasUpdate { object, .. } => RevisionOf::Write(*object),
            Op::CasRead { object } => RevisionOf::Object(*object),
            Op::Lease { name } => RevisionOf::Named(name),
            Op::Get { .. }
            | Op::Watch { .. }
            | Op::WatchList { .. }
            | Op::CreateSecret
            | Op::GetSecret
            | Op::ListSecrets
            | Op::Ready
            | Op::EtcdLease { .. }
            | Op::Elect { .. }
            | Op::Make { .. }
            | Op::Look { .. }
            | Op::Request { .. }
            | Op::Owned { .. } => RevisionOf::Nothing,
        }
    }
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every record holds an answer; a box each would cost more than it saves"
)]
pub enum Outcome {
    /// Acknowledged, or answered.
    Ok(Answer),
    /// Certain not to have taken effect, or a refusal.
    Failed {
        /// HTTP status, or absent when there was no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Short class: `not-found`, `gone`, `reinitializing`, `refused`, ….
        reason: String,
    },
    /// It may or may not have taken effect.
    Unknown {
        /// Short class: `timeout`, `connection-lost`, `server-error`, ….
        reason: String,
    },
}

/// The parts of an answer that judging needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    /// resourceVersion of the object (GET, create), of the list, or etcd's header revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Ids in a list page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<IdSet>,
    /// The list goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// `[id, mod revision]` of every object of an etcd range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<(u64, u64)>>,
    /// Raft term in etcd's answer header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raft_term: Option<u64>,
    /// etcd member id in the answer header, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Holder of a Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// The value read is not the one that was written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wrong_value: bool,
    /// Number of the value that an object of compare-and-swap updates was found with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// How often a Lease has changed hands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transitions: Option<u64>,
    /// Id of an etcd lease that was granted, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Ids of the client's own etcd leases that exist, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leases: Option<Vec<String>>,
    /// Seconds that an etcd lease has left, rounded down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// Seconds that it was granted for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_ttl_seconds: Option<u64>,
    /// UID of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Name of the ReplicaSet that a Deployment's status names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_set: Option<String>,
    /// Whether a controller has done what the object asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acted: Option<bool>,
}

/// Something that arrived on a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    /// Stream that it arrived on.
    pub stream: u64,
    /// Boot of `at_ns`.
    pub boot: BootId,
    /// When it was read off the connection.
    pub at_ns: MonoNs,
    /// What it says.
    pub event: Event,
}

/// What a watch said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// Ledger object `id` was added or changed at `revision`.
    Put {
        /// Ledger id.
        id: u64,
        /// resourceVersion of the object, or etcd's mod revision.
        revision: u64,
    },
    /// Ledger object `id` was deleted at `revision`.
    Delete {
        /// Ledger id.
        id: u64,
        /// resourceVersion of the deletion.
        revision: u64,
    },
    /// An object that is not the ledger's (only its revision matters).
    Other {
        /// resourceVersion.
        revision: u64,
    },
    /// An ERROR event inside the stream, or etcd's cancellation.
    Error {
        /// Status code of the error, such as 410.
        code: u16,
        /// Its message, escaped when shown.
        message: String,
    },
    /// The stream ended.
    Ended {
        /// `eof`, `as-asked`, `connection-lost`, `compacted`, `stopped`, ….
        reason: String,
    },
    /// A BOOKMARK: everything up to `revision` has been delivered.
    Bookmark {
        /// resourceVersion.
        revision: u64,
        /// It carries the annotation that ends the initial events of a [`Op::WatchList`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        initial_events_end: bool,
    },
    /// The client's store was filled anew, and this is all that it holds.
    Store {
        /// Ledger ids in it.
        ids: IdSet,
        /// resourceVersion of the list or bookmark that it was filled from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<u64>,
    },
    /// A candidate believes from now on that it leads.
    Leading {
        /// Its identity.
        candidate: String,
        /// resourceVersion of the Lease that says so.
        revision: u64,
        /// How often the Lease has changed hands.
        transitions: u64,
    },
    /// It does so no more.
    LeadingEnded {
        /// Its identity.
        candidate: String,
        /// `renew-deadline`, `released`, `stopped`.
        reason: String,
    },
}

/// Reason of a stream's end when the time that the client had asked for was over.
pub const ENDED_AS_ASKED: &str = "as-asked";
