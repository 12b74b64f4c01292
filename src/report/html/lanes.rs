//! What of a lane is drawn. A lane with more stretches than the picture has room
//! for is sampled: each column shows the worst that happened within it, so that
//! no bad moment and no gap disappears, however short.

use crate::timeline::lanes::{Lane, LaneState, Stretch};

/// Columns of a sampled lane.
pub(super) const COLUMNS: u64 = 466;
/// Lanes with more stretches than this are sampled.
const MOST_STRETCHES: usize = 400;

/// How alarming a state is. Not to have looked is more so than to have seen good.
pub(super) fn rank(state: LaneState) -> u8 {
    match state {
        LaneState::Good => 0,
        LaneState::Unobserved => 1,
        LaneState::Unknown => 2,
        LaneState::Failed => 3,
        LaneState::Wrong => 4,
    }
}

/// As reports call it.
pub(super) fn word(state: LaneState) -> &'static str {
    match state {
        LaneState::Good => "good",
        LaneState::Unobserved => "unknown: not observed",
        LaneState::Unknown => "unknown: not answered",
        LaneState::Failed => "no good answer",
        LaneState::Wrong => "wrong answer",
    }
}

/// The more alarming of two.
fn worse(a: LaneState, b: LaneState) -> LaneState {
    if rank(b) > rank(a) { b } else { a }
}

/// A lane by stretches; made once, for every picture.
pub(in crate::report) struct DrawnLane {
    pub(super) client: String,
    pub(super) kind: String,
    pub(super) stretches: Vec<Stretch>,
}

impl DrawnLane {
    pub(super) fn of(lane: &Lane) -> Self {
        let kind = crate::report::build::word(&lane.kind);
        Self { client: lane.client.clone(), kind, stretches: lane.stretches() }
    }
}

/// Something to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) state: LaneState,
    /// Why; lost by sampling.
    pub(super) note: Option<&'a str>,
}

/// The pieces of `lane` between two instants, and whether they are sampled.
pub(super) fn pieces(lane: &DrawnLane, from: u64, to: u64) -> (Vec<Piece<'_>>, bool) {
    let inside: Vec<Piece<'_>> = lane.stretches.iter().filter_map(|s| clip(s, from, to)).collect();
    if inside.len() <= MOST_STRETCHES {
        return (inside, false);
    }
    (sample(&inside, from, to, COLUMNS), true)
}

fn clip(stretch: &Stretch, from: u64, to: u64) -> Option<Piece<'_>> {
    let (start, end) = (stretch.from_ns.0.max(from), stretch.to_ns.0.min(to));
    let piece = Piece { from: start, to: end, state: stretch.state, note: stretch.reason.as_deref() };
    (start <= end).then_some(piece)
}

/// The worst of each of `columns` equal parts, alike neighbours joined.
/// `pieces` ascend by their start; operations overlap, so pieces may too.
fn sample(pieces: &[Piece<'_>], from: u64, to: u64, columns: u64) -> Vec<Piece<'static>> {
    let length = u128::from(to - from);
    let edge =
        |i: u64| from + u64::try_from(length * u128::from(i) / u128::from(columns)).unwrap_or(u64::MAX);
    let mut out: Vec<Piece<'static>> = Vec::new();
    let mut first = 0;
    for column in 0..columns {
        let (start, end) = (edge(column), edge(column + 1));
        while pieces.get(first).is_some_and(|p| p.to < start) {
            first += 1;
        }
        let state = worst(&pieces[first..], start, end);
        match out.last_mut() {
            Some(last) if last.state == state => last.to = end,
            _ => out.push(Piece { from: start, to: end, state, note: None }),
        }
    }
    out
}

/// The worst of the pieces that touch `start..=end`, gaps between them included.
fn worst(pieces: &[Piece<'_>], start: u64, end: u64) -> LaneState {
    let mut covered_to = start;
    let mut gap = false;
    let mut state: Option<LaneState> = None;
    for piece in pieces.iter().take_while(|p| p.from <= end).filter(|p| p.to >= start) {
        gap |= piece.from > covered_to;
        covered_to = covered_to.max(piece.to);
        state = Some(state.map_or(piece.state, |state| worse(state, piece.state)));
    }
    gap |= covered_to < end;
    match state {
        None => LaneState::Unobserved,
        Some(state) if gap => worse(state, LaneState::Unobserved),
        Some(state) => state,
    }
}

/// Time spent in each state between two instants; what no stretch covers was not observed.
pub(super) fn totals(lane: &DrawnLane, from: u64, to: u64) -> Vec<(&'static str, u64)> {
    let states = [LaneState::Wrong, LaneState::Failed, LaneState::Unknown, LaneState::Good];
    let inside: Vec<Piece<'_>> = lane.stretches.iter().filter_map(|s| clip(s, from, to)).collect();
    let of = |state| {
        inside.iter().filter(|p| p.state == state).map(|p| p.to - p.from).fold(0, u64::saturating_add)
    };
    let mut out: Vec<(&'static str, u64)> = states.into_iter().map(|s| (word(s), of(s))).collect();
    let observed = out.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    out.push((word(LaneState::Unobserved), (to - from).saturating_sub(observed)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonoNs;
    use proptest::prelude::*;

    fn state(n: u8) -> LaneState {
        match n % 5 {
            0 => LaneState::Good,
            1 => LaneState::Unknown,
            2 => LaneState::Failed,
            3 => LaneState::Unobserved,
            _ => LaneState::Wrong,
        }
    }

    fn shown_at(pieces: &[Piece<'_>], t: u64) -> LaneState {
        let there = pieces.iter().filter(|p| p.from <= t && t < p.to).map(|p| p.state);
        there.max_by_key(|s| rank(*s)).unwrap_or(LaneState::Unobserved)
    }

    proptest! {
        /// Against brute force: every instant of the picture shows something at
        /// least as alarming as what was recorded at that instant.
        #[test]
        fn sampling_hides_nothing(parts in proptest::collection::vec((1u64..9, 0u64..7, 0u8..5), 1..60), columns in 1u64..20) {
            let mut pieces = Vec::new();
            let (mut at, mut end) = (0, 0);
            for (length, step, n) in parts {
                pieces.push(Piece { from: at, to: at + length, state: state(n), note: None });
                end = end.max(at + length);
                // Less than the length: the next one overlaps. More: a gap.
                at += step + 1;
            }
            let drawn = sample(&pieces, 0, end, columns);
            prop_assert_eq!(drawn.first().map(|p| p.from), Some(0));
            prop_assert_eq!(drawn.last().map(|p| p.to), Some(end));
            for t in 0..end {
                let (truth, shown) = (shown_at(&pieces, t), shown_at(&drawn, t));
                prop_assert!(rank(shown) >= rank(truth), "at {}: {:?} drawn as {:?}", t, truth, shown);
            }
        }
    }

    #[test]
    fn a_short_lane_is_drawn_as_it_is() {
        let stretches = vec![Stretch {
            from_ns: MonoNs(5),
            to_ns: MonoNs(9),
            state: LaneState::Wrong,
            samples: 2,
            reason: None,
        }];
        let lane = DrawnLane { client: "a".into(), kind: "b".into(), stretches };
        assert_eq!(
            pieces(&lane, 0, 7),
            (vec![Piece { from: 5, to: 7, state: LaneState::Wrong, note: None }], false)
        );
        assert_eq!(totals(&lane, 0, 10).last(), Some(&("unknown: not observed", 6)));
    }
}
