//! Acknowledged writes, kept outside the cluster while the drill runs.
//!
//! The history of the writer is the evidence; this is the copy in memory from
//! which readers choose what to read.

use std::sync::Mutex;
use tokio::sync::Notify;

/// Name prefix of the ledger's ConfigMaps: `ledger-<id>`.
pub const OBJECT_PREFIX: &str = "ledger-";

/// Name of the ConfigMap that holds ledger id `id`.
#[must_use]
pub fn object_name(id: u64) -> String {
    format!("{OBJECT_PREFIX}{id}")
}

/// Ledger id in a ConfigMap's name; `None` for objects that are not the ledger's.
#[must_use]
pub fn id_of(name: &str) -> Option<u64> {
    name.strip_prefix(OBJECT_PREFIX)?.parse().ok()
}

/// The unique value that ledger object `id` carries, so that an object found
/// later can be told from one that somebody else wrote.
#[must_use]
pub fn value_of(seed: u64, id: u64) -> String {
    format!("{seed:016x}-{id}")
}

/// Ids whose creation was acknowledged, in the order of acknowledgement.
#[derive(Debug, Default)]
pub struct Ledger {
    acknowledged: Mutex<Vec<u64>>,
    grown: Notify,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes an acknowledged write.
    pub fn acknowledge(&self, id: u64) {
        self.acknowledged.lock().expect("no panic while held").push(id);
        self.grown.notify_waiters();
    }

    /// Returns once a write was acknowledged. Cancel-safe.
    pub async fn first_acknowledged(&self) {
        loop {
            // Registered before looking, so that no acknowledgement falls in between.
            let mut grown = std::pin::pin!(self.grown.notified());
            grown.as_mut().enable();
            if !self.is_empty() {
                return;
            }
            grown.await;
        }
    }

    /// Number of acknowledged writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.acknowledged.lock().expect("no panic while held").len()
    }

    /// Nothing was acknowledged yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id acknowledged at position `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.acknowledged.lock().expect("no panic while held").get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_are_inverse() {
        assert_eq!(id_of(&object_name(17)), Some(17));
        assert_eq!(id_of("kube-root-ca.crt"), None);
        assert_eq!(id_of("ledger-x"), None);
    }
}
