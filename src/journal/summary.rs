//! Where a run stands, as a pure function of its journal.
//!
//! The rule that matters most: an injection whose effect may have begun is open until an
//! undo was carried out and verified, it was discharged, or the cluster is gone. That a step
//! ended it is not enough, because the agent still holds its undo.

use super::entry::{Entry, JournalEvent, Phase, RunOutcome};
use crate::agent::undo::{InjectionId, Undo};
use crate::clock::Stamp;
use crate::component::ComponentId;
use crate::plan::Binding;

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// Run id; empty when the journal is.
    pub run: String,
    /// Drill name.
    pub drill: String,
    /// SHA-256 of `drill.yaml`.
    pub drill_digest: String,
    /// SHA-256 of `plan.json`.
    pub plan_digest: String,
    /// Version of the tool that opened the run.
    pub tool: String,
    /// Who ran it.
    pub operator: String,
    /// When the run was opened.
    pub started: Option<Stamp>,
    /// The last phase that began.
    pub phase: Option<Phase>,
    /// What the cluster was.
    pub binding: Option<Binding>,
    /// The last step that began.
    pub step: Option<StepState>,
    /// In the order in which they were armed.
    pub injections: Vec<InjectionState>,
    /// Clusters that were made for the run and not taken down yet.
    pub clusters_owed: Vec<String>,
    /// Processes that took the run over: `recover` or `abort`.
    pub adopted_by: Vec<String>,
    /// Who asked the run to end.
    pub interrupted_by: Option<String>,
    /// How and when the run ended in order.
    pub closed: Option<Closed>,
    /// Entries that break the protocol, such as an injection without an armed undo.
    pub violations: Vec<String>,
    /// Events of a newer minor format, by name.
    pub unknown_events: Vec<String>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Why, where it is not `completed`.
    pub reason: Option<String>,
    /// When.
    pub at: Stamp,
}

/// The last step that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepState {
    /// Index in the plan.
    pub index: usize,
    /// Its kind.
    pub kind: String,
    /// It ended well.
    pub finished: bool,
    /// Why it failed.
    pub failed: Option<String>,
}

/// One injection.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectionState {
    /// Which.
    pub injection: InjectionId,
    /// Kind of fault; absent until it was about to be injected.
    pub kind: Option<String>,
    /// What it hits.
    pub targets: Vec<ComponentId>,
    /// The undo that holds now; absent only when none was ever armed, which is a violation.
    pub undo: Option<Undo>,
    /// The undo was armed.
    pub armed: Option<Stamp>,
    /// The effect began no earlier.
    pub injecting: Option<Stamp>,
    /// A step took the disturbance away.
    pub ended: Option<Stamp>,
    /// An undo began.
    pub undo_started: Option<Stamp>,
    /// The last undo failed, and why.
    pub undo_failed: Option<String>,
    /// Since when nothing is owed, and why.
    pub settled: Option<(Stamp, Settled)>,
}

/// Why nothing is owed for an injection any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// An undo was carried out and verified.
    Undone,
    /// It was discharged, with the reason.
    Discharged(String),
    /// Its cluster was taken down.
    ClusterRemoved,
}

impl InjectionState {
    fn new(injection: InjectionId) -> Self {
        Self {
            injection,
            kind: None,
            targets: Vec::new(),
            undo: None,
            armed: None,
            injecting: None,
            ended: None,
            undo_started: None,
            undo_failed: None,
            settled: None,
        }
    }

    /// An undo is owed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.settled.is_none()
    }

    /// The cluster may have been disturbed.
    #[must_use]
    pub fn may_have_begun(&self) -> bool {
        self.injecting.is_some()
    }
}

impl RunSummary {
    /// Reads a journal from its start; any prefix of one gives the state at that point.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Self {
        let mut summary = Self::default();
        for entry in entries {
            summary.take(entry);
        }
        summary
    }

    /// Injections for which an undo is owed, in the order in which they were armed.
    pub fn open(&self) -> impl DoubleEndedIterator<Item = &InjectionState> {
        self.injections.iter().filter(|i| i.is_open())
    }

    /// The run ended in order and owes nothing. A cluster that outlives it was meant to: one that could
    /// not be removed makes it end as faulted.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let Some(closed) = &self.closed else { return false };
        self.open().next().is_none()
            && (self.clusters_owed.is_empty() || closed.outcome != RunOutcome::Faulted)
    }

    fn take(&mut self, entry: &Entry) {
        let now = entry.stamp();
        if self.closed.is_some()
            && !matches!(entry.event, JournalEvent::RunAdopted { .. })
            && self.adopted_by.is_empty()
        {
            self.violations.push(format!("entry {}: the run was already closed", entry.seq));
        }
        match &entry.event {
            JournalEvent::RunOpened { .. } if self.started.is_some() => {
                self.violations.push(format!("entry {}: the run was opened a second time", entry.seq));
            }
            JournalEvent::RunOpened { run, drill, drill_digest, plan_digest, tool, operator, .. } => {
                self.run.clone_from(run);
                self.drill.clone_from(drill);
                self.drill_digest.clone_from(drill_digest);
                self.plan_digest.clone_from(plan_digest);
                self.tool.clone_from(tool);
                self.operator.clone_from(operator);
                self.started = Some(now);
            }
            JournalEvent::RunAdopted { by, .. } => self.adopted_by.push(by.clone()),
            JournalEvent::Phase { phase } => self.phase = Some(*phase),
            JournalEvent::ClusterCreating { cluster } => self.clusters_owed.push(cluster.clone()),
            JournalEvent::ClusterRemoved { cluster } => self.cluster_removed(cluster, &now),
            JournalEvent::Bound { binding } => self.binding = Some((**binding).clone()),
            JournalEvent::StepStarted { step, kind } => {
                self.step =
                    Some(StepState { index: *step, kind: kind.clone(), finished: false, failed: None });
            }
            JournalEvent::StepFinished { step } => self.with_step(*step, |s| s.finished = true),
            JournalEvent::StepFailed { step, reason } => {
                self.with_step(*step, |s| s.failed = Some(reason.clone()));
            }
            JournalEvent::Interrupted { by } => {
                self.interrupted_by.get_or_insert_with(|| by.clone());
            }
            JournalEvent::RunClosed { outcome, reason } => {
                self.closed = Some(Closed { outcome: *outcome, reason: reason.clone(), at: now });
            }
            JournalEvent::Other { kind } => self.unknown_events.push(kind.clone()),
            JournalEvent::SteadyState { .. }
            | JournalEvent::Fact { .. }
            | JournalEvent::Mark { .. }
            | JournalEvent::HistoryAnchored { .. }
            | JournalEvent::WallClockStepped { .. }
            | JournalEvent::RenewFailed { .. } => {}
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
            | JournalEvent::Discharged { .. } => self.take_injection(entry.seq, &entry.event, now),
        }
    }

    fn take_injection(&mut self, seq: u64, event: &JournalEvent, now: Stamp) {
        match event {
            JournalEvent::UndoArmed { undo, targets, .. } => {
                let state = self.injection(&undo.injection);
                *state = InjectionState::new(undo.injection.clone());
                state.undo = Some(undo.clone());
                state.targets.clone_from(targets);
                state.armed = Some(now);
            }
            JournalEvent::UndoAmended { undo, .. } => {
                self.require_armed(seq, &undo.injection, "its undo was amended");
                self.injection(&undo.injection).undo = Some(undo.clone());
            }
            JournalEvent::Injecting { injection, kind, targets, .. } => {
                self.require_armed(seq, injection, "it was injected");
                let state = self.injection(injection);
                state.kind = Some(kind.clone());
                state.targets.clone_from(targets);
                state.injecting = Some(now);
                // Whatever was settled before, the effect may begin now.
                state.settled = None;
            }
            JournalEvent::Ended { injection, .. } => self.injection(injection).ended = Some(now),
            JournalEvent::UndoStarted { injection, .. } => {
                let state = self.injection(injection);
                state.undo_started = Some(now);
                state.undo_failed = None;
            }
            JournalEvent::UndoFinished { injection } => {
                let state = self.injection(injection);
                state.undo_failed = None;
                state.settled = Some((now, Settled::Undone));
            }
            JournalEvent::UndoFailed { injection, reason } => {
                self.injection(injection).undo_failed = Some(reason.clone());
            }
            JournalEvent::Discharged { injection, reason } => {
                self.injection(injection).settled = Some((now, Settled::Discharged(reason.clone())));
            }
            _ => {}
        }
    }

    /// Entries do not say which cluster an injection is on, so they are settled only when
    /// no cluster that was made for the run is left.
    fn cluster_removed(&mut self, cluster: &str, now: &Stamp) {
        self.clusters_owed.retain(|owed| owed != cluster);
        if self.clusters_owed.is_empty() {
            for injection in self.injections.iter_mut().filter(|i| i.settled.is_none()) {
                injection.settled = Some((now.clone(), Settled::ClusterRemoved));
            }
        }
    }

    fn require_armed(&mut self, seq: u64, injection: &InjectionId, what: &str) {
        let armed =
            self.injections.iter().any(|i| i.injection == *injection && i.armed.is_some() && i.is_open());
        if !armed {
            self.violations
                .push(format!("entry {seq}: injection `{injection}`: {what} without an armed undo"));
        }
    }

    fn injection(&mut self, id: &InjectionId) -> &mut InjectionState {
        let index = self.injections.iter().position(|i| i.injection == *id).unwrap_or_else(|| {
            self.injections.push(InjectionState::new(id.clone()));
            self.injections.len() - 1
        });
        &mut self.injections[index]
    }

    fn with_step(&mut self, index: usize, change: impl FnOnce(&mut StepState)) {
        if let Some(step) = self.step.as_mut().filter(|s| s.index == index) {
            change(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::undo::OnLapse;
    use crate::journal::samples;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static SAMPLE: LazyLock<Vec<Entry>> = LazyLock::new(samples::entries);

    fn position(entries: &[Entry], wanted: impl Fn(&JournalEvent) -> bool) -> usize {
        entries.iter().position(|e| wanted(&e.event)).unwrap()
    }

    #[test]
    fn every_prefix_reports_an_effect_that_may_have_begun_as_open() {
        let entries = samples::entries();
        let armed = position(&entries, |e| matches!(e, JournalEvent::UndoArmed { .. }));
        let injecting = position(&entries, |e| matches!(e, JournalEvent::Injecting { .. }));
        let amended = position(&entries, |e| matches!(e, JournalEvent::UndoAmended { .. }));
        let discharged = position(&entries, |e| matches!(e, JournalEvent::Discharged { .. }));
        let removed = position(&entries, |e| matches!(e, JournalEvent::ClusterRemoved { .. }));
        for length in 0..=entries.len() {
            let summary = RunSummary::of(&entries[..length]);
            let open: Vec<_> = summary.open().collect();
            assert_eq!(open.len(), usize::from(length > armed && length <= discharged), "prefix {length}");
            if let [open] = open[..] {
                assert_eq!(open.may_have_begun(), length > injecting);
                let wanted = if length > amended { OnLapse::RollForward } else { OnLapse::Revert };
                assert_eq!(open.undo.as_ref().unwrap().on_lapse, wanted);
            }
            assert_eq!(summary.clusters_owed.len(), usize::from(length > 1 && length <= removed));
            assert_eq!(summary.is_settled(), length == entries.len());
            assert_eq!(summary.violations, Vec::<String>::new());
        }
    }

    #[test]
    fn a_cluster_that_was_kept_is_not_owed_unless_something_is_left_faulted() {
        let mut entries = samples::entries();
        entries.remove(position(&entries, |e| matches!(e, JournalEvent::ClusterRemoved { .. })));
        assert!(RunSummary::of(&entries).is_settled());
        let closed = position(&entries, |e| matches!(e, JournalEvent::RunClosed { .. }));
        entries[closed].event = JournalEvent::RunClosed { outcome: RunOutcome::Faulted, reason: None };
        assert!(!RunSummary::of(&entries).is_settled());
        entries.truncate(closed);
        assert!(!RunSummary::of(&entries).is_settled());
    }

    #[test]
    fn a_whole_run_says_how_it_ended_and_when_it_disturbed() {
        let entries = samples::entries();
        let summary = RunSummary::of(&entries);
        let at = |wanted: fn(&JournalEvent) -> bool| entries[position(&entries, wanted)].mono_ns;
        let injection = &summary.injections[0];
        let instant = |stamp: &Option<Stamp>| stamp.as_ref().unwrap().mono_ns;
        assert_eq!(instant(&injection.injecting), at(|e| matches!(e, JournalEvent::Injecting { .. })));
        assert_eq!(instant(&injection.ended), at(|e| matches!(e, JournalEvent::Ended { .. })));
        assert_eq!(summary.closed.unwrap().outcome, RunOutcome::Completed);
    }

    #[test]
    fn an_injection_without_an_armed_undo_is_a_violation() {
        let mut entries = samples::entries();
        entries.retain(|e| !matches!(e.event, JournalEvent::UndoArmed { .. }));
        let summary = RunSummary::of(&entries);
        assert!(summary.violations[0].contains("without an armed undo"), "{:?}", summary.violations);
    }

    #[test]
    fn removing_the_cluster_settles_what_was_open_on_it() {
        let mut entries = samples::entries();
        entries.retain(|e| !matches!(e.event, JournalEvent::Discharged { .. }));
        let summary = RunSummary::of(&entries);
        assert_eq!(summary.injections[0].settled.as_ref().unwrap().1, Settled::ClusterRemoved);
    }

    proptest! {
        /// Brute force over shuffled fragments of a journal: whatever is missing or out of
        /// order, an effect that may have begun is open unless a later entry settles it.
        #[test]
        fn no_order_of_entries_hides_an_effect(picks in proptest::collection::vec(0usize..29, 0..40)) {
            let entries = &*SAMPLE;
            let mut journal = Vec::new();
            for pick in picks {
                journal.push(Entry { seq: journal.len() as u64, ..entries[pick % entries.len()].clone() });
            }
            let begun = journal.iter().rposition(|e| matches!(e.event, JournalEvent::Injecting { .. }));
            // Arming anew starts a new injection under the same id; the sample's journals never do.
            let armed_later = |from: usize| {
                journal[from..].iter().any(|e| matches!(e.event, JournalEvent::UndoArmed { .. }))
            };
            if let Some(begun) = begun {
                let settled = journal[begun..].iter().any(|e| matches!(
                    e.event,
                    JournalEvent::UndoFinished { .. }
                        | JournalEvent::Discharged { .. }
                        | JournalEvent::ClusterRemoved { .. }
                ));
                let open = RunSummary::of(&journal).open().next().is_some();
                prop_assert!(settled || open, "hidden");
                prop_assert!(!settled || !open || armed_later(begun), "never settled");
            }
        }
    }

    /// An undo that is armed for one injection says nothing for another, nor does one that was settled.
    #[test]
    fn the_undo_of_another_injection_is_no_armed_undo() {
        let entries = samples::entries();
        let armed = position(&entries, |e| matches!(e, JournalEvent::UndoArmed { .. }));
        let injecting = position(&entries, |e| matches!(e, JournalEvent::Injecting { .. }));
        let mut other = entries[..=injecting].to_vec();
        if let JournalEvent::Injecting { injection, .. } = &mut other[injecting].event {
            *injection = InjectionId("9-other".to_owned());
        }
        let summary = RunSummary::of(&other);
        assert_eq!(summary.violations.len(), 1, "{:?}", summary.violations);
        assert_eq!(summary.injections.len(), 2);
        let mut twice = entries[..=injecting].to_vec();
        let JournalEvent::UndoArmed { undo, .. } = &entries[armed].event else { unreachable!() };
        let injection = undo.injection.clone();
        let settled = JournalEvent::Discharged { injection, reason: "ended".to_owned() };
        twice.insert(injecting, Entry { event: settled, ..entries[armed].clone() });
        assert_eq!(RunSummary::of(&twice).violations.len(), 1, "it was settled before");
    }

    #[test]
    fn a_step_that_ended_or_failed_is_the_one_that_began() {
        let entry = |event| Entry { event, ..samples::entries()[0].clone() };
        let begun = entry(JournalEvent::StepStarted { step: 2, kind: "hold".to_owned() });
        let of = |event| RunSummary::of(&[begun.clone(), entry(event)]).step.unwrap();
        assert!(of(JournalEvent::StepFinished { step: 2 }).finished);
        assert!(!of(JournalEvent::StepFinished { step: 1 }).finished);
        let failed = of(JournalEvent::StepFailed { step: 2, reason: "why".to_owned() });
        assert_eq!(failed.failed.as_deref(), Some("why"));
    }

    #[test]
    fn only_who_takes_over_may_write_after_the_end() {
        let mut entries = samples::entries();
        let phase = Entry { event: JournalEvent::Phase { phase: Phase::Cleanup }, ..entries[0].clone() };
        let adopted = JournalEvent::RunAdopted { by: "recover".to_owned(), torn_bytes: 0 };
        let adopted = Entry { event: adopted, ..entries[0].clone() };
        entries.push(phase.clone());
        assert_eq!(RunSummary::of(&entries).violations.len(), 1);
        entries.pop();
        entries.extend([adopted, phase]);
        assert_eq!(RunSummary::of(&entries).violations, Vec::<String>::new());
    }

    #[test]
    fn one_cluster_of_two_that_is_removed_settles_nothing() {
        let mut entries = samples::entries();
        entries.retain(|e| !matches!(e.event, JournalEvent::Discharged { .. }));
        let creating = position(&entries, |e| matches!(e, JournalEvent::ClusterCreating { .. }));
        let other = JournalEvent::ClusterCreating { cluster: "other".to_owned() };
        entries.insert(creating, Entry { event: other, ..entries[creating].clone() });
        let summary = RunSummary::of(&entries);
        assert_eq!(summary.clusters_owed, ["other"]);
        assert!(summary.injections[0].is_open() && !summary.is_settled());
    }

    #[test]
    fn each_of_two_injections_needs_its_own_armed_undo_alone() {
        let mut entries = samples::entries();
        let armed = position(&entries, |e| matches!(e, JournalEvent::UndoArmed { .. }));
        let mut other = entries[armed].clone();
        if let JournalEvent::UndoArmed { undo, .. } = &mut other.event {
            undo.injection = InjectionId("9-other".to_owned());
        }
        entries.insert(armed, other);
        let summary = RunSummary::of(&entries);
        assert_eq!((summary.injections.len(), summary.violations), (2, Vec::new()));
    }
}
