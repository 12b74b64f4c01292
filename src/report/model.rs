//! `report.json`: the part of a report that other programs rely on.
//!
//! Keys are camelCase, durations integer nanoseconds (`…Ns`), other units stand
//! in the key. Unknown is `null` with the reason in a sibling; 0 means measured
//! as none. Fields may be added within format 1; none is renamed or removed.

use crate::check::Verdict;
use crate::check::apf::facts::ApfFacts;
use crate::check::recorder::RecorderAccount;
use crate::check::restore_facts::{EtcdRestoreFacts, PredictionOutcome};
use crate::check::unit::Unit;
use crate::clock::{MonoNs, WallTime};
use crate::journal::entry::RunOutcome;
use crate::plan::Versions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Major.minor of this format.
pub const FORMAT_VERSION: &str = "1.0";

/// The judge that this build is. Findings are comparable between equal judges.
pub const JUDGE: &str = concat!("quakeproof ", env!("CARGO_PKG_VERSION"), "/judge 4");

/// A whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: String,
    /// Which judge reached the verdict.
    pub judge: String,
    /// Which run this is about.
    pub run: Run,
    /// Clusters under test.
    pub clusters: Vec<Cluster>,
    /// How the run ended, whatever it proved; `null` when the journal was cut before it says.
    pub outcome: Option<RunOutcome>,
    /// Why it ended so, where the journal says, or why `outcome` is `null`.
    pub outcome_reason: Option<String>,
    /// What the run proved; `null` when nothing was judged.
    pub verdict: Option<Verdict>,
    /// One sentence on the verdict.
    pub reason: String,
    /// The run in one sentence, for people who did not take part.
    pub summary: String,
    /// One per objective, in the order of the plan.
    pub objectives: Vec<Objective>,
    /// Named instants in order of time; those that were not reached last.
    pub marks: Vec<Mark>,
    /// What was injected.
    pub faults: Vec<Fault>,
    /// Planned and actual steps.
    pub steps: Vec<Step>,
    /// Predictions held against what was seen, in the order of the plan.
    pub predictions: Vec<PredictionOutcome>,
    /// Where the run left the plan, or was not left alone.
    pub deviations: Vec<Deviation>,
    /// Figures by area.
    pub facts: Facts,
    /// What the recorders lost.
    pub recorder: RecorderAccount,
    /// What the report rests on.
    pub evidence: Evidence,
}

/// Which run a report is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// UUID version 7; `unknown` when the journal has no first line.
    pub id: String,
    /// Drill name.
    pub drill: String,
    /// Drill title.
    pub title: String,
    /// Team that answers for the drill.
    pub owner: String,
    /// Why the drill is worth running.
    pub purpose: String,
    /// SHA-256 of the drill file.
    pub drill_digest: String,
    /// SHA-256 of the plan.
    pub plan_digest: Option<String>,
    /// Values of the drill's parameters.
    pub parameters: BTreeMap<String, String>,
    /// What the command line changed.
    pub overrides: BTreeMap<String, String>,
    /// Named set of timings; `null` is the drill's real timings.
    pub profile: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// First line of the journal.
    pub started_at: Option<Instant>,
    /// Last line of the journal.
    pub finished_at: Option<Instant>,
    /// Version of the tool that ran the drill.
    pub tool: Option<String>,
    /// Who ran it.
    pub operator: Option<String>,
    /// Who approved which plan digest; `null` with the reason below.
    pub approval: Option<String>,
    /// Why there is no approval.
    pub approval_reason: Option<String>,
    /// Why other fields of this object are `null`.
    pub reason: Option<String>,
}

/// An instant on the wall clock (for people) and the monotonic clock (for durations).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instant {
    /// Wall time.
    pub at: WallTime,
    /// CLOCK_BOOTTIME.
    pub mono_ns: MonoNs,
}

/// A cluster under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Name in the drill.
    pub name: String,
    /// Who owns its life cycle.
    pub provider: String,
    /// UID of the namespace `kube-system`.
    pub uid: Option<String>,
    /// Exact versions.
    pub versions: Versions,
    /// SHA-256 of the cluster CA certificate.
    pub fingerprint: Option<String>,
    /// Hosts with what runs on them.
    pub hosts: Vec<Host>,
    /// Operating system, kernel and the like of the machine that carried it.
    pub machine: BTreeMap<String, String>,
    /// Why `uid` and `fingerprint` are `null`.
    pub reason: Option<String>,
}

/// A host of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// Name.
    pub name: String,
    /// Address in the cluster's network; `null` when the run was not bound.
    pub address: Option<String>,
    /// Components on it.
    pub components: Vec<String>,
}

/// One objective and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// Name, unique in the run.
    pub name: String,
    /// Kind, as in the drill file.
    pub kind: String,
    /// Cluster that it is about.
    pub cluster: String,
    /// Met, missed, or not to be told.
    pub verdict: Verdict,
    /// One sentence; also why figures below are `null`.
    pub reason: String,
    /// Unit of the figures: `ns`, `writes`, `clients`.
    #[schemars(with = "String")]
    pub unit: Unit,
    /// Limit that the drill sets.
    pub target: Option<u64>,
    /// Best estimate.
    pub observed: Option<u64>,
    /// The true figure is not below this.
    pub lower: Option<u64>,
    /// The true figure is not above this.
    pub upper: Option<u64>,
    /// What the plan predicted; `null` where it predicted nothing.
    pub predicted: Option<Predicted>,
    /// Where the figure starts.
    pub from: Option<MarkRef>,
    /// Where it ends.
    pub to: Option<MarkRef>,
    /// Lines it rests on: `journal.jsonl#17`, `histories/orders.jsonl#203`.
    pub evidence: Vec<String>,
}

/// What a plan predicted of an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Predicted {
    /// In words.
    pub text: String,
    /// Not below this.
    pub lower: Option<u64>,
    /// Not above this.
    pub upper: Option<u64>,
    /// Alternatives that the bounds exclude.
    pub excludes: Vec<String>,
    /// Why the bounds are `null`.
    pub reason: Option<String>,
}

/// A mark as an objective quotes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkRef {
    /// Name.
    pub mark: String,
    /// Earliest.
    pub lower_ns: MonoNs,
    /// Latest.
    pub upper_ns: MonoNs,
    /// What it rests on.
    pub source: String,
}

/// A named instant with its uncertainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Name, as objectives use it.
    pub name: String,
    /// Cluster that it is about.
    pub cluster: String,
    /// Wall time of `monoNs`.
    pub at: Option<WallTime>,
    /// Middle of the interval, for drawing; figures use the bounds.
    pub mono_ns: Option<MonoNs>,
    /// Earliest.
    pub lower_ns: Option<MonoNs>,
    /// Latest.
    pub upper_ns: Option<MonoNs>,
    /// What it rests on; `null` for a mark that was not reached.
    pub source: Option<String>,
    /// Why there is no such instant.
    pub reason: Option<String>,
}

/// One injection. An instant that is `null` did not happen; `reason` says why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Identity within the run.
    pub injection: String,
    /// Kind, as in the drill file.
    pub kind: String,
    /// Cluster that it hit.
    pub cluster: String,
    /// Components that it hit.
    pub target: Vec<String>,
    /// How components were stopped, where they were.
    pub stop_method: Option<String>,
    /// Its undo was durable and its lease granted.
    pub armed: Option<Instant>,
    /// The effect began no earlier than this.
    pub injecting: Option<Instant>,
    /// The effect began no later than this.
    pub injected: Option<Instant>,
    /// An independent observation saw it.
    pub verified: Option<Instant>,
    /// What that observation saw.
    pub observation: Option<String>,
    /// The disturbance was taken away.
    pub ended: Option<Instant>,
    /// What took it away: `step 4`, or the undo with its cause.
    pub ended_by: Option<String>,
    /// An independent observation saw that it is gone.
    pub end_verified: Option<Instant>,
    /// What that observation saw.
    pub end_observation: Option<String>,
    /// Why the undo changed on the way, where it did.
    pub undo_amended: Option<String>,
    /// What an undo, if one was needed, came to.
    pub undo: Option<String>,
    /// Why instants above are `null`.
    pub reason: Option<String>,
}

/// A planned step and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Index in the plan.
    pub index: usize,
    /// Kind, as in the drill file.
    pub kind: String,
    /// Its settings, as in the drill file, defaults written out.
    pub planned: serde_json::Value,
    /// Components that it was to act on.
    pub targets: Vec<String>,
    /// What was not going to work, for faults.
    pub blast_radius: Option<String>,
    /// How a fault is undone on an abort.
    pub undo: Option<String>,
    /// It began.
    pub started: Option<Instant>,
    /// It ended.
    pub finished: Option<Instant>,
    /// Time between the two.
    pub took_ns: Option<u64>,
    /// Whether it did what was planned.
    pub done: bool,
    /// Why not, or why instants above are `null`.
    pub reason: Option<String>,
}

/// Something that was not in the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deviation {
    /// When; `null` for what held for the whole run.
    pub at: Option<Instant>,
    /// What.
    pub what: String,
}

/// Figures by area.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// One per etcd restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub etcd_restore: Vec<EtcdRestoreFacts>,
    /// One per priority level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apf: Vec<ApfFacts>,
}

/// What a report rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Hash of the journal's last line.
    pub journal_head: Option<String>,
    /// Lines in the journal.
    pub entries: u64,
    /// SHA-256 of `manifest.json`. Always `null` inside the bundle: the manifest
    /// holds the digest of this file, so it is written after it.
    pub manifest_digest: Option<String>,
    /// Always `null` inside the bundle: a signature covers this file and lies beside it, in
    /// `attestation.dsse.json`; `quakeproof verify --json` tells who signed, as `origin`.
    pub signature: Option<String>,
    /// Why fields above are `null`.
    pub reason: String,
}
