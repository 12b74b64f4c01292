//! The queue of a level over time: how full it must have been by the model, and what its API server said.

use super::svg::Svg;
use super::timeline::{LEFT, PLOT, Window, to_f64};
use crate::check::apf::fill::QueueFill;
use crate::report::figure;

/// Height of a panel.
pub(super) const HEIGHT: f64 = 64.0;

/// What the marks mean.
pub(super) const LEGEND: &str = "At the bottom, how many requests waited in each level's queue: the area by the model, \
                                 from when they were sent; the marks by the API server itself.";

/// Draws one queue above `base`.
pub(super) fn draw(svg: &mut Svg, fill: &QueueFill, window: Window, zero: u64, base: f64) {
    let highest = fill.model.iter().map(|(_, count)| *count);
    let highest = highest.chain(fill.seen.iter().map(|(.., count)| *count)).max().unwrap_or_default().max(1);
    let x = |at: u64| window.x(at);
    let y = |count: u64| base - (HEIGHT - 18.0) * to_f64(count) / to_f64(highest);
    let ends = fill.model.iter().skip(1).map(|(at, _)| at.0).chain([window.to]);
    for ((from, count), to) in fill.model.iter().zip(ends).filter(|((_, count), _)| *count > 0) {
        let hover = format!("{count} by the model from {}", figure::offset(from.0, zero));
        svg.rect("bar-open", x(from.0), y(*count), (x(to) - x(from.0)).max(0.4), base - y(*count), &hover);
    }
    for (asked, answered, count) in &fill.seen {
        let hover = format!("{count} by the API server at {}", figure::offset(asked.0, zero));
        let width = (x(answered.0) - x(asked.0)).max(5.0);
        svg.rect("bar", x(asked.0) - 0.5, y(*count) - 2.0, width, 4.0, &hover);
    }
    svg.line("axis", LEFT, base, LEFT + PLOT, base);
    svg.text("lane-name", LEFT - 12.0, base - HEIGHT / 2.0, "end", &fill.level);
    let kind = format!("queue on {}", fill.server);
    svg.text("lane-kind", LEFT - 12.0, base - HEIGHT / 2.0 + 15.0, "end", &kind);
    svg.text("tick", LEFT + PLOT + 4.0, base - HEIGHT + 22.0, "start", &highest.to_string());
}
