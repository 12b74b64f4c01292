//! etcd: its client, its data, and how Kubernetes lays it out.

pub mod client;
pub mod registry;
pub mod view;
