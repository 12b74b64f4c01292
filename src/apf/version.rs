//! What a version of Kubernetes does with a level of no shares.

use crate::version::minor;

/// What becomes of `nominalConcurrencyShares: 0` in `flowcontrol.apiserver.k8s.io/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroShares {
    /// The API does not exist in this version, or not as v1: older ones read 0 as "not given" and make it 30.
    Absent,
    /// Creating such a level is refused (kubernetes/kubernetes#121089).
    Refused,
    /// It is a level without seats (kubernetes/kubernetes#123001).
    Accepted,
}

/// What this version does; a version that can't be read is taken for a new one.
#[must_use]
pub fn zero_shares(kubernetes: &str) -> ZeroShares {
    match minor(kubernetes) {
        Some(..=28) => ZeroShares::Absent,
        Some(29) => ZeroShares::Refused,
        _ => ZeroShares::Accepted,
    }
}

/// Newest minor release in which a `Reject` level without seats was seen to let one request at a time through.
pub const LEAK_SEEN_UP_TO: u32 = 37;

/// Whether a `Reject` level without seats lets one request at a time through
/// (kubernetes/kubernetes#134196); `None`: it has to be tried.
#[must_use]
pub fn reject_leaks(kubernetes: &str) -> Option<bool> {
    minor(kubernetes).filter(|minor| (29..=LEAK_SEEN_UP_TO).contains(minor)).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_accepted_from_130_on() {
        assert_eq!(zero_shares("v1.28.15"), ZeroShares::Absent);
        assert_eq!(zero_shares("v1.29.0"), ZeroShares::Refused);
        assert_eq!(zero_shares("v1.30.4"), ZeroShares::Accepted);
        assert_eq!(zero_shares("v1.37.2"), ZeroShares::Accepted);
        assert_eq!(zero_shares("main"), ZeroShares::Accepted);
    }

    #[test]
    fn the_leak_is_expected_where_it_was_read_and_open_where_it_was_not() {
        assert_eq!(reject_leaks("v1.30.4"), Some(true));
        assert_eq!(reject_leaks("v1.37.2"), Some(true));
        assert_eq!(reject_leaks("v1.38.0"), None);
    }

    #[test]
    fn the_leak_begins_with_levels_of_no_shares() {
        assert_eq!(reject_leaks("v1.28.0"), None);
        assert_eq!(reject_leaks("v1.29.0"), Some(true));
    }
}
