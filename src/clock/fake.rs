//! A clock that a test sets.

use super::{BootId, Clock, MonoNs};
use std::sync::Mutex;

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct FakeClock {
    state: Mutex<(u64, i128)>,
}

impl FakeClock {
    /// Starts at one second of monotonic time and a fixed wall time.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::new((1_000_000_000, 1_700_000_000_000_000_000)) }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, ns: u64) {
        let mut state = self.state.lock().expect("no panic while held");
        state.0 += ns;
        state.1 += i128::from(ns);
    }

    /// Moves only the wall clock, as an administrator or NTP would.
    pub fn step_wall(&self, ns: i128) {
        self.state.lock().expect("no panic while held").1 += ns;
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for FakeClock {
    fn mono(&self) -> MonoNs {
        MonoNs(self.state.lock().expect("no panic while held").0)
    }

    fn wall_ns(&self) -> i128 {
        self.state.lock().expect("no panic while held").1
    }

    fn boot(&self) -> BootId {
        BootId("fakeb007".to_owned())
    }
}
