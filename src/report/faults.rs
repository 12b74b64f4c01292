//! Follows each injection through the journal.

use super::build::{instant, word};
use super::model::Fault;
use crate::agent::undo::InjectionId;
use crate::journal::entry::JournalEvent;
use crate::timeline::EvidenceInput;

/// Every injection that was armed, in order, with how far it came.
pub(super) fn of(input: &EvidenceInput) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for entry in &input.journal {
        let at = || Some(instant(entry));
        match &entry.event {
            JournalEvent::UndoArmed { undo, targets, .. } => faults.push(Fault {
                injection: undo.injection.to_string(),
                kind: kind_of(&undo.injection),
                cluster: input.plan.cluster.name.clone(),
                target: targets.iter().map(ToString::to_string).collect(),
                armed: at(),
                ..Fault::default()
            }),
            JournalEvent::Injecting { injection, kind, stop_method, .. } => {
                edit(&mut faults, injection, |f| {
                    f.kind.clone_from(kind);
                    f.stop_method = stop_method.as_ref().map(word);
                    f.injecting = at();
                });
            }
            JournalEvent::Injected { injection } => edit(&mut faults, injection, |f| f.injected = at()),
            JournalEvent::InjectionVerified { injection, observation } => {
                edit(&mut faults, injection, |f| {
                    f.verified = at();
                    f.observation = Some(observation.clone());
                });
            }
            JournalEvent::Ended { injection, by_step } => edit(&mut faults, injection, |f| {
                f.ended = at();
                f.ended_by = Some(format!("step {by_step}"));
            }),
            JournalEvent::EndVerified { injection, observation } => edit(&mut faults, injection, |f| {
                f.end_verified = at();
                f.end_observation = Some(observation.clone());
            }),
            JournalEvent::UndoAmended { undo, reason } => edit(&mut faults, &undo.injection, |f| {
                f.undo_amended = Some(format!("{}: {reason}", word(&undo.on_lapse)));
            }),
            JournalEvent::UndoStarted { injection, mode, cause } => edit(&mut faults, injection, |f| {
                f.undo = Some(format!("{} because of {cause}, not finished", word(mode)));
            }),
            JournalEvent::UndoFinished { injection } => edit(&mut faults, injection, |f| {
                let undo = f.undo.take().unwrap_or_default().replace(", not finished", "");
                if f.ended.is_none() {
                    f.ended = at();
                    f.ended_by = Some(format!("undo: {undo}"));
                }
                f.undo = Some(format!("{undo}, carried out and verified"));
            }),
            JournalEvent::UndoFailed { injection, reason } => edit(&mut faults, injection, |f| {
                f.undo = Some(format!("failed: {reason}"));
            }),
            _ => {}
        }
    }
    for fault in &mut faults {
        fault.reason = missing(fault);
    }
    faults
}

fn edit(faults: &mut [Fault], injection: &InjectionId, change: impl FnOnce(&mut Fault)) {
    if let Some(fault) = faults.iter_mut().rev().find(|f| f.injection == injection.0) {
        change(fault);
    }
}

/// `4-loseEtcd` is of kind `loseEtcd`.
fn kind_of(injection: &InjectionId) -> String {
    injection.0.split_once('-').map_or(injection.0.as_str(), |(_, kind)| kind).to_owned()
}

fn missing(fault: &Fault) -> Option<String> {
    let text = if fault.injecting.is_none() {
        "armed, then the run ended before anything was injected"
    } else if fault.injected.is_none() {
        "the run ended while it was being injected"
    } else if fault.verified.is_none() {
        "no independent observation saw the fault"
    } else if fault.ended.is_none() {
        "nothing in the journal ended it"
    } else if fault.end_verified.is_none() {
        "no independent observation saw that it was gone"
    } else {
        return None;
    };
    Some(text.to_owned())
}
