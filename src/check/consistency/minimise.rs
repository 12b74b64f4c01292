//! The few records that prove an object's history impossible.
//!
//! Only what weakens a history is tried: operations after an instant are left out,
//! reads are left out, and acknowledged writes are treated as if their outcome were
//! unknown. What is impossible even so does not rest on them. A write is never
//! simply left out, for that would make reads of it impossible.

use super::model::{Action, Cell, Operation, PENDING, WriteResult};
use super::residue::decide;
use super::search::Searched;

/// The operations that an illegal history of one object rests on, in their order.
/// Uses what is left of `budget`; with less of it more operations remain.
#[must_use]
pub fn minimise<'a>(
    operations: &[&'a Operation],
    key: u64,
    initial: Cell,
    budget: &mut u64,
) -> Vec<&'a Operation> {
    let mut needed: Vec<bool> = vec![true; operations.len()];
    let mut still_illegal = |needed: &[bool]| {
        let weaker = weaken(operations, needed);
        decide(&weaker.iter().collect::<Vec<_>>(), key, initial, budget) == Searched::Illegal
    };
    // The earliest instant by which it is impossible, by halving: later operations only add to it.
    let mut by_return: Vec<usize> = (0..operations.len()).collect();
    by_return.sort_by_key(|at| operations[*at].ret);
    let (mut least, mut most) = (0, by_return.len());
    while least < most {
        let middle = least + (most - least) / 2;
        let mut window = vec![false; operations.len()];
        by_return[..middle].iter().for_each(|at| window[*at] = true);
        if still_illegal(&window) { most = middle } else { least = middle + 1 }
    }
    by_return[most..].iter().for_each(|at| needed[*at] = false);
    for at in (0..operations.len()).rev() {
        if std::mem::replace(&mut needed[at], false) && !still_illegal(&needed) {
            needed[at] = true;
        }
    }
    operations.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(operation, _)| *operation).collect()
}

/// The history in which only what is needed is certain.
fn weaken(operations: &[&Operation], needed: &[bool]) -> Vec<Operation> {
    let weaker = operations.iter().zip(needed).filter_map(|(operation, needed)| match &operation.action {
        _ if *needed => Some((*operation).clone()),
        Action::Write { key, change, result: WriteResult::Done(_) | WriteResult::Unknown } => {
            Some(Operation {
                action: Action::Write { key: *key, change: *change, result: WriteResult::Unknown },
                ret: PENDING,
                ..(*operation).clone()
            })
        }
        Action::Write { .. } | Action::Read { .. } | Action::Range(_) => None,
    });
    weaker.collect()
}
