//! Bars of the recovery ladder, all on one scale that starts at zero.

use super::svg::Svg;
use crate::report::figure;
use crate::report::ladder::{Rise, Rung};

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 22.0;

/// The scale's end: the longest upper bound, rounded up to 1, 2 or 5 times a power of ten.
pub(super) fn scale(rungs: &[Rung]) -> u64 {
    let longest = rungs
        .iter()
        .flat_map(|r| [&r.from_fault, &r.from_command])
        .filter_map(|rise| match rise {
            Rise::Between(_, upper) => Some(*upper),
            Rise::Unknown(_) | Rise::NotApplicable => None,
        })
        .max()
        .unwrap_or(1_000_000_000);
    let mut unit: u64 = 1_000_000;
    loop {
        for factor in [1, 2, 5] {
            if longest <= unit.saturating_mul(factor) {
                return unit.saturating_mul(factor);
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// The scale itself, for the head of the column.
pub(super) fn ruler(id: &str, end: u64) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.line("axis", 0.0, 18.0, WIDTH, 18.0);
    for (x, anchor, ns) in [(0.5, "start", 0), (WIDTH / 2.0, "middle", end / 2), (WIDTH - 0.5, "end", end)] {
        svg.line("axis", x, 14.0, x, 22.0);
        let label = if ns == 0 { "0".to_owned() } else { figure::round_duration(ns) };
        svg.text("tick", x, 10.0, anchor, &label);
    }
    svg.finish(id, HEIGHT, "scale", &format!("linear, from 0 to {}", figure::round_duration(end)))
}

/// One bar: solid to the lower bound, hatched from there to the upper one.
pub(super) fn bar(id: &str, rise: &Rise, end: u64) -> String {
    let mut svg = Svg::new(WIDTH);
    svg.line("norecord", 0.0, 11.0, WIDTH, 11.0);
    if let Rise::Between(lower, upper) = rise {
        let (lower, upper) = (part(*lower, end), part(*upper, end));
        svg.rect("bar", 0.0, 5.0, lower, 12.0, "");
        svg.rect("bar-open", lower, 5.0, (upper - lower).max(1.5), 12.0, "");
        svg.line("bar-end", lower, 3.0, lower, 19.0);
        svg.line("bar-end", upper, 3.0, upper, 19.0);
    }
    svg.finish(id, HEIGHT, "bar", &rise.text())
}

/// Exact below 2^53 ns, which is 104 days.
#[allow(clippy::cast_precision_loss)]
fn part(ns: u64, end: u64) -> f64 {
    WIDTH * (ns as f64) / (end.max(1) as f64)
}
