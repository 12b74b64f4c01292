//! What clusters can do or can't.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a fault or client may need of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Components can be stopped and started.
    ControlComponents,
    /// etcd's data directories can be moved aside and restored.
    ReplaceEtcdData,
    /// etcd can be reached directly with a client certificate.
    ReachEtcd,
    /// Each API server can be addressed by itself.
    AddressApiServers,
    /// Host-level faults end by themselves when the runner dies.
    DeadMan,
}
