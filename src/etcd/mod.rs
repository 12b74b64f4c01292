//! etcd: its client, its data, how Kubernetes lays it out, and its snapshot files.

pub mod client;
pub mod lease;
pub mod registry;
pub mod snapshot;
