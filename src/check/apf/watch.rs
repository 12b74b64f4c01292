//! The objective `watchDelivers`.

use super::in_force;
use crate::check::coverage::cut_short;
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::check::{Finding, Judge};
use crate::clock::MonoNs;
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::record::{Event, Op};
use crate::plan::PlannedObjective;
use crate::plan::predict::fates::WATCH_GOES_ON;
use crate::timeline::clients::ClientLog;
use crate::timeline::writes::Told;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A watch that was open when a level was made goes on delivering while the level lasts: nothing ends it, and every
/// acknowledged write arrives. Opening a watch goes through flow control, delivering on it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchDelivers {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `watcher`.
    pub client: String,
    /// How long after its acknowledgement a write may arrive.
    #[serde(default = "WatchDelivers::default_within")]
    pub within: Span,
}

impl WatchDelivers {
    fn default_within() -> Span {
        Span::secs(2)
    }
}

impl ObjectiveKind for WatchDelivers {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("within"), self.within, (Span::millis(1), Span::secs(60)));
        let path = at.key("client");
        lint.needs_held_up(&path, "watcher", &self.client);
        lint.needs_writer(&path, "nothing is written that the watch could deliver");
    }

    fn predicted(&self, _: &Foreseen<'_>) -> Option<String> {
        Some(WATCH_GOES_ON.to_owned())
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// Fewer writes than these show nothing.
const LEAST: usize = 20;

/// Judges it. A watch that was ended, or a write that did not arrive in time, is a miss; each of them counts.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &WatchDelivers) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Interruptions, Some(0));
    let log = judge.log(&objective.client);
    let (Some(log), Some((from, to))) = (log, in_force(judge, &objective.client)) else {
        finding.reason = format!("{} was not seen while its level was in force", objective.client);
        return finding;
    };
    let within = objective.within.as_ns();
    let due: Vec<(u64, MonoNs)> = judge
        .timeline
        .writes
        .iter()
        .filter(|write| matches!(write.told, Told::Acked(_)) && write.call >= from)
        .filter(|write| write.ret.plus(within) <= to)
        .map(|write| (write.id, write.ret))
        .collect();
    let arrived = arrivals(log);
    let late: Vec<u64> = due
        .iter()
        .filter(|(id, ret)| arrived.get(id).is_none_or(|at| *at > ret.plus(within)))
        .map(|(id, _)| *id)
        .collect();
    let ends = interruptions(log, from, to);
    finding.evidence = ends.iter().map(|index| log.line(*index)).collect();
    let missed = (late.len() + ends.len()) as u64;
    finding.reason = format!(
        "{} of {} writes arrived within {} while the level was in force, the watch was ended or opened {} times",
        due.len() - late.len(),
        due.len(),
        objective.within,
        ends.len()
    );
    let unsure = log
        .incomplete()
        .or_else(|| cut_short(&judge.input.plan, judge.boundaries()))
        .or_else(|| (due.len() < LEAST).then(|| format!("{} writes are too few to tell", due.len())));
    finding.counted(missed, 0, unsure)
}

/// When each object first arrived.
fn arrivals(log: &ClientLog) -> BTreeMap<u64, MonoNs> {
    let mut arrived = BTreeMap::new();
    for (_, event) in log.events() {
        if let Event::Put { id, .. } = event.event {
            arrived.entry(id).or_insert(event.at_ns);
        }
    }
    arrived
}

/// Records of an end of the watch, or of another one being opened.
fn interruptions(log: &ClientLog, from: MonoNs, to: MonoNs) -> Vec<usize> {
    let within = |at: MonoNs| from <= at && at <= to;
    let ended = log.events().filter(|(_, event)| {
        within(event.at_ns) && matches!(event.event, Event::Ended { .. } | Event::Error { .. })
    });
    let opened = log
        .ops()
        .filter(|(_, op)| within(op.call_ns) && matches!(op.op, Op::Watch { .. } | Op::WatchList { .. }));
    ended.map(|(index, _)| index).chain(opened.map(|(index, _)| index)).collect()
}
