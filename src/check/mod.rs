//! Checkers: pure functions from evidence to findings.
//!
//! A checker sees the plan's objective and the [`EvidenceInput`]; it opens no
//! connection and reads no clock. One that panics yields `inconclusive`.

pub mod apf;
pub mod consistency;
pub mod consumers;
pub mod coverage;
pub mod figures;
pub mod leaders;
pub mod leases;
pub mod ledger;
pub mod linearizable;
pub mod lost_timeline;
pub mod objective;
pub mod recorder;
pub mod restore_facts;
pub mod revisions;
pub mod rpo;
pub mod rto;
pub mod seen;
pub mod two_leaders;
pub mod unit;
pub mod window;

use crate::journal::entry::RunOutcome;
use crate::plan::PlannedObjective;
use crate::timeline::boundaries::Boundaries;
use crate::timeline::clients::ClientLog;
use crate::timeline::{EvidenceInput, Timeline};
use ledger::Accounting;
use recorder::RecorderAccount;
use restore_facts::{EtcdRestoreFacts, PredictionOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unit::Unit;

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

/// What was observed against one objective. It is in no file: `report::model::Objective` is what reports promise of it.
#[derive(Debug, Clone, PartialEq)]
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
    /// Unit of the figures below.
    pub unit: Unit,
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
    /// Name of the mark at which a recovery time ends, reached or not.
    pub capability: Option<String>,
    /// Lines it rests on: `journal.jsonl#17`, `histories/orders.jsonl#203`.
    pub evidence: Vec<String>,
}

/// A mark as a finding quotes it.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Everything that is said about a run; a pure function of the evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Worst verdict of the findings; `None` for a refused run, which proves nothing.
    pub verdict: Option<Verdict>,
    /// One sentence on the verdict.
    pub reason: String,
    /// How the run ended; `None` when the journal was cut before it says.
    pub outcome: Option<RunOutcome>,
    /// Why, where the journal gives a reason or the outcome is not known.
    pub outcome_reason: Option<String>,
    /// One per objective, in the order of the plan.
    pub findings: Vec<Finding>,
    /// Figures of each etcd restore.
    pub etcd_restore: Vec<EtcdRestoreFacts>,
    /// Figures of each priority level.
    pub apf: Vec<apf::facts::ApfFacts>,
    /// Predictions held against what was seen; a mismatch does not change a verdict.
    pub predictions: Vec<PredictionOutcome>,
    /// The recorders' own losses.
    pub recorder: RecorderAccount,
}

/// The evidence, prepared for the checkers.
pub struct Judge<'a> {
    /// As given.
    pub input: &'a EvidenceInput,
    /// Marks, lanes and truth.
    pub timeline: Timeline,
    /// Histories as judging reads them.
    pub logs: Vec<ClientLog<'a>>,
    /// What became of every write.
    pub ledger: Accounting,
}

impl<'a> Judge<'a> {
    /// Prepares the evidence.
    #[must_use]
    pub fn new(input: &'a EvidenceInput) -> Self {
        let timeline = Timeline::of(input);
        let logs = timeline.clients(input);
        let ledger = ledger::accounting(&timeline, &logs);
        Self { input, timeline, logs, ledger }
    }

    /// What the journal fixes in time.
    #[must_use]
    pub fn boundaries(&self) -> &Boundaries {
        &self.timeline.boundaries
    }

    /// The history of a client, if it left one.
    #[must_use]
    pub fn log(&self, client: &str) -> Option<&ClientLog<'a>> {
        self.logs.iter().find(|log| log.name() == client)
    }

    /// A finding that says nothing yet.
    #[must_use]
    pub fn finding(&self, planned: &PlannedObjective) -> Finding {
        Finding::unknown(self.input, planned, String::new())
    }
}

impl Finding {
    fn unknown(input: &EvidenceInput, planned: &PlannedObjective, reason: String) -> Self {
        Self {
            name: planned.name.clone(),
            kind: planned.objective.key().to_owned(),
            cluster: input.plan.cluster.name.clone(),
            verdict: Verdict::Inconclusive,
            reason,
            unit: Unit::None,
            target: None,
            observed: None,
            lower: None,
            upper: None,
            predicted: planned.predicted.clone(),
            from: None,
            to: None,
            capability: None,
            evidence: Vec::new(),
        }
    }

    /// Where evidence is missing, what looks met is not proven to be.
    fn cannot_pass_if(&mut self, missing: Option<String>) {
        if let (Verdict::Pass, Some(missing)) = (self.verdict, missing) {
            self.doubt(&missing);
        }
    }

    fn doubt(&mut self, why: &str) {
        self.verdict = Verdict::Inconclusive;
        self.reason = format!("{}; but {why}", self.reason);
    }

    /// What was seen is no proof, and why.
    fn unsure(mut self, why: &str) -> Self {
        self.doubt(why);
        self
    }

    /// Judges an exact count, of which `most` are allowed, unless there is a reason why it may be another one.
    fn counted(mut self, count: u64, most: u64, unsure: Option<String>) -> Self {
        if let Some(why) = unsure {
            return self.unsure(&why);
        }
        (self.observed, self.lower, self.upper) = (Some(count), Some(count), Some(count));
        self.verdict = if count <= most { Verdict::Pass } else { Verdict::Fail };
        self
    }
}

/// Judges a run. A checker that panics proves nothing: its finding is inconclusive.
#[must_use]
pub fn judge(input: &EvidenceInput) -> Judgement {
    judge_over_time(input).0
}

/// As [`judge`], with the timeline that the judgement rests on; `None` when making it failed.
#[must_use]
pub fn judge_over_time(input: &EvidenceInput) -> (Judgement, Option<Timeline>) {
    let boundaries = Boundaries::of(input);
    let prepared = guarded(|| Judge::new(input));
    let findings: Vec<Finding> = input
        .plan
        .objectives
        .iter()
        .map(|planned| {
            prepared
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|judge| guarded(|| planned.objective.kind().check(judge, planned)))
                .unwrap_or_else(|panic| {
                    let reason = format!("the checker failed, which is a bug: {panic}");
                    Finding::unknown(input, planned, reason)
                })
        })
        .collect();
    let facts = prepared
        .as_ref()
        .ok()
        .and_then(|judge| guarded(|| restore_facts::etcd_restore(judge)).ok().flatten());
    let (etcd_restore, predictions) = facts.map_or_else(Default::default, |(f, p)| (vec![f], p));
    let apf = prepared.as_ref().ok().and_then(|judge| guarded(|| apf::facts::apf(judge)).ok());
    let apf = apf.unwrap_or_default();
    let recorder = prepared.as_ref().map_or_else(
        |panic| RecorderAccount { reason: Some(panic.clone()), ..RecorderAccount::default() },
        |judge| recorder::account(&judge.logs),
    );
    let (outcome, outcome_reason) = match boundaries.outcome {
        Some((outcome, reason)) => (Some(outcome), reason),
        None => (None, Some("the journal ends before the run was closed".to_owned())),
    };
    let refused = outcome == Some(RunOutcome::Refused);
    let verdict = (!refused).then(|| Verdict::merge(findings.iter().map(|f| f.verdict)));
    let reason = if refused {
        let why = outcome_reason.as_deref().unwrap_or("no reason is given");
        format!("the run was refused: {why}")
    } else {
        sentence(&findings)
    };
    let judgement = Judgement {
        verdict,
        reason,
        outcome,
        outcome_reason,
        findings,
        etcd_restore,
        apf,
        predictions,
        recorder,
    };
    (judgement, prepared.ok().map(|judge| judge.timeline))
}

fn sentence(findings: &[Finding]) -> String {
    let of = |verdict| findings.iter().filter(move |f| f.verdict == verdict);
    let named = |verdict| of(verdict).map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
    let total = findings.len();
    match (of(Verdict::Fail).count(), of(Verdict::Inconclusive).count()) {
        (0, 0) if total == 0 => "the drill has no objective".to_owned(),
        (0, 0) => format!("all {total} objectives met"),
        (0, unknown) => {
            format!("{unknown} of {total} objectives can't be told: {}", named(Verdict::Inconclusive))
        }
        (missed, 0) => format!("{missed} of {total} objectives missed: {}", named(Verdict::Fail)),
        (missed, unknown) => format!(
            "{missed} of {total} objectives missed: {}; {unknown} can't be told: {}",
            named(Verdict::Fail),
            named(Verdict::Inconclusive)
        ),
    }
}

/// Runs a pure function; a panic becomes its text.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Only shared, immutable evidence is seen on either side of a panic.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_else(|| "a panic without a message".to_owned())
    })
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

    #[test]
    fn a_checker_that_panics_is_turned_into_its_text() {
        let caught = super::guarded(|| -> u8 { panic!("index {} is out of range", 7) });
        assert_eq!(caught, Err("index 7 is out of range".to_owned()));
        assert_eq!(super::guarded(|| 7), Ok(7));
    }
}
