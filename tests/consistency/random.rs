//! Small random histories: run on a real store with crashes, then perhaps one answer changed.

use proptest::prelude::*;
use quakeproof::check::consistency::epochs::Epoch;
use quakeproof::check::consistency::model::{
    Action, Change, Operation, PENDING, RangeRead, Seen, WriteResult,
};
use std::collections::BTreeMap;

/// What is drawn for one operation.
#[derive(Debug, Clone)]
pub struct Draw {
    kind: u8,
    key: u64,
    /// How long before and after the instant at which it takes effect.
    around: (u64, u64),
    /// The answer is lost; of writes the effect too, if the second is set.
    crash: (bool, bool),
    /// The answer carries no revision.
    silent: bool,
    guess: u64,
    gap: u64,
}

fn draw() -> impl Strategy<Value = Draw> {
    let crash = (proptest::bool::weighted(0.2), any::<bool>());
    (0u8..10, 1u64..3, (0u64..25, 0u64..25), crash, proptest::bool::weighted(0.15), 0u64..12, 1u64..3)
        .prop_map(|(kind, key, around, crash, silent, guess, gap)| Draw {
            kind,
            key,
            around,
            crash,
            silent,
            guess,
            gap,
        })
}

/// One change of one answer.
#[derive(Debug, Clone)]
pub enum Mutation {
    /// As it was.
    None,
    /// A revision is this much higher, or lower.
    Revision(usize, i64),
    /// An object that was there is not, or the other way round.
    Presence(usize),
    /// The operation took place this much earlier or later.
    Moved(usize, i64),
    /// A write that took effect did not.
    Undone(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        3 => Just(Mutation::None),
        2 => (0usize..6, prop_oneof![Just(-2i64), Just(-1), Just(1), Just(2)]).prop_map(|(i, by)| Mutation::Revision(i, by)),
        2 => (0usize..6).prop_map(Mutation::Presence),
        2 => (0usize..6, -40i64..40).prop_map(|(i, by)| Mutation::Moved(i, by)),
        1 => (0usize..6).prop_map(Mutation::Undone),
    ]
}

/// A history of at most `most` operations on two objects.
pub fn history(most: usize) -> impl Strategy<Value = Epoch> {
    let initial = prop_oneof![Just(None), Just(Some((1u64, 3u64)))];
    (proptest::collection::vec(draw(), 1..=most), initial, mutation())
        .prop_map(|(draws, initial, mutation)| change(run(&draws, initial), mutation))
}

/// Histories that are linearizable by the way they are made.
pub fn honest(most: usize) -> impl Strategy<Value = Epoch> {
    let initial = prop_oneof![Just(None), Just(Some((1u64, 3u64)))];
    (proptest::collection::vec(draw(), 1..=most), initial).prop_map(|(draws, initial)| run(&draws, initial))
}

fn run(draws: &[Draw], initial: Option<(u64, u64)>) -> Epoch {
    let mut epoch = Epoch { number: 1, base: 5, initial: initial.into_iter().collect(), ..Epoch::default() };
    let (mut revision, mut objects): (u64, BTreeMap<u64, u64>) = (epoch.base, epoch.initial.clone());
    for (index, draw) in draws.iter().enumerate() {
        let instant = 100 + 10 * index as u64;
        let key = draw.key;
        let there = objects.get(&key).copied();
        let action = match draw.kind {
            0..=4 => {
                let change = match draw.kind {
                    0..=2 => Change::Create,
                    3 => Change::Update(Some(if draw.guess == 0 { 4 } else { there.unwrap_or(4) })),
                    _ => Change::Update(None),
                };
                let holds = match change {
                    Change::Create => there.is_none(),
                    Change::Update(None) => there.is_some(),
                    Change::Update(expected) => there.is_some() && there == expected,
                };
                let takes_effect = holds && !(draw.crash.0 && draw.crash.1);
                if takes_effect {
                    revision += draw.gap;
                    objects.insert(key, revision);
                }
                let result = match (draw.crash.0, holds) {
                    (true, _) => WriteResult::Unknown,
                    (false, true) => WriteResult::Done((!draw.silent).then_some(revision)),
                    (false, false) => WriteResult::Conflict,
                };
                Action::Write { key, change, result }
            }
            // An answer that was lost says nothing; the read is as good as never made.
            5..=9 if draw.crash.0 => continue,
            5..=7 => {
                let seen = match there {
                    None => Seen::Absent,
                    Some(at) => Seen::Present((!draw.silent).then_some(at)),
                };
                Action::Read { key, seen }
            }
            _ => {
                revision += draw.gap - 1;
                let objects = objects.iter().map(|(k, r)| (*k, (!draw.silent).then_some(*r))).collect();
                Action::Range(RangeRead { head: revision, at: revision, fresh: true, objects })
            }
        };
        let pending = matches!(action, Action::Write { result: WriteResult::Unknown, .. });
        epoch.operations.push(Operation {
            client: index,
            line: format!("histories/random.jsonl#{}", index + 1),
            call: instant - draw.around.0,
            ret: if pending { PENDING } else { instant + draw.around.1 },
            action,
        });
    }
    epoch.operations.sort_by_key(|o| (o.call, o.ret));
    epoch
}

fn change(mut epoch: Epoch, mutation: Mutation) -> Epoch {
    let count = epoch.operations.len();
    if count == 0 {
        return epoch;
    }
    let by = |value: u64, by: i64| value.saturating_add_signed(by).max(1);
    match mutation {
        Mutation::None => {}
        Mutation::Revision(at, step) => match &mut epoch.operations[at % count].action {
            Action::Write { result: WriteResult::Done(Some(revision)), .. }
            | Action::Read { seen: Seen::Present(Some(revision)), .. } => *revision = by(*revision, step),
            Action::Range(range) => {
                range.head = by(range.head, step);
                range.at = range.head;
            }
            _ => {}
        },
        Mutation::Presence(at) => match &mut epoch.operations[at % count].action {
            Action::Read { seen, .. } => {
                *seen = match seen {
                    Seen::Absent => Seen::Present(None),
                    Seen::Present(_) => Seen::Absent,
                }
            }
            Action::Range(range) => {
                range.objects.pop();
            }
            Action::Write { result, .. } => {
                if *result == WriteResult::Conflict {
                    *result = WriteResult::Done(None);
                }
            }
        },
        Mutation::Moved(at, step) => {
            let operation = &mut epoch.operations[at % count];
            operation.call = by(operation.call, step);
            if operation.ret != PENDING {
                operation.ret = by(operation.ret, step);
            }
        }
        Mutation::Undone(at) => {
            let at = at % count;
            if matches!(epoch.operations[at].action, Action::Write { .. }) {
                epoch.operations.remove(at);
            }
        }
    }
    epoch.operations.sort_by_key(|o| (o.call, o.ret));
    epoch
}
