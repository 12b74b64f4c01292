//! Each injection as the timeline has it, with how far it came.

use super::build::word;
use super::model::{Fault, Instant};
use crate::timeline::EvidenceInput;
use crate::timeline::boundaries::{FaultSpan, Moment, UndoCourse};

/// Every injection that was armed, in order.
pub(super) fn of(input: &EvidenceInput, spans: &[FaultSpan]) -> Vec<Fault> {
    spans
        .iter()
        .filter(|span| span.armed.is_some())
        .map(|span| fault(span, &input.plan.cluster.name))
        .collect()
}

fn fault(span: &FaultSpan, cluster: &str) -> Fault {
    let mut fault = Fault {
        injection: span.injection.to_string(),
        kind: if span.kind.is_empty() { kind_of(span) } else { span.kind.clone() },
        cluster: cluster.to_owned(),
        target: span.targets.iter().map(ToString::to_string).collect(),
        stop_method: span.stop_method.as_ref().map(word),
        armed: instant(span.armed.as_ref()),
        injecting: instant(span.injecting.as_ref()),
        injected: instant(span.injected.as_ref()),
        verified: instant(span.verified.as_ref()),
        observation: span.observation.clone(),
        ended: instant(span.ended.as_ref()),
        ended_by: span.ended_by.clone(),
        end_verified: instant(span.end_verified.as_ref()),
        end_observation: span.end_observation.clone(),
        undo_amended: span.amended.as_ref().map(|(mode, reason)| format!("{}: {reason}", word(mode))),
        undo: span.undo.as_ref().map(undo),
        reason: None,
    };
    fault.reason = missing(&fault);
    fault
}

fn instant(moment: Option<&Moment>) -> Option<Instant> {
    moment.map(|moment| Instant { at: moment.at.clone(), mono_ns: moment.mono_ns })
}

fn undo(course: &UndoCourse) -> String {
    match course {
        UndoCourse::Begun { mode, cause } => format!("{} because of {cause}, not finished", word(mode)),
        UndoCourse::Done { mode, cause } => {
            format!("{} because of {cause}, carried out and verified", word(mode))
        }
        UndoCourse::Failed { reason } => format!("failed: {reason}"),
    }
}

/// `4-loseEtcd` is of kind `loseEtcd`, also where it was never injected.
fn kind_of(span: &FaultSpan) -> String {
    let id = &span.injection.0;
    id.split_once('-').map_or(id.as_str(), |(_, kind)| kind).to_owned()
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
