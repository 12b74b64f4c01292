//! The timeline of a run: marks, intervals and samples, as a pure function of
//! plan, journal and histories.

pub mod boundaries;
pub mod cas;
pub mod clients;
pub mod consumed;
pub mod gets;
pub mod lanes;
pub mod marks;
pub mod phases;
pub mod sustained;
pub mod truth;
pub mod views;
pub mod writes;

#[cfg(test)]
pub(crate) mod small;

use crate::agent::log::LogEntry;
use crate::clock::MonoNs;
use crate::history::record::Record;
use crate::journal::entry::Entry;
use crate::plan::{Binding, Plan};
use boundaries::Boundaries;
use clients::ClientLog;
use lanes::Lane;
use marks::Marks;
use std::collections::{BTreeMap, BTreeSet};
use truth::{Difference, Side, Truth, highest_lost_revision, side};
use writes::{Told, Write, writes};

/// Everything that judging may look at.
#[derive(Debug, Clone)]
pub struct EvidenceInput {
    /// What was meant to happen.
    pub plan: Plan,
    /// What the cluster was; absent when the run ended before it was bound.
    pub binding: Option<Binding>,
    /// What happened to the run.
    pub journal: Vec<Entry>,
    /// What each client saw, by client name.
    pub histories: BTreeMap<String, Vec<Record>>,
    /// What the agent wrote down; empty where its log did not come into the evidence.
    pub agent: Vec<LogEntry>,
}

/// A named instant with its uncertainty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Name, as objectives use it.
    pub name: String,
    /// Earliest.
    pub lower: MonoNs,
    /// Latest.
    pub upper: MonoNs,
    /// What it rests on.
    pub source: String,
}

/// A mark, or why there is none.
pub type Marked = Result<Mark, String>;

/// The timeline that a restore began.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The restored data was in place; nothing on this timeline is earlier.
    pub since: MonoNs,
    /// Its first revision: that of the snapshot, plus the bump.
    pub base: u64,
    /// The last revision of the lost timeline that the restored one shares: the snapshot's.
    pub kept: u64,
    /// The highest revision that anyone saw on the lost timeline.
    pub lost_head: Option<u64>,
    /// etcd's own state over it, or why that is not known.
    pub truth: Result<Truth, String>,
    /// Ids acknowledged before the restore.
    pub acked_before: BTreeSet<u64>,
    /// Ids acknowledged after it.
    pub acked_after: BTreeSet<u64>,
    /// When watchers' beliefs are looked at.
    pub looks: Vec<MonoNs>,
}

impl Restored {
    /// Whether an acknowledged write took effect on the restored timeline. One that was sent before and answered
    /// after the restore did, if etcd holds it at a revision that only this timeline has: it hung through the
    /// outage, and the restored store took it.
    #[must_use]
    pub fn has_taken(&self, write: &Write) -> bool {
        match side(self.since, write.call, write.ret) {
            Side::Lost => false,
            Side::Restored => true,
            Side::Spanning => self.own_revision(write.id).is_some(),
        }
    }

    /// The revision that this timeline, and not the snapshot, has given to an object.
    #[must_use]
    pub fn own_revision(&self, id: u64) -> Option<u64> {
        self.truth.as_ref().ok()?.revision_of(id).filter(|revision| *revision > self.base)
    }

    /// Holds a view against etcd's state, see [`Truth::compare`].
    ///
    /// # Errors
    /// When there is nothing to hold it against.
    pub fn compare(
        &self,
        ids: &BTreeSet<u64>,
        revision: u64,
        call: MonoNs,
        ret: MonoNs,
    ) -> Result<Difference, String> {
        self.truth.as_ref().map_err(Clone::clone)?.compare(ids, revision, call, ret, self.base)
    }
}

/// What marks need of a watcher's history.
#[derive(Debug, Clone)]
pub struct WatchSummary {
    /// Client name.
    pub client: String,
    /// Not before, at, and the record: the first object acknowledged after the restore.
    pub first_live: Option<(MonoNs, MonoNs, String)>,
}

/// The timeline of a run.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// What the journal fixes in time.
    pub boundaries: Boundaries,
    /// Every write of the ledger, by return.
    pub writes: Vec<Write>,
    /// The timeline after the restore; absent when there was none, or not one.
    pub restored: Option<Restored>,
    /// Each client's observations, in the plan's order.
    pub lanes: Vec<Lane>,
    /// Named instants.
    pub marks: Marks,
    /// Watchers, as marks need them.
    pub watches: Vec<WatchSummary>,
}

impl Timeline {
    /// The timeline of the evidence.
    #[must_use]
    pub fn of(input: &EvidenceInput) -> Self {
        let boundaries = Boundaries::of(input);
        let logs = ClientLog::all(input, boundaries.boot.as_ref());
        let writes = writes(&logs);
        let restored = restored(&boundaries, &logs, &writes);
        let lanes = logs.iter().map(|log| lanes::lane(log, restored.as_ref())).collect();
        let watches = restored.as_ref().map_or_else(Vec::new, |restored| {
            logs.iter()
                .filter(|log| log.kind().is_watch())
                .map(|log| WatchSummary {
                    client: log.name().to_owned(),
                    first_live: marks::first_live(log, restored),
                })
                .collect()
        });
        let mut timeline = Self { boundaries, writes, restored, lanes, marks: Marks::default(), watches };
        timeline.marks = marks::marks(&timeline, &input.plan, &input.journal);
        timeline
    }

    /// The logs that this timeline was made of.
    #[must_use]
    pub fn clients<'a>(&self, input: &'a EvidenceInput) -> Vec<ClientLog<'a>> {
        ClientLog::all(input, self.boundaries.boot.as_ref())
    }

    /// The earliest instant at which the disturbance can have been over.
    ///
    /// # Errors
    /// When the journal does not say that it ended.
    pub fn end_floor(&self) -> Result<MonoNs, String> {
        if let Some(restored) = &self.restored {
            return Ok(restored.since);
        }
        let fault = self.boundaries.fault().ok_or("no fault was injected")?;
        fault
            .ended
            .as_ref()
            .filter(|m| self.boundaries.comparable(m))
            .map(|m| m.mono_ns)
            .ok_or_else(|| "the journal does not say that the fault ended".to_owned())
    }
}

fn restored(boundaries: &Boundaries, logs: &[ClientLog], writes: &[Write]) -> Option<Restored> {
    let restore = boundaries.restore().ok()?;
    let since = restore.restored_ns;
    let snapshot = boundaries.snapshots.iter().rfind(|s| s.name == restore.from);
    let base = snapshot
        .map_or(restore.revision_after, |s| s.revision.saturating_add(restore.bump.unwrap_or(0)))
        .min(restore.revision_after);
    let acked = |wanted: Side| {
        writes
            .iter()
            .filter(|w| matches!(w.told, Told::Acked(_)) && side(since, w.call, w.ret) == wanted)
            .map(|w| w.id)
            .collect()
    };
    let truth = Truth::since(since, logs, writes);
    let mut looks: Vec<MonoNs> = truth.iter().flat_map(|t| t.readings()).map(|r| r.call).collect();
    looks.sort_unstable();
    let read_before = boundaries.revision_before.map(|(revision, _, _)| revision);
    Some(Restored {
        since,
        base,
        kept: base.saturating_sub(restore.bump.unwrap_or(0)),
        lost_head: highest_lost_revision(since, logs, read_before),
        truth,
        acked_before: acked(Side::Lost),
        acked_after: acked(Side::Restored),
        looks,
    })
}

#[cfg(test)]
#[path = "restored_tests.rs"]
mod tests;
