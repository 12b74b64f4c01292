//! What of a judged run is compared.

use crate::check::apf::facts::ApfFacts;
use crate::check::restore_facts::PredictionOutcome;
use crate::check::{Finding, Verdict, judge};
use crate::journal::entry::{JournalEvent, RunOutcome};
use crate::plan::Versions;
use crate::timeline::EvidenceInput;
use serde::Serialize;
use std::collections::BTreeMap;

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Id; `unknown` when the journal has no first line.
    pub run: String,
    /// Drill name.
    pub drill: String,
    /// SHA-256 of the drill file.
    pub drill_digest: String,
    /// Values of the drill's parameters.
    pub parameters: BTreeMap<String, String>,
    /// What the command line changed.
    pub overrides: BTreeMap<String, String>,
    /// Named set of timings; `null` is the drill's real timings.
    pub profile: Option<String>,
    /// Exact versions.
    pub versions: Versions,
    /// Seed of every random choice.
    pub seed: u64,
    /// How the run ended; `null` when the journal was cut before it says.
    pub outcome: Option<RunOutcome>,
    /// What the run proved; `null` when nothing was judged.
    pub verdict: Option<Verdict>,
    /// One sentence on the verdict.
    pub reason: String,
}

impl Head {
    /// What a run was given besides its drill, but for the version, which every run names anyway.
    pub(super) fn settings(&self) -> BTreeMap<&str, &str> {
        let given = self.parameters.iter().chain(&self.overrides);
        let mut all: BTreeMap<&str, &str> =
            given.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.remove("cluster.kubernetes");
        all.extend(self.profile.as_deref().map(|profile| ("profile", profile)));
        all
    }
}

/// A run, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Which run it is.
    pub head: Head,
    pub(super) findings: Vec<Finding>,
    pub(super) apf: Vec<ApfFacts>,
    pub(super) predictions: Vec<PredictionOutcome>,
    /// Objectives that judge a load, by its name.
    pub(super) judged_by: BTreeMap<String, Vec<String>>,
}

impl Run {
    /// Judges a run anew.
    #[must_use]
    pub fn of(input: &EvidenceInput) -> Self {
        let judgement = judge(input);
        let plan = &input.plan;
        let opened = input.journal.iter().find_map(|entry| match &entry.event {
            JournalEvent::RunOpened { run, .. } => Some(run.clone()),
            _ => None,
        });
        let mut judged_by: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for flow in &plan.flow {
            judged_by.entry(flow.client.clone()).or_default().push(flow.objective.clone());
        }
        Self {
            head: Head {
                run: opened.unwrap_or_else(|| "unknown".to_owned()),
                drill: plan.drill.metadata.name.clone(),
                drill_digest: plan.drill_digest.clone(),
                parameters: plan.parameters.clone(),
                overrides: plan.overrides.clone(),
                profile: plan.profile.clone(),
                versions: plan.cluster.versions.clone(),
                seed: plan.seed,
                outcome: judgement.outcome,
                verdict: judgement.verdict,
                reason: judgement.reason,
            },
            findings: judgement.findings,
            apf: judgement.apf,
            predictions: judgement.predictions,
            judged_by,
        }
    }
}
