//! What becomes of requests that reach one level of one API server.
//!
//! Discrete events: seats change, executions end, waits end, requests arrive. Every request is one
//! seat wide, which is exact for a level without seats (there width decides nothing) and for GETs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

/// What a level does with a request that it has no seat for (`limitResponse`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// It waits, if there is room.
    Queue {
        /// Requests that can wait at once, see [`capacity`].
        capacity: usize,
    },
    /// It is refused, unless nothing of the level is executing: then it is executed, seats or not
    /// (kubernetes/kubernetes#134196).
    Reject,
}

/// Requests of one flow that can wait at once: its hand of queues, each of the same length.
///
/// A request joins the shortest queue of its hand, so all of them are full before one is refused.
#[must_use]
pub fn capacity(hand_size: usize, queue_length_limit: usize) -> usize {
    hand_size * queue_length_limit
}

/// How long a request may wait: a quarter of its own deadline, else of the server's request timeout;
/// a minute at most. A watch has no deadline of its own.
#[must_use]
pub fn wait_limit(deadline: Option<Duration>, request_timeout: Duration) -> Duration {
    let deadline = deadline.filter(|d| !d.is_zero()).unwrap_or(request_timeout);
    // A deadline that is not below the server's timeout does not count.
    (deadline.min(request_timeout) / 4).min(Duration::from_secs(60))
}

/// A request, in nanoseconds on any clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it reaches the level.
    pub at: u64,
    /// How long it may wait.
    pub wait_limit: u64,
    /// How long its execution takes.
    pub service: u64,
}

/// A change of the level's seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When the API server has taken it in.
    pub at: u64,
    /// Seats from then on.
    pub seats: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Executed, from this instant on.
    Executed {
        /// Begin.
        at: u64,
    },
    /// Refused at once, reason `queue-full`.
    QueueFull,
    /// Refused after its wait, reason `time-out`.
    TimeOut {
        /// When.
        at: u64,
    },
    /// Refused at once, reason `concurrency-limit`.
    ConcurrencyLimit,
}

/// What becomes of each request, in their order. `arrivals` and `changes` are in order of time; the level has
/// no seat before the first change. Of what falls on one instant ends of executions come first, then ends of
/// waits, then changes, then arrivals.
#[must_use]
pub fn fates(response: Response, changes: &[Change], arrivals: &[Arrival]) -> Vec<Fate> {
    let mut level = Level {
        response,
        seats: 0,
        executing: BinaryHeap::new(),
        waiting: VecDeque::new(),
        expiries: BTreeSet::new(),
        fates: vec![None; arrivals.len()],
    };
    let mut changes = changes.iter().peekable();
    for (index, arrival) in arrivals.iter().enumerate() {
        while let Some(change) = changes.next_if(|change| change.at <= arrival.at) {
            level.change(*change, arrivals);
        }
        level.pass(arrival.at, arrivals);
        level.arrive(index, arrivals);
    }
    for change in changes {
        level.change(*change, arrivals);
    }
    level.pass(u64::MAX, arrivals);
    // At the end of time every wait has ended.
    level.fates.into_iter().map(|fate| fate.unwrap_or(Fate::TimeOut { at: u64::MAX })).collect()
}

/// How many requests wait from each of these instants on, in order of time; none before the first.
#[must_use]
pub fn waiting(arrivals: &[Arrival], fates: &[Fate]) -> Vec<(u64, u64)> {
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for (arrival, fate) in arrivals.iter().zip(fates) {
        let (Fate::Executed { at } | Fate::TimeOut { at }) = fate else { continue };
        if *at > arrival.at {
            *changes.entry(arrival.at).or_default() += 1;
            *changes.entry(*at).or_default() -= 1;
        }
    }
    let mut waiting = 0;
    let mut from = |(at, change): (u64, i64)| {
        waiting += change;
        (at, u64::try_from(waiting).unwrap_or_default())
    };
    changes.into_iter().map(&mut from).collect()
}

fn expiry(arrival: Arrival) -> u64 {
    arrival.at.saturating_add(arrival.wait_limit)
}

struct Level {
    response: Response,
    seats: u64,
    /// Ends of executions, the next one first.
    executing: BinaryHeap<Reverse<u64>>,
    /// Indices of arrivals, the first come first; those that have met their fate already are passed over.
    waiting: VecDeque<usize>,
    /// Ends of waits, the next one first, with the index: as many as are waiting.
    expiries: BTreeSet<(u64, usize)>,
    fates: Vec<Option<Fate>>,
}

impl Level {
    /// Lets everything end that ends up to `now`, in order.
    fn pass(&mut self, now: u64, arrivals: &[Arrival]) {
        loop {
            let execution = self.executing.peek().map(|Reverse(end)| *end);
            let wait = self.expiries.first().copied();
            match (execution, wait) {
                (Some(end), wait) if end <= now && wait.is_none_or(|(at, _)| end <= at) => {
                    self.executing.pop();
                    self.dispatch(end, arrivals);
                }
                (_, Some((at, index))) if at <= now => {
                    self.expiries.pop_first();
                    self.fates[index] = Some(Fate::TimeOut { at });
                }
                _ => return,
            }
        }
    }

    fn change(&mut self, change: Change, arrivals: &[Arrival]) {
        self.pass(change.at, arrivals);
        self.seats = change.seats;
        self.dispatch(change.at, arrivals);
    }

    fn dispatch(&mut self, now: u64, arrivals: &[Arrival]) {
        while (self.executing.len() as u64) < self.seats
            && let Some(index) = self.waiting.pop_front()
        {
            if self.fates[index].is_none() {
                self.expiries.remove(&(expiry(arrivals[index]), index));
                self.execute(index, now, arrivals);
            }
        }
    }

    fn execute(&mut self, index: usize, now: u64, arrivals: &[Arrival]) {
        self.fates[index] = Some(Fate::Executed { at: now });
        self.executing.push(Reverse(now.saturating_add(arrivals[index].service)));
    }

    fn arrive(&mut self, index: usize, arrivals: &[Arrival]) {
        let now = arrivals[index].at;
        let seat = (self.executing.len() as u64) < self.seats;
        match self.response {
            Response::Reject if seat || self.executing.is_empty() => self.execute(index, now, arrivals),
            Response::Reject => self.fates[index] = Some(Fate::ConcurrencyLimit),
            Response::Queue { .. } if seat && self.expiries.is_empty() => self.execute(index, now, arrivals),
            Response::Queue { capacity } if self.expiries.len() < capacity => {
                self.waiting.push_back(index);
                self.expiries.insert((expiry(arrivals[index]), index));
            }
            Response::Queue { .. } => self.fates[index] = Some(Fate::QueueFull),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn arrivals(count: u64, per_second: u64) -> Vec<Arrival> {
        (0..count)
            .map(|i| Arrival { at: i * S / per_second, wait_limit: 15 * S, service: S / 1_000 })
            .collect()
    }

    fn count(fates: &[Fate], of: impl Fn(&Fate) -> bool) -> usize {
        fates.iter().filter(|fate| of(fate)).count()
    }

    #[test]
    fn a_queue_fills_up_to_its_length_and_empties_when_waits_end() {
        // 100 at once, and room for 40: they wait for 15 s.
        let at_once: Vec<Arrival> = arrivals(100, u64::MAX);
        let fates = fates(Response::Queue { capacity: 40 }, &[], &at_once);
        assert_eq!(waiting(&at_once, &fates), [(0, 40), (15 * S, 0)]);
        // Two a second, seats after three seconds: what waits is executed.
        let slow = arrivals(10, 2);
        let seats = [Change { at: 3 * S, seats: 100 }];
        let filled = waiting(&slow, &super::fates(Response::Queue { capacity: 40 }, &seats, &slow));
        assert_eq!(filled.iter().map(|(_, count)| *count).max(), Some(6));
        assert_eq!(filled.last(), Some(&(3 * S, 0)));
    }

    fn executed(fate: &Fate) -> bool {
        matches!(fate, Fate::Executed { .. })
    }

    #[test]
    fn a_queue_without_seats_refuses_what_finds_it_full_and_times_out_the_rest() {
        // Executed on 1.37.2: 30 at once, of which 10 can wait.
        let at_once = vec![Arrival { at: 0, wait_limit: 15 * S, service: S }; 30];
        let fates = fates(Response::Queue { capacity: capacity(1, 10) }, &[], &at_once);
        assert_eq!(count(&fates, |f| *f == Fate::QueueFull), 20);
        assert_eq!(count(&fates, |f| *f == Fate::TimeOut { at: 15 * S }), 10);
    }

    #[test]
    fn seats_that_come_back_execute_what_still_waits() {
        // Executed on 1.30.4: 450 at 30 a second, 50 can wait, seats back 0.2 s after the last.
        let all = arrivals(450, 30);
        let back = [Change { at: 15 * S + S / 5, seats: 66 }];
        let fates = fates(Response::Queue { capacity: capacity(1, 50) }, &back, &all);
        assert_eq!(count(&fates, |f| *f == Fate::QueueFull), 400);
        let timed_out = count(&fates, |f| matches!(f, Fate::TimeOut { .. }));
        assert_eq!(timed_out, 7, "those of the first 0.2 s");
        assert_eq!(count(&fates, executed), 43);
    }

    #[test]
    fn reject_without_seats_lets_one_at_a_time_through() {
        let serial: Vec<Arrival> =
            (0..5).map(|i| Arrival { at: i * S, wait_limit: 0, service: S / 2 }).collect();
        assert_eq!(count(&fates(Response::Reject, &[], &serial), executed), 5);
        // Held by one that takes long: nothing else gets in, and the next after it does.
        let mut held = vec![Arrival { at: 0, wait_limit: 0, service: 10 * S }];
        held.extend((1..=20).map(|i| Arrival { at: i * S / 4, wait_limit: 0, service: 1 }));
        held.push(Arrival { at: 10 * S, wait_limit: 0, service: 1 });
        let fates = fates(Response::Reject, &[], &held);
        assert_eq!(count(&fates, |f| *f == Fate::ConcurrencyLimit), 20);
        assert_eq!(fates.last(), Some(&Fate::Executed { at: 10 * S }));
    }

    #[test]
    fn the_wait_is_a_quarter_of_the_deadline_and_a_minute_at_most() {
        let s = Duration::from_secs;
        assert_eq!(wait_limit(None, s(60)), s(15));
        assert_eq!(wait_limit(Some(s(8)), s(60)), s(2));
        assert_eq!(wait_limit(Some(s(60)), s(60)), s(15), "not below the server's");
        assert_eq!(wait_limit(Some(s(90)), s(60)), s(15));
        assert_eq!(wait_limit(None, s(3600)), s(60));
        assert_eq!(wait_limit(Some(s(0)), s(60)), s(15));
    }

    /// The same, one instant after the other and without any cleverness.
    fn step_by_step(response: Response, changes: &[Change], arrivals: &[Arrival], end: u64) -> Vec<Fate> {
        let mut fates = vec![None; arrivals.len()];
        let (mut waiting, mut executing, mut seats) = (Vec::<usize>::new(), Vec::<u64>::new(), 0);
        for now in 0..=end {
            let dispatch = |waiting: &mut Vec<usize>,
                            executing: &mut Vec<u64>,
                            fates: &mut Vec<Option<Fate>>,
                            seats: usize| {
                while executing.len() < seats && !waiting.is_empty() {
                    let index = waiting.remove(0);
                    fates[index] = Some(Fate::Executed { at: now });
                    executing.push(now + arrivals[index].service);
                }
            };
            // An execution without length ends as soon as it has begun.
            while let Some(done) = executing.iter().position(|at| *at <= now) {
                executing.remove(done);
                dispatch(&mut waiting, &mut executing, &mut fates, seats);
            }
            waiting.retain(|index| {
                let over = arrivals[*index].at + arrivals[*index].wait_limit <= now;
                if over {
                    fates[*index] = Some(Fate::TimeOut { at: now });
                }
                !over
            });
            for change in changes.iter().filter(|c| c.at == now) {
                seats = usize::try_from(change.seats).unwrap();
                dispatch(&mut waiting, &mut executing, &mut fates, seats);
            }
            for (index, _) in arrivals.iter().enumerate().filter(|(_, a)| a.at == now) {
                while let Some(done) = executing.iter().position(|at| *at <= now) {
                    executing.remove(done);
                    dispatch(&mut waiting, &mut executing, &mut fates, seats);
                }
                let free = executing.len() < seats;
                let (fate, takes) = match response {
                    Response::Reject if free || executing.is_empty() => {
                        (Some(Fate::Executed { at: now }), true)
                    }
                    Response::Reject => (Some(Fate::ConcurrencyLimit), false),
                    Response::Queue { .. } if free && waiting.is_empty() => {
                        (Some(Fate::Executed { at: now }), true)
                    }
                    Response::Queue { capacity } if waiting.len() < capacity => {
                        waiting.push(index);
                        (None, false)
                    }
                    Response::Queue { .. } => (Some(Fate::QueueFull), false),
                };
                fates[index] = fate;
                if takes {
                    executing.push(now + arrivals[index].service);
                }
            }
        }
        fates.into_iter().map(|fate| fate.expect("everything has ended")).collect()
    }

    proptest! {
        #[test]
        fn events_give_what_every_single_instant_gives(
            reject in any::<bool>(),
            capacity in 0_usize..4,
            requests in prop::collection::vec((0_u64..40, 1_u64..12, 1_u64..12), 0..25),
            changes in prop::collection::vec((0_u64..50, 0_u64..4), 0..4),
        ) {
            let response = if reject { Response::Reject } else { Response::Queue { capacity } };
            let mut arrivals: Vec<Arrival> =
                requests.into_iter().map(|(at, wait_limit, service)| Arrival { at, wait_limit, service }).collect();
            arrivals.sort_by_key(|a| a.at);
            let mut changes: Vec<Change> = changes.into_iter().map(|(at, seats)| Change { at, seats }).collect();
            changes.sort_by_key(|c| c.at);
            prop_assert_eq!(
                fates(response, &changes, &arrivals),
                step_by_step(response, &changes, &arrivals, 200)
            );
        }
    }

    #[test]
    fn a_deadline_counts_only_below_the_servers_timeout() {
        let seconds = Duration::from_secs;
        assert_eq!(wait_limit(Some(seconds(8)), seconds(60)), seconds(2));
        assert_eq!(wait_limit(Some(seconds(60)), seconds(60)), seconds(15));
        assert_eq!(wait_limit(Some(seconds(59)), seconds(60)), Duration::from_millis(14_750));
        assert_eq!(wait_limit(None, seconds(600)), seconds(60), "a minute at most");
    }

    #[test]
    fn each_request_that_waits_counts_once() {
        let two =
            [Arrival { at: 0, wait_limit: 9, service: 1 }, Arrival { at: 1, wait_limit: 9, service: 1 }];
        let fates = [Fate::TimeOut { at: 9 }, Fate::Executed { at: 5 }];
        assert_eq!(waiting(&two, &fates), [(0, 1), (1, 2), (5, 1), (9, 0)]);
    }
}
