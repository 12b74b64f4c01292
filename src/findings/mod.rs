//! `findings.yaml`: what people make of a run after it: who owns what was found, by when, for what scope,
//! who accepted it until when, and which later run closed it.
//!
//! It is attached to a bundle that was sealed before, so it is no evidence: neither the manifest nor a
//! signature covers it, no verdict follows from it, and `verify` says so. It names the bundle that it is
//! about by the digest of its manifest.

mod attach;
mod date;
mod draft;
mod open;
mod read;
mod render;

pub use attach::{AttachError, Attached, attach, attached};
pub use date::Date;
pub use draft::draft;
pub use open::{Past, open_for, past};
pub use read::{Bundle, read};
pub use render::{markdown, table};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `apiVersion` of a findings file.
pub const API_VERSION: &str = "quakeproof.dev/v1alpha1";

/// `kind` of a findings file.
pub const KIND: &str = "Findings";

/// What people make of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Findings {
    /// `quakeproof.dev/v1alpha1`.
    pub api_version: String,
    /// `Findings`.
    pub kind: String,
    /// Id of the run.
    pub run: String,
    /// SHA-256 of the run's manifest.json, hexadecimal.
    pub manifest_digest: String,
    /// Who went through the report; absent: nobody yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Review>,
    /// When the drill is due again; absent: not decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Date>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Somebody looked at the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Review {
    /// Who.
    pub by: String,
    /// When.
    pub on: Date,
}

/// Something that somebody has to do something about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// Unique in the file: lower case, digits and dashes.
    pub name: String,
    /// Objective of the run that it is about; absent for what no objective asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// What was found, in a sentence.
    pub title: String,
    /// Person or team that answers for it.
    pub owner: String,
    /// Until when.
    pub due: Date,
    /// Clusters, versions or procedures that it concerns.
    pub scope: String,
    /// What a later run has to show for it to be closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_when: Option<String>,
    /// Somebody decided to live with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Acceptance>,
    /// Id of the later run that showed that it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
}

/// A risk that somebody took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Acceptance {
    /// Who.
    pub by: String,
    /// When.
    pub on: Date,
    /// Until when; absent: for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Date>,
    /// Why.
    pub reason: String,
}

impl Finding {
    /// Nobody closed it. An accepted finding is still open: it is known, not gone.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.closed_by.is_none()
    }

    /// How it stands, in words.
    #[must_use]
    pub fn standing(&self) -> String {
        match (&self.closed_by, &self.acceptance) {
            (Some(run), _) => format!("closed by run {run}"),
            (None, Some(Acceptance { by, until: Some(until), .. })) => {
                format!("open, accepted by {by} until {until}")
            }
            (None, Some(Acceptance { by, until: None, .. })) => format!("open, accepted by {by}"),
            (None, None) => "open".to_owned(),
        }
    }
}
