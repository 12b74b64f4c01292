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
}

/// A plain WATCH through the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watcher {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// From where a broken watch goes on.
    #[serde(default)]
    pub resume: Resume,
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
