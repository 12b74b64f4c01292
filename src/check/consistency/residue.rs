//! Objects that revisions leave open, each searched by itself.

use super::epochs::Epoch;
use super::minimise::minimise;
use super::model::{Action, Cell, Name, Operation, WriteResult, is_ledgers};
use super::search::{Interval, Searched, search};
use super::versions::Versions;
use super::violation::{Rule, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// What searching the residue of an epoch came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Residue {
    /// Objects for whose outcomes there is no order.
    pub violations: Vec<Violation>,
    /// Objects that could not be decided, with the reason.
    pub undecided: BTreeMap<u64, String>,
    /// Objects that were searched.
    pub searched: u64,
}

/// Searches every object of the residue, in the order of their ids, on one budget of explored states.
#[must_use]
pub fn check(epoch: &Epoch, versions: &Versions, budget: &mut u64) -> Residue {
    let mut residue = Residue::default();
    let mut by_key: BTreeMap<u64, Vec<&Operation>> =
        versions.residue.iter().map(|key| (*key, Vec::new())).collect();
    for operation in &epoch.operations {
        match operation.key() {
            Some(key) => by_key.entry(key).and_modify(|all| all.push(operation)),
            None => {
                by_key
                    .iter_mut()
                    .filter(|(key, _)| is_ledgers(**key))
                    .for_each(|(_, all)| all.push(operation));
                continue;
            }
        };
    }
    for (key, operations) in by_key {
        let fresh: Vec<&Operation> = operations.into_iter().filter(|o| is_linearizable(o)).collect();
        if epoch.unsure.contains(&key) {
            if fresh.iter().any(|o| o.key().is_some()) {
                let why = "how it was when the restored timeline began is not known";
                residue.undecided.insert(key, why.to_owned());
            }
            continue;
        }
        residue.searched += 1;
        let initial = epoch.initial.get(&key).map_or(Cell::absent(), |revision| Cell::at(*revision));
        match decide(&fresh, key, initial, budget) {
            Searched::Legal => {}
            Searched::Exhausted => {
                residue.undecided.insert(key, "the search's budget of explored states is used up".to_owned());
            }
            Searched::Illegal => {
                let records = minimise(&fresh, key, initial, budget);
                residue.violations.push(Violation {
                    rule: Rule::NoOrder,
                    epoch: epoch.number,
                    key: Some(key),
                    at: records.iter().map(|o| o.dated()).max().unwrap_or(0),
                    what: format!(
                        "no order of {} operations on {} explains their outcomes",
                        records.len(),
                        Name(key)
                    ),
                    records: records.into_iter().map(|o| o.line.clone()).collect(),
                });
            }
        }
    }
    residue
}

fn is_linearizable(operation: &Operation) -> bool {
    match &operation.action {
        Action::Range(range) => range.fresh && range.at == range.head,
        Action::Write { .. } | Action::Read { .. } => true,
    }
}

/// Searches an order of operations on one object.
#[must_use]
pub fn decide(operations: &[&Operation], key: u64, initial: Cell, budget: &mut u64) -> Searched {
    let intervals: Vec<Interval> =
        operations.iter().map(|o| Interval { call: o.call, ret: o.ret, optional: o.is_optional() }).collect();
    let acked: BTreeSet<u64> = operations
        .iter()
        .filter_map(|o| match o.action {
            Action::Write { result: WriteResult::Done(revision), .. } => revision,
            _ => None,
        })
        .collect();
    search(&intervals, initial, |cell: &Cell, at| cell.step(&operations[at].action, key, &acked), budget)
}
