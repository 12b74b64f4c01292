//! Search for an order of one object's operations, for what revisions leave open.
//!
//! Wing and Gong's search as Lowe improved it: operations are taken one by one in
//! an order that real time allows, and a set of operations with the state that it
//! leads to is tried only once. Objects are searched one by one, which is sound
//! and complete for operations on single objects. Effort is counted in explored
//! states, not in time, so that the same history gives the same answer anywhere.

use std::collections::HashSet;
use std::hash::Hash;

/// When an operation can have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// No earlier.
    pub call: u64,
    /// No later.
    pub ret: u64,
    /// It need not have taken effect at all.
    pub optional: bool,
}

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Searched {
    /// There is an order.
    Legal,
    /// There is none.
    Illegal,
    /// The budget was used up before either was proven.
    Exhausted,
}

/// Searches an order of the operations from `initial`. `step` gives the state after
/// an operation, by its place, or `None` where it can't take effect. Each explored
/// state takes one from `budget`.
#[must_use]
pub fn search<S: Clone + Eq + Hash>(
    operations: &[Interval],
    initial: S,
    step: impl Fn(&S, usize) -> Option<S>,
    budget: &mut u64,
) -> Searched {
    let mut list = Timeline::of(operations);
    let mut required = operations.iter().filter(|o| !o.optional).count();
    let mut seen: HashSet<(Vec<u64>, S)> = HashSet::new();
    let mut taken = vec![0u64; operations.len().div_ceil(64)];
    let mut path: Vec<(usize, S)> = Vec::new();
    let mut state = initial;
    let mut at = list.first();
    while required > 0 {
        match list.entry(at) {
            Entry::Call(operation) => {
                let Some(next) = step(&state, operation) else {
                    at = list.after(at);
                    continue;
                };
                flip(&mut taken, operation);
                if seen.contains(&(taken.clone(), next.clone())) {
                    flip(&mut taken, operation);
                    at = list.after(at);
                    continue;
                }
                if *budget == 0 {
                    return Searched::Exhausted;
                }
                *budget -= 1;
                seen.insert((taken.clone(), next.clone()));
                path.push((operation, std::mem::replace(&mut state, next)));
                list.lift(operation);
                required -= usize::from(!operations[operation].optional);
                at = list.first();
            }
            // Something that must have taken effect by here has not, or there is nothing left to try.
            Entry::Return | Entry::End => {
                let Some((operation, before)) = path.pop() else { return Searched::Illegal };
                state = before;
                flip(&mut taken, operation);
                list.unlift(operation);
                required += usize::from(!operations[operation].optional);
                at = list.after(list.call_of(operation));
            }
        }
    }
    Searched::Legal
}

fn flip(set: &mut [u64], at: usize) {
    set[at / 64] ^= 1 << (at % 64);
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Call(usize),
    Return,
    End,
}

/// Calls and returns in order of time, as a doubly linked list from which the
/// pair of an operation is taken and to which it is given back in reverse order.
struct Timeline {
    entries: Vec<Entry>,
    next: Vec<usize>,
    prev: Vec<usize>,
    calls: Vec<usize>,
    returns: Vec<Option<usize>>,
}

impl Timeline {
    fn of(operations: &[Interval]) -> Self {
        let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
        for (index, operation) in operations.iter().enumerate() {
            events.push((operation.call, false, index));
            if !operation.optional {
                events.push((operation.ret.max(operation.call), true, index));
            }
        }
        // Calls first: equal instants prove no order.
        events.sort_unstable();
        let mut list = Self {
            // The head comes first and is never looked at, the end last.
            entries: vec![Entry::End],
            next: Vec::new(),
            prev: Vec::new(),
            calls: vec![0; operations.len()],
            returns: vec![None; operations.len()],
        };
        for (_, is_return, operation) in events {
            let at = list.entries.len();
            if is_return {
                list.returns[operation] = Some(at);
                list.entries.push(Entry::Return);
            } else {
                list.calls[operation] = at;
                list.entries.push(Entry::Call(operation));
            }
        }
        list.entries.push(Entry::End);
        let len = list.entries.len();
        list.next = (1..=len).collect();
        list.prev = (0..len).map(|at| at.saturating_sub(1)).collect();
        list
    }

    fn first(&self) -> usize {
        self.next[0]
    }

    fn after(&self, at: usize) -> usize {
        self.next[at]
    }

    fn entry(&self, at: usize) -> Entry {
        self.entries[at]
    }

    fn call_of(&self, operation: usize) -> usize {
        self.calls[operation]
    }

    fn lift(&mut self, operation: usize) {
        for at in [Some(self.calls[operation]), self.returns[operation]].into_iter().flatten() {
            self.next[self.prev[at]] = self.next[at];
            self.prev[self.next[at]] = self.prev[at];
        }
    }

    fn unlift(&mut self, operation: usize) {
        for at in [self.returns[operation], Some(self.calls[operation])].into_iter().flatten() {
            self.next[self.prev[at]] = at;
            self.prev[self.next[at]] = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `Some(v)` writes `v`, the second half of the pair reads.
    #[derive(Clone, Copy)]
    enum Do {
        Write(u8),
        Read(u8),
    }

    fn run(operations: &[(u64, u64, bool, Do)], mut budget: u64) -> (Searched, u64) {
        let intervals: Vec<Interval> = operations
            .iter()
            .map(|(call, ret, optional, _)| Interval { call: *call, ret: *ret, optional: *optional })
            .collect();
        let step = |state: &u8, index: usize| match operations[index].3 {
            Do::Write(value) => Some(value),
            Do::Read(value) => (*state == value).then_some(value),
        };
        let searched = search(&intervals, 0u8, step, &mut budget);
        (searched, budget)
    }

    #[test]
    fn a_read_between_two_writes_decides_their_order() {
        let writes = [(0, 10, false, Do::Write(1)), (0, 10, false, Do::Write(2))];
        let read = |value, call| (call, call + 1, false, Do::Read(value));
        assert_eq!(run(&[writes[0], writes[1], read(1, 20), read(1, 30)], 100).0, Searched::Legal);
        assert_eq!(run(&[writes[0], writes[1], read(1, 20), read(2, 30)], 100).0, Searched::Illegal);
        assert_eq!(run(&[writes[0], writes[1], read(1, 5), read(2, 7)], 100).0, Searched::Legal);
    }

    #[test]
    fn an_operation_of_unknown_outcome_may_take_effect_late_or_never() {
        let lost = (0, u64::MAX, true, Do::Write(7));
        assert_eq!(run(&[lost, (5, 6, false, Do::Read(0))], 100).0, Searched::Legal);
        assert_eq!(
            run(&[lost, (5, 6, false, Do::Read(0)), (50, 60, false, Do::Read(7))], 100).0,
            Searched::Legal
        );
        assert_eq!(
            run(&[lost, (5, 6, false, Do::Read(7)), (50, 60, false, Do::Read(0))], 100).0,
            Searched::Illegal
        );
        assert_eq!(
            run(&[(0, 1, false, Do::Read(7)), (5, u64::MAX, true, Do::Write(7))], 100).0,
            Searched::Illegal
        );
    }

    #[test]
    fn a_set_of_operations_tells_each_of_them_apart() {
        let with = |at| {
            let mut set = vec![0; 4];
            flip(&mut set, at);
            set
        };
        assert_eq!((0..256).map(with).collect::<HashSet<_>>().len(), 256);
        assert!((0..256).all(|at| {
            let mut set = with(at);
            flip(&mut set, at);
            set == [0; 4]
        }));
    }

    #[test]
    fn the_budget_is_counted_in_states_and_an_exhausted_one_proves_nothing() {
        let operations: Vec<_> =
            (0..8).map(|v| (0, 10, false, Do::Write(v))).chain([(20, 21, false, Do::Read(99))]).collect();
        let (searched, left) = run(&operations, 1_000_000);
        assert_eq!(searched, Searched::Illegal);
        let used = 1_000_000 - left;
        // Each set of the eight writes with the one that came last is explored once.
        assert_eq!(used, 8 * 128);
        assert_eq!(run(&operations, used).0, Searched::Illegal);
        assert_eq!(run(&operations, used - 1), (Searched::Exhausted, 0));
        assert_eq!(run(&[], 0).0, Searched::Legal);
    }
}
