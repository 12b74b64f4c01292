//! Compare-and-swap updates, and which timeline the state they rested on belongs to.
//!
//! A resourceVersion above the snapshot's revision names one state on the lost timeline and, once
//! the restored one has got there, another on that. An update that was accepted with one learnt on
//! the lost timeline has overwritten a state that its client never saw (ABA).

use super::Restored;
use super::clients::ClientLog;
use super::gets::Right;
use super::truth::{Side, side};
use crate::clock::MonoNs;
use crate::history::record::{Answer, Op, OpRecord, Outcome};
use std::collections::BTreeMap;

/// One update that was called, or answered, on the restored timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CasAnswer {
    /// When it was sent.
    pub call: MonoNs,
    /// When it was answered.
    pub ret: MonoNs,
    /// It was accepted.
    pub accepted: bool,
    /// Whether that was right.
    pub right: Right,
    /// The record.
    pub line: String,
}

/// Where a client got the resourceVersion that it holds of an object.
#[derive(Debug, Clone, Copy)]
struct Learnt {
    revision: u64,
    side: Side,
}

/// Every compare-and-swap update whose answer belongs to the restored timeline. Clients of that kind alone record any.
#[must_use]
pub fn updates(log: &ClientLog, restored: &Restored) -> Vec<CasAnswer> {
    let mut learnt: BTreeMap<u64, Learnt> = BTreeMap::new();
    let mut answers = Vec::new();
    for (index, op) in log.ops() {
        let side = side(restored.since, op.call_ns, op.return_ns);
        if let Op::CasUpdate { object, held, .. } = op.op
            && side != Side::Lost
        {
            answers.push(CasAnswer {
                call: op.call_ns,
                ret: op.return_ns,
                accepted: matches!(op.outcome, Outcome::Ok(_)),
                right: judge(op, held, side, learnt.get(&object).copied(), restored),
                line: log.line(index),
            });
        }
        if let Op::CasCreate { object, .. } | Op::CasUpdate { object, .. } | Op::CasRead { object } = op.op
            && let Outcome::Ok(Answer { revision: Some(revision), .. }) = op.outcome
        {
            learnt.insert(object, Learnt { revision, side });
        }
    }
    answers
}

/// The server answered: accepted, or told the client that what it holds is not what is there.
#[must_use]
pub fn is_answered(op: &OpRecord) -> bool {
    matches!(op.outcome, Outcome::Ok(_) | Outcome::Failed { status: Some(404 | 409), .. })
}

fn judge(op: &OpRecord, held: u64, at: Side, learnt: Option<Learnt>, restored: &Restored) -> Right {
    match &op.outcome {
        Outcome::Ok(_) => {}
        Outcome::Failed { status: Some(404 | 409), .. } => return Right::Yes,
        Outcome::Failed { reason, .. } => return Right::NoAnswer { refused: true, reason: reason.clone() },
        Outcome::Unknown { reason } => return Right::NoAnswer { refused: false, reason: reason.clone() },
    }
    if held <= restored.kept {
        return Right::Yes;
    }
    let Some(learnt) = learnt.filter(|learnt| learnt.revision == held) else {
        return Right::Unjudged(format!("the history does not say how the client came to hold {held}"));
    };
    match (learnt.side, at) {
        (Side::Restored, _) => Right::Yes,
        (Side::Lost, Side::Restored) => Right::No(format!(
            "an update was accepted that rested on resourceVersion {held} of the lost timeline"
        )),
        // Accepted or learnt while the restore was under way: on which side of it is not known.
        _ => Right::Unjudged("an update was under way during the restore".to_owned()),
    }
}

#[cfg(test)]
#[path = "cas_tests.rs"]
mod tests;
