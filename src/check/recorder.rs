//! The recorders' own account of what they lost.

use crate::history::record::Record;
use crate::timeline::clients::ClientLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples of all histories: `scheduled = recorded + late + lost`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecorderAccount {
    /// Operations that were due.
    pub scheduled: Option<u64>,
    /// Sent in time and recorded.
    pub recorded: Option<u64>,
    /// Recorded, but sent later than one interval after they were due.
    pub late: Option<u64>,
    /// Due, but never sent.
    pub lost: Option<u64>,
    /// Why the figures are unknown.
    pub reason: Option<String>,
}

/// Adds up the accounts that the histories close with.
#[must_use]
pub fn account(logs: &[ClientLog]) -> RecorderAccount {
    let mut sum = (0u64, 0u64, 0u64);
    for log in logs {
        if let Some(reason) = log.incomplete() {
            return RecorderAccount { reason: Some(reason), ..RecorderAccount::default() };
        }
        for record in log.records {
            if let Record::Closed { scheduled, late, lost, .. } = record {
                if late.saturating_add(*lost) > *scheduled {
                    let reason = format!(
                        "the account of {} does not add up: {scheduled} scheduled, {late} late, {lost} lost",
                        log.name()
                    );
                    return RecorderAccount { reason: Some(reason), ..RecorderAccount::default() };
                }
                sum = (sum.0 + scheduled, sum.1 + late, sum.2 + lost);
            }
        }
    }
    let (scheduled, late, lost) = sum;
    RecorderAccount {
        scheduled: Some(scheduled),
        recorded: Some(scheduled - late - lost),
        late: Some(late),
        lost: Some(lost),
        reason: None,
    }
}
