//! The upstream binaries of one pair of Kubernetes and etcd versions.

use std::path::PathBuf;

/// Directories that hold the binaries of one pair of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinarySet {
    /// `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, `kubectl`.
    pub dir_kubernetes: PathBuf,
    /// `etcd`, `etcdctl`, `etcdutl`.
    pub dir_etcd: PathBuf,
}

impl BinarySet {
    /// Path of the binary called `name`, whether it exists or not.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        let dir = if name.starts_with("etcd") { &self.dir_etcd } else { &self.dir_kubernetes };
        dir.join(name)
    }
}
