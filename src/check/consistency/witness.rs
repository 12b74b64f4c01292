//! Revisions as witness of the order: decides in O(n log n) what a search would have to try out.
//!
//! Every operation took effect at some revision. A write's and a list's is in its
//! answer; a read of one object gets the lowest at which its answer was right and
//! which is no lower than any that an earlier operation is known to have taken
//! effect at. Since all these bounds are lower ones, the lowest choice is as good
//! as any: the operations fit one order exactly if none gets stuck.

use super::epochs::Epoch;
use super::model::{Action, Change, Name, Operation, RangeRead, Seen, WriteResult, is_ledgers};
use super::versions::{Version, Versions};
use super::violation::{Rule, Violation};
use std::collections::BTreeMap;

/// Operations of an epoch that its revisions prove impossible.
#[must_use]
pub fn check(epoch: &Epoch, versions: &Versions) -> Vec<Violation> {
    let mut witness =
        Witness { epoch, versions, placed: vec![None; epoch.operations.len()], found: Vec::new() };
    witness.twice();
    witness.sweep();
    witness.found
}

/// A revision that the store had reached, and the operation that shows it.
#[derive(Debug, Clone, Copy)]
struct Floor {
    revision: u64,
    by: Option<usize>,
}

struct Witness<'a> {
    epoch: &'a Epoch,
    versions: &'a Versions,
    placed: Vec<Option<u64>>,
    found: Vec<Violation>,
}

impl Witness<'_> {
    fn twice(&mut self) {
        let mut taken: BTreeMap<u64, usize> = BTreeMap::new();
        for index in 0..self.epoch.operations.len() {
            // Also that of a write that was never answered, where somebody saw it.
            let Some(revision) = self.own_revision(index) else { continue };
            if let Some(first) = taken.insert(revision, index) {
                let what = format!("revision {revision} is that of two writes");
                self.report(Rule::RevisionUsedTwice, index, &[first], what);
            }
        }
    }

    /// Goes through the operations by call and keeps the highest revision among those that had returned.
    fn sweep(&mut self) {
        let operations = &self.epoch.operations;
        let mut by_return: Vec<usize> = (0..operations.len()).collect();
        by_return.sort_by_key(|index| operations[*index].ret);
        let mut returned = by_return.into_iter().peekable();
        let mut floor = Floor { revision: self.epoch.base, by: None };
        for index in 0..operations.len() {
            while let Some(done) = returned.next_if(|done| operations[*done].precedes(&operations[index])) {
                if let Some(revision) = self.placed[done].filter(|r| *r > floor.revision) {
                    floor = Floor { revision, by: Some(done) };
                }
            }
            self.placed[index] = self.place(index, floor);
        }
    }

    /// The revision at which an operation took effect; `None` when there is none, or it is not known.
    fn place(&mut self, index: usize, floor: Floor) -> Option<u64> {
        let operation = &self.epoch.operations[index];
        match &operation.action {
            Action::Range(range) => self.range(index, range, floor),
            Action::Write { key, .. } if self.versions.residue.contains(key) => {
                self.ordered(index, *key, floor)
            }
            // The search decides about the object.
            Action::Read { key, .. } if self.versions.residue.contains(key) => None,
            Action::Write { key, change, result: WriteResult::Conflict } => {
                self.conflict(index, *key, *change, floor)
            }
            Action::Write { key, change, .. } => self.write(index, *key, *change, floor),
            Action::Read { key, seen } => self.read(index, *key, *seen, floor),
        }
    }

    fn own_revision(&self, index: usize) -> Option<u64> {
        match self.epoch.operations[index].action {
            Action::Write { result: WriteResult::Done(Some(revision)), .. } => Some(revision),
            _ => self.versions.resolved.get(&index).copied(),
        }
    }

    /// A write's revision, if it is higher than what had been reached before.
    fn ordered(&mut self, index: usize, key: u64, floor: Floor) -> Option<u64> {
        let name = Name(key);
        // Nobody saw an unknown write's effect: that it had none explains everything.
        let revision = self.own_revision(index)?;
        if revision <= floor.revision {
            let what = format!(
                "the write of {name} took effect at revision {revision}, though {} had been reached before it was sent",
                floor.revision
            );
            self.report(Rule::RevisionOrder, index, &floor.by.into_iter().collect::<Vec<_>>(), what);
            return None;
        }
        Some(revision)
    }

    fn write(&mut self, index: usize, key: u64, change: Change, floor: Floor) -> Option<u64> {
        let name = Name(key);
        let revision = self.ordered(index, key, floor)?;
        let before = self.versions.at(key, revision - 1);
        let there = before.filter(|v| v.present);
        let holds = match change {
            Change::Create => there.is_none(),
            Change::Update(None) => there.is_some(),
            Change::Update(Some(expected)) => there.is_some_and(|v| v.revision == expected),
        };
        if !holds {
            let what = match there {
                Some(v) => format!(
                    "the write of {name} took effect at revision {revision} on a condition that revision {} contradicts",
                    v.revision
                ),
                None => format!("{name} was changed at revision {revision} without being there"),
            };
            let records = before.and_then(|v| v.written_by).into_iter().collect::<Vec<_>>();
            self.report(Rule::Condition, index, &records, what);
        }
        Some(revision)
    }

    fn conflict(&mut self, index: usize, key: u64, change: Change, floor: Floor) -> Option<u64> {
        let name = Name(key);
        let refuses = |version: Option<&Version>| {
            let there = version.filter(|v| v.present);
            match change {
                Change::Create => there.is_some(),
                Change::Update(None) => there.is_none(),
                Change::Update(Some(expected)) => there.is_none_or(|v| v.revision != expected),
            }
        };
        let placed = self.lowest(key, floor, refuses);
        if placed.is_none() {
            let what = format!("a write of {name} was refused, though its condition held");
            self.contradicted(Rule::Condition, index, key, floor, what);
        }
        placed
    }

    fn read(&mut self, index: usize, key: u64, seen: Seen, floor: Floor) -> Option<u64> {
        let name = Name(key);
        let shows = |version: Option<&Version>| match (version.filter(|v| v.present), seen) {
            (None, Seen::Absent) | (Some(_), Seen::Present(None)) => true,
            (Some(version), Seen::Present(Some(revision))) => version.revision == revision,
            _ => false,
        };
        let placed = self.lowest(key, floor, shows);
        if placed.is_none() {
            let what = match seen {
                Seen::Absent => format!("{name} was not found, though it was there"),
                Seen::Present(None) => format!("{name} was found, though it was not there"),
                Seen::Present(Some(revision)) => format!(
                    "{name} was found at revision {revision}, which was not its version when it was read"
                ),
            };
            self.contradicted(Rule::Read, index, key, floor, what);
        }
        placed
    }

    /// The lowest revision from the floor on at which the object's version is as wanted.
    fn lowest(&self, key: u64, floor: Floor, wanted: impl Fn(Option<&Version>) -> bool) -> Option<u64> {
        if wanted(self.versions.at(key, floor.revision)) {
            return Some(floor.revision);
        }
        let all = self.versions.of_key(key);
        let later = all.partition_point(|v| v.revision <= floor.revision);
        all[later..].iter().find(|v| wanted(Some(v))).map(|v| v.revision)
    }

    fn range(&mut self, index: usize, range: &RangeRead, floor: Floor) -> Option<u64> {
        if range.fresh && range.head < floor.revision {
            let what = format!(
                "a read at revision {} was sent after revision {} had been reached",
                range.head, floor.revision
            );
            self.report(Rule::RevisionOrder, index, &floor.by.into_iter().collect::<Vec<_>>(), what);
            return None;
        }
        if let Some((what, writer)) = differs(range, self.versions) {
            self.report(Rule::Range, index, &writer.into_iter().collect::<Vec<_>>(), what);
        }
        Some(range.head)
    }

    /// Reports an operation on one object beside what set the floor and what it contradicts.
    fn contradicted(&mut self, rule: Rule, index: usize, key: u64, floor: Floor, what: String) {
        let version = self.versions.at(key, floor.revision).and_then(|v| v.written_by);
        let records: Vec<usize> = [version, floor.by].into_iter().flatten().collect();
        let what = format!("{what} (revision {} had been reached before)", floor.revision);
        self.report(rule, index, &records, what);
    }

    fn report(&mut self, rule: Rule, index: usize, others: &[usize], what: String) {
        let operations = &self.epoch.operations;
        let mut all: Vec<usize> = others.iter().copied().chain([index]).collect();
        all.sort_by_key(|i| (operations[*i].call, operations[*i].ret));
        all.dedup();
        let operation: &Operation = &operations[index];
        self.found.push(Violation {
            rule,
            epoch: self.epoch.number,
            key: operation.key(),
            at: operation.dated(),
            what,
            records: all.into_iter().map(|i| operations[i].line.clone()).collect(),
        });
    }
}

/// How a read of all objects differs from the state at its revision, and the write
/// that it contradicts.
#[must_use]
pub fn differs(range: &RangeRead, versions: &Versions) -> Option<(String, Option<usize>)> {
    let judged = |key: &u64| !versions.residue.contains(key);
    let mut held = 0u64;
    for (key, seen) in range.objects.iter().filter(|(key, _)| judged(key)) {
        let version = versions.at(*key, range.at).filter(|v| v.present);
        match (version, seen) {
            (Some(version), Some(seen)) if version.revision != *seen => {
                let what = format!(
                    "the read at revision {} has object {key} at revision {seen}, it was at {}",
                    range.at, version.revision
                );
                return Some((what, version.written_by));
            }
            (Some(_), _) => held += 1,
            (None, _) => {
                let what = format!("the read at revision {} has object {key}, which was not there", range.at);
                let writer = versions.of_key(*key).iter().find_map(|v| v.written_by);
                return Some((what, writer));
            }
        }
    }
    if held == versions.count_at(range.at) {
        return None;
    }
    let (key, revision) = versions
        .state_at(range.at)
        .into_iter()
        .find(|(key, _)| judged(key) && is_ledgers(*key) && range.seen(*key) == Seen::Absent)?;
    let what =
        format!("the read at revision {} lacks object {key}, written at revision {revision}", range.at);
    Some((what, versions.at(key, range.at).and_then(|v| v.written_by)))
}
