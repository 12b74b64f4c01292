//! The objective `rpo`: how much of what was acknowledged may be lost.

use super::coverage::{cut_short, too_little};
use super::figures::{human, judge_limit};
use super::ledger::Accounting;
use super::objectives::Rpo;
use super::{Finding, FindingMark, Judge, Verdict};
use crate::history::record::ClientKind;
use crate::plan::PlannedObjective;
use crate::timeline::writes::Write;

const RESTS_ON: [ClientKind; 2] = [ClientKind::LedgerWriter, ClientKind::EtcdTruth];

/// Judges it.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, rpo: &Rpo) -> Finding {
    let Accounting { account, lost_time, evidence, .. } = &judge.ledger;
    let mut finding = judge.finding(planned, "rpo");
    finding.evidence.clone_from(evidence);
    let (Some(lost), Some(unsettled)) = (account.lost, account.unsettled) else {
        finding.reason = account.reason.clone().unwrap_or_else(|| "what was lost is not known".to_owned());
        return finding;
    };
    let lost_after = account.lost_after_restore.unwrap_or(0);
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
        (finding.unit, finding.target) = ("writes".to_owned(), Some(limit));
    } else {
        finding.unit = "writes".to_owned();
    }
    (finding.observed, finding.lower, finding.upper) =
        (Some(lost_writes), Some(lost_writes), Some(lost_writes + unsettled));
    if let Some(limit) = rpo.within {
        let limit = limit.as_ns();
        (finding.unit, finding.target) = ("ns".to_owned(), Some(limit));
        match lost_time {
            Some(time) => {
                verdicts.push(judge_limit(Some(time.lower), time.upper, limit));
                (finding.observed, finding.lower, finding.upper) =
                    (time.observed, Some(time.lower), time.upper);
                finding.from = time.last_kept.as_ref().map(|w| mark("lastKeptWrite", w));
                finding.to = time.last_acked.as_ref().map(|w| mark("lastAcknowledgedWrite", w));
                words.push(match time.observed {
                    Some(ns) => {
                        format!("the last kept one is {} older than the last acknowledged one", human(ns))
                    }
                    None => format!("none was kept: at least {} worth of writes is gone", human(time.lower)),
                });
            }
            None => {
                verdicts.push(Verdict::Inconclusive);
                words.push("nothing was acknowledged before the loss".to_owned());
            }
        }
        if lost_after > 0 {
            verdicts.push(Verdict::Inconclusive);
        }
    }
    finding.verdict = if verdicts.is_empty() { Verdict::Pass } else { Verdict::merge(verdicts) };
    finding.reason = words.join("; ");
    let gap = cut_short(&judge.input.plan, judge.boundaries())
        .or_else(|| too_little(&judge.logs, judge.boundaries(), &RESTS_ON))
        .or_else(|| {
            (account.phantom != Some(0)).then(|| match account.phantom {
                Some(n) => format!("etcd holds {n} objects that no writer is on record to have written"),
                None => account.reason.clone().unwrap_or_default(),
            })
        });
    finding.cannot_pass_if(gap);
    finding
}

fn mark(name: &str, write: &Write) -> FindingMark {
    FindingMark {
        name: name.to_owned(),
        lower_ns: write.call.0,
        upper_ns: write.ret.0,
        source: write.line.clone(),
    }
}
