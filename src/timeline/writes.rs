//! The ledger: every write that was tried, and what its writer was told.

use super::clients::ClientLog;
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{Op, Outcome};

/// What the writer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Acknowledged, at this resourceVersion where the answer had one.
    Acked(Option<u64>),
    /// Certain not to have taken effect.
    Refused,
    /// It may or may not have taken effect.
    Unknown,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Ledger id.
    pub id: u64,
    /// When it was sent.
    pub call: MonoNs,
    /// When its outcome was known.
    pub ret: MonoNs,
    /// What the writer was told.
    pub told: Told,
    /// The record.
    pub line: String,
}

/// Every write of every ledger writer, by return.
#[must_use]
pub fn writes(logs: &[ClientLog]) -> Vec<Write> {
    let mut all: Vec<Write> = logs
        .iter()
        .filter(|log| log.kind() == ClientKind::LedgerWriter)
        .flat_map(|log| {
            log.ops().filter_map(|(index, record)| {
                let Op::Create { id } = record.op else { return None };
                let told = match &record.outcome {
                    Outcome::Ok(answer) => Told::Acked(answer.revision),
                    Outcome::Failed { .. } => Told::Refused,
                    Outcome::Unknown { .. } => Told::Unknown,
                };
                Some(Write { id, call: record.call_ns, ret: record.return_ns, told, line: log.line(index) })
            })
        })
        .collect();
    all.sort_by_key(|w| (w.ret, w.call, w.id));
    all
}
