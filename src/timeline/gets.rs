//! Answers of quorum GETs, held against etcd's own state.

use super::Restored;
use super::clients::ClientLog;
use super::truth::{Side, side};
use crate::clock::MonoNs;
use crate::history::record::{Op, OpRecord, Outcome};

/// One GET on the restored timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetAnswer {
    /// Ledger id asked for.
    pub id: u64,
    /// When it was sent.
    pub call: MonoNs,
    /// When it was answered.
    pub ret: MonoNs,
    /// The object was there; `None` without an answer.
    pub found: Option<bool>,
    /// Whether that was right.
    pub right: Right,
    /// The record.
    pub line: String,
}

/// Whether an answer was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// As etcd had it.
    Yes,
    /// Not as etcd had it.
    No(String),
    /// No answer.
    NoAnswer {
        /// A definite refusal, as opposed to no answer.
        refused: bool,
        /// Short class.
        reason: String,
    },
    /// Can't be told.
    Unjudged(String),
}

/// Every GET whose answer belongs to the restored timeline. Get readers alone record any.
#[must_use]
pub fn gets(log: &ClientLog, restored: &Restored) -> Vec<GetAnswer> {
    log.ops()
        .filter(|(_, op)| side(restored.since, op.call_ns, op.return_ns) != Side::Lost)
        .filter_map(|(index, op)| {
            let Op::Get { id } = op.op else { return None };
            let found = answer(op);
            Some(GetAnswer {
                id,
                call: op.call_ns,
                ret: op.return_ns,
                found,
                right: judge(id, op, found, restored),
                line: log.line(index),
            })
        })
        .collect()
}

/// Whether a GET found its object; `None` when it was not answered.
#[must_use]
pub fn answer(op: &OpRecord) -> Option<bool> {
    match &op.outcome {
        Outcome::Ok(_) => Some(true),
        Outcome::Failed { status: Some(404), .. } => Some(false),
        _ => None,
    }
}

fn judge(id: u64, op: &OpRecord, found: Option<bool>, restored: &Restored) -> Right {
    if matches!(&op.outcome, Outcome::Ok(answer) if answer.wrong_value) {
        return Right::No(format!("object {id} was returned with a value that was never written to it"));
    }
    let unread = || Right::Unjudged("etcd was not read after this answer".to_owned());
    let Some(found) = found else {
        return match &op.outcome {
            Outcome::Unknown { reason } => Right::NoAnswer { refused: false, reason: reason.clone() },
            Outcome::Failed { reason, .. } => Right::NoAnswer { refused: true, reason: reason.clone() },
            Outcome::Ok(_) => unread(),
        };
    };
    let truth = match &restored.truth {
        Ok(truth) => truth,
        Err(reason) => return Right::Unjudged(reason.clone()),
    };
    match (found, truth.revision_of(id)) {
        (true, Some(_)) => Right::Yes,
        (true, None) if truth.read_after(op.return_ns) => {
            Right::No(format!("object {id} was returned although etcd does not have it"))
        }
        (false, None) if restored.acked_before.contains(&id) || truth.read_after(op.return_ns) => Right::Yes,
        (false, Some(revision)) => {
            let floor = truth.floor_at(op.call_ns).unwrap_or(restored.base);
            if revision <= floor {
                Right::No(format!("object {id} of revision {revision} was not found although etcd had it"))
            } else {
                Right::Unjudged(format!("object {id} was being created"))
            }
        }
        _ => unread(),
    }
}

#[cfg(test)]
#[path = "gets_tests.rs"]
mod tests;
