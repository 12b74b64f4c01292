//! Turns what the dispatcher does into progress events.

use super::{ClientState, EventKind, Handle, MessageLevel};
use crate::client::context::{ClientSignal, Sample};
use crate::dispatch::dispatcher::Watcher;
use crate::dispatch::observations::Observations;
use crate::journal::entry::{Entry, JournalEvent};
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A client whose state does not change is shown again after this time.
const REPEAT_NS: u64 = 1_000_000_000;

/// Feeds a display from journal entries and client signals.
pub struct Feed {
    handle: Handle,
    directory: String,
    steps: usize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    observations: Observations,
    shown: BTreeMap<String, (ClientState, u64)>,
    injected: BTreeMap<String, (String, Vec<String>)>,
}

impl Feed {
    /// A feed for a run of `plan` whose evidence goes to `directory`.
    #[must_use]
    pub fn new(handle: Handle, plan: &Plan, directory: String) -> Self {
        Self { handle, directory, steps: plan.steps.len(), seen: Mutex::default() }
    }

    /// Sends an event that comes from neither journal nor client.
    pub fn send(&self, kind: EventKind) {
        self.handle.send(kind);
    }

    fn of_entry(&self, event: &JournalEvent) -> Option<EventKind> {
        Some(match event {
            JournalEvent::RunOpened { run, drill, .. } => EventKind::RunOpened {
                run: run.clone(),
                drill: drill.clone(),
                directory: self.directory.clone(),
            },
            JournalEvent::RunAdopted { by, .. } => note(format!("the run is ended by `{by}`")),
            JournalEvent::Phase { phase } => EventKind::PhaseChanged { phase: *phase },
            JournalEvent::StepStarted { step, kind } => {
                EventKind::StepStarted { step: *step, of: self.steps, kind: kind.clone() }
            }
            JournalEvent::StepFinished { step } => EventKind::StepFinished { step: *step, failed: None },
            JournalEvent::StepFailed { step, reason } => {
                EventKind::StepFinished { step: *step, failed: Some(reason.clone()) }
            }
            JournalEvent::InjectionVerified { injection, .. } => EventKind::FaultInjected {
                injection: injection.to_string(),
                kind: self.injected(&injection.0).0,
                targets: self.injected(&injection.0).1,
            },
            JournalEvent::EndVerified { injection, .. } => {
                EventKind::FaultEnded { injection: injection.to_string(), by: "step".to_owned() }
            }
            JournalEvent::UndoFinished { injection } => {
                EventKind::FaultEnded { injection: injection.to_string(), by: "undo".to_owned() }
            }
            JournalEvent::SteadyState { condition, held, detail } => {
                note(format!("{condition}: {}: {detail}", if *held { "holds" } else { "does not hold" }))
            }
            JournalEvent::UndoFailed { injection, reason } => {
                alarm(format!("undo of {injection} failed: {reason}"))
            }
            JournalEvent::RenewFailed { reason } => {
                alarm(format!("the dead-man's lease could not be renewed: {reason}"))
            }
            JournalEvent::Interrupted { by } => note(format!("interrupted by {by}")),
            // Shown by another event of the same thing, or for the evidence alone.
            JournalEvent::ClusterCreating { .. }
            | JournalEvent::Bound { .. }
            | JournalEvent::UndoArmed { .. }
            | JournalEvent::UndoAmended { .. }
            | JournalEvent::Injecting { .. }
            | JournalEvent::Injected { .. }
            | JournalEvent::Ended { .. }
            | JournalEvent::UndoStarted { .. }
            | JournalEvent::Discharged { .. }
            | JournalEvent::Fact { .. }
            | JournalEvent::Mark { .. }
            | JournalEvent::HistoryAnchored { .. }
            | JournalEvent::WallClockStepped { .. }
            | JournalEvent::ClusterRemoved { .. }
            | JournalEvent::RunClosed { .. }
            | JournalEvent::Other { .. } => return None,
        })
    }

    /// Kind and targets of an injection.
    fn injected(&self, injection: &str) -> (String, Vec<String>) {
        let seen = self.seen.lock().expect("no panic while held");
        seen.injected.get(injection).cloned().unwrap_or_default()
    }
}

fn note(text: String) -> EventKind {
    EventKind::Message { level: MessageLevel::Info, text }
}

fn alarm(text: String) -> EventKind {
    EventKind::Message { level: MessageLevel::Error, text }
}

impl Watcher for Feed {
    fn entry(&self, entry: &Entry) {
        if let JournalEvent::Injecting { injection, kind, targets, .. } = &entry.event {
            let targets = targets.iter().map(ToString::to_string).collect();
            let mut seen = self.seen.lock().expect("no panic while held");
            seen.injected.insert(injection.0.clone(), (kind.clone(), targets));
        }
        if let Some(event) = self.of_entry(&entry.event) {
            self.handle.send(event);
        }
    }

    fn signal(&self, signal: &ClientSignal) {
        let (state, last) = match &signal.sample {
            Sample::Ok => (ClientState::Good, None),
            Sample::Failed(why) => (ClientState::Bad, Some(why.clone())),
            Sample::Unknown(why) => (ClientState::Unknown, Some(why.clone())),
        };
        let mut seen = self.seen.lock().expect("no panic while held");
        seen.observations.take(signal);
        let now = signal.returned.0;
        let shown = seen.shown.get(&signal.client);
        if shown.is_some_and(|(was, at)| *was == state && now.saturating_sub(*at) < REPEAT_NS) {
            return;
        }
        seen.shown.insert(signal.client.clone(), (state, now));
        let Some(sums) = seen.observations.of(&signal.client) else { return };
        let (good, bad, unknown) = (sums.good, sums.bad, sums.unknown);
        self.handle.send(EventKind::ClientState {
            client: signal.client.clone(),
            state,
            good,
            bad,
            unknown,
            last,
        });
    }

    fn note(&self, text: &str) {
        self.handle.send(note(text.to_owned()));
    }
}
