//! What the journal says about when things began and ended.
//!
//! A journal that was cut short gives fewer boundaries; what is missing is said
//! in [`Boundaries::missing`], never guessed.

use super::EvidenceInput;
use crate::agent::log::{EVIDENCE_FILE, LogEntry, LogEvent};
use crate::agent::undo::{InjectionId, OnLapse};
use crate::clock::{BootId, MonoNs, Stamp, WallTime};
use crate::component::{ComponentId, StopMethod};
use crate::journal::entry::{DEAD_MAN, Entry, Fact, JournalEvent, Phase, RunOutcome};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// An instant that a journal entry fixes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// Wall time, for people.
    pub at: WallTime,
    /// Monotonic time.
    pub mono_ns: MonoNs,
    /// Boot of `mono_ns`.
    #[serde(skip)]
    pub boot: BootId,
    /// The line, as `journal.jsonl#17` or `agent/agent.jsonl#3` (counted from 1).
    pub line: String,
}

impl Moment {
    fn of(Stamp { at, mono_ns, boot }: Stamp, file: &str, index: usize) -> Self {
        Self { at, mono_ns, boot, line: format!("{file}#{}", index + 1) }
    }
}

/// How far an undo came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UndoCourse {
    /// The journal does not say how it ended.
    Begun {
        /// Revert, hold or roll forward.
        mode: OnLapse,
        /// Why.
        cause: String,
    },
    /// Carried out, and verified by the agent.
    Done {
        /// Revert, hold or roll forward.
        mode: OnLapse,
        /// Why.
        cause: String,
    },
    /// Something is left faulted.
    Failed {
        /// Why.
        reason: String,
    },
}

/// One injection from its arming to its verified end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultSpan {
    /// Which.
    pub injection: InjectionId,
    /// Kind of fault; empty when it was armed but never injected.
    pub kind: String,
    /// Targets.
    pub targets: Vec<ComponentId>,
    /// How components were stopped.
    pub stop_method: Option<StopMethod>,
    /// The undo was durable.
    pub armed: Option<Moment>,
    /// The effect began no earlier.
    pub injecting: Option<Moment>,
    /// The effect began no later.
    pub injected: Option<Moment>,
    /// An independent observation saw the fault.
    pub verified: Option<Moment>,
    /// What it saw.
    pub observation: Option<String>,
    /// The disturbance was taken away.
    pub ended: Option<Moment>,
    /// `step 3`, or the cause of the undo.
    pub ended_by: Option<String>,
    /// An independent observation saw that it is gone.
    pub end_verified: Option<Moment>,
    /// What it saw.
    pub end_observation: Option<String>,
    /// The undo that holds since it was amended, and why.
    pub amended: Option<(OnLapse, String)>,
    /// The last undo that was begun.
    pub undo: Option<UndoCourse>,
}

impl FaultSpan {
    pub(super) fn of(injection: &InjectionId) -> Self {
        Self {
            injection: injection.clone(),
            kind: String::new(),
            targets: Vec::new(),
            stop_method: None,
            armed: None,
            injecting: None,
            injected: None,
            verified: None,
            observation: None,
            ended: None,
            ended_by: None,
            end_verified: None,
            end_observation: None,
            amended: None,
            undo: None,
        }
    }

    fn undone(&mut self, moment: Moment) {
        let Some(UndoCourse::Begun { mode, cause }) = self.undo.take() else { return };
        if self.ended.is_none() {
            let by_step = cause.starts_with("step ");
            self.ended_by = Some(if by_step { cause.clone() } else { format!("undo ({cause})") });
            self.ended = Some(moment.clone());
            self.end_verified = Some(moment);
            self.end_observation = Some("the agent looked when it had carried out the undo".to_owned());
        }
        self.undo = Some(UndoCourse::Done { mode, cause });
    }

    /// The agent carries an undo out again when it is asked to. One that it had carried out by itself was the end
    /// already, unless something may have been injected after it.
    fn end_by_dead_man(&mut self, run: &str, log: &[LogEntry]) {
        let by_itself = matches!(&self.undo, Some(UndoCourse::Done { cause, .. }) if cause == DEAD_MAN);
        let (true, Some(injected)) = (by_itself, &self.injected) else { return };
        let is_own = |owner: &str, injection: &InjectionId| owner == run && *injection == self.injection;
        let begun = log.iter().find(|entry| {
            matches!(&entry.event, LogEvent::Undoing { run, injection, by_lapse: true } if is_own(run, injection))
        });
        let Some(begun) = begun.map(|entry| &entry.stamp) else { return };
        let done = log.iter().enumerate().find(|(_, entry)| {
            matches!(&entry.event, LogEvent::Undone { run, injection } if is_own(run, injection))
        });
        let Some((index, done)) = done else { return };
        if begun.boot != injected.boot || begun.mono_ns < injected.mono_ns {
            return;
        }
        self.ended = Some(Moment::of(done.stamp.clone(), EVIDENCE_FILE, index));
        self.end_verified.clone_from(&self.ended);
    }
}

/// A snapshot, as the step that took it established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotTaken {
    /// Name in the drill.
    pub name: String,
    /// Revision in the file.
    pub revision: u64,
    /// Keys in the file.
    pub keys: Option<u64>,
    /// The file's digest is right; `None`: it has none, or nobody looked.
    pub sha256_ok: Option<bool>,
    /// Size of the file.
    pub size_bytes: u64,
    /// The call that saved it.
    pub call_ns: MonoNs,
    /// When that returned.
    pub return_ns: MonoNs,
    /// The entry.
    pub moment: Moment,
}

/// A restore, as the step that did it established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// Snapshot name.
    pub from: String,
    /// Revisions added; absent for no bump.
    pub bump: Option<u64>,
    /// First revision that the restored store reported.
    pub revision_after: u64,
    /// The command was given.
    pub command_ns: MonoNs,
    /// The data was in place. No restored etcd can have answered before.
    pub restored_ns: MonoNs,
    /// Components restarted as part of the procedure.
    pub restarted: BTreeMap<ComponentId, StopMethod>,
    /// The entry.
    pub moment: Moment,
}

/// An `observe` step's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Index of the step.
    pub step: usize,
    /// The condition held in time.
    pub held: bool,
    /// What was seen.
    pub detail: String,
}

/// Everything that the journal fixes in time.
#[derive(Debug, Clone, Default)]
pub struct Boundaries {
    /// The boot that instants are compared on: that of the first injection, else of the first entry.
    pub boot: Option<BootId>,
    /// Injections, in order of their first entry.
    pub faults: Vec<FaultSpan>,
    /// Phases, in order.
    pub phases: Vec<(Phase, Moment)>,
    /// Snapshots, in order.
    pub snapshots: Vec<SnapshotTaken>,
    /// Revision, raft term and instant of the reading just before the loss.
    pub revision_before: Option<(u64, u64, MonoNs)>,
    /// Restores, in order.
    pub restores: Vec<Restore>,
    /// What `observe` steps saw.
    pub observed: Vec<Observed>,
    /// Steps that ended well.
    pub steps_finished: BTreeSet<usize>,
    /// Steps that failed, and why.
    pub steps_failed: Vec<(usize, String)>,
    /// Who asked the run to end.
    pub interrupted: Vec<String>,
    /// How the run ended; absent when the journal was cut.
    pub outcome: Option<(RunOutcome, Option<String>)>,
    /// Latest instant on [`Boundaries::boot`].
    pub last: Option<MonoNs>,
    /// What a complete journal would also say.
    pub missing: Vec<String>,
}

impl Boundaries {
    /// Reads the journal from its first to its last entry, and when the agent acted by itself.
    #[must_use]
    pub fn of(input: &EvidenceInput) -> Self {
        Self::of_logs(&input.journal, &input.agent)
    }

    fn of_logs(journal: &[Entry], agent: &[LogEntry]) -> Self {
        let mut all = Self {
            boot: journal
                .iter()
                .find(|e| matches!(e.event, JournalEvent::Injecting { .. }))
                .or(journal.first())
                .map(|e| e.boot.clone()),
            ..Self::default()
        };
        for (index, entry) in journal.iter().enumerate() {
            if all.boot.as_ref() == Some(&entry.boot) {
                all.last = all.last.max(Some(entry.mono_ns));
            }
            all.read(entry, Moment::of(entry.stamp(), "journal.jsonl", index));
        }
        let run = journal.iter().find_map(|entry| match &entry.event {
            JournalEvent::RunOpened { run, .. } => Some(run.as_str()),
            _ => None,
        });
        for span in &mut all.faults {
            span.end_by_dead_man(run.unwrap_or_default(), agent);
        }
        all.name_what_is_missing();
        all
    }

    fn read(&mut self, entry: &Entry, moment: Moment) {
        match &entry.event {
            JournalEvent::Phase { phase } => self.phases.push((*phase, moment)),
            JournalEvent::StepFinished { step } => {
                self.steps_finished.insert(*step);
            }
            JournalEvent::StepFailed { step, reason } => self.steps_failed.push((*step, reason.clone())),
            JournalEvent::Interrupted { by } => self.interrupted.push(by.clone()),
            JournalEvent::RunClosed { outcome, reason } => self.outcome = Some((*outcome, reason.clone())),
            JournalEvent::Fact { fact } => self.read_fact(fact, moment),
            JournalEvent::UndoArmed { .. }
            | JournalEvent::UndoAmended { .. }
            | JournalEvent::Injecting { .. }
            | JournalEvent::Injected { .. }
            | JournalEvent::InjectionVerified { .. }
            | JournalEvent::Ended { .. }
            | JournalEvent::EndVerified { .. }
            | JournalEvent::UndoStarted { .. }
            | JournalEvent::UndoFinished { .. }
            | JournalEvent::UndoFailed { .. }
            | JournalEvent::Discharged { .. } => self.read_injection(&entry.event, moment),
            // They fix nothing in time, or nothing that is judged.
            JournalEvent::RunOpened { .. }
            | JournalEvent::RunAdopted { .. }
            | JournalEvent::ClusterCreating { .. }
            | JournalEvent::SteadyState { .. }
            | JournalEvent::Bound { .. }
            | JournalEvent::StepStarted { .. }
            | JournalEvent::Mark { .. }
            | JournalEvent::HistoryAnchored { .. }
            | JournalEvent::WallClockStepped { .. }
            | JournalEvent::RenewFailed { .. }
            | JournalEvent::ClusterRemoved { .. }
            | JournalEvent::Other { .. } => {}
        }
    }

    fn read_fact(&mut self, fact: &Fact, moment: Moment) {
        match fact {
            Fact::SnapshotTaken {
                name, revision, keys, sha256_ok, size_bytes, call_ns, return_ns, ..
            } => {
                self.snapshots.push(SnapshotTaken {
                    name: name.clone(),
                    revision: *revision,
                    keys: *keys,
                    sha256_ok: *sha256_ok,
                    size_bytes: *size_bytes,
                    call_ns: *call_ns,
                    return_ns: *return_ns,
                    moment,
                });
            }
            Fact::RevisionBefore { revision, raft_term, at_ns } => {
                self.revision_before = Some((*revision, *raft_term, *at_ns));
            }
            Fact::Restored { from, bump, revision_after, command_ns, restored_ns, restarted, .. } => {
                self.restores.push(Restore {
                    from: from.clone(),
                    bump: *bump,
                    revision_after: *revision_after,
                    command_ns: *command_ns,
                    restored_ns: *restored_ns,
                    restarted: restarted.clone(),
                    moment,
                });
            }
            // For the checker of flow control, who reads them itself.
            Fact::SharesChanged { .. }
            | Fact::FlowObjects { .. }
            | Fact::FlowProbed { .. }
            | Fact::QueueFill { .. }
            | Fact::FlowMetrics { .. } => {}
            Fact::Observed { step, held, detail, .. } => {
                self.observed.push(Observed { step: *step, held: *held, detail: detail.clone() });
            }
        }
    }

    fn read_injection(&mut self, event: &JournalEvent, moment: Moment) {
        match event {
            JournalEvent::UndoArmed { undo, targets, .. } => {
                let span = self.span(&undo.injection);
                span.targets.clone_from(targets);
                span.armed = Some(moment);
            }
            JournalEvent::Injecting { injection, kind, targets, stop_method } => {
                let span = self.span(injection);
                span.kind.clone_from(kind);
                span.targets.clone_from(targets);
                span.stop_method = *stop_method;
                span.injecting = Some(moment);
            }
            JournalEvent::Injected { injection } => self.span(injection).injected = Some(moment),
            JournalEvent::InjectionVerified { injection, observation } => {
                let span = self.span(injection);
                span.verified = Some(moment);
                span.observation = Some(observation.clone());
            }
            JournalEvent::Ended { injection, by_step } => {
                let span = self.span(injection);
                span.ended = Some(moment);
                span.ended_by = Some(format!("step {by_step}"));
            }
            JournalEvent::EndVerified { injection, observation } => {
                let span = self.span(injection);
                span.end_verified = Some(moment);
                span.end_observation = Some(observation.clone());
            }
            JournalEvent::UndoAmended { undo, reason } => {
                self.span(&undo.injection).amended = Some((undo.on_lapse, reason.clone()));
            }
            JournalEvent::UndoStarted { injection, mode, cause } => {
                self.span(injection).undo = Some(UndoCourse::Begun { mode: *mode, cause: cause.clone() });
            }
            JournalEvent::UndoFinished { injection } => self.span(injection).undone(moment),
            JournalEvent::UndoFailed { injection, reason } => {
                self.span(injection).undo = Some(UndoCourse::Failed { reason: reason.clone() });
            }
            _ => {}
        }
    }

    fn span(&mut self, injection: &InjectionId) -> &mut FaultSpan {
        let index = self.faults.iter().position(|f| &f.injection == injection).unwrap_or_else(|| {
            self.faults.push(FaultSpan::of(injection));
            self.faults.len() - 1
        });
        &mut self.faults[index]
    }

    fn name_what_is_missing(&mut self) {
        let mut missing = Vec::new();
        match self.fault() {
            None => missing.push("no fault was injected".to_owned()),
            Some(fault) => {
                let id = &fault.injection;
                if fault.injected.is_none() {
                    missing.push(format!("the journal does not say that injection {id} returned"));
                }
                if fault.verified.is_none() {
                    missing.push(format!("no observation verified injection {id}"));
                }
                if fault.ended.is_none() {
                    missing.push(format!("the journal does not say that injection {id} ended"));
                } else if fault.end_verified.is_none() {
                    missing.push(format!("no observation verified the end of injection {id}"));
                }
            }
        }
        if self.phase(Phase::Collect).is_none() {
            missing.push("the run did not get to collecting its evidence".to_owned());
        }
        if self.outcome.is_none() {
            missing.push("the journal ends before the run was closed".to_owned());
        }
        self.missing = missing;
    }

    /// The first injection that was begun.
    #[must_use]
    pub fn fault(&self) -> Option<&FaultSpan> {
        self.faults.iter().find(|f| f.injecting.is_some())
    }

    /// When a phase was first entered, if on the boot that instants are compared on.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&Moment> {
        self.phases.iter().find(|(p, _)| *p == phase).map(|(_, m)| m).filter(|m| self.comparable(m))
    }

    /// Whether a moment's instant may be compared with the run's others.
    #[must_use]
    pub fn comparable(&self, moment: &Moment) -> bool {
        self.boot.as_ref() == Some(&moment.boot)
    }

    /// The end of the first fault: verified where that is known, on the same boot.
    #[must_use]
    pub fn fault_end(&self) -> Option<&Moment> {
        let fault = self.fault()?;
        fault.end_verified.as_ref().or(fault.ended.as_ref()).filter(|m| self.comparable(m))
    }

    /// The only restore of the run.
    ///
    /// # Errors
    /// When there was none or more than one: then there is no single restored timeline.
    pub fn restore(&self) -> Result<&Restore, String> {
        match self.restores.as_slice() {
            [restore] if self.comparable(&restore.moment) => Ok(restore),
            [_] => Err("the restore happened on another boot than the fault".to_owned()),
            [] => Err("the journal records no completed restore".to_owned()),
            more => Err(format!("{} restores in one run have no single restored timeline", more.len())),
        }
    }
}

/// Wall time of a monotonic instant, from the last journal entry at or before it on the given boot.
#[must_use]
pub fn wall_of(journal: &[Entry], boot: &BootId, instant: MonoNs) -> Option<WallTime> {
    let same_boot = || journal.iter().filter(|e| &e.boot == boot);
    let entry = same_boot().rfind(|e| e.mono_ns <= instant).or_else(|| same_boot().next())?;
    let base: jiff::Timestamp = entry.at.0.parse().ok()?;
    let offset = i128::from(instant.0) - i128::from(entry.mono_ns.0);
    let wall = jiff::Timestamp::from_nanosecond(base.as_nanosecond() + offset).ok()?;
    Some(WallTime(format!("{wall:.6}")))
}

#[cfg(test)]
#[path = "boundaries_tests.rs"]
mod tests;
