//! A run's histories as other checkers read them: JSON lines, one operation each.
//!
//! What is checked for linearizability is exported, as it was recorded: writes and
//! quorum reads, by epoch, and the events that tell which unknown writes took effect.
//! The first line of each epoch says with which objects it began.

use super::epochs::{Epoch, Run};
use super::model::{Action, Change, Operation, PENDING, Seen, WriteResult};
use serde::Serialize;

/// One line of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line<'a> {
    /// An epoch begins.
    Epoch {
        /// Counted from 1.
        epoch: usize,
        /// The store's revision.
        base: u64,
        /// `[id, revision]` of every object that is there.
        initial: Vec<(u64, u64)>,
    },
    /// A change of one object.
    Write {
        /// When and where.
        #[serde(flatten)]
        when: When<'a>,
        /// Ledger id.
        id: u64,
        /// `create` or `update`.
        change: &'static str,
        /// Revision that an update replaces; `null`: any.
        expected: Option<u64>,
        /// `done`, `conflict` or `unknown`.
        result: &'static str,
        /// Revision in the answer.
        revision: Option<u64>,
    },
    /// A quorum read of one object.
    Read {
        /// When and where.
        #[serde(flatten)]
        when: When<'a>,
        /// Ledger id.
        id: u64,
        /// It was there.
        found: bool,
        /// Revision of its last change.
        revision: Option<u64>,
    },
    /// A read of all objects.
    Range {
        /// When and where.
        #[serde(flatten)]
        when: When<'a>,
        /// The store's revision.
        head: u64,
        /// Revision whose state was read.
        at: u64,
        /// It promises to be linearizable.
        fresh: bool,
        /// `[id, revision of its last change]`; `null` where the answer had none.
        objects: &'a [(u64, Option<u64>)],
    },
    /// A watch saw a change.
    Event {
        /// Epoch, counted from 1.
        epoch: usize,
        /// The record.
        source: &'a str,
        /// Ledger id.
        id: u64,
        /// Revision of the change.
        revision: u64,
        /// The object was there after it.
        present: bool,
    },
}

/// When and where an operation took place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct When<'a> {
    epoch: usize,
    /// Client, by its place in the plan. Its operations may overlap.
    client: usize,
    source: &'a str,
    call_ns: u64,
    /// `null`: it may still take effect at any time.
    return_ns: Option<u64>,
}

impl<'a> When<'a> {
    fn of(epoch: &Epoch, operation: &'a Operation) -> Self {
        Self {
            epoch: epoch.number,
            client: operation.client,
            source: &operation.line,
            call_ns: operation.call,
            return_ns: Some(operation.ret).filter(|ret| *ret != PENDING),
        }
    }
}

/// Every line of a run's export, each with its newline.
#[must_use]
pub fn render(run: &Run) -> String {
    let mut out = String::new();
    let mut line = |line: &Line| {
        out.push_str(&serde_json::to_string(line).expect("numbers and plain strings"));
        out.push('\n');
    };
    for epoch in &run.epochs {
        let initial = epoch.initial.iter().map(|(id, revision)| (*id, *revision)).collect();
        line(&Line::Epoch { epoch: epoch.number, base: epoch.base, initial });
        epoch.operations.iter().for_each(|operation| line(&of_operation(epoch, operation)));
        for sighting in &epoch.sightings {
            line(&Line::Event {
                epoch: epoch.number,
                source: &sighting.line,
                id: sighting.key,
                revision: sighting.revision,
                present: sighting.present,
            });
        }
    }
    out
}

fn of_operation<'a>(epoch: &Epoch, operation: &'a Operation) -> Line<'a> {
    let when = When::of(epoch, operation);
    match &operation.action {
        Action::Write { key, change, result } => {
            let (change, expected) = match change {
                Change::Create => ("create", None),
                Change::Update(expected) => ("update", *expected),
            };
            let (result, revision) = match result {
                WriteResult::Done(revision) => ("done", *revision),
                WriteResult::Conflict => ("conflict", None),
                WriteResult::Unknown => ("unknown", None),
            };
            Line::Write { when, id: *key, change, expected, result, revision }
        }
        Action::Read { key, seen } => {
            let (found, revision) = match seen {
                Seen::Absent => (false, None),
                Seen::Present(revision) => (true, *revision),
            };
            Line::Read { when, id: *key, found, revision }
        }
        Action::Range(range) => {
            Line::Range { when, head: range.head, at: range.at, fresh: range.fresh, objects: &range.objects }
        }
    }
}
