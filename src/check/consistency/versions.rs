//! Every version of every object of one epoch, in the order of their revisions.
//!
//! Acknowledged writes bring their own revision. A write whose outcome is unknown
//! gets one when somebody saw the object at a revision that no acknowledged write
//! accounts for; values are unique, so that is proof that it took effect.

use super::epochs::{Epoch, Sighting};
use super::model::{Action, Change, Operation, Seen, WriteResult, is_ledgers};
use std::collections::{BTreeMap, BTreeSet};

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Revision of the change.
    pub revision: u64,
    /// The object was there after it.
    pub present: bool,
    /// The operation that wrote it, by its place in [`Epoch::operations`].
    pub written_by: Option<usize>,
    /// The record that shows it; empty for what the epoch began with.
    pub line: String,
}

/// Versions of all objects of an epoch.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    by_key: BTreeMap<u64, Vec<Version>>,
    /// `(revision, objects after it)`, objects of [`Versions::residue`] not counted.
    counts: Vec<(u64, u64)>,
    /// Revision of writes without an acknowledged one, by their place in the epoch.
    pub resolved: BTreeMap<usize, u64>,
    /// Objects whose history revisions alone do not settle.
    pub residue: BTreeSet<u64>,
    /// Versions that nobody is on record to have written.
    pub strays: Vec<Sighting>,
}

impl Versions {
    /// Versions of an epoch.
    #[must_use]
    pub fn of(epoch: &Epoch) -> Self {
        let mut table: BTreeMap<u64, BTreeMap<u64, Version>> = BTreeMap::new();
        for (key, revision) in &epoch.initial {
            let version =
                Version { revision: *revision, present: true, written_by: None, line: String::new() };
            table.entry(*key).or_default().insert(*revision, version);
        }
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, operation) in epoch.operations.iter().enumerate() {
            let Action::Write { key, result, .. } = &operation.action else { continue };
            match result {
                WriteResult::Done(Some(revision)) => {
                    let version = version(*revision, Some(index), operation);
                    // Of two writes at one revision the first stands; that there are two is found elsewhere.
                    table.entry(*key).or_default().entry(*revision).or_insert(version);
                }
                WriteResult::Done(None) | WriteResult::Unknown => open.entry(*key).or_default().push(index),
                WriteResult::Conflict => {}
            }
        }
        let mut versions = Self::default();
        for (key, sightings) in unexplained(epoch, &table) {
            let candidates = open.get(&key).map_or(&[][..], Vec::as_slice);
            match (sightings.as_slice(), candidates) {
                (_, []) => versions.strays.extend(sightings),
                ([one], [writer]) if one.present => {
                    versions.resolved.insert(*writer, one.revision);
                    let version = version(one.revision, Some(*writer), &epoch.operations[*writer]);
                    table.entry(key).or_default().insert(one.revision, version);
                    open.remove(&key);
                }
                _ => {
                    versions.residue.insert(key);
                }
            }
        }
        versions.residue.extend(unsettled(epoch, &open));
        versions.residue.extend(&epoch.unsure);
        for stray in &versions.strays {
            // What was seen was there, whoever wrote it: it is reported once, not for each sight of it.
            let Sighting { revision, present, line, .. } = stray.clone();
            let version = Version { revision, present, written_by: None, line };
            table.entry(stray.key).or_default().insert(revision, version);
        }
        versions.by_key = table.into_iter().map(|(key, all)| (key, all.into_values().collect())).collect();
        versions.count();
        versions
    }

    fn count(&mut self) {
        let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
        let counted = |key: &u64| is_ledgers(*key) && !self.residue.contains(key);
        for (_, all) in self.by_key.iter().filter(|(key, _)| counted(key)) {
            let mut present = false;
            for version in all {
                *changes.entry(version.revision).or_default() +=
                    i64::from(version.present) - i64::from(present);
                present = version.present;
            }
        }
        let mut objects = 0i64;
        self.counts = changes
            .into_iter()
            .map(|(revision, change)| {
                objects += change;
                (revision, u64::try_from(objects).expect("an object goes only after it came"))
            })
            .collect();
    }

    /// Versions of an object, by revision.
    #[must_use]
    pub fn of_key(&self, key: u64) -> &[Version] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The object's version in the state at `revision`.
    #[must_use]
    pub fn at(&self, key: u64, revision: u64) -> Option<&Version> {
        let all = self.of_key(key);
        all[..all.partition_point(|v| v.revision <= revision)].last()
    }

    /// Objects of the ledger in the state at `revision`, those of the residue not counted.
    #[must_use]
    pub fn count_at(&self, revision: u64) -> u64 {
        let end = self.counts.partition_point(|(r, _)| *r <= revision);
        end.checked_sub(1).map_or(0, |last| self.counts[last].1)
    }

    /// The state at `revision`: id and revision of every object that is there.
    #[must_use]
    pub fn state_at(&self, revision: u64) -> BTreeMap<u64, u64> {
        self.by_key
            .keys()
            .filter_map(|key| self.at(*key, revision).filter(|v| v.present).map(|v| (*key, v.revision)))
            .collect()
    }

    /// Every version with its object.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Version)> {
        self.by_key.iter().flat_map(|(key, all)| all.iter().map(|v| (*key, v)))
    }
}

fn version(revision: u64, written_by: Option<usize>, operation: &Operation) -> Version {
    Version { revision, present: true, written_by, line: operation.line.clone() }
}

/// What was seen and no acknowledged write accounts for, by object, one sighting per version.
fn unexplained(epoch: &Epoch, table: &BTreeMap<u64, BTreeMap<u64, Version>>) -> BTreeMap<u64, Vec<Sighting>> {
    let mut found: BTreeMap<u64, BTreeMap<u64, Sighting>> = BTreeMap::new();
    let known = |key: u64, revision: u64, present: bool| {
        table.get(&key).and_then(|all| all.get(&revision)).is_some_and(|v| v.present == present)
    };
    let mut note = |sighting: Sighting| {
        if !known(sighting.key, sighting.revision, sighting.present) {
            found.entry(sighting.key).or_default().entry(sighting.revision).or_insert(sighting);
        }
    };
    for operation in &epoch.operations {
        let seen = |key, revision| {
            let (at, line) = (operation.dated(), operation.line.clone());
            Sighting { key, revision, present: true, at, line }
        };
        match &operation.action {
            Action::Read { key, seen: Seen::Present(Some(revision)) } => note(seen(*key, *revision)),
            Action::Range(range) => {
                for (key, revision) in &range.objects {
                    if let Some(revision) = revision
                        && !known(*key, *revision, true)
                    {
                        note(seen(*key, *revision));
                    }
                }
            }
            // What it replaced was there.
            Action::Write { key, change: Change::Update(Some(replaced)), result: WriteResult::Done(_) } => {
                note(seen(*key, *replaced));
            }
            Action::Read { .. } | Action::Write { .. } => {}
        }
    }
    epoch.sightings.iter().cloned().for_each(note);
    found.into_iter().map(|(key, all)| (key, all.into_values().collect())).collect()
}

/// Objects with a write of which neither a revision is known, nor that it plays no part.
fn unsettled(epoch: &Epoch, open: &BTreeMap<u64, Vec<usize>>) -> BTreeSet<u64> {
    let is_done = |index: &usize| {
        matches!(epoch.operations[*index].action, Action::Write { result: WriteResult::Done(_), .. })
    };
    let mut unsettled: BTreeSet<u64> =
        open.iter().filter(|(_, writers)| writers.iter().any(is_done)).map(|(key, _)| *key).collect();
    for operation in &epoch.operations {
        match &operation.action {
            // Somebody met an object that the acknowledged writes need not account for.
            Action::Read { key, seen: Seen::Present(None) } if open.contains_key(key) => {
                unsettled.insert(*key);
            }
            Action::Write { key, result: WriteResult::Conflict, .. }
            | Action::Write { key, change: Change::Update(None), .. }
                if open.contains_key(key) =>
            {
                unsettled.insert(*key);
            }
            Action::Range(range) => {
                unsettled.extend(open.keys().filter(|key| range.seen(**key) == Seen::Present(None)).copied())
            }
            _ => {}
        }
    }
    unsettled
}
