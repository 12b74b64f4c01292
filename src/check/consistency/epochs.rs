//! A run's histories as epochs: stretches in which the store has one sequence of writes.
//!
//! A restore ends one epoch and begins another, which starts from the state at the
//! snapshot's revision. What was acknowledged after that and before the restore is
//! lost, which a restore allows; nothing else that clients see may depend on it.

use super::model::{Action, Change, Operation, PENDING, RangeRead, Seen, WriteResult, is_ledgers, own_key};
use super::versions::Versions;
use crate::check::Judge;
use crate::drill::spec::Step;
use crate::history::record::{Event, Op, OpRecord, Outcome};
use crate::timeline::Restored;
use crate::timeline::clients::{ClientLog, Listing};
use crate::timeline::truth::{Side, side};
use crate::wire::failure::FailureClass;
use std::collections::{BTreeMap, BTreeSet};

/// One epoch, ready to be checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epoch {
    /// Counted from 1.
    pub number: usize,
    /// The store's revision when it began.
    pub base: u64,
    /// Objects that were there when it began, with the revision of their last change.
    pub initial: BTreeMap<u64, u64>,
    /// Writes, and the reads that promise to be linearizable, by call.
    pub operations: Vec<Operation>,
    /// What watches saw.
    pub sightings: Vec<Sighting>,
    /// Objects of which it is not known how they were when it began.
    pub unsure: BTreeSet<u64>,
}

/// An object seen to have changed at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Ledger id.
    pub key: u64,
    /// Revision of the change.
    pub revision: u64,
    /// The object was there after it; else it was deleted.
    pub present: bool,
    /// When it was seen.
    pub at: u64,
    /// The record.
    pub line: String,
}

/// An answer with a value that was never written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongValue {
    /// The object.
    pub key: u64,
    /// When it was answered.
    pub at: u64,
    /// The record.
    pub line: String,
}

/// A run in epochs.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// In order.
    pub epochs: Vec<Epoch>,
    /// Versions of each.
    pub versions: Vec<Versions>,
    /// LISTs of restored epochs. A cache that missed the restore is judged by
    /// `noClientOnLostTimeline`; here it is only named.
    pub lists: Vec<Operation>,
    /// Reads under way during a restore, which belong to neither side.
    pub spanning: u64,
    /// Answers with a value that was never written.
    pub wrong_values: Vec<WrongValue>,
    /// From when on events are those of the second epoch, and the highest revision of the first.
    pub restored: Option<(u64, u64)>,
}

impl Run {
    /// The run's histories in epochs.
    ///
    /// # Errors
    /// When they can't be told apart, or the state that an epoch begins with is not known.
    pub fn of(judge: &Judge) -> Result<Self, String> {
        let boundaries = judge.boundaries();
        let Some(restored) = &judge.timeline.restored else {
            let planned = judge.input.plan.steps.iter().any(|s| matches!(s.step, Step::RestoreSnapshot(_)));
            return match boundaries.restore() {
                Err(_) if boundaries.restores.is_empty() && !planned => Ok(Self::single(&judge.logs)),
                Err(reason) => Err(reason),
                Ok(_) => Err("the restored timeline can't be told".to_owned()),
            };
        };
        let restore = boundaries.restore()?;
        let snapshot = boundaries
            .snapshots
            .iter()
            .rfind(|s| s.name == restore.from)
            .ok_or_else(|| format!("the journal does not tell of snapshot `{}`", restore.from))?;
        Ok(Self::split(&judge.logs, restored, snapshot.revision, snapshot.return_ns.0))
    }

    /// Without a restore there is one epoch.
    #[must_use]
    pub fn single(logs: &[ClientLog]) -> Self {
        let mut sorter = Sorter::new(None);
        logs.iter().enumerate().for_each(|(client, log)| sorter.take(client, log));
        let [operations, _] = sorter.operations;
        let mut first = Epoch { number: 1, operations, ..Epoch::default() };
        first.operations.sort_by_key(|o| (o.call, o.ret));
        first.sightings = sightings(logs, |_, _, _, _| true);
        let versions = vec![Versions::of(&first)];
        Self { epochs: vec![first], versions, wrong_values: sorter.wrong_values, ..Self::default() }
    }

    /// `kept` is the snapshot's revision, `taken` the instant at which it was saved at the latest.
    fn split(logs: &[ClientLog], restored: &Restored, kept: u64, taken: u64) -> Self {
        let since = restored.since.0;
        let lost_head = restored.lost_head.unwrap_or(kept).max(kept);
        let mut sorter = Sorter::new(Some(restored));
        logs.iter().enumerate().for_each(|(client, log)| sorter.take(client, log));
        let [mut before, mut after] = sorter.operations;
        before.sort_by_key(|o| (o.call, o.ret));
        after.sort_by_key(|o| (o.call, o.ret));
        let own = own_versions(&after);
        // Late events of the lost timeline may still be under way when the restored one has begun.
        let is_late = |at: u64, key: u64, revision: u64| {
            at <= since || revision <= lost_head && !own.contains(&(key, revision))
        };
        let mut first = Epoch { number: 1, operations: before, ..Epoch::default() };
        first.sightings = sightings(logs, |_, at, key, revision| is_late(at, key, revision));
        // What the snapshot holds was written before it, whenever it was seen.
        first.sightings.extend(kept_sightings(&after, kept));
        let versions = Versions::of(&first);
        let effective: BTreeSet<&str> =
            versions.resolved.keys().map(|at| first.operations[*at].line.as_str()).collect();
        after.retain(|o| !effective.contains(o.line.as_str()));
        let second = Epoch {
            number: 2,
            base: restored.base,
            initial: versions.state_at(kept),
            operations: after,
            sightings: sightings(logs, |_, at, key, revision| !is_late(at, key, revision)),
            unsure: unsure(&first, &versions, taken),
        };
        let versions = vec![versions, Versions::of(&second)];
        Self {
            epochs: vec![first, second],
            versions,
            lists: sorter.lists,
            spanning: sorter.spanning,
            wrong_values: sorter.wrong_values,
            restored: Some((since, lost_head)),
        }
    }

    /// The epoch that an event belongs to, by its place.
    #[must_use]
    pub fn epoch_of(&self, at: u64, key: Option<u64>, revision: u64) -> usize {
        match self.restored {
            Some((since, lost_head)) if at > since => {
                let own = key.is_some_and(|key| {
                    self.versions[1].of_key(key).iter().any(|v| v.revision == revision && !v.line.is_empty())
                });
                usize::from(own || revision > lost_head)
            }
            _ => 0,
        }
    }

    /// The epoch, counted from 1, whose store gave an answer at this instant.
    #[must_use]
    pub fn answered_in(&self, at: u64) -> usize {
        1 + usize::from(self.restored.is_some_and(|(since, _)| at > since))
    }

    /// Acknowledged writes that the restore lost.
    #[must_use]
    pub fn lost_writes(&self) -> u64 {
        let [first, second] = self.epochs.as_slice() else { return 0 };
        let kept = |key: u64| second.initial.contains_key(&key);
        let lost = first.operations.iter().filter(
            |o| matches!(&o.action, Action::Write { key, result: WriteResult::Done(_), .. } if !kept(*key)),
        );
        lost.count() as u64
    }

    /// Revisions at which both epochs have a write.
    #[must_use]
    pub fn revisions_reused(&self) -> BTreeSet<u64> {
        let [first, second] = self.versions.as_slice() else { return BTreeSet::new() };
        let before: BTreeSet<u64> = first.all().map(|(_, v)| v.revision).collect();
        let base = self.epochs[1].base;
        second.all().map(|(_, v)| v.revision).filter(|r| *r > base && before.contains(r)).collect()
    }
}

/// Versions that operations themselves prove: acknowledged, or read.
fn own_versions(operations: &[Operation]) -> BTreeSet<(u64, u64)> {
    let mut own = BTreeSet::new();
    for operation in operations {
        match &operation.action {
            Action::Write { key, result: WriteResult::Done(Some(revision)), .. } => {
                own.insert((*key, *revision));
            }
            Action::Range(range) => {
                own.extend(range.objects.iter().filter_map(|(key, revision)| Some((*key, (*revision)?))));
            }
            Action::Read { .. } | Action::Write { .. } => {}
        }
    }
    own
}

/// Objects of which it is open whether a write that the snapshot may hold took effect.
fn unsure(epoch: &Epoch, versions: &Versions, taken: u64) -> BTreeSet<u64> {
    let unseen = |o: &&Operation| {
        matches!(o.action, Action::Write { result: WriteResult::Done(None) | WriteResult::Unknown, .. })
    };
    let open = epoch.operations.iter().filter(unseen).filter(|o| o.call < taken);
    open.filter_map(Operation::key).filter(|key| versions.residue.contains(key)).collect()
}

fn kept_sightings(after: &[Operation], kept: u64) -> Vec<Sighting> {
    let mut found: BTreeMap<(u64, u64), &Operation> = BTreeMap::new();
    for operation in after {
        match &operation.action {
            Action::Range(range) => {
                for (key, revision) in &range.objects {
                    if let Some(revision) = revision.filter(|r| *r <= kept) {
                        found.entry((*key, revision)).or_insert(operation);
                    }
                }
            }
            Action::Write { key, change: Change::Update(Some(revision)), result: WriteResult::Done(_) }
            | Action::Read { key, seen: Seen::Present(Some(revision)) }
                if *revision <= kept =>
            {
                found.entry((*key, *revision)).or_insert(operation);
            }
            Action::Read { .. } | Action::Write { .. } => {}
        }
    }
    let sighting = |((key, revision), operation): ((u64, u64), &Operation)| Sighting {
        key,
        revision,
        present: true,
        at: operation.dated(),
        line: operation.line.clone(),
    };
    found.into_iter().map(sighting).collect()
}

/// Every ledger event that `wanted` accepts, by client, instant, id and revision; one per version.
fn sightings(logs: &[ClientLog], wanted: impl Fn(usize, u64, u64, u64) -> bool) -> Vec<Sighting> {
    let mut found: BTreeMap<(u64, u64), Sighting> = BTreeMap::new();
    for (client, log) in logs.iter().enumerate() {
        for (index, event) in log.events() {
            let (key, revision, present) = match event.event {
                Event::Put { id, revision } => (id, revision, true),
                Event::Delete { id, revision } => (id, revision, false),
                _ => continue,
            };
            if wanted(client, event.at_ns.0, key, revision) {
                let line = || log.line(index);
                found.entry((key, revision)).or_insert_with(|| Sighting {
                    key,
                    revision,
                    present,
                    at: event.at_ns.0,
                    line: line(),
                });
            }
        }
    }
    found.into_values().collect()
}

/// Sorts records by the side of the restore on which they lie.
struct Sorter<'a> {
    restored: Option<&'a Restored>,
    /// Before the restore, or of the only epoch, and after it.
    operations: [Vec<Operation>; 2],
    lists: Vec<Operation>,
    spanning: u64,
    wrong_values: Vec<WrongValue>,
}

impl<'a> Sorter<'a> {
    fn new(restored: Option<&'a Restored>) -> Self {
        let operations = [Vec::new(), Vec::new()];
        Self { restored, operations, lists: Vec::new(), spanning: 0, wrong_values: Vec::new() }
    }

    fn take(&mut self, client: usize, log: &ClientLog) {
        let mut unset = BTreeSet::new();
        for (index, record) in log.ops() {
            if let Op::List { list, page: 0, resource_version: None, .. } = &record.op {
                unset.insert(*list);
            }
            let Some(action) = self.action(client, log, index, record) else { continue };
            let line = log.line(index);
            let (call, ret) = (record.call_ns.0, record.return_ns.0);
            self.put(Operation { client, line, call, ret, action });
        }
        for listing in log.listings() {
            self.list(client, log, &listing, unset.contains(&listing.number));
        }
    }

    fn action(&mut self, client: usize, log: &ClientLog, index: usize, record: &OpRecord) -> Option<Action> {
        match (&record.op, &record.outcome) {
            (Op::CasCreate { object, .. }, outcome) => {
                let (key, change) = (own_key(client, *object), Change::Create);
                written(change, outcome).map(|result| Action::Write { key, change, result })
            }
            (Op::CasUpdate { object, held, .. }, outcome) => {
                let (key, change) = (own_key(client, *object), Change::Update(Some(*held)));
                written(change, outcome).map(|result| Action::Write { key, change, result })
            }
            (Op::CasRead { object }, Outcome::Ok(answer)) => {
                Some(Action::Read { key: own_key(client, *object), seen: Seen::Present(answer.revision) })
            }
            (Op::CasRead { object }, Outcome::Failed { status: Some(404), .. }) => {
                Some(Action::Read { key: own_key(client, *object), seen: Seen::Absent })
            }
            (Op::Create { id }, outcome) => {
                let (key, change) = (*id, Change::Create);
                written(change, outcome).map(|result| Action::Write { key, change, result })
            }
            (Op::Get { id }, Outcome::Ok(answer)) => {
                if answer.wrong_value {
                    let (at, line) = (record.return_ns.0, log.line(index));
                    self.wrong_values.push(WrongValue { key: *id, at, line });
                }
                Some(Action::Read { key: *id, seen: Seen::Present(answer.revision) })
            }
            (Op::Get { id }, Outcome::Failed { status: Some(404), .. }) => {
                Some(Action::Read { key: *id, seen: Seen::Absent })
            }
            (Op::EtcdRange { revision }, Outcome::Ok(answer)) if !answer.more => {
                let (head, objects) = (answer.revision?, answer.objects.as_ref()?);
                let objects = objects.iter().map(|(id, revision)| (*id, Some(*revision))).collect();
                Some(Action::Range(range(head, revision.unwrap_or(head), true, objects)))
            }
            // No answer, or one of which it is not certain what it says.
            (Op::CasRead { .. } | Op::Get { .. } | Op::EtcdRange { .. }, _) => None,
            // Put together of its pages, see `take`.
            (Op::List { .. }, _) => None,
            // Watches have a checker of their own; the others are not about objects of the ledger.
            (
                Op::Watch { .. }
                | Op::WatchList { .. }
                | Op::CreateSecret
                | Op::GetSecret
                | Op::ListSecrets
                | Op::Ready
                | Op::Lease { .. }
                | Op::EtcdLease { .. }
                | Op::Elect { .. }
                | Op::Make { .. }
                | Op::Look { .. }
                | Op::Request { .. }
                | Op::Owned { .. },
                _,
            ) => None,
        }
    }

    fn list(&mut self, client: usize, log: &ClientLog, listing: &Listing, fresh: bool) {
        let Some((revision, ids)) = listing.complete() else { return };
        let objects = ids.iter().map(|id| (*id, None)).collect();
        let operation = Operation {
            client,
            line: log.line(listing.index),
            call: listing.call.0,
            ret: listing.ret.0,
            action: Action::Range(range(revision, revision, fresh, objects)),
        };
        match self.side(&operation) {
            Side::Lost => self.operations[0].push(operation),
            Side::Restored => self.lists.push(operation),
            Side::Spanning => self.spanning += 1,
        }
    }

    fn side(&self, operation: &Operation) -> Side {
        use crate::clock::MonoNs;
        self.restored.map_or(Side::Lost, |r| side(r.since, MonoNs(operation.call), MonoNs(operation.ret)))
    }

    fn put(&mut self, mut operation: Operation) {
        let side = self.side(&operation);
        match &operation.action {
            Action::Write { key, result, .. } => {
                let (key, result) = (*key, *result);
                if result == WriteResult::Unknown {
                    operation.ret = PENDING;
                }
                match (side, result) {
                    // It may still be under way in the API server and reach the restored store.
                    (Side::Lost | Side::Spanning, WriteResult::Unknown) if self.restored.is_some() => {
                        self.operations[1].push(operation.clone());
                        self.operations[0].push(operation);
                    }
                    (Side::Spanning, _) if self.is_restored(key, result) => {
                        self.operations[1].push(operation)
                    }
                    (Side::Spanning, WriteResult::Done(_)) => {
                        operation.ret = PENDING;
                        self.operations[0].push(operation);
                    }
                    (Side::Spanning, _) => self.spanning += 1,
                    (Side::Lost, _) => self.operations[0].push(operation),
                    (Side::Restored, _) => self.operations[1].push(operation),
                }
            }
            Action::Read { .. } | Action::Range(_) => match side {
                Side::Lost => self.operations[0].push(operation),
                Side::Restored => self.operations[1].push(operation),
                Side::Spanning => self.spanning += 1,
            },
        }
    }

    /// A write that was answered after the restore took effect on the restored timeline.
    fn is_restored(&self, key: u64, result: WriteResult) -> bool {
        if !is_ledgers(key) {
            // Ranges don't tell; but the store that answered before the loss was long gone.
            return matches!(result, WriteResult::Done(_));
        }
        let WriteResult::Done(Some(revision)) = result else { return false };
        self.restored.and_then(|restored| restored.own_revision(key)) == Some(revision)
    }
}

/// What a writer was told; `None`: refused for a reason that says nothing about the object.
fn written(change: Change, outcome: &Outcome) -> Option<WriteResult> {
    match outcome {
        Outcome::Ok(answer) => Some(WriteResult::Done(answer.revision)),
        Outcome::Unknown { .. } => Some(WriteResult::Unknown),
        Outcome::Failed { reason, .. } => {
            let told: &[FailureClass] = match change {
                Change::Create => &[FailureClass::AlreadyExists],
                Change::Update(_) => &[FailureClass::Conflict, FailureClass::NotFound],
            };
            told.iter().any(|class| class.as_str() == reason).then_some(WriteResult::Conflict)
        }
    }
}

fn range(head: u64, at: u64, fresh: bool, mut objects: Vec<(u64, Option<u64>)>) -> RangeRead {
    objects.sort_unstable();
    RangeRead { head, at, fresh, objects }
}
