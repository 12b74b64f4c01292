//! `loseEtcd`: members killed, their data directories moved aside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kills etcd members and moves their data directories aside. The directories
/// are kept until the run has ended well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoseEtcd {
    /// Which members.
    pub members: Members,
}

/// Which etcd members a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Members {
    /// Every member.
    All,
}
