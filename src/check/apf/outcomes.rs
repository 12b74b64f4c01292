//! The objective `apfOutcomes`, and what it rests on: requests by what became of them, what API servers
//! counted, and whether nobody else had a hand in the level.

use super::accounting;
use super::requests::{Counts, Levels, counts};
use crate::apf::range::Range;
use crate::check::coverage::cut_short;
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::check::{Finding, Judge};
use crate::client::load_spec::Load;
use crate::clock::MonoNs;
use crate::drill::levels::Unforeseen;
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::record::OpRecord;
use crate::plan::predict::fates::{excluded, in_words, outcomes};
use crate::plan::{FlowPrediction, PlannedObjective};
use crate::timeline::clients::ClientLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each of these loads met the fates that the model of flow control gives it, as counts within bounds.
///
/// Bounds follow from how late things may be, which is declared here. Where they don't exclude what the counts
/// would be with borrowing on, on another level, without the leak or without restored shares, the objective is
/// inconclusive. A drill is refused where the counts do not follow from its steps: when others use the level at the
/// same time, more requests than seats and queue take are sent at once to a level with seats, or nobody knows when
/// shares come back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApfOutcomes {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Names of `load` clients.
    pub clients: Vec<String>,
    /// From when a request is due until the API server has taken it in, at most.
    #[serde(default = "ApfOutcomes::default_arrival")]
    pub arrival: Span,
    /// From the end of a wait until its place is free, at most; also the longest execution.
    #[serde(default = "ApfOutcomes::default_holding")]
    pub holding: Span,
    /// From a change of shares until every API server has taken it in, at most.
    #[serde(default = "ApfOutcomes::default_propagation")]
    pub propagation: Span,
}

impl ApfOutcomes {
    fn default_arrival() -> Span {
        Span::millis(100)
    }

    fn default_holding() -> Span {
        Span::millis(500)
    }

    fn default_propagation() -> Span {
        Span::secs(1)
    }
}

impl ObjectiveKind for ApfOutcomes {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("arrival"), self.arrival, (Span::millis(1), Span::secs(10)));
        lint.span(&at.key("holding"), self.holding, (Span::millis(1), Span::secs(10)));
        lint.span(&at.key("propagation"), self.propagation, (Span::millis(1), Span::secs(60)));
        let path = at.key("clients");
        if self.clients.is_empty() {
            lint.error(
                &path,
                "no load is named, so nothing is counted",
                "name `load` clients, as `[jailed]`",
            );
        }
        for client in &self.clients {
            lint.needs_load(&path, client);
        }
        for (index, client) in self.clients.iter().enumerate() {
            if self.clients[..index].contains(client) {
                let title = format!("`{client}` is named twice, and would be counted twice");
                lint.error(&path, title, "name each load once");
            }
            // Only which of the requests come close to each other depends on the seed.
            let due = |load: &Load| load.arrivals.offsets(0);
            if let Err(Unforeseen { why, help }) = lint.drill.foresee(client, due) {
                lint.error(&path, format!("nothing can be predicted of `{client}`: {why}"), help);
            }
        }
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        in_words(self, foreseen.flows)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Judges it: counts of every load within their bounds, which exclude every named alternative.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &ApfOutcomes) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::UnpredictedRequests, Some(0));
    let flows: Vec<&FlowPrediction> =
        judge.input.plan.flow.iter().filter(|flow| flow.objective == objective.name).collect();
    let levels = Levels::of(judge.input);
    let (mut outside, mut told, mut unsure) = (0, Vec::new(), Vec::new());
    for flow in &flows {
        let Some(log) = judge.log(&flow.client) else {
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
    finding.counted(outside, 0, (!unsure.is_empty()).then(|| unsure.join("; ")))
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
            crate::check::figures::human(seen.latest_sent_after_due),
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
    let held = judge.log(holder).and_then(held_by);
    match (held, seen.first_sent, seen.last_done) {
        (Some((from, to)), Some(first), Some(last)) if from < first && last < to => None,
        (None, ..) => Some(format!("{holder} held the level at no time")),
        _ => Some(format!("{holder} did not hold the level for as long as {name} took")),
    }
}

/// From the sending of a holder's request to its answer.
pub(super) fn held_by(log: &ClientLog) -> Option<(MonoNs, MonoNs)> {
    let (_, op) = log.ops().next()?;
    Some((op.exchange.as_ref()?.sent_ns?, op.return_ns))
}
