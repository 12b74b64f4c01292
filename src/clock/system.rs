//! The clocks of the machine.

use super::{BootId, Clock, MonoNs};
use nix::time::{ClockId, clock_gettime};

/// The kernel's clocks.
#[derive(Debug, Clone)]
pub struct SystemClock {
    boot: BootId,
}

impl SystemClock {
    /// Reads the boot id once; it can't change under a running process.
    #[must_use]
    pub fn new() -> Self {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let short: String = text.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        let boot = if short.is_empty() { "unknown".to_owned() } else { short };
        Self { boot: BootId(boot) }
    }

    fn read(id: ClockId) -> i128 {
        // The kernel guarantees both clocks on every Linux this crate builds for.
        clock_gettime(id).map_or(0, |t| i128::from(t.tv_sec()) * 1_000_000_000 + i128::from(t.tv_nsec()))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn mono(&self) -> MonoNs {
        MonoNs(u64::try_from(Self::read(ClockId::CLOCK_BOOTTIME)).unwrap_or(0))
    }

    fn wall_ns(&self) -> i128 {
        Self::read(ClockId::CLOCK_REALTIME)
    }

    fn boot(&self) -> BootId {
        self.boot.clone()
    }
}
