//! The only place that reads clocks.
//!
//! Every instant in journal and histories is CLOCK_BOOTTIME in nanoseconds
//! (it keeps counting through suspend, and every process of one host reads the
//! same value), tagged with the boot id. A difference of two instants is a
//! duration only when both carry the same boot id. Wall time is for people.

mod fake;
mod system;

pub use fake::FakeClock;
pub use system::SystemClock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds of CLOCK_BOOTTIME on one host and boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// Nanoseconds from `earlier` to `self`; 0 when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: MonoNs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant `ns` nanoseconds later.
    #[must_use]
    pub fn plus(self, ns: u64) -> MonoNs {
        MonoNs(self.0.saturating_add(ns))
    }
}

/// The first eight hexadecimal digits of the kernel's boot id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BootId(pub String);

/// Wall time, RFC 3339 in UTC with microseconds. For people, never for durations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WallTime(pub String);

impl WallTime {
    /// Date and time to the second, as people read it; `None` for what is no RFC 3339.
    #[must_use]
    pub fn to_second(&self) -> Option<String> {
        let (date, time) = self.0.split_once('T')?;
        Some(format!("{date} {}", time.get(..8)?))
    }
}

/// Source of time, injected so that tests can step it.
pub trait Clock: Send + Sync {
    /// CLOCK_BOOTTIME now.
    fn mono(&self) -> MonoNs;
    /// Wall time now, in nanoseconds since the Unix epoch.
    fn wall_ns(&self) -> i128;
    /// The boot that `mono` counts from.
    fn boot(&self) -> BootId;
    /// Wall time now, as people read it.
    fn wall(&self) -> WallTime {
        let text = jiff::Timestamp::from_nanosecond(self.wall_ns())
            .map(|t| format!("{t:.6}"))
            .unwrap_or_else(|_| "unknown".to_owned());
        WallTime(text)
    }
}

/// Detects steps of the wall clock against the monotonic one.
///
/// A step is reported when the two have moved apart by more than `tolerance_ns`
/// since the last look.
#[derive(Debug)]
pub struct WallStepDetector {
    offset_ns: Option<i128>,
    tolerance_ns: i128,
}

impl WallStepDetector {
    /// A detector that ignores drift below `tolerance_ns` between two looks.
    #[must_use]
    pub fn new(tolerance_ns: u64) -> Self {
        Self { offset_ns: None, tolerance_ns: i128::from(tolerance_ns) }
    }

    /// Looks at the clock; returns the step in nanoseconds (positive: forward) if there was one.
    pub fn look(&mut self, clock: &dyn Clock) -> Option<i128> {
        let offset = clock.wall_ns() - i128::from(clock.mono().0);
        let previous = self.offset_ns.replace(offset)?;
        let step = offset - previous;
        (step.abs() > self.tolerance_ns).then_some(step)
    }
}

/// An instant, on the machine's clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stamp {
    /// Wall time, for people.
    pub at: WallTime,
    /// Monotonic time.
    pub mono_ns: MonoNs,
    /// Boot of `mono_ns`.
    pub boot: BootId,
}

impl Stamp {
    /// Now.
    #[must_use]
    pub fn now(clock: &dyn Clock) -> Self {
        Self { at: clock.wall(), mono_ns: clock.mono(), boot: clock.boot() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_step_is_seen_once_and_drift_is_not() {
        let clock = FakeClock::new();
        let mut detector = WallStepDetector::new(50_000_000);
        assert_eq!(detector.look(&clock), None);
        clock.advance(1_000_000_000);
        assert_eq!(detector.look(&clock), None);
        clock.step_wall(-3_600_000_000_000);
        assert_eq!(detector.look(&clock), Some(-3_600_000_000_000));
        clock.advance(1_000_000_000);
        assert_eq!(detector.look(&clock), None);
    }
}
