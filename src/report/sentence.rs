//! The first-screen sentence: what happened, for somebody who did not take part.

use super::figure;
use crate::check::apf::facts::{ApfFacts, ApfPhase};
use crate::check::restore_facts::{ClientFacts, EtcdRestoreFacts};
use crate::check::unit::Unit;
use crate::check::{Finding, Judgement, Verdict};
use crate::journal::entry::RunOutcome;
use crate::timeline::marks;

/// One sentence about the run, made of its findings and figures only.
#[must_use]
pub fn summary(judgement: &Judgement) -> String {
    match judgement.outcome {
        Some(RunOutcome::Refused) => {
            return format!("The drill was refused before anything was disturbed: {}", judgement.reason);
        }
        Some(RunOutcome::Faulted) => {
            return format!("Something is left faulted and needs hands: {}", judgement.reason);
        }
        Some(RunOutcome::Completed | RunOutcome::Recovered | RunOutcome::Aborted) | None => {}
    }
    let body = judgement
        .etcd_restore
        .first()
        .map_or_else(|| objectives(&judgement.findings), |facts| restore(&judgement.findings, facts));
    let body = match leaked(judgement) {
        Some(leaked) => format!("{body} {leaked}"),
        None => body,
    };
    match judgement.outcome {
        Some(RunOutcome::Aborted) => format!("The run was ended early and everything was reverted. {body}"),
        Some(RunOutcome::Recovered) => format!("The runner died and the run was closed by recovery. {body}"),
        None => format!("The run was never closed. {body}"),
        Some(_) => body,
    }
}

fn restore(findings: &[Finding], facts: &EtcdRestoreFacts) -> String {
    let writes = writes_back(findings);
    let lost = match facts.ledger.lost {
        Some(0) => "no acknowledged write was lost".to_owned(),
        Some(1) => "one acknowledged write was lost".to_owned(),
        Some(n) => format!("{n} acknowledged writes were lost"),
        None => "how many acknowledged writes were lost is unknown".to_owned(),
    };
    let judged: Vec<&ClientFacts> = facts.clients.iter().filter(|c| c.on_lost_timeline().is_some()).collect();
    let lying: Vec<&&ClientFacts> = judged.iter().filter(|c| c.on_lost_timeline() == Some(true)).collect();
    let clients = match (lying.len(), judged.len()) {
        (_, 0) => "what clients saw is unknown".to_owned(),
        (0, of) => format!("all {of} clients whose view was checked saw the restored state"),
        (n, of) => format!("{n} of {of} clients {}", harm(&lying)),
    };
    let out = never_back(findings);
    match (lying.is_empty(), out) {
        (true, None) => format!("{writes}; {lost}, and {clients}."),
        (true, Some(out)) => format!("{writes} and {lost}; {clients}, but {out}."),
        (false, None) => format!("{writes} and {lost}, but {clients}."),
        (false, Some(out)) => format!("{writes} and {lost}, but {clients}; {out}."),
    }
}

/// What was promised to come back and had not by the end of the record.
fn never_back(findings: &[Finding]) -> Option<String> {
    let missing = |f: &&Finding| f.kind == "rto" && f.verdict == Verdict::Fail && f.to.is_none();
    let names: Vec<&str> = findings
        .iter()
        .filter(missing)
        .filter_map(|f| {
            Some(match f.capability.as_deref()? {
                marks::API_READY => "API servers were not ready",
                marks::FIRST_GOOD_WRITE => "nothing could be written",
                marks::FIRST_GOOD_GET => "no object could be read",
                marks::FIRST_TRUE_LIST => "no list was right",
                marks::SECRETS_READABLE => "Secrets could not be read",
                _ => return None,
            })
        })
        .collect();
    (!names.is_empty()).then(|| format!("{} by the end", names.join(" and ")))
}

fn harm(lying: &[&&ClientFacts]) -> String {
    let phantom = lying.iter().any(|c| c.phantom_objects.unwrap_or(0) > 0);
    let absent = lying.iter().any(|c| c.absent_objects.unwrap_or(0) + c.events_missed.unwrap_or(0) > 0);
    let stale = lying.iter().any(|c| c.stale_reads.unwrap_or(0) > 0);
    let overwrote = lying.iter().any(|c| c.cas_on_lost_state.unwrap_or(0) > 0);
    let harm = match (phantom, absent) {
        (true, true) => "went on showing objects that no longer exist or missed ones that do",
        (true, false) => "went on showing objects that no longer exist",
        (false, true) => "missed objects that exist",
        (false, false) if overwrote => "overwrote states that it had never seen",
        (false, false) if stale => "got answers that contradict etcd’s state",
        (false, false) => "saw a state that was long out of date",
    };
    let told = lying.iter().any(|c| c.gone410 > 0);
    if told { harm.to_owned() } else { format!("{harm}, without an error") }
}

/// When API writes were back, from the recovery objective that ends at the first good write.
fn writes_back(findings: &[Finding]) -> String {
    let to_write = |f: &&Finding| {
        f.unit == Unit::Nanoseconds && f.to.as_ref().is_some_and(|t| t.name == marks::FIRST_GOOD_WRITE)
    };
    let from_fault = |f: &&Finding| f.from.as_ref().is_some_and(|m| m.name == marks::FAULT);
    let finding = findings
        .iter()
        .filter(to_write)
        .find(from_fault)
        .map(|f| (f, "the fault"))
        .or_else(|| findings.iter().find(to_write).map(|f| (f, "the restore command")));
    match finding {
        Some((f, since)) => match (f.observed, f.lower, f.upper) {
            (Some(o), Some(l), Some(u)) => {
                let half = o.abs_diff(l).max(u.abs_diff(o));
                let duration = figure::duration;
                if l == 0 {
                    format!("API writes were back within {} of {since}", duration(u))
                } else if half > o / 4 {
                    format!("API writes were back {} to {} after {since}", duration(l), duration(u))
                } else {
                    format!("API writes were back {} (±{}) after {since}", duration(o), duration(half))
                }
            }
            _ => format!("When API writes were back after {since} is unknown"),
        },
        None => "The cluster was restored".to_owned(),
    }
}

/// A drill that expects a leak passes by it, and who reads "pass" may take the level for a wall.
fn leaked(judgement: &Judgement) -> Option<String> {
    let is_closed = |phase: &&ApfPhase| phase.shares == 0 && phase.limit_response == "reject";
    let through = |facts: &ApfFacts| -> u64 {
        facts.phases.iter().filter(is_closed).map(|phase| phase.ok - phase.ok_after_restore).sum()
    };
    let level = judgement.apf.iter().find(|facts| through(facts) > 0)?;
    let predicted = level.phases.iter().filter(is_closed).filter_map(|phase| phase.predicted.as_ref());
    let expected = match predicted.map(|predicted| predicted.holds).min() {
        Some(true) => ", as was predicted for this version: what is met is the prediction, it does not block",
        Some(false) | None => "",
    };
    Some(format!(
        "The level `{}` has no shares and executed {} all the same{expected}.",
        level.level,
        figure::quantity(through(level), Unit::Requests)
    ))
}

fn objectives(findings: &[Finding]) -> String {
    let count = |v: Verdict| findings.iter().filter(|f| f.verdict == v).count();
    let (met, missed, open) = (count(Verdict::Pass), count(Verdict::Fail), count(Verdict::Inconclusive));
    let worst = findings.iter().max_by_key(|f| f.verdict).filter(|f| f.verdict != Verdict::Pass);
    let tail = worst.map(|f| format!(" {}: {}", f.name, f.reason)).unwrap_or_default();
    format!("{met} of {} objectives met, {missed} missed, {open} inconclusive.{tail}", findings.len())
}
