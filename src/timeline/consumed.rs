//! Objects that the cluster's own consumers have to act upon: what became of each.

use super::clients::ClientLog;
use super::lanes::STOPPED;
use super::sustained::{Sample, State};
use crate::clock::MonoNs;
use crate::history::record::{Answer, Op, OpRecord, Outcome};
use std::collections::BTreeMap;

/// An object for which nothing was done is no sign of anything within this time, nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// An observation with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Begin.
    pub call: MonoNs,
    /// End.
    pub ret: MonoNs,
    /// The record.
    pub line: String,
}

/// One object of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its creation was acknowledged.
    pub made: Look,
    /// The first look that found it acted upon.
    pub acted: Option<Look>,
    /// The first look after which it was not there any more.
    pub gone: Option<Look>,
    /// The last look that found it there.
    pub there: Option<Look>,
    /// Looks that found what was made for it while it was itself gone.
    pub acted_while_gone: Vec<Look>,
}

/// Every object whose creation was acknowledged, by its number.
#[must_use]
pub fn items(log: &ClientLog) -> BTreeMap<u64, Item> {
    let mut items: BTreeMap<u64, Item> = BTreeMap::new();
    let mut uids: BTreeMap<u64, &str> = BTreeMap::new();
    for (index, op) in log.ops() {
        let look = Look { call: op.call_ns, ret: op.return_ns, line: log.line(index) };
        match (&op.op, &op.outcome) {
            (Op::Make { id, .. }, Outcome::Ok(answer)) => {
                uids.extend(answer.uid.as_deref().map(|uid| (*id, uid)));
                let (acted, gone, there) = (None, None, None);
                items.insert(*id, Item { made: look, acted, gone, there, acted_while_gone: Vec::new() });
            }
            (Op::Look { id, .. } | Op::Owned { id, .. }, outcome) => {
                let Some(item) = items.get_mut(id) else { continue };
                take(item, &op.op, outcome, uids.get(id).copied(), look);
            }
            _ => {}
        }
    }
    items
}

fn take(item: &mut Item, op: &Op, outcome: &Outcome, uid: Option<&str>, look: Look) {
    match (op, outcome) {
        (Op::Look { .. }, Outcome::Failed { status: Some(404), .. }) => {
            item.gone.get_or_insert(look);
        }
        (Op::Look { .. }, Outcome::Ok(answer)) if answer.uid.as_deref() != uid => {
            item.gone.get_or_insert(look);
        }
        (_, Outcome::Ok(answer)) => {
            let owned = matches!(op, Op::Owned { .. });
            if answer.acted == Some(true) {
                if item.gone.is_some() && owned {
                    item.acted_while_gone.push(look.clone());
                } else {
                    item.acted.get_or_insert(look.clone());
                }
            }
            if !owned {
                item.there = Some(look);
            }
        }
        _ => {}
    }
}

/// Whether the consumer works, by every record that says so: an object that was acted
/// upon is good; one that waits for longer than [`PATIENCE_NS`], and whatever was refused, is bad.
#[must_use]
pub fn samples(log: &ClientLog) -> Vec<Sample> {
    let items = items(log);
    log.ops()
        .filter_map(|(index, op)| {
            let state = state(op, &items)?;
            Some(Sample { call: op.call_ns, ret: op.return_ns, state, line: Some(log.line(index)) })
        })
        .collect()
}

fn state(op: &OpRecord, items: &BTreeMap<u64, Item>) -> Option<State> {
    match (&op.op, &op.outcome) {
        (_, Outcome::Unknown { reason }) if reason == STOPPED => None,
        // Whether it should be there is not this lane's question.
        (Op::Look { .. } | Op::Owned { .. }, Outcome::Failed { status: Some(404), .. }) => None,
        (_, Outcome::Failed { reason, .. }) => Some(State::Bad(reason.clone())),
        (_, Outcome::Unknown { reason }) => Some(State::Unknown(reason.clone())),
        (Op::Look { id, .. } | Op::Owned { id, .. }, Outcome::Ok(answer)) => {
            let item = items.get(id)?;
            acted(op, answer, item)
        }
        _ => None,
    }
}

fn acted(op: &OpRecord, answer: &Answer, item: &Item) -> Option<State> {
    if item.acted.as_ref().is_some_and(|acted| acted.call == op.call_ns) {
        return Some(State::Good);
    }
    let waited = op.call_ns.since(item.made.ret);
    let waits = answer.acted == Some(false) && waited > PATIENCE_NS;
    waits.then(|| State::Bad(format!("nothing was done about it for {} s", waited / 1_000_000_000)))
}

#[cfg(test)]
#[path = "consumed_tests.rs"]
mod tests;
