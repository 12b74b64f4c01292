//! The objective `apfOutcomes`, and what it rests on: requests by what became of them, what API servers
//! counted, and whether nobody else had a hand in the level.

pub mod accounting;
pub mod facts;
pub mod fill;
pub mod latency;
pub mod lease;
pub mod requests;
pub mod retries;
mod servers;
pub mod success;
pub mod watch;

use super::coverage::cut_short;
use super::objectives::ApfOutcomes;
use super::{Finding, Judge, Verdict};
use crate::apf::range::Range;
use crate::clock::MonoNs;
use crate::fault::apf_level::ApfLevel;
use crate::history::record::OpRecord;
use crate::plan::predict::flow::{excluded, outcomes};
use crate::plan::{FlowPrediction, PlannedObjective};
use crate::step::injection_id;
use crate::timeline::boundaries::FaultSpan;
use crate::timeline::clients::ClientLog;
use requests::{Counts, Levels, counts};

/// The fault that holds up a client.
fn holding_up<'j>(judge: &'j Judge, client: &str) -> Option<&'j FaultSpan> {
    let of = |(_, level): &(usize, &ApfLevel)| level.clients.iter().any(|name| name == client);
    let (step, _) = requests::drill_levels(judge.input).find(of)?;
    let planned = judge.input.plan.steps.get(step)?;
    let id = injection_id(planned);
    judge.boundaries().faults.iter().find(|fault| fault.injection == id)
}

/// From when a client was surely held up, until when surely.
fn in_force(judge: &Judge, client: &str) -> Option<(MonoNs, MonoNs)> {
    let fault = holding_up(judge, client)?;
    Some((fault.verified.as_ref()?.mono_ns, fault.ended.as_ref()?.mono_ns))
}

/// Judges it: counts of every load within their bounds, which exclude every named alternative.
#[must_use]
pub fn check(judge: &Judge, planned: &PlannedObjective, objective: &ApfOutcomes) -> Finding {
    let mut finding = judge.finding(planned, "apfOutcomes");
    (finding.unit, finding.target) = ("unpredicted requests".to_owned(), Some(0));
    let flows: Vec<&FlowPrediction> =
        judge.input.plan.flow.iter().filter(|flow| flow.objective == objective.name).collect();
    let levels = Levels::of(judge.input);
    let (mut outside, mut told, mut unsure) = (0, Vec::new(), Vec::new());
    for flow in &flows {
        let Some(log) = judge.logs.iter().find(|log| log.name() == flow.client) else {
            unsure.push(format!("{} left no history", flow.client));
            continue;
        };
        let seen = counts(log, judge.input);
        unsure.extend(doubt(judge, objective, flow, log, &seen, &levels));
        let beyond = beyond(flow, &seen);
        outside += beyond;
        let words = seen.in_words();
        told.push(match beyond {
            0 => format!("{}: {words}, as predicted", flow.client),
            _ => format!("{}: {words}, predicted {}", flow.client, outcomes(&flow.expected)),
        });
        finding.evidence.extend(seen.examples.iter().map(|index| log.line(*index)));
    }
    finding.reason = told.join("; ");
    unsure.extend(cut_short(&judge.input.plan, judge.boundaries()));
    unsure.extend(accounting::doubts(judge.input, &judge.logs));
    let open: Vec<String> =
        excluded(&flows).into_iter().filter(|(_, apart)| !apart).map(|(name, _)| name).collect();
    if !open.is_empty() {
        unsure.push(format!("the bounds do not exclude {}", open.join(", ")));
    }
    if flows.is_empty() {
        unsure.push("the plan predicts nothing".to_owned());
    }
    if unsure.is_empty() {
        let bound = Some(outside);
        (finding.observed, finding.lower, finding.upper) = (bound, bound, bound);
        finding.verdict = if outside == 0 { Verdict::Pass } else { Verdict::Fail };
    } else {
        finding.reason = format!("{}; but {}", finding.reason, unsure.join("; "));
    }
    finding
}

/// Requests by which a count leaves its bounds, those that met no predicted fate included.
fn beyond(flow: &FlowPrediction, seen: &Counts) -> u64 {
    let ranges = flow.expected.named().into_iter().map(|(_, range)| range);
    let off =
        |(range, count): (Range, u64)| count.saturating_sub(range.high) + range.low.saturating_sub(count);
    ranges.zip(seen.named().map(|(_, count)| count)).map(off).sum::<u64>() + seen.other
}

/// Why a load's counts prove nothing.
fn doubt(
    judge: &Judge,
    objective: &ApfOutcomes,
    flow: &FlowPrediction,
    log: &ClientLog,
    seen: &Counts,
    levels: &Levels,
) -> Vec<String> {
    let name = &flow.client;
    let mut doubts: Vec<String> = log.incomplete().into_iter().collect();
    if seen.recorded != flow.total {
        doubts.push(format!("{name} recorded {} of {} requests", seen.recorded, flow.total));
    }
    if seen.unanswered > 0 {
        doubts.push(format!("{} requests of {name} got no answer", seen.unanswered));
    }
    if seen.latest_sent_after_due > objective.arrival.as_ns() {
        doubts.push(format!(
            "{name} sent a request {} after it was due, more than the {} of the bounds",
            super::figures::human(seen.latest_sent_after_due),
            objective.arrival
        ));
    }
    doubts.extend(levels.doubt(flow, log, seen));
    doubts.extend(out_of_order(log));
    let spec = log.planned.load();
    if let Some(holder) = spec.and_then(|load| load.while_held_by.as_deref()) {
        doubts.extend(not_held(judge, holder, seen, name));
    }
    doubts
}

/// A record whose instants can't follow one another is none of a request.
fn out_of_order(log: &ClientLog) -> Option<String> {
    let follows = |op: &OpRecord| {
        let exchange = op.exchange.as_ref();
        let sent = exchange.and_then(|exchange| exchange.sent_ns);
        let first = exchange.and_then(|exchange| exchange.first_byte_ns);
        let instants = [op.due_ns, sent, first, Some(op.return_ns)];
        instants.into_iter().flatten().is_sorted() && op.call_ns <= op.return_ns
    };
    let (index, _) = log.ops().find(|(_, op)| !follows(op))?;
    Some(format!("the instants of {} do not follow one another", log.line(index)))
}

/// Why a level may have been idle while these requests were out.
fn not_held(judge: &Judge, holder: &str, seen: &Counts, name: &str) -> Option<String> {
    let held = judge.logs.iter().find(|log| log.name() == holder).and_then(held_by);
    match (held, seen.first_sent, seen.last_done) {
        (Some((from, to)), Some(first), Some(last)) if from < first && last < to => None,
        (None, ..) => Some(format!("{holder} held the level at no time")),
        _ => Some(format!("{holder} did not hold the level for as long as {name} took")),
    }
}

/// From the sending of a holder's request to its answer.
fn held_by(log: &ClientLog) -> Option<(MonoNs, MonoNs)> {
    let (_, op) = log.ops().next()?;
    Some((op.exchange.as_ref()?.sent_ns?, op.return_ns))
}
