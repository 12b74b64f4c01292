//! The steady-state conditions of a drill file.

use crate::drill::values::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every API server answers `/readyz` with ok.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ApiReady {
    /// Time between two samples.
    pub every: Span,
    /// An answer later than this is a failed sample.
    pub within: Span,
}

impl Default for ApiReady {
    fn default() -> Self {
        Self { every: Span::millis(100), within: Span::secs(1) }
    }
}

/// A write through every API server is acknowledged in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WriteSucceeds {
    /// Time between two samples.
    pub every: Span,
    /// An answer later than this is a failed sample.
    pub within: Span,
}

impl Default for WriteSucceeds {
    fn default() -> Self {
        Self { every: Span::millis(200), within: Span::secs(1) }
    }
}
