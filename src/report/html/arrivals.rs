//! Loads over time: how many requests were due in each part of it, by what became of them, and how many were out.

use super::queue;
use super::svg::Svg;
use super::timeline::{LEFT, PLOT, Window, axis, to_f64};
use crate::check::apf::fill::QueueFill;
use crate::check::apf::requests::{Kind, Request, fates};
use crate::report::figure;
use crate::timeline::EvidenceInput;
use crate::timeline::clients::ClientLog;
use std::collections::BTreeMap;

const WIDTH: f64 = 1120.0;
const PANEL: f64 = 84.0;
const WAITING: f64 = 26.0;
const GAP: f64 = 18.0;
const AXIS: f64 = 42.0;
/// Parts of the time axis.
const PARTS: u64 = 144;

/// Kinds from the bottom of a column to its top, each with its pattern.
const KINDS: [(Kind, &str, &str); 6] = [
    (Kind::Ok, "s-good", "executed"),
    (Kind::TimeOut, "s-wrong", "refused after their wait"),
    (Kind::QueueFull, "s-failed", "refused at once, the queue was full"),
    (Kind::ConcurrencyLimit, "bar-open", "refused at once, no seat"),
    (Kind::Other, "s-unknown", "answered otherwise"),
    (Kind::Unanswered, "norecord", "not answered"),
];

/// What the patterns mean.
pub(super) const LEGEND: &str = "Above, requests by when they were due: solid green was executed, solid purple refused \
                                 after its wait, hatched orange refused at once for a full queue, hatched blue for \
                                 want of a seat, dotted answered otherwise. Below, how many were out.";

/// A load's name and its requests.
pub(super) type Load = (String, Vec<Request>);

/// Loads that recorded something.
pub(super) fn loads(input: &EvidenceInput, logs: &[ClientLog]) -> Vec<Load> {
    logs.iter()
        .map(|log| (log.name().to_owned(), fates(log, input)))
        .filter(|(_, all)| !all.is_empty())
        .collect()
}

/// From the first request to the last answer, with a little around them.
pub(super) fn window(loads: &[Load]) -> Option<Window> {
    let all = || loads.iter().flat_map(|(_, requests)| requests);
    let from = all().map(|request| request.due.0).min()?;
    let to = all().map(|request| request.done.0).max()?;
    let margin = to.saturating_sub(from) / 50;
    Some(Window { from: from.saturating_sub(margin), to: to.saturating_add(margin).max(from + 1) })
}

/// Draws a panel per load, and one per queue.
pub(super) fn draw(loads: &[Load], queues: &[QueueFill], window: Window, zero: u64) -> String {
    let mut svg = Svg::new(WIDTH);
    let loads_end = (PANEL + WAITING + GAP) * to_f64(loads.len() as u64);
    let bottom = loads_end + (queue::HEIGHT + GAP) * to_f64(queues.len() as u64);
    axis(&mut svg, window, zero, 0.0, bottom);
    for (index, (name, requests)) in loads.iter().enumerate() {
        let top = (PANEL + WAITING + GAP) * to_f64(index as u64);
        svg.text("lane-name", LEFT - 12.0, top + PANEL / 2.0, "end", name);
        svg.text(
            "lane-kind",
            LEFT - 12.0,
            top + PANEL / 2.0 + 15.0,
            "end",
            &format!("{} requests", requests.len()),
        );
        columns(&mut svg, requests, window, zero, top + PANEL);
        waiting(&mut svg, requests, window, top + PANEL + WAITING);
    }
    for (index, fill) in queues.iter().enumerate() {
        let base = loads_end + queue::HEIGHT + (queue::HEIGHT + GAP) * to_f64(index as u64);
        queue::draw(&mut svg, fill, window, zero, base);
    }
    svg.finish("arrivals", bottom + AXIS, "Requests by what became of them", &description(loads))
}

fn part(window: Window, ns: u64) -> u64 {
    let length = window.to.saturating_sub(window.from).max(1);
    let part = u128::from(ns.saturating_sub(window.from)) * u128::from(PARTS) / u128::from(length);
    u64::try_from(part).unwrap_or(u64::MAX).min(PARTS - 1)
}

fn columns(svg: &mut Svg, requests: &[Request], window: Window, zero: u64, base: f64) {
    let mut parts: BTreeMap<u64, BTreeMap<Kind, u64>> = BTreeMap::new();
    for request in requests {
        *parts.entry(part(window, request.due.0)).or_default().entry(request.kind).or_default() += 1;
    }
    let most = parts.values().map(|kinds| kinds.values().sum::<u64>()).max().unwrap_or(1);
    let (width, scale) = (PLOT / to_f64(PARTS), (PANEL - 14.0) / to_f64(most));
    let length = window.to.saturating_sub(window.from);
    for (part, kinds) in &parts {
        let mut y = base;
        for (kind, class, words) in KINDS {
            let Some(count) = kinds.get(&kind) else { continue };
            let height = to_f64(*count) * scale;
            y -= height;
            let at = window.from + length / PARTS * part;
            let hover = format!("{count} {words}, due around {}", figure::offset(at, zero));
            svg.rect(class, LEFT + width * to_f64(*part) + 0.5, y, width - 1.0, height, &hover);
        }
    }
    svg.line("axis", LEFT, base, LEFT + PLOT, base);
    svg.text("tick", LEFT + PLOT + 4.0, base - PANEL + 18.0, "start", &most.to_string());
}

/// Most requests that were out at the same time in each part.
fn waiting(svg: &mut Svg, requests: &[Request], window: Window, base: f64) {
    let mut changes: Vec<(u64, i64)> =
        requests.iter().flat_map(|r| [(r.sent.0, 1), (r.done.0, -1)]).collect();
    changes.sort_unstable();
    let mut most = vec![0_i64; usize::try_from(PARTS).unwrap_or_default()];
    let (mut out, mut last) = (0_i64, 0_u64);
    for (at, change) in changes {
        let here = part(window, at);
        for passed in
            &mut most[usize::try_from(last).unwrap_or_default()..=usize::try_from(here).unwrap_or_default()]
        {
            *passed = (*passed).max(out);
        }
        out += change;
        last = here;
    }
    let highest = most.iter().copied().max().unwrap_or_default().max(1);
    let width = PLOT / to_f64(PARTS);
    for (index, out) in most.iter().enumerate().filter(|(_, out)| **out > 0) {
        let height = (WAITING - 8.0) * to_f64(out.unsigned_abs()) / to_f64(highest.unsigned_abs());
        let x = LEFT + width * to_f64(index as u64);
        svg.rect("bar", x, base - height, width, height, &format!("{out} out at the same time"));
    }
    svg.text("tick", LEFT - 12.0, base - 2.0, "end", &format!("at most {highest} out"));
}

fn description(loads: &[Load]) -> String {
    let of = |(name, requests): &Load| {
        let count = |kind: Kind| requests.iter().filter(|request| request.kind == kind).count();
        let words = KINDS.iter().filter(|(kind, ..)| count(*kind) > 0);
        let words: Vec<String> = words.map(|(kind, _, words)| format!("{} {words}", count(*kind))).collect();
        format!("{name}: {}", words.join(", "))
    };
    loads.iter().map(of).collect::<Vec<_>>().join(". ")
}
