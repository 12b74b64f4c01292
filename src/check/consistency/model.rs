//! What is checked: operations on versioned objects, and the sequential store that they must fit.
//!
//! The store is etcd's: one sequence of writes, each with a revision higher than
//! the one before. An object is absent, or present at the revision of its last
//! change. Values are unique to a write, so a revision names a value.

use std::collections::BTreeSet;
use std::fmt;

/// Keys below are ledger ids; from here on they are objects that one client alone updates.
const OWN: u64 = 1 << 62;

/// The key of an object that the client at this place of the plan compares and swaps.
#[must_use]
pub fn own_key(client: usize, object: u64) -> u64 {
    OWN | (client as u64 & 0x3fff_ffff) << 32 | object & 0xffff_ffff
}

/// The object belongs to the ledger: reads of all objects have it, and watches deliver it.
#[must_use]
pub fn is_ledgers(key: u64) -> bool {
    key < OWN
}

/// A key as people read it.
#[derive(Debug, Clone, Copy)]
pub struct Name(pub u64);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name(key) = *self;
        if is_ledgers(key) {
            return write!(f, "object {key}");
        }
        write!(f, "own object {} of client {}", key & 0xffff_ffff, key >> 32 & 0x3fff_ffff)
    }
}

/// One operation as its client recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which client, by its place in the plan.
    pub client: usize,
    /// The record: `histories/orders.jsonl#203`.
    pub line: String,
    /// Sent no earlier, monotonic nanoseconds.
    pub call: u64,
    /// Took effect no later; [`PENDING`] when nothing says so.
    pub ret: u64,
    /// What was asked and answered.
    pub action: Action,
}

/// The return of an operation that may still take effect at any time.
pub const PENDING: u64 = u64::MAX;

/// What was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A change of one object.
    Write {
        /// Ledger id, or [`own_key`].
        key: u64,
        /// What was to be changed.
        change: Change,
        /// What the writer was told.
        result: WriteResult,
    },
    /// A quorum read of one object.
    Read {
        /// Ledger id, or [`own_key`].
        key: u64,
        /// What was answered.
        seen: Seen,
    },
    /// A read of all objects of the ledger.
    Range(RangeRead),
}

/// A change of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Takes effect only if the object is absent.
    Create,
    /// Takes effect only if the object is present at this revision; `None`: at any.
    Update(Option<u64>),
}

/// What a writer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// Acknowledged, at this revision where the answer had one.
    Done(Option<u64>),
    /// The condition of the change did not hold.
    Conflict,
    /// It may or may not have taken effect, and may still do.
    Unknown,
}

/// What a read of one object was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Not there.
    Absent,
    /// There, last changed at this revision where the answer had one.
    Present(Option<u64>),
}

/// A read of all objects at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRead {
    /// The store's revision when it answered.
    pub head: u64,
    /// The revision whose state was read; not higher than `head`.
    pub at: u64,
    /// It promises to be no older than anything acknowledged before it was sent.
    pub fresh: bool,
    /// Id, and revision of the last change where the answer had it; ascending by id.
    pub objects: Vec<(u64, Option<u64>)>,
}

impl RangeRead {
    /// What it says of one object.
    #[must_use]
    pub fn seen(&self, key: u64) -> Seen {
        match self.objects.binary_search_by_key(&key, |(id, _)| *id) {
            Ok(at) => Seen::Present(self.objects[at].1),
            Err(_) => Seen::Absent,
        }
    }
}

impl Operation {
    /// The object that it is about; `None`: all of the ledger.
    #[must_use]
    pub fn key(&self) -> Option<u64> {
        match &self.action {
            Action::Write { key, .. } | Action::Read { key, .. } => Some(*key),
            Action::Range(_) => None,
        }
    }

    /// It need not have taken effect.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        matches!(self.action, Action::Write { result: WriteResult::Unknown, .. })
    }

    /// The instant that its record stands for: the return, or the call where none is known.
    #[must_use]
    pub fn dated(&self) -> u64 {
        if self.ret == PENDING { self.call } else { self.ret }
    }

    /// The operation took effect, or was answered, before `other` was sent. Equal instants prove no order.
    #[must_use]
    pub fn precedes(&self, other: &Operation) -> bool {
        self.ret < other.call
    }
}

/// One object of the sequential store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    present: bool,
    /// Whether `revision` is the very revision of the last change; else that is higher.
    exact: bool,
    revision: u64,
}

impl Cell {
    /// Not there.
    #[must_use]
    pub fn absent() -> Self {
        Self { present: false, exact: true, revision: 0 }
    }

    /// There, last changed at `revision`.
    #[must_use]
    pub fn at(revision: u64) -> Self {
        Self { present: true, exact: true, revision }
    }

    fn may_be(self, revision: u64, acked: &BTreeSet<u64>) -> bool {
        // An acknowledged revision is the version of its own write and of no other.
        match self.exact {
            true => self.revision == revision,
            false => revision > self.revision && !acked.contains(&revision),
        }
    }

    /// The object after the operation took effect; `None`: it can't have, here.
    /// `acked` holds the revisions of acknowledged writes of the object.
    #[must_use]
    pub fn step(self, action: &Action, key: u64, acked: &BTreeSet<u64>) -> Option<Self> {
        match action {
            Action::Write { change, result: WriteResult::Conflict, .. } => match change {
                Change::Create => self.present.then_some(self),
                Change::Update(None) => (!self.present).then_some(self),
                Change::Update(Some(expected)) => {
                    (!self.present || !self.exact || self.revision != *expected).then_some(self)
                }
            },
            Action::Write { change, result, .. } => {
                let before = match change {
                    Change::Create => (!self.present).then_some(self)?,
                    Change::Update(None) => self.present.then_some(self)?,
                    Change::Update(Some(expected)) => {
                        (self.present && self.may_be(*expected, acked)).then(|| Cell::at(*expected))?
                    }
                };
                match result {
                    WriteResult::Done(Some(revision)) => {
                        (*revision > before.revision).then(|| Cell::at(*revision))
                    }
                    _ => Some(Cell { present: true, exact: false, revision: before.revision }),
                }
            }
            Action::Read { seen, .. } => self.shows(*seen, acked),
            Action::Range(range) => self.shows(range.seen(key), acked),
        }
    }

    fn shows(self, seen: Seen, acked: &BTreeSet<u64>) -> Option<Self> {
        match seen {
            Seen::Absent => (!self.present).then_some(self),
            Seen::Present(None) => self.present.then_some(self),
            Seen::Present(Some(revision)) => {
                (self.present && self.may_be(revision, acked)).then(|| Cell::at(revision))
            }
        }
    }
}
