//! What a watch promises: events in order of their revisions, each once, none at or
//! below its start or a bookmark already sent, and none left out in between.
//!
//! A client's subscription goes from a list over as many streams as it takes to
//! the next list. Nothing is said about what may still have come after the last
//! event. A subscription that lives through a restore owes every event of the
//! restored timeline below the last one that it delivered.

use super::epochs::Run;
use super::model::is_ledgers;
use super::versions::Versions;
use super::violation::{Rule, Violation};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{Event, EventRecord, Op, OpRecord, Outcome, Record};
use crate::timeline::clients::ClientLog;
use crate::timeline::truth::{Side, side};
use std::collections::BTreeMap;

/// What checking the watches of a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watches {
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// Events that were held against the versions of their epoch.
    pub events: u64,
    /// Events that could not be: their subscription has no list before them, or is of an earlier epoch.
    pub unjudged: u64,
}

/// Checks every watch of the run.
#[must_use]
pub fn check(run: &Run, logs: &[ClientLog]) -> Watches {
    let orders: Vec<Vec<(u64, u64)>> = run.versions.iter().map(order).collect();
    let mut watches = Watches::default();
    for log in logs {
        let lists: BTreeMap<usize, u64> =
            log.listings().iter().filter_map(|list| Some((list.index, list.complete()?.0))).collect();
        let mut follower =
            Follower { run, orders: &orders, log, lists, position: None, watches: &mut watches };
        for (index, record) in log.records.iter().enumerate() {
            match record {
                Record::Op(op) => follower.operation(index, op),
                Record::Event(event) => follower.event(index, event),
                Record::Opened { .. } | Record::Closed { .. } => {}
            }
        }
    }
    watches
}

/// Versions that a watch owes, by revision.
fn order(versions: &Versions) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = versions
        .all()
        .filter(|(key, _)| is_ledgers(*key) && !versions.residue.contains(key))
        .map(|(key, version)| (version.revision, key))
        .collect();
    all.sort_unstable();
    all
}

/// Up to where a subscription has delivered everything.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// Place of the epoch.
    epoch: usize,
    revision: u64,
    /// Index of the record that brought the subscription here.
    by: usize,
}

struct Follower<'a> {
    run: &'a Run,
    orders: &'a [Vec<(u64, u64)>],
    log: &'a ClientLog<'a>,
    lists: BTreeMap<usize, u64>,
    position: Option<Position>,
    watches: &'a mut Watches,
}

impl Follower<'_> {
    fn operation(&mut self, index: usize, op: &OpRecord) {
        match (&op.op, &op.outcome) {
            (Op::List { .. }, Outcome::Ok(_)) => {
                // A list that is not complete yet changes nothing.
                if let Some(revision) = self.lists.get(&index).copied() {
                    self.start(index, (op.call_ns, op.return_ns), revision);
                }
            }
            (Op::EtcdRange { .. }, Outcome::Ok(answer)) => {
                if let Some(revision) = answer.revision {
                    self.start(index, (op.call_ns, op.return_ns), revision);
                }
            }
            (Op::Watch { from, .. }, Outcome::Ok(_)) => {
                let start = match self.log.kind() {
                    ClientKind::EtcdWatcher => from.saturating_sub(1),
                    _ => *from,
                };
                // A watch from 0 begins with the objects there are, in no order of revisions.
                self.position =
                    self.position.filter(|_| start > 0).map(|p| Position { revision: start, ..p });
            }
            // It begins with the objects there are, in no order of revisions, up to a bookmark.
            (Op::WatchList { .. }, Outcome::Ok(_)) => self.position = None,
            _ => {}
        }
    }

    fn start(&mut self, index: usize, (call, ret): (MonoNs, MonoNs), revision: u64) {
        let epoch = match self.run.restored {
            None => Some(0),
            Some((since, _)) => match side(MonoNs(since), call, ret) {
                Side::Lost => Some(0),
                Side::Restored => Some(1),
                Side::Spanning => None,
            },
        };
        self.position = epoch.map(|epoch| Position { epoch, revision, by: index });
    }

    fn event(&mut self, index: usize, event: &EventRecord) {
        let (key, revision) = match &event.event {
            Event::Put { id, revision } | Event::Delete { id, revision } => (Some(*id), *revision),
            Event::Bookmark { revision, initial_events_end: true } => {
                return self.start(index, (event.at_ns, event.at_ns), *revision);
            }
            Event::Other { revision } | Event::Bookmark { revision, .. } => (None, *revision),
            Event::Store { revision, .. } => {
                // A reflector's store is filled from a list of its own, which came before.
                self.position = self.position.filter(|p| revision.is_some_and(|r| r == p.revision));
                return;
            }
            Event::Error { .. }
            | Event::Ended { .. }
            | Event::Leading { .. }
            | Event::LeadingEnded { .. } => return,
        };
        let epoch = self.run.epoch_of(event.at_ns.0, key, revision);
        let Some(mut position) = self.position.filter(|p| p.epoch <= epoch) else {
            self.watches.unjudged += 1;
            return;
        };
        if position.epoch < epoch {
            position = Position { epoch, revision: self.run.epochs[epoch].base, ..position };
        }
        self.watches.events += 1;
        // Only an object of the ledger is a change of its own; a bookmark may repeat the last one.
        if revision < position.revision || key.is_some() && revision == position.revision {
            self.disorder(index, event, position, revision);
            return;
        }
        self.gap(index, event, position, revision);
        self.position = Some(Position { revision, by: index, ..position });
    }

    fn disorder(&mut self, index: usize, event: &EventRecord, position: Position, revision: u64) {
        let what = format!(
            "{} got an event of revision {revision} after it had been sent everything up to {}",
            self.log.name(),
            position.revision
        );
        let records = vec![self.log.line(position.by), self.log.line(index)];
        self.report(Rule::WatchOrder, event, position, None, what, records);
    }

    fn gap(&mut self, index: usize, event: &EventRecord, position: Position, revision: u64) {
        let order = &self.orders[position.epoch];
        let from = order.partition_point(|(r, _)| *r <= position.revision);
        let to = order.partition_point(|(r, _)| *r < revision);
        let Some(missing) = order.get(from..to) else { return };
        let [(first, key), ..] = missing else { return };
        let what = format!(
            "{} got no event for {} changes between revisions {} and {revision}, the first of object {key} at {first}",
            self.log.name(),
            missing.len(),
            position.revision
        );
        let written = self.run.versions[position.epoch].at(*key, *first).map(|v| v.line.clone());
        let mut records = vec![self.log.line(position.by)];
        records.extend(written.filter(|line| !line.is_empty()));
        records.push(self.log.line(index));
        self.report(Rule::WatchMissed, event, position, Some(*key), what, records);
    }

    fn report(
        &mut self,
        rule: Rule,
        event: &EventRecord,
        position: Position,
        key: Option<u64>,
        what: String,
        records: Vec<String>,
    ) {
        let epoch = position.epoch + 1;
        self.watches.violations.push(Violation { rule, epoch, key, at: event.at_ns.0, what, records });
    }
}
