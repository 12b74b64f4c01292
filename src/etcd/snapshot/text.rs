//! etcd's keys are bytes; JSON and people want text.

use serde::Serialize;
use std::fmt;

/// A key: as text where it is text, else in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bytes {
    /// The key as text; `null` when it is not UTF-8.
    pub key: Option<String>,
    /// The key in hexadecimal, when it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_hex: Option<String>,
}

impl Bytes {
    /// The text of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { key: Some(text.to_owned()), key_hex: None },
            Err(_) => Self { key: None, key_hex: Some(hex::encode(bytes)) },
        }
    }
}

/// For people. It may act on a terminal: the caller escapes it.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.key, &self.key_hex) {
            (Some(text), _) => f.write_str(text),
            (None, Some(hex)) => write!(f, "0x{hex}"),
            (None, None) => Ok(()),
        }
    }
}
