//! Units of the figures of objectives.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Unit of the figures of an objective.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    /// Nothing was measured.
    #[default]
    #[serde(rename = "")]
    None,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Writes of the ledger.
    #[serde(rename = "writes")]
    Writes,
    /// Clients.
    #[serde(rename = "clients")]
    Clients,
    /// Operations that fit into no order.
    #[serde(rename = "violations")]
    Violations,
    /// Times that a watch was interrupted.
    #[serde(rename = "interruptions")]
    Interruptions,
    /// Requests.
    #[serde(rename = "requests")]
    Requests,
    /// Requests that ended otherwise than was predicted.
    #[serde(rename = "unpredicted requests")]
    UnpredictedRequests,
    /// Requests without success.
    #[serde(rename = "failed requests")]
    FailedRequests,
    /// Requests with success.
    #[serde(rename = "successful requests")]
    SuccessfulRequests,
}

impl Unit {
    /// As reports have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Nanoseconds => "ns",
            Self::Writes => "writes",
            Self::Clients => "clients",
            Self::Violations => "violations",
            Self::Interruptions => "interruptions",
            Self::Requests => "requests",
            Self::UnpredictedRequests => "unpredicted requests",
            Self::FailedRequests => "failed requests",
            Self::SuccessfulRequests => "successful requests",
        }
    }

    /// As it stands after a number.
    #[must_use]
    pub fn after(self, number: u64) -> &'static str {
        let plural = self.as_str();
        if number == 1 { plural.strip_suffix('s').unwrap_or(plural) } else { plural }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn a_unit_is_written_as_it_is_read() {
        let all = [
            Unit::None,
            Unit::Nanoseconds,
            Unit::Writes,
            Unit::Clients,
            Unit::Violations,
            Unit::Interruptions,
            Unit::Requests,
            Unit::UnpredictedRequests,
            Unit::FailedRequests,
            Unit::SuccessfulRequests,
        ];
        for unit in all {
            let text = format!("\"{unit}\"");
            assert_eq!(serde_json::to_string(&unit).unwrap(), text);
            assert_eq!(serde_json::from_str::<Unit>(&text).unwrap(), unit);
        }
        assert_eq!((Unit::Writes.after(1), Unit::Writes.after(2)), ("write", "writes"));
    }
}
