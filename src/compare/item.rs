//! One thing that was compared.

use super::Sides;
use crate::check::Finding;
use crate::report::figure;
use serde::Serialize;

/// How side B compares with side A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No difference.
    Same,
    /// A difference for the better.
    Better,
    /// A difference for the worse.
    Worse,
    /// A difference that is neither by itself.
    Changed,
    /// What difference there is may be chance, or something is unknown.
    NotDistinguishable,
}

impl Outcome {
    /// As people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Better => "better",
            Outcome::Worse => "worse",
            Outcome::Changed => "changed",
            Outcome::NotDistinguishable => "not distinguishable",
        }
    }
}

/// One run's part in a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Value {
    /// For people, unit and bounds included.
    pub text: String,
    /// The true figure is not below this; `null` for words, and where the text says that it is unknown.
    pub lower: Option<u64>,
    /// The true figure is not above this; `null` as above.
    pub upper: Option<u64>,
}

impl Value {
    pub(super) fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), lower: None, upper: None }
    }

    pub(super) fn count(n: u64) -> Self {
        Self { text: n.to_string(), lower: Some(n), upper: Some(n) }
    }

    pub(super) fn figure(finding: &Finding) -> Self {
        let Finding { observed, lower, upper, .. } = *finding;
        Self { text: figure::bounded(observed, lower, upper, finding.unit), lower, upper }
    }
}

/// One thing that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// `run`, `objective`, `level` or `prediction`.
    pub area: &'static str,
    /// What it is about: the run, an objective, a level with a load or server, a client.
    pub subject: String,
    /// What of it.
    pub what: String,
    /// Unit of bounds: `ns`, `requests`, …; empty for words.
    pub unit: String,
    /// How side B compares.
    pub outcome: Outcome,
    /// Why; `null` for what is the same.
    pub reason: Option<String>,
    /// Each run of side A.
    pub a: Vec<Value>,
    /// Each run of side B.
    pub b: Vec<Value>,
}

/// An outcome and why.
pub(super) type Ruling = (Outcome, Option<String>);

pub(super) fn ruled(outcome: Outcome, reason: impl Into<String>) -> Ruling {
    (outcome, Some(reason.into()))
}

pub(super) const SAME: Ruling = (Outcome::Same, None);

/// What an item is about.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) area: &'static str,
    pub(super) subject: String,
    pub(super) what: String,
    pub(super) unit: String,
}

impl About {
    pub(super) fn item(self, values: Sides<Value>, (outcome, reason): Ruling) -> Item {
        let About { area, subject, what, unit } = self;
        Item { area, subject, what, unit, outcome, reason, a: values.a, b: values.b }
    }

    /// Of something that some runs don't have.
    pub(super) fn missing(self, present: &Sides<bool>) -> Item {
        let values = present.map(|there| Value::word(if *there { "there" } else { "not there" }));
        self.item(values, ruled(Outcome::NotDistinguishable, "not every run has it"))
    }
}
