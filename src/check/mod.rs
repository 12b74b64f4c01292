//! Checkers: pure functions from evidence to findings.
//!
//! A checker sees the plan's objective and the [`EvidenceInput`]; it opens no
//! connection and reads no clock. One that panics yields `inconclusive`.

pub mod objectives;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was proved. Merging takes the worst: fail, then inconclusive, then pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Met.
    Pass,
    /// Not enough was observed to tell.
    Inconclusive,
    /// Missed.
    Fail,
}

impl Verdict {
    /// The worst of several; no verdicts at all prove nothing.
    #[must_use]
    pub fn merge(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        verdicts.into_iter().max().unwrap_or(Verdict::Inconclusive)
    }
}

/// What was observed against one objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Objective name.
    pub name: String,
    /// Objective kind, as in the drill file.
    pub kind: String,
    /// Cluster that it is about.
    pub cluster: String,
    /// Met, missed, or not to be told.
    pub verdict: Verdict,
    /// One sentence for people.
    pub reason: String,
    /// Unit of the figures below: `ns`, `writes`, `clients`.
    pub unit: String,
    /// Limit that the drill sets.
    pub target: Option<u64>,
    /// Best estimate; `None` with the reason above when unknown.
    pub observed: Option<u64>,
    /// The true figure is not below this.
    pub lower: Option<u64>,
    /// The true figure is not above this.
    pub upper: Option<u64>,
    /// What the plan predicted, in words.
    pub predicted: Option<String>,
    /// Where the figure starts, with its uncertainty.
    pub from: Option<FindingMark>,
    /// Where it ends.
    pub to: Option<FindingMark>,
    /// Lines it rests on: `journal.jsonl#17`, `histories/orders.jsonl#203`.
    pub evidence: Vec<String>,
}

/// A mark as a finding quotes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingMark {
    /// Name.
    pub name: String,
    /// Earliest, monotonic nanoseconds.
    pub lower_ns: u64,
    /// Latest.
    pub upper_ns: u64,
    /// What it rests on.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, *};

    #[test]
    fn the_worst_verdict_wins_and_nothing_proves_nothing() {
        assert_eq!(Verdict::merge([Pass, Inconclusive, Fail]), Fail);
        assert_eq!(Verdict::merge([Pass, Inconclusive]), Inconclusive);
        assert_eq!(Verdict::merge([Pass, Pass]), Pass);
        assert_eq!(Verdict::merge([]), Inconclusive);
    }
}
