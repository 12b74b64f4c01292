//! The objective `rpo`: how much of what was acknowledged may be lost.

use super::coverage::{cut_short, too_little};
use super::figures::{human, judge_limit};
use super::ledger::{Accounting, LostTime};
use super::{Finding, FindingMark, Judge, Verdict};
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::drill::lint::{Lint, Place, WAIT};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::plan::{PlannedObjective, predict};
use crate::timeline::writes::Write;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Acknowledged writes that were lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rpo {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Upper limit on the time between the last kept and the last acknowledged write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// Upper limit on the number of lost writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_writes: Option<u64>,
}

impl ObjectiveKind for Rpo {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let path = at.key("name");
        if let Some(within) = self.within {
            lint.span(&at.key("within"), within, (Span::millis(0), WAIT.1));
        }
        if self.within.is_none() && self.at_most_writes.is_none() {
            lint.error(&path, "an `rpo` needs a limit", "add `within: 10s` or `atMostWrites: 500`");
        }
        lint.needs_writer(&path, "no client counts lost writes: that takes a `ledgerWriter`");
        if !lint.has_step(|s| s.kind().fault().is_some()) {
            let title = "no step injects a fault that could lose a write";
            lint.error(&path, title, "add a `loseEtcd` step and a `restoreSnapshot` step");
        }
    }

    fn rests_on_truth(&self) -> bool {
        true
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        predict::rpo(foreseen.drill)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

const RESTS_ON: [ClientKind; 2] = [ClientKind::LedgerWriter, ClientKind::EtcdTruth];

/// Judges it.
fn check(judge: &Judge, planned: &PlannedObjective, rpo: &Rpo) -> Finding {
    let Accounting { account, lost_time, evidence, .. } = &judge.ledger;
    let mut finding = judge.finding(planned);
    finding.evidence.clone_from(evidence);
    let (Some(lost), Some(lost_after), Some(unsettled)) =
        (account.lost, account.lost_after_restore, account.unsettled)
    else {
        finding.reason = account.reason.clone().unwrap_or_else(|| "what was lost is not known".to_owned());
        return finding;
    };
    let lost_writes = lost + lost_after;
    let mut verdicts = Vec::new();
    let before = if judge.timeline.restored.is_some() { " before the loss" } else { "" };
    let mut words =
        vec![format!("{lost} of {} writes acknowledged{before} were lost", account.acked_before_loss)];
    if account.refused + account.indeterminate > 0 {
        words.push(format!(
            "{} were refused and {} got no definite answer",
            account.refused, account.indeterminate
        ));
    }
    if lost_after > 0 {
        words.push(format!("{lost_after} acknowledged after the restore are missing too"));
    }
    if let Some(limit) = rpo.at_most_writes {
        verdicts.push(judge_limit(Some(lost_writes), Some(lost_writes + unsettled), limit));
        (finding.unit, finding.target) = (Unit::Writes, Some(limit));
    } else {
        finding.unit = Unit::Writes;
    }
    (finding.observed, finding.lower, finding.upper) =
        (Some(lost_writes), Some(lost_writes), Some(lost_writes + unsettled));
    if let Some(limit) = rpo.within {
        let (verdict, said) = in_time(&mut finding, lost_time.as_ref(), limit.as_ns());
        verdicts.push(verdict);
        words.push(said);
        if lost_after > 0 {
            verdicts.push(Verdict::Inconclusive);
        }
    }
    finding.verdict = if verdicts.is_empty() { Verdict::Pass } else { Verdict::merge(verdicts) };
    finding.reason = words.join("; ");
    let gap = cut_short(&judge.input.plan, judge.boundaries())
        .or_else(|| too_little(&judge.logs, judge.boundaries(), |kind| RESTS_ON.contains(&kind)))
        .or_else(|| {
            (account.phantom != Some(0)).then(|| match account.phantom {
                Some(n) => format!("etcd holds {n} objects that no writer is on record to have written"),
                None => account.reason.clone().unwrap_or_default(),
            })
        });
    finding.cannot_pass_if(gap);
    finding
}

/// The time between the last kept and the last acknowledged write, against its limit.
fn in_time(finding: &mut Finding, lost: Option<&LostTime>, limit: u64) -> (Verdict, String) {
    (finding.unit, finding.target) = (Unit::Nanoseconds, Some(limit));
    let Some(time) = lost else {
        return (Verdict::Inconclusive, "nothing was acknowledged before the loss".to_owned());
    };
    (finding.observed, finding.lower, finding.upper) = (time.observed, Some(time.lower), time.upper);
    finding.from = time.last_kept.as_ref().map(|w| mark("lastKeptWrite", w));
    finding.to = time.last_acked.as_ref().map(|w| mark("lastAcknowledgedWrite", w));
    let said = match time.observed {
        Some(ns) => format!("the last kept one is {} older than the last acknowledged one", human(ns)),
        None => format!("none was kept: at least {} worth of writes is gone", human(time.lower)),
    };
    (judge_limit(Some(time.lower), time.upper, limit), said)
}

fn mark(name: &str, write: &Write) -> FindingMark {
    FindingMark {
        name: name.to_owned(),
        lower_ns: write.call.0,
        upper_ns: write.ret.0,
        source: write.line.clone(),
    }
}
