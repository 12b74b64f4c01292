//! How the figures of two sides lie to each other.

use super::Sides;

/// A figure between two ends, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    lower: u64,
    upper: u64,
}

impl Interval {
    pub(super) fn exactly(n: u64) -> Self {
        Self { lower: n, upper: n }
    }

    /// An end that is not known is as far away as can be.
    pub(super) fn between(lower: Option<u64>, upper: Option<u64>) -> Self {
        Self { lower: lower.unwrap_or(0), upper: upper.unwrap_or(u64::MAX) }
    }
}

/// Side B, seen from side A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same figures on both sides.
    Equal,
    /// Everything on B is above everything on A.
    Higher,
    /// Everything on B is below everything on A.
    Lower,
    /// Neither.
    Overlapping,
}

/// Figures of a side count as a difference only when all of them lie beyond all of the other side's. They are
/// equal when every run has the same one, or the sides have the same ones equally often.
pub(super) fn relate(figures: &Sides<Interval>) -> Relation {
    let sorted = |side: &[Interval]| {
        let mut side = side.to_vec();
        side.sort_unstable();
        side
    };
    let (a, b) = (sorted(&figures.a), sorted(&figures.b));
    let (Some(least_a), Some(least_b)) = (a.first(), b.first()) else { return Relation::Overlapping };
    if a == b || figures.agree(|figure| *figure) {
        return Relation::Equal;
    }
    let most = |side: &[Interval]| side.iter().map(|figure| figure.upper).max().unwrap_or(u64::MAX);
    if least_b.lower > most(&a) {
        Relation::Higher
    } else if least_a.lower > most(&b) {
        Relation::Lower
    } else {
        Relation::Overlapping
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval() -> impl Strategy<Value = Interval> {
        (0..50_u64, 0..20_u64).prop_map(|(lower, wide)| Interval { lower, upper: lower + wide })
    }

    fn sides() -> impl Strategy<Value = Sides<Interval>> {
        let side = || proptest::collection::vec(interval(), 1..4);
        (side(), side()).prop_map(|(a, b)| Sides { a, b })
    }

    fn ends(pairs: &[(u64, u64)]) -> Vec<Interval> {
        pairs.iter().map(|(lower, upper)| Interval { lower: *lower, upper: *upper }).collect()
    }

    fn related(a: &[(u64, u64)], b: &[(u64, u64)]) -> Relation {
        relate(&Sides { a: ends(a), b: ends(b) })
    }

    #[test]
    fn only_figures_that_have_nothing_in_common_differ() {
        assert_eq!(related(&[(1, 3)], &[(4, 5)]), Relation::Higher);
        assert_eq!(related(&[(1, 4)], &[(4, 5)]), Relation::Overlapping);
        assert_eq!(related(&[(4, 5)], &[(1, 3)]), Relation::Lower);
        assert_eq!(related(&[(1, 4)], &[(1, 4)]), Relation::Equal);
        assert_eq!(related(&[(1, 3), (2, 5)], &[(4, 6), (9, 9)]), Relation::Overlapping);
        assert_eq!(related(&[(1, 3), (2, 5)], &[(6, 6), (9, 9)]), Relation::Higher);
    }

    #[test]
    fn how_often_a_figure_occurs_matters_unless_there_is_only_one() {
        assert_eq!(related(&[(3, 3), (3, 3)], &[(3, 3)]), Relation::Equal);
        assert_eq!(related(&[(0, 0), (0, 0), (1, 1)], &[(0, 0), (1, 1), (1, 1)]), Relation::Overlapping);
        assert_eq!(related(&[(0, 0), (1, 1)], &[(1, 1), (0, 0)]), Relation::Equal);
    }

    #[test]
    fn an_unknown_end_excludes_nothing_beyond_it() {
        let open = Interval::between(Some(10), None);
        let relation = |a, b| relate(&Sides { a: vec![a], b: vec![b] });
        assert_eq!(relation(Interval::exactly(9), open), Relation::Higher);
        assert_eq!(relation(Interval::exactly(11), open), Relation::Overlapping);
    }

    proptest! {
        #[test]
        fn a_side_equals_itself_in_any_order(sides in sides()) {
            let mut turned = sides.a.clone();
            turned.reverse();
            prop_assert_eq!(relate(&Sides { a: sides.a, b: turned }), Relation::Equal);
        }

        #[test]
        fn exchanged_sides_turn_higher_into_lower(sides in sides()) {
            let there = relate(&sides);
            let back = relate(&Sides { a: sides.b, b: sides.a });
            let turned = match there {
                Relation::Higher => Relation::Lower,
                Relation::Lower => Relation::Higher,
                other => other,
            };
            prop_assert_eq!(back, turned);
        }

        #[test]
        fn a_difference_is_one_for_every_pair(sides in sides()) {
            if relate(&sides) == Relation::Higher {
                prop_assert!(sides.a.iter().all(|a| sides.b.iter().all(|b| a.upper < b.lower)));
            }
        }
    }
}
