//! The objective `noTwoLeaders`: no two candidates of one Lease believe at the same
//! instant of the run's clock that they lead. What counts is belief, for that is what a
//! leader acts upon; the Lease names one holder at a time whatever happens.

use super::coverage::{cut_short, too_little};
use super::figures::human;
use super::leaders::{beliefs, elections, overlaps, total_ns};
use super::{Finding, Judge, Verdict};
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::drill::lint::{Lint, Place};
use crate::drill::spec::Client;
use crate::history::kind::ClientKind;
use crate::plan::{PlannedObjective, predict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// At no instant do two candidates of one Lease believe that they lead, before, during
/// or after the fault. Judged by what `leaderElector` clients believe, not by what the
/// Lease says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NoTwoLeaders {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

impl Default for NoTwoLeaders {
    fn default() -> Self {
        Self { name: "no-two-leaders".to_owned() }
    }
}

impl ObjectiveKind for NoTwoLeaders {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let mut candidates: BTreeMap<&str, u32> = BTreeMap::new();
        for client in &lint.drill.spec.clients {
            if let Client::LeaderElector(c) = client {
                *candidates.entry(c.lease_name()).or_default() += u32::from(c.candidates);
            }
        }
        if candidates.values().all(|n| *n < 2) {
            let title = "no Lease has two candidates, so no two could lead";
            let help = "add a client, as `- leaderElector: {name: elector, candidates: 2}`";
            lint.error(&at.key("name"), title, help);
        }
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        predict::consumers::leaders(foreseen.drill)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned)
    }
}

/// Judges it. Overlaps that are recorded are proven, whatever else is missing.
fn check(judge: &Judge, planned: &PlannedObjective) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Nanoseconds, Some(0));
    let elections = elections(&judge.logs);
    if elections.is_empty() {
        finding.reason = "no client of the drill stands for election".to_owned();
        return finding;
    }
    let (mut total, mut told, mut unseen) = (0u64, Vec::new(), None);
    for (lease, logs) in &elections {
        let beliefs = beliefs(logs);
        let found = overlaps(&beliefs);
        if let Some(longest) = found.iter().max_by_key(|o| o.to_ns.since(o.from_ns)) {
            told.push(format!(
                "lease {lease}: {} and {} both believed so for {}",
                longest.first,
                longest.second,
                human(longest.to_ns.since(longest.from_ns))
            ));
            finding.evidence.extend(longest.evidence.iter().cloned());
        }
        total = total.saturating_add(total_ns(&found));
        unseen = unseen.or_else(|| nobody_led(judge, lease, &beliefs));
    }
    finding.lower = Some(total);
    if total > 0 {
        (finding.observed, finding.verdict) = (Some(total), Verdict::Fail);
        let whole = elections.values().flatten().all(|log| log.incomplete().is_none());
        finding.upper = whole.then_some(total);
        finding.reason = told.join("; ");
        return finding;
    }
    let missing = cut_short(&judge.input.plan, judge.boundaries())
        .or_else(|| too_little(&judge.logs, judge.boundaries(), |kind| kind == ClientKind::LeaderElector))
        .or(unseen);
    let leases = elections.keys().copied().collect::<Vec<_>>().join(", ");
    finding.reason = format!("no two candidates of {leases} believed at the same time that they led");
    if let Some(missing) = missing {
        return finding.unsure(&missing);
    }
    (finding.observed, finding.upper, finding.verdict) = (Some(0), Some(0), Verdict::Pass);
    finding
}

/// Why a Lease says nothing about two leaders: there was not even one where it matters.
fn nobody_led(judge: &Judge, lease: &str, beliefs: &[super::leaders::Belief]) -> Option<String> {
    if beliefs.is_empty() {
        return Some(format!("no candidate of {lease} ever led"));
    }
    let fault = judge.boundaries().fault().and_then(|f| f.injecting.as_ref()).map(|m| m.mono_ns)?;
    if beliefs.iter().all(|b| b.from >= fault) {
        return Some(format!("no candidate of {lease} led before the fault"));
    }
    let end = judge.boundaries().fault_end().map(|m| m.mono_ns)?;
    let after = beliefs.iter().any(|b| b.to > end);
    (!after).then(|| format!("no candidate of {lease} led after the fault"))
}
