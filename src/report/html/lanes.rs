//! What of a lane is drawn. A lane with more stretches than the picture has room
//! for is sampled: each column shows the worst that happened within it, so that
//! no bad moment and no gap disappears, however short.

use crate::report::input::{Lane, LaneSpan, LaneState};

/// Columns of a sampled lane.
pub(super) const COLUMNS: u64 = 466;
/// Lanes with more stretches than this are sampled.
const MOST_STRETCHES: usize = 400;

/// What happened in a column, from the least to the most alarming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// Nothing was recorded.
    Gap,
    /// Something was.
    State(LaneState),
}

impl Cell {
    fn rank(self) -> u8 {
        match self {
            Cell::State(LaneState::Good) => 0,
            Cell::Gap => 1,
            Cell::State(LaneState::Unknown) => 2,
            Cell::State(LaneState::Failed) => 3,
            Cell::State(LaneState::Wrong) => 4,
        }
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Something to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) cell: Cell,
    /// Why; lost by sampling.
    pub(super) note: Option<&'a str>,
}

/// The stretches of `lane` between two instants, and whether they are sampled.
pub(super) fn stretches(lane: &Lane, from: u64, to: u64) -> (Vec<Stretch<'_>>, bool) {
    let inside: Vec<Stretch<'_>> = lane.spans.iter().filter_map(|s| clip(s, from, to)).collect();
    if inside.len() <= MOST_STRETCHES {
        return (inside, false);
    }
    (sample(&inside, from, to, COLUMNS), true)
}

fn clip(span: &LaneSpan, from: u64, to: u64) -> Option<Stretch<'_>> {
    let (start, end) = (span.from.0.max(from), span.to.0.min(to));
    let stretch = Stretch { from: start, to: end, cell: Cell::State(span.state), note: span.note.as_deref() };
    (start <= end).then_some(stretch)
}

/// The worst of each of `columns` equal parts, alike neighbours joined.
/// `spans` ascend and don't overlap.
fn sample(spans: &[Stretch<'_>], from: u64, to: u64, columns: u64) -> Vec<Stretch<'static>> {
    let length = u128::from(to - from);
    let edge =
        |i: u64| from + u64::try_from(length * u128::from(i) / u128::from(columns)).unwrap_or(u64::MAX);
    let mut out: Vec<Stretch<'static>> = Vec::new();
    let mut first = 0;
    for column in 0..columns {
        let (start, end) = (edge(column), edge(column + 1));
        while spans.get(first).is_some_and(|s| s.to < start) {
            first += 1;
        }
        let cell = worst(&spans[first..], start, end);
        match out.last_mut() {
            Some(last) if last.cell == cell => last.to = end,
            _ => out.push(Stretch { from: start, to: end, cell, note: None }),
        }
    }
    out
}

/// The worst of the spans that touch `start..=end`, gaps between them included.
fn worst(spans: &[Stretch<'_>], start: u64, end: u64) -> Cell {
    let mut covered_to = start;
    let mut gap = false;
    let mut cell: Option<Cell> = None;
    for span in spans.iter().take_while(|s| s.from <= end) {
        gap |= span.from > covered_to;
        covered_to = covered_to.max(span.to);
        cell = cell.max(Some(span.cell));
    }
    gap |= covered_to < end;
    match cell {
        None => Cell::Gap,
        Some(cell) if gap => cell.max(Cell::Gap),
        Some(cell) => cell,
    }
}

/// Time spent in each state, and in none, between two instants.
pub(super) fn totals(lane: &Lane, from: u64, to: u64) -> Vec<(&'static str, u64)> {
    let states = [LaneState::Wrong, LaneState::Failed, LaneState::Unknown, LaneState::Good];
    let inside: Vec<Stretch<'_>> = lane.spans.iter().filter_map(|s| clip(s, from, to)).collect();
    let of =
        |state| inside.iter().filter(|s| s.cell == Cell::State(state)).map(|s| s.to - s.from).sum::<u64>();
    let mut out: Vec<(&'static str, u64)> = states.into_iter().map(|s| (s.word(), of(s))).collect();
    let recorded: u64 = out.iter().map(|(_, ns)| ns).sum();
    out.push(("not recorded", (to - from).saturating_sub(recorded)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(n: u8) -> Cell {
        match n % 4 {
            0 => Cell::State(LaneState::Good),
            1 => Cell::State(LaneState::Unknown),
            2 => Cell::State(LaneState::Failed),
            _ => Cell::State(LaneState::Wrong),
        }
    }

    proptest! {
        /// Against brute force: every instant of the picture shows something at
        /// least as alarming as what was recorded at that instant.
        #[test]
        fn sampling_hides_nothing(parts in proptest::collection::vec((1u64..9, 0u64..4, 0u8..4), 1..60), columns in 1u64..20) {
            let mut spans = Vec::new();
            let mut at = 0;
            for (length, gap, n) in parts {
                spans.push(Stretch { from: at, to: at + length, cell: state(n), note: None });
                at += length + gap;
            }
            let drawn = sample(&spans, 0, at, columns);
            prop_assert_eq!(drawn.first().map(|s| s.from), Some(0));
            prop_assert_eq!(drawn.last().map(|s| s.to), Some(at));
            for t in 0..at {
                let truth = spans.iter().filter(|s| s.from <= t && t < s.to).map(|s| s.cell).max().unwrap_or(Cell::Gap);
                let shown = drawn.iter().filter(|s| s.from <= t && t < s.to).map(|s| s.cell).max().unwrap();
                prop_assert!(shown >= truth, "at {}: {:?} drawn as {:?}", t, truth, shown);
            }
        }
    }

    #[test]
    fn a_short_lane_is_drawn_as_it_is() {
        let spans = vec![LaneSpan {
            from: crate::clock::MonoNs(5),
            to: crate::clock::MonoNs(9),
            state: LaneState::Wrong,
            note: None,
        }];
        let lane = Lane { client: "a".into(), kind: "b".into(), spans };
        assert_eq!(
            stretches(&lane, 0, 7),
            (vec![Stretch { from: 5, to: 7, cell: Cell::State(LaneState::Wrong), note: None }], false)
        );
        assert_eq!(totals(&lane, 0, 10).last(), Some(&("not recorded", 6)));
    }
}
