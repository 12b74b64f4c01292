//! Guards: nothing destructive without a lock, an allowed target and a blast radius within limits.

/// Proof that the guards have allowed a fault: nothing destructive is called without one.
#[derive(Debug)]
pub struct GuardToken {
    _private: (),
}

impl GuardToken {
    /// A token for tests of faults.
    #[must_use]
    pub fn for_tests() -> Self {
        Self { _private: () }
    }
}
