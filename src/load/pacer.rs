//! Schedules: operation `i` is due at `t0 + i × interval`, whatever the server does.
//!
//! [`OpenLoop`] sends each operation when it is due, as long as fewer than its
//! limit are out; one that finds the limit reached is shed at once and counted
//! as lost. [`ClosedLoop`] has one operation out at a time; slots that come due
//! meanwhile fold into the next operation, which is sent at once and carries the
//! due time of the first of them, so it is late and there is no burst. Folded
//! slots are not counted one by one: the operation that was out covers their time.

use crate::clock::{Clock, MonoNs};
use crate::drill::values::Rate;
use std::time::Duration;

/// An operation that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// 0, 1, 2, ….
    pub index: u64,
    /// When it is to be sent.
    pub due: MonoNs,
}

/// Evenly spaced slots.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    start: MonoNs,
    /// `slots` slots in this many nanoseconds; a ratio, so that no rate drifts.
    period_ns: u64,
    slots: u64,
}

impl Schedule {
    /// `rate` slots per second, the first at `start`.
    #[must_use]
    pub fn at_rate(start: MonoNs, rate: Rate) -> Self {
        Self { start, period_ns: 1_000_000_000, slots: u64::from(rate.0.max(1)) }
    }

    /// One slot every `interval_ns` nanoseconds (at least 1), the first at `start`.
    #[must_use]
    pub fn every(start: MonoNs, interval_ns: u64) -> Self {
        Self { start, period_ns: interval_ns.max(1), slots: 1 }
    }

    /// The slot with this index.
    #[must_use]
    pub fn slot(&self, index: u64) -> Slot {
        let offset = u128::from(index) * u128::from(self.period_ns) / u128::from(self.slots);
        Slot { index, due: self.start.plus(u64::try_from(offset).unwrap_or(u64::MAX)) }
    }

    /// An operation sent at `at` is late: more than one interval after it was due.
    #[must_use]
    pub fn is_late(&self, slot: Slot, at: MonoNs) -> bool {
        at > self.slot(slot.index + 1).due
    }

    /// Number of slots that are due at `now`.
    fn due_by(&self, now: MonoNs) -> u64 {
        if now < self.start {
            return 0;
        }
        // Inverse of `slot`, rounded so that due_by(slot(i).due) is exactly i + 1.
        let elapsed = u128::from(now.since(self.start));
        let due = ((elapsed + 1) * u128::from(self.slots)).div_ceil(u128::from(self.period_ns));
        u64::try_from(due).unwrap_or(u64::MAX)
    }
}

/// What became of a client's operations; `scheduled = recorded + lost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Operations that were due.
    pub scheduled: u64,
    /// Of the recorded ones, those sent later than one interval after they were due.
    pub late: u64,
    /// Operations that were due but never sent.
    pub lost: u64,
}

/// What is to be done with a slot that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Send it now.
    Send(Slot),
    /// Too many operations are out: it is never sent.
    Shed(Slot),
}

/// Sends on schedule with a bounded number of operations out.
#[derive(Debug)]
pub struct OpenLoop {
    schedule: Schedule,
    next: u64,
    limit: usize,
    out: usize,
    account: Account,
}

impl OpenLoop {
    /// At most `limit` operations are out at any time.
    #[must_use]
    pub fn new(schedule: Schedule, limit: usize) -> Self {
        Self { schedule, next: 0, limit, out: 0, account: Account::default() }
    }

    /// When the next slot is due.
    #[must_use]
    pub fn next_due(&self) -> MonoNs {
        self.schedule.slot(self.next).due
    }

    /// The next slot, if it is due at `now`. No slot is ever skipped.
    pub fn take(&mut self, now: MonoNs) -> Option<Due> {
        let slot = self.schedule.slot(self.next);
        if slot.due > now {
            return None;
        }
        self.next += 1;
        self.account.scheduled += 1;
        if self.out >= self.limit {
            self.account.lost += 1;
            return Some(Due::Shed(slot));
        }
        self.out += 1;
        self.account.late += u64::from(self.schedule.is_late(slot, now));
        Some(Due::Send(slot))
    }

    /// An operation that was out has ended.
    pub fn returned(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// What became of the operations so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account
    }
}

/// Sends on schedule, one operation at a time.
#[derive(Debug)]
pub struct ClosedLoop {
    schedule: Schedule,
    next: u64,
    account: Account,
}

impl ClosedLoop {
    /// A closed loop on this schedule.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, next: 0, account: Account::default() }
    }

    /// When the next slot is due.
    #[must_use]
    pub fn next_due(&self) -> MonoNs {
        self.schedule.slot(self.next).due
    }

    /// The first slot not sent yet, if it is due at `now`; later ones that are due too fold into it.
    pub fn take(&mut self, now: MonoNs) -> Option<Slot> {
        let slot = self.schedule.slot(self.next);
        if slot.due > now {
            return None;
        }
        self.next = self.schedule.due_by(now);
        self.account.scheduled += 1;
        self.account.late += u64::from(self.schedule.is_late(slot, now));
        Some(slot)
    }

    /// What became of the operations so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account
    }
}

/// Waits until `clock` has reached `due`. Cancel-safe.
pub async fn until(clock: &dyn Clock, due: MonoNs) {
    loop {
        let left = due.since(clock.mono());
        if left == 0 {
            return;
        }
        // The timer does not count while the machine is suspended but the clock does, so look again.
        tokio::time::sleep(Duration::from_nanos(left)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use proptest::prelude::*;

    fn sent(due: Option<Due>) -> u64 {
        match due {
            Some(Due::Send(slot)) => slot.index,
            other => panic!("expected a slot to send, got {other:?}"),
        }
    }

    #[test]
    fn an_operation_is_due_on_schedule_whatever_the_server_does() {
        let clock = FakeClock::new();
        let mut pacer = OpenLoop::new(Schedule::at_rate(clock.mono(), Rate(50)), 16);
        assert_eq!(sent(pacer.take(clock.mono())), 0);
        assert_eq!(pacer.take(clock.mono()), None);
        clock.advance(19_999_999);
        assert_eq!(pacer.take(clock.mono()), None);
        clock.advance(1);
        assert_eq!(sent(pacer.take(clock.mono())), 1);
        assert_eq!(pacer.account(), Account { scheduled: 2, late: 0, lost: 0 });
    }

    #[test]
    fn slots_missed_by_a_stalled_process_are_all_sent_and_counted_late() {
        let clock = FakeClock::new();
        let mut pacer = OpenLoop::new(Schedule::at_rate(clock.mono(), Rate(10)), 100);
        clock.advance(450_000_000);
        let indexes: Vec<u64> =
            std::iter::from_fn(|| pacer.take(clock.mono())).map(|d| sent(Some(d))).collect();
        assert_eq!(indexes, [0, 1, 2, 3, 4]);
        // Slot 4 was due 50 ms ago and slot 3 150 ms ago, one interval is 100 ms.
        assert_eq!(pacer.account(), Account { scheduled: 5, late: 4, lost: 0 });
    }

    #[test]
    fn the_operation_that_finds_the_limit_reached_is_lost_and_the_schedule_goes_on() {
        let clock = FakeClock::new();
        let mut pacer = OpenLoop::new(Schedule::every(clock.mono(), 10), 1);
        assert_eq!(sent(pacer.take(clock.mono())), 0);
        clock.advance(10);
        assert!(matches!(pacer.take(clock.mono()), Some(Due::Shed(Slot { index: 1, .. }))));
        pacer.returned();
        clock.advance(10);
        assert_eq!(sent(pacer.take(clock.mono())), 2);
        assert_eq!(pacer.account(), Account { scheduled: 3, late: 0, lost: 1 });
    }

    #[test]
    fn slots_that_pass_during_a_slow_operation_fold_into_one_late_operation() {
        let clock = FakeClock::new();
        let t0 = clock.mono();
        let mut pacer = ClosedLoop::new(Schedule::every(t0, 100));
        assert_eq!(pacer.take(clock.mono()).unwrap().index, 0);
        clock.advance(350);
        let slot = pacer.take(clock.mono()).unwrap();
        assert_eq!((slot.index, slot.due), (1, t0.plus(100)));
        assert_eq!(pacer.take(clock.mono()), None, "no burst");
        assert_eq!(pacer.next_due(), t0.plus(400));
        assert_eq!(pacer.account(), Account { scheduled: 2, late: 1, lost: 0 });
    }

    proptest! {
        #[test]
        fn the_number_of_slots_due_agrees_with_counting_them(
            rate in 1u32..=10_000, start in 0u64..10_000_000_000, after in 0u64..50_000_000,
        ) {
            let schedule = Schedule::at_rate(MonoNs(start), Rate(rate));
            let now = MonoNs(start + after);
            let counted = (0..).take_while(|i| schedule.slot(*i).due <= now).count() as u64;
            prop_assert_eq!(schedule.due_by(now), counted);
        }

        #[test]
        fn every_scheduled_operation_is_sent_or_lost(
            steps in proptest::collection::vec((0u64..500, any::<bool>()), 1..100), limit in 1usize..5,
        ) {
            let clock = FakeClock::new();
            let mut pacer = OpenLoop::new(Schedule::every(clock.mono(), 100), limit);
            let mut next = 0;
            let mut sends = 0u64;
            let mut out = 0usize;
            for (advance, returned) in steps {
                clock.advance(advance);
                while let Some(due) = pacer.take(clock.mono()) {
                    let (Due::Send(slot) | Due::Shed(slot)) = due;
                    prop_assert_eq!(slot.index, next, "no slot is skipped");
                    next += 1;
                    if matches!(due, Due::Send(_)) {
                        sends += 1;
                        out += 1;
                    }
                    prop_assert!(out <= limit);
                }
                if returned && out > 0 {
                    pacer.returned();
                    out -= 1;
                }
            }
            let account = pacer.account();
            prop_assert_eq!(account.scheduled, sends + account.lost);
        }
    }
}
