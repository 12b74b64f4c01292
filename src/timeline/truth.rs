//! etcd's own state over the restored timeline, as linearizable ranges recorded it.
//!
//! Ledger objects are created once and never changed or deleted, so the state at
//! revision `r` is every id whose mod revision is at most `r`. That holds only
//! within one timeline; every reading is therefore checked against the newest
//! one, and a contradiction makes the whole truth unusable.

use super::clients::ClientLog;
use super::writes::{Told, Write};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{Op, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// One linearizable range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// When it was sent.
    pub call: MonoNs,
    /// When it was answered.
    pub ret: MonoNs,
    /// The store's revision in the answer's header.
    pub head: u64,
    /// The revision whose state was read.
    pub revision: u64,
    /// Raft term in the header.
    pub raft_term: Option<u64>,
    /// The record.
    pub line: String,
}

/// Which part of a history lies on the restored timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Answered before a restored etcd can have run.
    Lost,
    /// Sent after the restored data was in place.
    Restored,
    /// Sent before and answered after.
    Spanning,
}

/// On which side of the restore an operation lies.
#[must_use]
pub fn side(restored: MonoNs, call: MonoNs, ret: MonoNs) -> Side {
    if ret <= restored {
        Side::Lost
    } else if call >= restored {
        Side::Restored
    } else {
        Side::Spanning
    }
}

/// etcd's state on the restored timeline.
#[derive(Debug, Clone)]
pub struct Truth {
    readings: Vec<Reading>,
    objects: BTreeMap<u64, u64>,
    revisions: Vec<u64>,
    newest: u64,
    acked: Vec<AckedRevision>,
}

/// From `at` on the store is known to have reached `revision`.
#[derive(Debug, Clone, Copy)]
struct AckedRevision {
    at: MonoNs,
    revision: u64,
}

fn never_read(since: MonoNs) -> String {
    let when = if since == MonoNs(0) { "" } else { " after the restore" };
    format!("etcd's own state was never read{when}")
}

impl Truth {
    /// The truth over a whole run that restored nothing: one timeline from its begin on.
    ///
    /// # Errors
    /// As [`Truth::since`].
    pub fn unbroken(logs: &[ClientLog], writes: &[Write]) -> Result<Self, String> {
        Self::since(MonoNs(0), logs, writes)
    }

    /// The truth since `restored`, the instant at which the restored data was in place.
    ///
    /// # Errors
    /// When no range was answered, or ranges contradict each other.
    pub fn since(restored: MonoNs, logs: &[ClientLog], writes: &[Write]) -> Result<Self, String> {
        let mut readings: Vec<(Reading, BTreeMap<u64, u64>)> = Vec::new();
        for log in logs.iter().filter(|l| l.kind() == ClientKind::EtcdTruth) {
            for (index, record) in log.ops() {
                let (Op::EtcdRange { revision: asked }, Outcome::Ok(answer)) = (&record.op, &record.outcome)
                else {
                    continue;
                };
                let (Some(head), Some(objects)) = (answer.revision, &answer.objects) else { continue };
                if answer.more || side(restored, record.call_ns, record.return_ns) != Side::Restored {
                    continue;
                }
                let reading = Reading {
                    call: record.call_ns,
                    ret: record.return_ns,
                    head,
                    revision: asked.unwrap_or(head),
                    raft_term: answer.raft_term,
                    line: log.line(index),
                };
                readings.push((reading, objects.iter().copied().collect()));
            }
        }
        let (newest, objects) = readings
            .iter()
            .max_by_key(|(r, _)| r.revision)
            .map(|(r, o)| (r.clone(), o.clone()))
            .ok_or_else(|| never_read(restored))?;
        for (reading, seen) in &readings {
            agrees(reading, seen, &newest, &objects)?;
        }
        let mut readings: Vec<Reading> = readings.into_iter().map(|(r, _)| r).collect();
        readings.sort_by_key(|r| (r.call, r.ret));
        never_goes_back(&readings)?;
        let mut revisions: Vec<u64> = objects.values().copied().collect();
        revisions.sort_unstable();
        let acked = acked_revisions(restored, writes);
        Ok(Self { readings, objects, revisions, newest: newest.revision, acked })
    }

    /// Ranges that make up the truth, by call.
    #[must_use]
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// The newest revision whose state is known.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Mod revision of an object that exists at the newest known revision.
    #[must_use]
    pub fn revision_of(&self, id: u64) -> Option<u64> {
        self.objects.get(&id).copied()
    }

    /// Every object at the newest known revision.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<u64, u64> {
        &self.objects
    }

    /// Number of objects at `revision`.
    #[must_use]
    pub fn count_at(&self, revision: u64) -> u64 {
        self.revisions.partition_point(|r| *r <= revision) as u64
    }

    /// A revision that the store had certainly reached by `instant`.
    #[must_use]
    pub fn floor_at(&self, instant: MonoNs) -> Option<u64> {
        let read = self.readings.iter().filter(|r| r.ret <= instant).map(|r| r.head).max();
        let acked = self.acked.partition_point(|a| a.at <= instant);
        read.max(acked.checked_sub(1).map(|last| self.acked[last].revision))
    }

    /// A revision that the store had certainly not exceeded at `instant`; `None`
    /// when etcd was not read after it.
    #[must_use]
    pub fn ceiling_at(&self, instant: MonoNs) -> Option<u64> {
        let next = self.readings.partition_point(|r| r.call < instant);
        self.readings[next..].iter().map(|r| r.head).min()
    }

    /// Whether etcd was read after `instant`.
    #[must_use]
    pub fn read_after(&self, instant: MonoNs) -> bool {
        self.readings.last().is_some_and(|r| r.call >= instant)
    }

    /// When the store's revision became higher than `revision`: not before the
    /// first instant, not after the second. `None` when that was not seen.
    #[must_use]
    pub fn passed(&self, revision: u64, restored: MonoNs) -> Option<(MonoNs, MonoNs)> {
        let read = self.readings.iter().filter(|r| r.head > revision).map(|r| r.ret).min();
        let acked = self.acked.iter().find(|a| a.revision > revision).map(|a| a.at);
        let upper = [read, acked].into_iter().flatten().min()?;
        let lower =
            self.readings.iter().filter(|r| r.head <= revision).map(|r| r.call).max().unwrap_or(restored);
        Some((lower.min(upper), upper))
    }

    /// The highest revision among acknowledged writes that had returned by `instant`.
    #[must_use]
    pub fn acked_by(&self, instant: MonoNs) -> Option<u64> {
        let acked = self.acked.partition_point(|a| a.at <= instant);
        acked.checked_sub(1).map(|last| self.acked[last].revision)
    }
}

/// Running maxima of revisions that were acknowledged on the restored timeline.
fn acked_revisions(restored: MonoNs, writes: &[Write]) -> Vec<AckedRevision> {
    let mut highest = 0;
    writes
        .iter()
        .filter(|w| side(restored, w.call, w.ret) == Side::Restored)
        .filter_map(|w| match w.told {
            Told::Acked(Some(revision)) => {
                highest = revision.max(highest);
                Some(AckedRevision { at: w.ret, revision: highest })
            }
            _ => None,
        })
        .collect()
}

/// A reading must be exactly the newest one's state at its revision.
fn agrees(
    reading: &Reading,
    seen: &BTreeMap<u64, u64>,
    newest: &Reading,
    objects: &BTreeMap<u64, u64>,
) -> Result<(), String> {
    let at = reading.revision;
    for (id, revision) in seen {
        if objects.get(id) != Some(revision) {
            return Err(format!(
                "readings of etcd contradict each other: object {id} at revision {revision} in {} is not so in {}",
                reading.line, newest.line
            ));
        }
        if *revision > at {
            return Err(format!(
                "{} holds object {id} of revision {revision}, later than its own",
                reading.line
            ));
        }
    }
    match objects.iter().find(|(id, revision)| **revision <= at && !seen.contains_key(id)) {
        Some((id, revision)) => Err(format!(
            "readings of etcd contradict each other: object {id} of revision {revision} in {} is absent from {} at revision {at}",
            newest.line, reading.line
        )),
        None => Ok(()),
    }
}

/// On one timeline a reading sent after another was answered can't show an older revision.
fn never_goes_back(by_call: &[Reading]) -> Result<(), String> {
    let mut by_return: Vec<&Reading> = by_call.iter().collect();
    by_return.sort_by_key(|r| r.ret);
    let mut done = 0;
    let mut highest: Option<&Reading> = None;
    for reading in by_call {
        while done < by_return.len() && by_return[done].ret <= reading.call {
            if highest.is_none_or(|h| by_return[done].head > h.head) {
                highest = Some(by_return[done]);
            }
            done += 1;
        }
        if let Some(before) = highest.filter(|h| h.head > reading.head) {
            return Err(format!(
                "etcd's revision went back after the restore: {} at {}, then {} at {}",
                before.head, before.line, reading.head, reading.line
            ));
        }
    }
    Ok(())
}

/// The highest revision that anyone saw before the loss.
#[must_use]
pub fn highest_lost_revision(restored: MonoNs, logs: &[ClientLog], read_before: Option<u64>) -> Option<u64> {
    let ops = logs.iter().filter(|l| l.kind() != ClientKind::ApiReady).flat_map(ClientLog::ops);
    let answered = ops.filter_map(|(_, op)| match &op.outcome {
        Outcome::Ok(answer) if op.return_ns <= restored => answer.revision,
        _ => None,
    });
    let delivered = logs.iter().flat_map(ClientLog::events).filter_map(|(_, e)| {
        use crate::history::record::Event;
        match e.event {
            Event::Put { revision, .. }
            | Event::Delete { revision, .. }
            | Event::Other { revision }
            | Event::Bookmark { revision, .. }
                if e.at_ns <= restored =>
            {
                Some(revision)
            }
            _ => None,
        }
    });
    answered.chain(delivered).chain(read_before).max()
}

/// How a set of ids differs from etcd's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Ids that etcd does not have.
    pub phantom: u64,
    /// Ids that etcd has and the set lacks.
    pub absent: u64,
    /// Of the absent, those created after the restore.
    pub missed: u64,
    /// The view claims a revision that etcd had not reached.
    pub ahead: bool,
}

impl Difference {
    /// The set is not etcd's state.
    #[must_use]
    pub fn is_false(&self) -> bool {
        self.phantom > 0 || self.absent > 0
    }
}

impl Truth {
    /// Holds a view against the state at its own revision. A view that claims a
    /// revision etcd had not reached is held against the newest state there was:
    /// what must be in it is what was there before the view was asked for, what
    /// may be in it is what was there after it was answered.
    ///
    /// # Errors
    /// When etcd was not read at or after the view's revision.
    pub fn compare(
        &self,
        view: &BTreeSet<u64>,
        revision: u64,
        call: MonoNs,
        ret: MonoNs,
        created_above: u64,
    ) -> Result<Difference, String> {
        let ceiling = self.ceiling_at(ret);
        let (must, may, ahead) = match ceiling {
            Some(ceiling) if revision > ceiling => {
                (self.floor_at(call).unwrap_or(created_above).min(self.newest), ceiling, true)
            }
            _ if revision <= self.newest => (revision, revision, false),
            _ => return Err(format!("etcd was not read at or after revision {revision}")),
        };
        let mut difference = Difference { ahead, ..Difference::default() };
        let (mut held, mut held_new) = (0, 0);
        for id in view {
            match self.objects.get(id) {
                Some(at) if *at <= must => {
                    held += 1;
                    held_new += u64::from(*at > created_above);
                }
                Some(at) if *at <= may => {}
                _ => difference.phantom += 1,
            }
        }
        let wanted = self.count_at(must);
        let wanted_new = wanted.saturating_sub(self.count_at(created_above));
        difference.absent = wanted - held;
        difference.missed = wanted_new - held_new;
        Ok(difference)
    }
}

#[cfg(test)]
#[path = "truth_tests.rs"]
mod tests;
