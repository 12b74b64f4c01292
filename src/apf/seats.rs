//! From shares to seats: how an API server divides its concurrency among priority levels.

use std::collections::BTreeMap;

/// `--max-requests-inflight` and `--max-mutating-requests-inflight` of an API server that was given neither.
pub const DEFAULT_SERVER_SEATS: u64 = 400 + 200;

/// What a PriorityLevelConfiguration says of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// `nominalConcurrencyShares`.
    pub nominal: u64,
    /// `lendablePercent`, 0 to 100.
    pub lendable_percent: u64,
    /// `borrowingLimitPercent`; `None`: it may borrow everything.
    pub borrowing_percent: Option<u64>,
}

/// Limits of one level on one API server, in seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatLimits {
    /// `nominal_limit_seats`.
    pub nominal: u64,
    /// `lower_limit_seats`: what is left when it has lent all that it may.
    pub lower: u64,
    /// `upper_limit_seats`: what it has when it has borrowed all that it may.
    pub upper: u64,
}

impl SeatLimits {
    /// No request of the level can ever be given a seat.
    #[must_use]
    pub fn are_zero(self) -> bool {
        self.upper == 0
    }
}

/// Divides `server` seats among every level that the API server knows, the exempt one and
/// those that are deleted but not idle yet included.
///
/// Nominal limits are rounded up, so that they can add up to a little more than there is. Without any
/// share nobody has a seat.
#[must_use]
pub fn limits<'a>(server: u64, levels: &BTreeMap<&'a str, Shares>) -> BTreeMap<&'a str, SeatLimits> {
    let sum: u64 = levels.values().map(|shares| shares.nominal).sum();
    let of = |shares: &Shares| {
        let nominal = if sum == 0 { 0 } else { (server * shares.nominal).div_ceil(sum) };
        let lendable = percent(nominal, shares.lendable_percent.min(100));
        let borrowing = shares.borrowing_percent.map_or(server, |limit| percent(nominal, limit));
        SeatLimits { nominal, lower: nominal - lendable, upper: nominal + borrowing }
    };
    levels.iter().map(|(name, shares)| (*name, of(shares))).collect()
}

/// Rounded half up, as Go's `math.Round` rounds what is not negative.
fn percent(of: u64, percent: u64) -> u64 {
    (of * percent + 50) / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shares(nominal: u64) -> Shares {
        Shares { nominal, lendable_percent: 0, borrowing_percent: None }
    }

    /// The levels of a fresh installation; their shares add up to 245.
    fn bootstrap() -> BTreeMap<&'static str, Shares> {
        BTreeMap::from([
            ("exempt", shares(0)),
            ("catch-all", shares(5)),
            ("system", shares(30)),
            ("node-high", shares(40)),
            ("leader-election", shares(10)),
            ("workload-high", shares(40)),
            ("workload-low", shares(100)),
            ("global-default", shares(20)),
        ])
    }

    #[test]
    fn a_fresh_installation_has_the_seats_that_its_metrics_show() {
        let limits = limits(DEFAULT_SERVER_SEATS, &bootstrap());
        let nominal = |name: &str| limits[name].nominal;
        for (name, seats) in [
            ("exempt", 0),
            ("catch-all", 13),
            ("system", 74),
            ("node-high", 98),
            ("leader-election", 25),
            ("workload-high", 98),
            ("workload-low", 245),
            ("global-default", 49),
        ] {
            assert_eq!(nominal(name), seats, "{name}");
        }
    }

    #[test]
    fn one_more_level_takes_its_part_of_the_new_sum() {
        for (own, seats) in [(30, 66), (10, 24), (1, 3), (0, 0)] {
            let mut levels = bootstrap();
            levels.insert("drill", shares(own));
            assert_eq!(limits(DEFAULT_SERVER_SEATS, &levels)["drill"].nominal, seats, "{own} shares");
        }
    }

    #[test]
    fn no_shares_are_no_seats_only_where_borrowing_is_limited() {
        let mut levels = bootstrap();
        for (borrowing_percent, upper) in [(Some(0), 0), (Some(400), 0), (None, DEFAULT_SERVER_SEATS)] {
            levels.insert("drill", Shares { nominal: 0, lendable_percent: 0, borrowing_percent });
            let drill = limits(DEFAULT_SERVER_SEATS, &levels)["drill"];
            assert_eq!((drill.nominal, drill.lower, drill.upper), (0, 0, upper));
            assert_eq!(drill.are_zero(), upper == 0);
        }
    }

    proptest! {
        #[test]
        fn limits_are_ordered_and_nominals_exceed_the_server_by_less_than_one_each(
            server in 1_u64..10_000,
            all in prop::collection::vec((0_u64..1_000, 0_u64..=100, prop::option::of(0_u64..500)), 1..20),
        ) {
            let names: Vec<String> = (0..all.len()).map(|i| i.to_string()).collect();
            let levels: BTreeMap<&str, Shares> = names
                .iter()
                .zip(&all)
                .map(|(name, (nominal, lendable_percent, borrowing_percent))| {
                    let (nominal, lendable_percent, borrowing_percent) =
                        (*nominal, *lendable_percent, *borrowing_percent);
                    (name.as_str(), Shares { nominal, lendable_percent, borrowing_percent })
                })
                .collect();
            let limits = limits(server, &levels);
            for limit in limits.values() {
                prop_assert!(limit.lower <= limit.nominal && limit.nominal <= limit.upper);
            }
            let sum: u64 = limits.values().map(|l| l.nominal).sum();
            if all.iter().any(|(nominal, ..)| *nominal > 0) {
                prop_assert!(sum >= server && sum < server + all.len() as u64);
            } else {
                prop_assert_eq!(sum, 0);
            }
        }
    }

    /// By hand: of 245 nominal seats 90 % are 220.5, which rounds up to 221; 50 % of 245 are 122.5, so 123.
    #[test]
    fn lending_and_borrowing_are_percentages_of_nominal_seats_rounded_half_up() {
        let mut levels = bootstrap();
        let low = Shares { nominal: 100, lendable_percent: 90, borrowing_percent: Some(50) };
        levels.insert("workload-low", low);
        let of =
            |levels: &BTreeMap<&'static str, Shares>| limits(DEFAULT_SERVER_SEATS, levels)["workload-low"];
        assert_eq!(of(&levels), SeatLimits { nominal: 245, lower: 24, upper: 368 });
        levels.insert("workload-low", Shares { lendable_percent: 200, ..low });
        assert_eq!(of(&levels).lower, 0, "nobody lends more than it has");
        assert_eq!(limits(600, &BTreeMap::from([("alone", shares(0))]))["alone"].nominal, 0);
        assert_eq!((percent(7, 7), percent(10, 5)), (0, 1), "49 and 50 hundredths");
    }
}
