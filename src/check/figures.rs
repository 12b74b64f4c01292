//! Bounds against limits, and durations as people read them.

use super::Verdict;

/// A figure known to lie in `lower..=upper` against an upper limit. What is
/// uncertain counts neither for nor against.
#[must_use]
pub fn judge_limit(lower: Option<u64>, upper: Option<u64>, limit: u64) -> Verdict {
    match (lower, upper) {
        (_, Some(upper)) if upper <= limit => Verdict::Pass,
        (Some(lower), _) if lower > limit => Verdict::Fail,
        _ => Verdict::Inconclusive,
    }
}

/// Nanoseconds with a unit, to four digits: `1.184 s`, `13.2 ms`.
#[must_use]
pub fn human(ns: u64) -> String {
    let (unit, size) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    // Integers only: the same input gives the same text on every machine.
    let whole = ns / size;
    let digits = match whole {
        0..10 => 3,
        10..100 => 2,
        100..1000 => 1,
        _ => 0,
    };
    let scale = 10u64.pow(digits);
    let rounded = (u128::from(ns) * u128::from(scale) + u128::from(size) / 2) / u128::from(size);
    let (whole, part) = (rounded / u128::from(scale), rounded % u128::from(scale));
    if digits == 0 {
        return format!("{whole} {unit}");
    }
    format!("{whole}.{part:0width$} {unit}", width = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncertainty_counts_neither_for_nor_against() {
        assert_eq!(judge_limit(Some(5), Some(10), 10), Verdict::Pass);
        assert_eq!(judge_limit(Some(5), Some(11), 10), Verdict::Inconclusive);
        assert_eq!(judge_limit(Some(10), Some(12), 10), Verdict::Inconclusive);
        assert_eq!(judge_limit(Some(11), Some(12), 10), Verdict::Fail);
        assert_eq!(judge_limit(Some(11), None, 10), Verdict::Fail);
        assert_eq!(judge_limit(Some(9), None, 10), Verdict::Inconclusive);
        assert_eq!(judge_limit(None, None, 10), Verdict::Inconclusive);
    }

    #[test]
    fn durations_keep_four_digits_and_their_unit() {
        assert_eq!(human(999), "999 ns");
        assert_eq!(human(1_000), "1.000 µs");
        assert_eq!(human(1_000_000), "1.000 ms");
        assert_eq!(human(1_000_000_000), "1.000 s");
        assert_eq!(human(1_184_400_000), "1.184 s");
        assert_eq!(human(13_200_000), "13.20 ms");
        assert_eq!(human(61_000_000_000), "61.00 s");
        assert_eq!(human(9_999_999_999), "10.000 s");
        assert_eq!(human(5_000_000_000_000), "5000 s");
        assert_eq!(human(5_000_000_000_000_000_000), "5000000000 s");
    }
}
