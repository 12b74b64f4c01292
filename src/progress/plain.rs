//! Plain lines: one per thing that happens, with the time since the first event.

use super::channel::Show;
use super::event::{ClientState, EventKind, MessageLevel, ProgressEvent};
use crate::clock::MonoNs;
use crate::escape::terminal as safe;
use crate::report::figure;
use std::collections::BTreeMap;
use std::io::Write;

pub(super) struct Plain {
    /// `None` once the reader is gone: progress must not end a run.
    out: Option<Box<dyn Write + Send>>,
    started: Option<MonoNs>,
    states: BTreeMap<String, ClientState>,
    conditions: BTreeMap<String, bool>,
}

impl Plain {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: Some(out), started: None, states: BTreeMap::new(), conditions: BTreeMap::new() }
    }

    fn line(&mut self, text: &str) {
        let Some(out) = self.out.as_mut() else { return };
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            self.out = None;
        }
    }

    /// Counters alone are no news; changes of state are.
    fn is_news(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::ClientState { client, state, .. } => {
                self.states.insert(client.clone(), *state) != Some(*state)
            }
            EventKind::Condition { condition, holds, .. } => {
                self.conditions.insert(condition.clone(), *holds) != Some(*holds)
            }
            _ => true,
        }
    }
}

impl Show for Plain {
    fn event(&mut self, event: &ProgressEvent) {
        let started = *self.started.get_or_insert(event.mono_ns);
        if self.is_news(&event.kind) {
            let since = figure::duration(event.mono_ns.since(started));
            self.line(&format!("{since:>10}  {}", describe(&event.kind)));
        }
    }

    fn close(&mut self, dropped: u64) {
        if dropped > 0 {
            self.line(&format!("{dropped} progress events were not shown; the evidence is complete"));
        }
    }
}

/// One event in one line.
pub(super) fn describe(kind: &EventKind) -> String {
    let text = match kind {
        EventKind::RunOpened { run, drill, directory } => {
            format!("run {run} of {drill}, evidence in {directory}")
        }
        EventKind::PhaseChanged { phase } => format!("phase {}", phase_word(*phase)),
        EventKind::StepStarted { step, of, kind } => {
            format!("step {step}: {kind}, {} of {of}", step + 1)
        }
        EventKind::StepFinished { step, failed: None } => format!("step {step} done"),
        EventKind::StepFinished { step, failed: Some(reason) } => {
            format!("step {step} failed: {reason}")
        }
        EventKind::ClientState { client, state, last, .. } => {
            let last = last.as_deref().map(|l| format!(" ({l})")).unwrap_or_default();
            format!("client {client}: {}{last}", state.word())
        }
        EventKind::Condition { condition, holds: true, samples, needed } => {
            format!("{condition}: holds ({samples} of {needed} samples)")
        }
        EventKind::Condition { condition, holds: false, .. } => format!("{condition}: does not hold"),
        EventKind::FaultInjected { kind, targets, .. } => {
            format!("fault {kind} seen on {}", targets.join(", "))
        }
        EventKind::FaultEnded { injection, by } => format!("fault {injection} ended by {by}"),
        EventKind::Message { level, text } => match level {
            MessageLevel::Info => text.clone(),
            MessageLevel::Warning => format!("warning: {text}"),
            MessageLevel::Error => format!("error: {text}"),
        },
        EventKind::Finished { outcome, verdict, text } => {
            format!("{} ({}): {text}", figure::verdict(*verdict), outcome_word(*outcome))
        }
    };
    safe(&text).into_owned()
}

fn outcome_word(outcome: crate::journal::entry::RunOutcome) -> &'static str {
    use crate::journal::entry::RunOutcome as O;
    match outcome {
        O::Completed => "completed",
        O::Recovered => "recovered",
        O::Aborted => "aborted",
        O::Refused => "refused",
        O::Faulted => "faulted",
    }
}

/// A phase, for people.
pub(super) fn phase_word(phase: crate::journal::entry::Phase) -> &'static str {
    use crate::journal::entry::Phase as P;
    match phase {
        P::Provision => "provision",
        P::Preflight => "preflight",
        P::Baseline => "baseline",
        P::Steps => "steps",
        P::Recovery => "recovery",
        P::Collect => "collect",
        P::Cleanup => "cleanup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WallTime;
    use crate::progress::memory::Memory;

    fn client(good: u64, state: ClientState) -> EventKind {
        EventKind::ClientState {
            client: "orders\u{1b}[2J".to_owned(),
            state,
            good,
            bad: 0,
            unknown: 0,
            last: None,
        }
    }

    #[test]
    fn lines_appear_for_changes_only_and_are_harmless() {
        let out = Memory::default();
        let mut plain = Plain::new(Box::new(out.clone()));
        for (ns, kind) in [
            (1_000_000_000, client(1, ClientState::Good)),
            (2_000_000_000, client(2, ClientState::Good)),
            (3_500_000_000, client(2, ClientState::Bad)),
        ] {
            plain.event(&ProgressEvent { at: WallTime(String::new()), mono_ns: MonoNs(ns), kind });
        }
        plain.close(0);
        let text = out.text();
        assert_eq!(
            text,
            "   0.000 s  client orders\\u{1b}[2J: good\n   2.500 s  client orders\\u{1b}[2J: bad\n"
        );
    }
}
