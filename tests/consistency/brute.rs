//! Every order of a handful of operations, tried out on a store that is as simple as can be.

use quakeproof::check::consistency::epochs::Epoch;
use quakeproof::check::consistency::model::{Action, Change, Operation, Seen, WriteResult};
use std::collections::{BTreeMap, BTreeSet};

/// A revision that nobody ever saw.
const UNSEEN: u64 = u64::MAX;

#[derive(Clone)]
struct Store {
    revision: u64,
    objects: BTreeMap<u64, u64>,
}

/// Whether some order of the operations, with or without those of unknown outcome,
/// respects real time and gives every answer.
pub fn is_linearizable(epoch: &Epoch) -> bool {
    let store = Store { revision: epoch.base, objects: epoch.initial.clone() };
    order(&epoch.operations, &mentioned(&epoch.operations), &mut vec![false; epoch.operations.len()], &store)
}

/// The same for one object alone; reads of all objects count as reads of it.
pub fn is_linearizable_for(epoch: &Epoch, key: u64) -> bool {
    let operations = epoch.operations.iter().filter_map(|o| {
        let action = match &o.action {
            Action::Range(range) => Action::Read { key, seen: range.seen(key) },
            _ if o.key() == Some(key) => o.action.clone(),
            _ => return None,
        };
        Some(Operation { action, ..o.clone() })
    });
    let initial: BTreeMap<u64, u64> =
        epoch.initial.iter().filter(|(k, _)| **k == key).map(|(k, r)| (*k, *r)).collect();
    // Whatever is written later has a higher revision than what is there, also behind a write that nobody saw.
    let base = initial.get(&key).copied().unwrap_or(0);
    is_linearizable(&Epoch { operations: operations.collect(), initial, base, ..Epoch::default() })
}

/// Revisions that answers mention, by object, and those that were acknowledged.
fn mentioned(operations: &[Operation]) -> (BTreeSet<(u64, u64)>, BTreeSet<u64>) {
    let (mut seen, mut acked) = (BTreeSet::new(), BTreeSet::new());
    for operation in operations {
        match &operation.action {
            Action::Write { key, change, result } => {
                if let Change::Update(Some(expected)) = change {
                    seen.insert((*key, *expected));
                }
                if let WriteResult::Done(Some(revision)) = result {
                    acked.insert(*revision);
                }
            }
            Action::Read { key, seen: Seen::Present(Some(revision)) } => {
                seen.insert((*key, *revision));
            }
            Action::Read { .. } => {}
            Action::Range(range) => seen.extend(range.objects.iter().filter_map(|(k, r)| Some((*k, (*r)?)))),
        }
    }
    (seen, acked)
}

fn order(
    all: &[Operation],
    mentioned: &(BTreeSet<(u64, u64)>, BTreeSet<u64>),
    done: &mut Vec<bool>,
    store: &Store,
) -> bool {
    let left = |done: &[bool]| -> Vec<usize> { (0..all.len()).filter(|i| !done[*i]).collect() };
    let open = left(done);
    if open.iter().all(|i| all[*i].is_optional()) {
        return true;
    }
    for next in &open {
        // What had returned before this was sent must have come first.
        if open.iter().any(|other| !all[*other].is_optional() && all[*other].precedes(&all[*next])) {
            continue;
        }
        done[*next] = true;
        let reached = outcomes(&all[*next], mentioned, store);
        let found = reached.iter().any(|after| order(all, mentioned, done, after));
        done[*next] = false;
        if found {
            return true;
        }
    }
    false
}

/// Stores after an operation took effect, one for each revision that it may have got.
fn outcomes(
    operation: &Operation,
    (seen, acked): &(BTreeSet<(u64, u64)>, BTreeSet<u64>),
    store: &Store,
) -> Vec<Store> {
    let shows = |key: u64, revision: Option<u64>| {
        store.objects.get(&key).is_some_and(|at| revision.is_none_or(|r| r == *at))
    };
    let same = |holds: bool| if holds { vec![store.clone()] } else { Vec::new() };
    match &operation.action {
        Action::Read { key, seen: Seen::Absent } => same(!store.objects.contains_key(key)),
        Action::Read { key, seen: Seen::Present(revision) } => same(shows(*key, *revision)),
        Action::Range(range) => {
            let equal = range.objects.len() == store.objects.len()
                && range.objects.iter().all(|(key, revision)| shows(*key, *revision));
            if !equal || range.head < store.revision {
                return Vec::new();
            }
            vec![Store { revision: range.head, ..store.clone() }]
        }
        Action::Write { key, change, result } => {
            let holds = match change {
                Change::Create => !store.objects.contains_key(key),
                Change::Update(expected) => shows(*key, *expected),
            };
            if *result == WriteResult::Conflict {
                return same(!holds);
            }
            if !holds {
                return Vec::new();
            }
            let revisions: Vec<u64> = match result {
                WriteResult::Done(Some(revision)) => vec![*revision],
                _ => seen
                    .iter()
                    .filter(|(of, revision)| of == key && !acked.contains(revision))
                    .map(|(_, revision)| *revision)
                    .chain([UNSEEN])
                    .collect(),
            };
            let mut stores = Vec::new();
            for revision in revisions {
                let before = store.objects.get(key).copied().filter(|r| *r != UNSEEN).unwrap_or(0);
                if revision != UNSEEN && (revision <= store.revision || revision <= before) {
                    continue;
                }
                let mut after = store.clone();
                after.objects.insert(*key, revision);
                after.revision = if revision == UNSEEN { store.revision } else { revision };
                stores.push(after);
            }
            stores
        }
    }
}
