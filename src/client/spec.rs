//! The clients of a drill file.

use crate::drill::values::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
