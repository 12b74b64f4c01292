//! The timeline: one time axis, faults shaded, marks with their uncertainty, a
//! lane per client. State is told by height and pattern; colour only repeats it.

pub(super) use super::lanes::DrawnLane;
use super::lanes::{self, Piece};
use super::svg::Svg;
use crate::report::figure;
use crate::report::model::{Mark, Report};
use crate::timeline::lanes::{Lane, LaneState};
use crate::timeline::marks::FAULT;

const WIDTH: f64 = 1120.0;
pub(super) const LEFT: f64 = 236.0;
pub(super) const PLOT: f64 = 864.0;
/// Width of a character of a mark's label, on the safe side.
const CHARACTER: f64 = 6.6;
const STEP_ROW: f64 = 24.0;
const MARK_ROW: f64 = 17.0;
const LANE_ROW: f64 = 34.0;
const AXIS: f64 = 42.0;

/// Part of the run, in monotonic nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Window {
    fn length(self) -> u64 {
        self.to.saturating_sub(self.from).max(1)
    }

    pub(super) fn x(self, ns: u64) -> f64 {
        let at = ns.clamp(self.from, self.to) - self.from;
        LEFT + PLOT * to_f64(at) / to_f64(self.length())
    }

    fn meets(self, from: u64, to: u64) -> bool {
        from <= self.to && to >= self.from
    }
}

/// Exact below 2^53 ns, which is 104 days.
#[allow(clippy::cast_precision_loss)]
pub(super) fn to_f64(n: u64) -> f64 {
    n as f64
}

/// The lanes as they are drawn, clients that recorded nothing included.
pub(super) fn drawn(lanes: &[Lane]) -> Vec<DrawnLane> {
    lanes.iter().map(DrawnLane::of).collect()
}

/// The whole time in which clients recorded; `None` without any.
pub(super) fn whole(lanes: &[DrawnLane]) -> Option<Window> {
    let stretches = || lanes.iter().flat_map(|l| &l.stretches);
    let from = stretches().map(|s| s.from_ns.0).min()?;
    let to = stretches().map(|s| s.to_ns.0).max()?;
    (to > from).then_some(Window { from, to })
}

/// The time around the faults and marks, when it is so short a part of `whole`
/// that it needs a picture of its own.
pub(super) fn close_up(report: &Report, whole: Window) -> Option<Window> {
    const MARGIN_NS: u64 = 1_000_000_000;
    let starts = report.faults.iter().filter_map(|f| f.injecting.as_ref()).map(|i| i.mono_ns.0);
    let from = starts.min()?.saturating_sub(MARGIN_NS).max(whole.from);
    let ends = report.faults.iter().filter_map(|f| f.ended.as_ref()).map(|i| i.mono_ns.0);
    let marks = report.marks.iter().filter_map(|m| m.upper_ns).map(|n| n.0).filter(|n| *n >= from);
    let rungs = marks.filter(|n| *n <= from.saturating_add(whole.length() / 4));
    let to = ends.chain(rungs).max()?.saturating_add(2 * MARGIN_NS).min(whole.to);
    let window = Window { from, to };
    (to > from && window.length() < whole.length() / 5 * 2).then_some(window)
}

/// The instant that reports count from: the earliest start of an injection, else the mark
/// of the fault, else the start of the recording.
pub(super) fn zero(report: &Report, lanes: &[DrawnLane]) -> u64 {
    report
        .faults
        .iter()
        .filter_map(|f| f.injecting.as_ref())
        .map(|i| i.mono_ns.0)
        .min()
        .or_else(|| report.marks.iter().find(|m| m.name == FAULT).and_then(|m| m.lower_ns).map(|n| n.0))
        .or_else(|| whole(lanes).map(|w| w.from))
        .or_else(|| report.run.started_at.as_ref().map(|i| i.mono_ns.0))
        .unwrap_or(0)
}

/// A drawing and whether its lanes had to be sampled.
pub(super) struct Drawing {
    pub(super) svg: String,
    pub(super) sampled: bool,
}

/// Draws `window`.
pub(super) fn draw(
    report: &Report,
    lanes: &[DrawnLane],
    window: Window,
    zero: u64,
    id: &str,
    title: &str,
) -> Drawing {
    let marks: Vec<&Mark> = report
        .marks
        .iter()
        .filter(|m| m.lower_ns.zip(m.upper_ns).is_some_and(|(l, u)| window.meets(l.0, u.0)))
        // `firstTrueList:lister` and the like would bury the rest; the lanes show each client.
        .filter(|m| !m.name.contains(':'))
        .collect();
    let steps_top = 4.0;
    let marks_top = steps_top + STEP_ROW + 8.0;
    let lanes_top = marks_top + MARK_ROW * count(marks.len()) + 8.0;
    let bottom = lanes_top + LANE_ROW * count(lanes.len());
    let mut svg = Svg::new(WIDTH);
    axis(&mut svg, window, zero, steps_top, bottom);
    faults(&mut svg, report, window, steps_top + STEP_ROW, bottom);
    steps(&mut svg, report, window, zero, steps_top);
    let mut sampled = false;
    for (index, lane) in lanes.iter().enumerate() {
        sampled |= draw_lane(&mut svg, lane, window, zero, lanes_top + LANE_ROW * count(index));
    }
    for (index, mark) in marks.iter().enumerate() {
        draw_mark(&mut svg, mark, window, zero, marks_top + MARK_ROW * count(index), bottom);
    }
    let svg = svg.finish(id, bottom + AXIS, title, &description(report, lanes, window));
    Drawing { svg, sampled }
}

fn count(n: usize) -> f64 {
    to_f64(n as u64)
}

pub(super) fn axis(svg: &mut Svg, window: Window, zero: u64, top: f64, bottom: f64) {
    let every = tick(window.length());
    let first = {
        let behind = zero.abs_diff(window.from);
        if window.from <= zero {
            zero - behind / every * every
        } else {
            zero.saturating_add(behind.div_ceil(every).saturating_mul(every))
        }
    };
    svg.line("axis", LEFT, bottom, LEFT + PLOT, bottom);
    let mut at = first;
    while at <= window.to {
        let x = window.x(at);
        svg.line("grid", x, top, x, bottom + 5.0);
        let sign = if at < zero { "−" } else { "+" };
        let label = if at == zero {
            "0".to_owned()
        } else {
            format!("{sign}{}", figure::round_duration(at.abs_diff(zero)))
        };
        svg.text("tick", x, bottom + 18.0, "middle", &label);
        let Some(next) = at.checked_add(every) else { break };
        at = next;
    }
    svg.text("tick", LEFT + PLOT / 2.0, bottom + 36.0, "middle", "time since the fault");
}

/// Distance of the axis's ticks: 1, 2 or 5 times a power of ten, at most about 12 of them.
fn tick(length: u64) -> u64 {
    let mut unit = 1_000_000;
    loop {
        for factor in [1, 2, 5] {
            if length / (unit * factor) <= 12 {
                return unit * factor;
            }
        }
        unit *= 10;
    }
}

fn faults(svg: &mut Svg, report: &Report, window: Window, top: f64, bottom: f64) {
    for fault in &report.faults {
        let Some(start) = fault.injecting.as_ref() else { continue };
        let end = fault.ended.as_ref().map_or(window.to, |i| i.mono_ns.0);
        if !window.meets(start.mono_ns.0, end) {
            continue;
        }
        let (x1, x2) = (window.x(start.mono_ns.0), window.x(end));
        let hover = format!("{} on {}", fault.kind, fault.target.join(", "));
        svg.rect("fault", x1, top, (x2 - x1).max(1.5), bottom - top, &hover);
        svg.line("fault-edge", x1, top, x1, bottom);
        svg.line("fault-edge", x2, top, x2, bottom);
    }
}

fn steps(svg: &mut Svg, report: &Report, window: Window, zero: u64, top: f64) {
    svg.text("lane-name", LEFT - 12.0, top + 15.0, "end", "steps");
    for step in &report.steps {
        let Some(start) = step.started.as_ref().map(|i| i.mono_ns.0) else { continue };
        let end = step.finished.as_ref().map_or(window.to, |i| i.mono_ns.0);
        if !window.meets(start, end) {
            continue;
        }
        let (x1, x2) = (window.x(start), window.x(end));
        let hover = format!(
            "step {} {}, from {} to {}",
            step.index,
            step.kind,
            figure::offset(start, zero),
            figure::offset(end, zero)
        );
        svg.rect("step", x1, top, (x2 - x1).max(1.5), STEP_ROW - 4.0, &hover);
        let label = format!("{} {}", step.index, step.kind);
        let needed = 7.2 * count(label.chars().count()) + 8.0;
        if x2 - x1 > needed {
            svg.text("step-name", x1 + 5.0, top + 14.0, "start", &label);
        } else if x2 - x1 > 14.0 {
            svg.text("step-name", x1 + 4.0, top + 14.0, "start", &step.index.to_string());
        }
    }
}

fn draw_mark(svg: &mut Svg, mark: &Mark, window: Window, zero: u64, top: f64, bottom: f64) {
    let (Some(lower), Some(upper), Some(middle)) = (mark.lower_ns, mark.upper_ns, mark.mono_ns) else {
        return;
    };
    let (x1, x2) = (window.x(lower.0), window.x(upper.0));
    let x = window.x(middle.0);
    let y = top + MARK_ROW / 2.0;
    svg.line("drop", x, y, x, bottom);
    svg.line("mark", x1, y, x2.max(x1 + 0.5), y);
    svg.line("mark", x1, y - 4.0, x1, y + 4.0);
    svg.line("mark", x2, y - 4.0, x2, y + 4.0);
    let half = upper.since(lower) / 2;
    let label = format!("{} {} ±{}", mark.name, figure::offset(middle.0, zero), figure::duration(half));
    let width = CHARACTER * count(label.chars().count());
    if x2 + 7.0 + width <= WIDTH {
        svg.text("mark-name", x2 + 7.0, y + 4.0, "start", &label);
    } else if x1 - 7.0 - width >= 0.0 {
        svg.text("mark-name", x1 - 7.0, y + 4.0, "end", &label);
    } else {
        svg.text("mark-name", WIDTH - 4.0, y + 4.0, "end", &label);
    }
}

/// Where a state is drawn within a lane of 34: class, offset from the top, height.
fn shape(state: LaneState) -> (&'static str, f64, f64) {
    match state {
        LaneState::Good => ("s-good", 15.0, 4.0),
        // Nothing to see but its hover text; the line of what is not recorded shows through.
        LaneState::Unobserved => ("s-gap", 11.0, 12.0),
        LaneState::Unknown => ("s-unknown", 11.0, 12.0),
        LaneState::Failed => ("s-failed", 6.0, 22.0),
        LaneState::Wrong => ("s-wrong", 6.0, 22.0),
    }
}

fn draw_lane(svg: &mut Svg, lane: &DrawnLane, window: Window, zero: u64, top: f64) -> bool {
    svg.text("lane-name", LEFT - 12.0, top + 15.0, "end", &lane.client);
    svg.text("lane-kind", LEFT - 12.0, top + 27.0, "end", &lane.kind);
    svg.line("norecord", LEFT, top + 17.0, LEFT + PLOT, top + 17.0);
    let (mut pieces, sampled) = lanes::pieces(lane, window.from, window.to);
    pieces.sort_by_key(|p| (lanes::rank(p.state), p.from));
    for Piece { from, to, state, note } in pieces {
        let (class, offset, height) = shape(state);
        let (x1, x2) = (window.x(from), window.x(to));
        let least = if state == LaneState::Good { 0.4 } else { 1.6 };
        let why = note.map(|n| format!(": {n}")).unwrap_or_default();
        let hover = format!(
            "{} from {} to {}{why}",
            lanes::word(state),
            figure::offset(from, zero),
            figure::offset(to, zero)
        );
        svg.rect(class, x1, top + offset, (x2 - x1).max(least), height, &hover);
    }
    sampled
}

/// The picture in words, for those who can't see it.
fn description(report: &Report, lanes: &[DrawnLane], window: Window) -> String {
    let mut parts = Vec::new();
    for fault in &report.faults {
        parts.push(format!("Fault {} on {}.", fault.kind, fault.target.join(", ")));
    }
    for lane in lanes {
        let totals = lanes::totals(lane, window.from, window.to);
        let states: Vec<String> = totals
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .map(|(word, ns)| format!("{word} {}", figure::duration(ns)))
            .collect();
        parts.push(format!("{}: {}.", lane.client, states.join(", ")));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn an_axis_has_a_dozen_round_ticks_at_most() {
        assert_eq!(tick(60_000_000_000), 5_000_000_000);
        assert_eq!(tick(6_000_000_000), 500_000_000);
        for length in [1_u64, 999, 3_700_000_000_000, u64::MAX / 4] {
            assert!(length / tick(length) <= 12);
        }
    }
}
