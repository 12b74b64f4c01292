//! Arrival processes: when the requests of a load are due, counted from its begin.
//!
//! Offsets are made before the load begins, so that a plan can say what is going to happen, and so that
//! nothing is computed while requests are sent.

use super::pacer::Schedule;
use crate::clock::MonoNs;
use crate::drill::values::{Rate, Span};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND: f64 = 1e9;

/// When requests are due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Arrivals {
    /// Evenly spaced.
    Constant(Constant),
    /// Independent of each other, with exponentially distributed gaps; seeded by the plan.
    Poisson(Constant),
    /// At a rate that changes evenly.
    Ramp(Ramp),
    /// All of them at once, once or several times.
    Burst(Burst),
    /// Each one once one before it is answered: a closed loop.
    Serial(Serial),
}

/// One after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Serial {
    /// Requests in all.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests: u32,
    /// So many at a time.
    #[serde(default = "Serial::one")]
    #[schemars(range(min = 1, max = 1000))]
    pub at_a_time: u32,
}

impl Serial {
    fn one() -> u32 {
        1
    }
}

/// One rate for a while.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Constant {
    /// Requests per second.
    pub rate: Rate,
    /// For how long.
    #[serde(rename = "for")]
    pub duration: Span,
}

/// From one rate to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ramp {
    /// Rate at the begin.
    pub from: Rate,
    /// Rate at the end.
    pub to: Rate,
    /// For how long.
    #[serde(rename = "for")]
    pub duration: Span,
}

/// Many at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Burst {
    /// Requests in each burst.
    #[schemars(range(min = 1, max = 100_000))]
    pub requests: u32,
    /// Number of bursts.
    #[serde(default = "Burst::once")]
    #[schemars(range(min = 1, max = 10_000))]
    pub times: u32,
    /// Time between two bursts.
    #[serde(default = "Burst::a_second")]
    pub every: Span,
}

impl Burst {
    fn once() -> u32 {
        1
    }

    fn a_second() -> Span {
        Span::secs(1)
    }
}

impl Arrivals {
    /// Nanoseconds from the begin of the load to each request, ascending. The same seed gives the same offsets
    /// in one build of this tool; the offsets of a run are in its histories. Of a closed loop only their number
    /// is known; they are all 0.
    #[must_use]
    pub fn offsets(&self, seed: u64) -> Vec<u64> {
        match self {
            Arrivals::Constant(c) => {
                let schedule = Schedule::at_rate(MonoNs(0), c.rate);
                (0..).map(|i| schedule.slot(i).due.0).take_while(|at| *at < c.duration.as_ns()).collect()
            }
            Arrivals::Poisson(c) => poisson(c, seed),
            Arrivals::Ramp(r) => ramp(r),
            Arrivals::Burst(b) => (0..b.times)
                .flat_map(|i| {
                    let at = b.every.as_ns().saturating_mul(u64::from(i));
                    std::iter::repeat_n(at, b.requests as usize)
                })
                .collect(),
            Arrivals::Serial(s) => vec![0; s.requests as usize],
        }
    }

    /// About how many requests these are, without making them.
    #[must_use]
    pub fn count_at_most(&self) -> u64 {
        let seconds = |span: Span| span.0.as_secs_f64();
        let count = match self {
            Arrivals::Constant(c) | Arrivals::Poisson(c) => f64::from(c.rate.0) * seconds(c.duration),
            Arrivals::Ramp(r) => f64::from(r.from.0.max(r.to.0)) * seconds(r.duration),
            Arrivals::Burst(b) => f64::from(b.requests) * f64::from(b.times),
            Arrivals::Serial(s) => f64::from(s.requests),
        };
        count.ceil() as u64
    }

    /// How many requests are out at a time in a closed loop, in which each one waits for the answer to another;
    /// `None`: the loop is open.
    #[must_use]
    pub fn at_a_time(&self) -> Option<usize> {
        match self {
            Arrivals::Serial(s) => Some(s.at_a_time as usize),
            _ => None,
        }
    }

    /// From the first request to the end of the load.
    #[must_use]
    pub fn duration(&self) -> Span {
        match self {
            Arrivals::Constant(c) | Arrivals::Poisson(c) => c.duration,
            Arrivals::Ramp(r) => r.duration,
            Arrivals::Burst(b) => Span(b.every.0.saturating_mul(b.times.saturating_sub(1))),
            Arrivals::Serial(_) => Span(std::time::Duration::ZERO),
        }
    }
}

fn poisson(c: &Constant, seed: u64) -> Vec<u64> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mean = SECOND / f64::from(c.rate.0);
    let end = c.duration.as_ns() as f64;
    let mut at = 0.0;
    let gaps = std::iter::from_fn(|| {
        // In (0, 1]: its logarithm is finite.
        let die: f64 = 1.0 - dice.random::<f64>();
        at -= mean * die.ln();
        (at < end).then_some(at as u64)
    });
    gaps.collect()
}

/// After `t` of `duration` there have been `from·t + (to − from)·t² / 2·duration`; solved for `t`.
fn ramp(r: &Ramp) -> Vec<u64> {
    let (from, to) = (f64::from(r.from.0), f64::from(r.to.0));
    let duration = r.duration.as_ns() as f64 / SECOND;
    let count = ((from + to) / 2.0 * duration).ceil() as u64;
    let slope = (to - from) / duration;
    let at = |n: f64| {
        // In this form nothing is lost when the slope is next to nothing.
        let root = slope.mul_add(2.0 * n, from * from).max(0.0).sqrt();
        if n == 0.0 { 0.0 } else { 2.0 * n / (from + root) }
    };
    (0..count).map(|n| ((at(n as f64) * SECOND) as u64).min(r.duration.as_ns())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn constant(rate: u32, ms: u64) -> Constant {
        Constant { rate: Rate(rate), duration: Span::millis(ms) }
    }

    #[test]
    fn a_constant_rate_is_exact_to_the_last_request() {
        let offsets = Arrivals::Constant(constant(30, 15_000)).offsets(0);
        assert_eq!(offsets.len(), 450);
        assert_eq!((offsets[0], offsets[30], offsets[449]), (0, 1_000_000_000, 14_966_666_666));
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let burst = Burst { requests: 30, times: 2, every: Span::secs(5) };
        let offsets = Arrivals::Burst(burst).offsets(0);
        assert_eq!(offsets.len(), 60);
        assert_eq!((offsets[29], offsets[30]), (0, 5_000_000_000));
    }

    #[test]
    fn a_ramp_has_a_third_of_its_requests_in_its_first_half_from_nearly_nothing() {
        let offsets =
            Arrivals::Ramp(Ramp { from: Rate(1), to: Rate(199), duration: Span::secs(10) }).offsets(0);
        assert_eq!(offsets.len(), 1_000);
        let first_half = offsets.iter().filter(|at| **at < 5_000_000_000).count();
        assert_eq!(first_half, 253, "5·1 + 19.8·25/2, and the one at 0");
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_their_spread() {
        let offsets = Arrivals::Poisson(constant(1_000, 100_000)).offsets(7);
        let count = offsets.len() as f64;
        assert!((count - 100_000.0).abs() < 5.0 * 100_000_f64.sqrt(), "{count}");
        let gaps: Vec<f64> = offsets.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.05,
            "a coefficient of variation of 1: {mean} {variance}"
        );
    }

    proptest! {
        #[test]
        fn offsets_ascend_within_the_load_and_are_the_same_for_the_same_seed(
            rate in 1_u32..2_000,
            to in 1_u32..2_000,
            ms in 1_u64..3_000,
            kind in 0_u8..3,
            seed in any::<u64>(),
        ) {
            let arrivals = match kind {
                0 => Arrivals::Constant(constant(rate, ms)),
                1 => Arrivals::Poisson(constant(rate, ms)),
                _ => Arrivals::Ramp(Ramp { from: Rate(rate), to: Rate(to), duration: Span::millis(ms) }),
            };
            let offsets = arrivals.offsets(seed);
            prop_assert!(offsets.is_sorted());
            prop_assert!(offsets.iter().all(|at| *at <= arrivals.duration().as_ns()));
            prop_assert_eq!(offsets, arrivals.offsets(seed));
        }
    }
}
