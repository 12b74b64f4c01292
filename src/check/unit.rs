//! Units of the figures of objectives.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! units {
    ($($(#[$doc:meta])+ $unit:ident = $text:literal),+ $(,)?) => {
        /// Unit of the figures of an objective.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Unit {
            $($(#[$doc])+ #[serde(rename = $text)] $unit),+
        }

        impl Unit {
            /// As reports have it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$unit => $text),+
                }
            }
        }

        #[cfg(test)]
        const ALL: &[Unit] = &[$(Unit::$unit),+];
    };
}

units! {
    /// Nothing was measured.
    None = "",
    /// Nanoseconds.
    Nanoseconds = "ns",
    /// Writes of the ledger.
    Writes = "writes",
    /// Clients.
    Clients = "clients",
    /// Operations that fit into no order.
    Violations = "violations",
    /// Times that a watch was interrupted.
    Interruptions = "interruptions",
    /// Requests.
    Requests = "requests",
    /// Requests that ended otherwise than was predicted.
    UnpredictedRequests = "unpredicted requests",
    /// Requests without success.
    FailedRequests = "failed requests",
    /// Requests with success.
    SuccessfulRequests = "successful requests",
}

impl Unit {
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
    use super::{ALL, Unit};

    #[test]
    fn a_unit_is_written_as_it_is_read() {
        for &unit in ALL {
            let text = format!("\"{unit}\"");
            assert_eq!(serde_json::to_string(&unit).unwrap(), text);
            assert_eq!(serde_json::from_str::<Unit>(&text).unwrap(), unit);
        }
        assert_eq!((Unit::Writes.after(1), Unit::Writes.after(2)), ("write", "writes"));
    }
}
