//! How many requests will meet which fate, as ranges, where instants are known within limits only.
//!
//! A level without seats is a loss system: a place is taken for a fixed time (a request waits until it is timed
//! out; an execution that leaks through occupies the level), and whoever finds no place is refused. The number
//! admitted among the first `k + 1` requests is then `min(n[k] + 1, gone + places)`, which grows with each of its
//! terms. So the smallest and the largest number of places given back in time give exact ends of the range.

use super::level::Fate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number between two ends, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// Least.
    pub low: u64,
    /// Most.
    pub high: u64,
}

impl Range {
    /// A number that is known.
    #[must_use]
    pub fn exactly(n: u64) -> Self {
        Self { low: n, high: n }
    }

    /// Whether it is in the range.
    #[must_use]
    pub fn contains(self, n: u64) -> bool {
        (self.low..=self.high).contains(&n)
    }

    /// Whether no number is in both.
    #[must_use]
    pub fn excludes(self, other: Range) -> bool {
        self.high < other.low || other.high < self.low
    }

    fn of_rest(total: u64, parts: &[Range]) -> Self {
        let sum = |end: fn(&Range) -> u64| parts.iter().map(end).sum::<u64>();
        Self { low: total.saturating_sub(sum(|p| p.high)), high: total.saturating_sub(sum(|p| p.low)) }
    }
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcomes {
    /// Executed.
    pub ok: Range,
    /// Refused at once, reason `queue-full`.
    pub queue_full: Range,
    /// Refused after their wait, reason `time-out`.
    pub time_out: Range,
    /// Refused at once, reason `concurrency-limit`.
    pub concurrency_limit: Range,
}

impl Outcomes {
    const NONE: Outcomes = Outcomes {
        ok: Range { low: 0, high: 0 },
        queue_full: Range { low: 0, high: 0 },
        time_out: Range { low: 0, high: 0 },
        concurrency_limit: Range { low: 0, high: 0 },
    };

    /// Every request is executed, as by a level with seats enough, or on another level.
    #[must_use]
    pub fn all_executed(total: u64) -> Self {
        Self { ok: Range::exactly(total), ..Self::NONE }
    }

    /// Every request is refused at once, reason `concurrency-limit`.
    #[must_use]
    pub fn all_limited(total: u64) -> Self {
        Self { concurrency_limit: Range::exactly(total), ..Self::NONE }
    }

    /// Counts fates.
    #[must_use]
    pub fn of(fates: &[Fate]) -> Self {
        let count =
            |of: fn(&Fate) -> bool| Range::exactly(fates.iter().filter(|fate| of(fate)).count() as u64);
        Self {
            ok: count(|fate| matches!(fate, Fate::Executed { .. })),
            queue_full: count(|fate| matches!(fate, Fate::QueueFull)),
            time_out: count(|fate| matches!(fate, Fate::TimeOut { .. })),
            concurrency_limit: count(|fate| matches!(fate, Fate::ConcurrencyLimit)),
        }
    }

    /// By name, in a fixed order.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Range); 4] {
        [
            ("ok", self.ok),
            ("queueFull", self.queue_full),
            ("timeOut", self.time_out),
            ("concurrencyLimit", self.concurrency_limit),
        ]
    }

    /// Whether some count can't be of both: seeing it tells them apart.
    #[must_use]
    pub fn excludes(&self, other: &Outcomes) -> bool {
        self.named().iter().zip(other.named()).any(|((_, a), (_, b))| a.excludes(b))
    }

    /// Whether each count lies in its range.
    #[must_use]
    pub fn contain(&self, seen: &Outcomes) -> bool {
        let inside = |(a, b): (Range, Range)| a.contains(b.low) && a.contains(b.high);
        self.named().iter().zip(seen.named()).all(|((_, a), (_, b))| inside((*a, b)))
    }
}

/// How much later than planned things may happen, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slack {
    /// From when a request is due until it reaches the level.
    pub arrival: u64,
    /// From the end of a wait, or of the shortest execution, until the place is free.
    pub holding: u64,
    /// From when a change of the level is made until the API server has taken it in.
    pub propagation: u64,
}

/// Seats that come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// When the change is made.
    pub at: u64,
    /// Seats from then on.
    pub seats: u64,
}

/// A `Queue` level without seats, to which `due` (ascending) are sent; seats may come back.
#[must_use]
pub fn zero_queue(
    capacity: u64,
    wait_limit: u64,
    due: &[u64],
    restored: Option<Restored>,
    slack: Slack,
) -> Outcomes {
    let places = Places { places: capacity, holding: wait_limit, slack };
    let admitted = places.admitted(due);
    let total = due.len() as u64;
    let Some(restored) = restored else {
        let time_out = admitted.of_first(due.len());
        return Outcomes { queue_full: Range::of_rest(total, &[time_out]), time_out, ..Outcomes::NONE };
    };
    let latest = restored.at.saturating_add(slack.propagation);
    // Surely before the seats are back, and perhaps.
    let before = (
        due.partition_point(|at| at.saturating_add(slack.arrival) < restored.at),
        due.partition_point(|at| *at <= latest),
    );
    let queue_full = Range {
        low: before.0 as u64 - admitted.of_first(before.0).high,
        high: before.1 as u64 - admitted.of_first(before.1).low,
    };
    let time_out = Range {
        low: admitted.of_first(places.gone_surely(due, restored.at)).low,
        high: admitted.of_first(places.gone_perhaps(due, latest)).high,
    };
    let ok = Range::of_rest(total, &[queue_full, time_out]);
    if ok.high <= restored.seats {
        return Outcomes { ok, queue_full, time_out, concurrency_limit: Range::exactly(0) };
    }
    // Not all at once: some may have to wait for others, and may be refused after all.
    let surely = ok.low.min(restored.seats);
    let rest = ok.high - surely;
    Outcomes {
        ok: Range { low: surely, high: ok.high },
        queue_full: Range { low: queue_full.low, high: queue_full.high + rest },
        time_out: Range { low: time_out.low, high: time_out.high + rest },
        concurrency_limit: Range::exactly(0),
    }
}

/// A `Reject` level without seats, to which `due` (ascending) are sent. Where it `leaks` it executes one at a time,
/// for `service` at least and [`Slack::holding`] longer at most.
#[must_use]
pub fn zero_reject(leaks: bool, service: u64, due: &[u64], slack: Slack) -> Outcomes {
    let total = due.len() as u64;
    let places = Places { places: u64::from(leaks), holding: service, slack };
    let ok = places.admitted(due).of_first(due.len());
    Outcomes { ok, concurrency_limit: Range::of_rest(total, &[ok]), ..Outcomes::NONE }
}

/// Places that are taken for a time.
struct Places {
    places: u64,
    holding: u64,
    slack: Slack,
}

/// Least and most of the first 0, 1, 2, … requests that found a place.
struct Admitted(Vec<Range>);

impl Admitted {
    fn of_first(&self, count: usize) -> Range {
        self.0[count]
    }
}

impl Places {
    fn admitted(&self, due: &[u64]) -> Admitted {
        let mut counts = vec![Range::exactly(0)];
        for at in due {
            let before = counts[counts.len() - 1];
            let low = counts[self.gone_surely(due, *at).min(counts.len() - 1)].low + self.places;
            let perhaps = self.gone_perhaps(due, at.saturating_add(self.slack.arrival)).min(counts.len() - 1);
            let high = counts[perhaps].high + self.places;
            counts.push(Range { low: low.min(before.low + 1), high: high.min(before.high + 1) });
        }
        Admitted(counts)
    }

    /// Requests whose place, if they had one, is free again at `now` even if everything is late.
    fn gone_surely(&self, due: &[u64], now: u64) -> usize {
        let late = self.slack.arrival.saturating_add(self.slack.holding);
        due.partition_point(|at| at.saturating_add(self.holding).saturating_add(late) <= now)
    }

    /// Requests whose place may be free again at `now`.
    fn gone_perhaps(&self, due: &[u64], now: u64) -> usize {
        due.partition_point(|at| at.saturating_add(self.holding) <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::{Arrival, Change, Response, fates};
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn seed_450() -> Vec<u64> {
        (0..450).map(|i| i * 1_000 * MS / 30).collect()
    }

    #[test]
    fn the_hand_made_run_of_1_30_4_lies_in_its_ranges() {
        let slack = Slack { arrival: 20 * MS, holding: 50 * MS, propagation: 300 * MS };
        let restored = Restored { at: 15_000 * MS, seats: 66 };
        let predicted = zero_queue(50, 15_000 * MS, &seed_450(), Some(restored), slack);
        assert_eq!(predicted.queue_full, Range::exactly(400));
        assert!(predicted.time_out.contains(6) && predicted.ok.contains(44), "{predicted:?}");
        assert!(predicted.ok.low >= 38, "{predicted:?}");
        let never = zero_queue(50, 15_000 * MS, &seed_450(), None, slack);
        assert_eq!((never.time_out, never.queue_full), (Range::exactly(50), Range::exactly(400)));
        assert!(predicted.excludes(&never) && predicted.excludes(&Outcomes::all_executed(450)));
    }

    #[test]
    fn one_holder_keeps_everything_else_out_where_it_leaks_and_nothing_gets_in_where_it_does_not() {
        let due: Vec<u64> = (0..21).map(|i| i * 100 * MS).collect();
        let held = zero_reject(true, 10_000 * MS, &due, Slack::default());
        assert_eq!((held.ok, held.concurrency_limit), (Range::exactly(1), Range::exactly(20)));
        let fixed = zero_reject(false, 10_000 * MS, &due, Slack::default());
        assert_eq!(fixed.ok, Range::exactly(0));
        assert!(held.excludes(&fixed));
    }

    /// Instants as they might turn out within the slack: due times, times of waits or executions.
    fn turned_out(due: &[u64], holding: u64, slack: Slack, dice: &[(u64, u64)]) -> Vec<Arrival> {
        let late = |most: u64, die: u64| if most == 0 { 0 } else { die % (most + 1) };
        let mut all: Vec<Arrival> = due
            .iter()
            .zip(dice.iter().cycle())
            .map(|(due, (arrival, held))| {
                let takes = holding + late(slack.holding, *held);
                Arrival { at: due + late(slack.arrival, *arrival), wait_limit: takes, service: takes }
            })
            .collect();
        all.sort_by_key(|a| a.at);
        all
    }

    proptest! {
        #[test]
        fn whatever_turns_out_within_the_slack_lies_in_the_ranges(
            mut due in prop::collection::vec(0_u64..200, 1..60),
            capacity in 0_u64..6,
            holding in 1_u64..60,
            (arrival, late, propagation) in (0_u64..10, 0_u64..10, 0_u64..10),
            restored in prop::option::of((0_u64..260, 0_u64..70)),
            dice in prop::collection::vec((any::<u64>(), any::<u64>()), 60),
            die in any::<u64>(),
        ) {
            due.sort_unstable();
            let slack = Slack { arrival, holding: late, propagation };
            let arrivals = turned_out(&due, holding, slack, &dice);
            let restored = restored.map(|(at, seats)| Restored { at, seats });
            let change = restored.map(|r| Change { at: r.at + die % (propagation + 1), seats: r.seats });
            let response = Response::Queue { capacity: usize::try_from(capacity).unwrap() };
            let seen = Outcomes::of(&fates(response, change.as_slice(), &arrivals));
            let predicted = zero_queue(capacity, holding, &due, restored, slack);
            prop_assert!(predicted.contain(&seen), "{:?} is not in {:?}", seen, predicted);

            let seen = Outcomes::of(&fates(Response::Reject, &[], &arrivals));
            let predicted = zero_reject(true, holding, &due, slack);
            prop_assert!(predicted.contain(&seen), "{:?} is not in {:?}", seen, predicted);
        }

        #[test]
        fn without_slack_a_range_is_a_number(
            mut due in prop::collection::vec(0_u64..200, 1..60),
            capacity in 0_u64..6,
            holding in 1_u64..60,
        ) {
            due.sort_unstable();
            let arrivals = turned_out(&due, holding, Slack::default(), &[(0, 0)]);
            let response = Response::Queue { capacity: usize::try_from(capacity).unwrap() };
            prop_assert_eq!(
                zero_queue(capacity, holding, &due, None, Slack::default()),
                Outcomes::of(&fates(response, &[], &arrivals))
            );
            prop_assert_eq!(
                zero_reject(true, holding, &due, Slack::default()),
                Outcomes::of(&fates(Response::Reject, &[], &arrivals))
            );
        }
    }

    #[test]
    fn outcomes_contain_others_only_where_each_count_does() {
        let of = |ok: (u64, u64), full: (u64, u64)| Outcomes {
            ok: Range { low: ok.0, high: ok.1 },
            queue_full: Range { low: full.0, high: full.1 },
            ..Outcomes::NONE
        };
        let wide = of((1, 5), (10, 20));
        assert!(wide.contain(&of((1, 5), (10, 20))) && wide.contain(&of((2, 3), (15, 15))));
        for outside in [of((0, 3), (15, 15)), of((2, 6), (15, 15)), of((2, 3), (9, 15)), of((2, 3), (15, 21))]
        {
            assert!(!wide.contain(&outside), "{outside:?}");
        }
    }

    #[test]
    fn a_request_that_may_come_as_late_as_the_seats_may_find_one() {
        let slack = Slack { arrival: 10, ..Slack::default() };
        let seen = zero_queue(1, 1_000, &[0, 100], Some(Restored { at: 110, seats: 2 }), slack);
        assert_eq!((seen.ok, seen.queue_full), (Range { low: 1, high: 2 }, Range { low: 0, high: 1 }));
        assert_eq!(seen.time_out, Range::exactly(0), "there are seats for both");
    }

    #[test]
    fn an_execution_that_takes_no_time_leaves_its_place_to_the_next_at_once() {
        assert_eq!(zero_reject(true, 0, &[5; 3], Slack::default()).ok, Range::exactly(3));
    }

    /// 10 wait, 4 seats come back: 4 are executed surely, the other 6 may have to wait for them and be refused.
    #[test]
    fn fewer_seats_than_wait_leave_the_rest_open() {
        let due = vec![0; 10];
        let restored = Restored { at: 1_000 * MS, seats: 4 };
        let seen = zero_queue(10, 15_000 * MS, &due, Some(restored), Slack::default());
        assert_eq!((seen.ok, seen.time_out), (Range { low: 4, high: 10 }, Range { low: 0, high: 6 }));
        assert_eq!(seen.queue_full, Range { low: 0, high: 6 });
        let enough =
            zero_queue(10, 15_000 * MS, &due, Some(Restored { seats: 10, ..restored }), Slack::default());
        assert_eq!((enough.ok, enough.time_out), (Range::exactly(10), Range::exactly(0)));
    }
}
