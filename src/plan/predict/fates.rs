//! What becomes of the requests of loads, by the levels that the drill makes and the version.
//!
//! The rules, and how each was established:
//! * A `Queue` level without seats dispatches nothing. As many requests wait as its queues take, each for a quarter
//!   of its deadline, 15 s by default; then it is refused, as is at once what finds them full. When seats come back,
//!   what still waits is executed (read in `fairqueuing/queueset/queueset.go` of 1.30.4 and 1.37.2; executed on both).
//! * A `Reject` level without seats executes one request at a time, as long as nothing else of it executes
//!   (kubernetes/kubernetes#134196; executed on 1.30.4 and 1.37.2).
//! * A level without seats whose `borrowingLimitPercent` is omitted borrows: within 10 s of the first request, when
//!   limits are adjusted, it has seats (read in `conc_alloc.go`; executed on 1.30.4 and 1.37.2).
//! * A level executes everything where as many requests as may be out at the same time find a seat, or a place to wait
//!   for one.
//!
//! What can't be foreseen from the steps of a drill ([`crate::drill::levels`]) is refused when the drill is read.

use super::super::{FlowPrediction, Versions};
use crate::apf::range::{Outcomes, Restored, Slack, zero_queue, zero_reject};
use crate::apf::seats::DEFAULT_SERVER_SEATS;
use crate::apf::version::reject_leaks;
use crate::check::apf::lease::LosesLease;
use crate::check::apf::outcomes::ApfOutcomes;
use crate::client::load_spec::{Load, LoadRequest};
use crate::drill::levels::{BORROWING_PERIOD, SharesBack};
use crate::drill::spec::{Drill, Objective};
use crate::drill::values::Span;
use crate::fault::apf_level::{ApfLevel, LimitResponse};
use crate::version::minor;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A prediction per objective and load.
pub(in super::super) fn predictions(drill: &Drill, versions: &Versions, seed: u64) -> Vec<FlowPrediction> {
    let objectives = drill.spec.objectives.iter().filter_map(|objective| match objective {
        Objective::ApfOutcomes(objective) => Some(objective),
        _ => None,
    });
    objectives
        .flat_map(|objective| {
            let loads = objective.clients.iter().filter_map(|name| drill.load(name));
            loads.map(|load| predict(drill, versions, seed, objective, load))
        })
        .collect()
}

fn predict(
    drill: &Drill,
    versions: &Versions,
    seed: u64,
    objective: &ApfOutcomes,
    load: &Load,
) -> FlowPrediction {
    let due = load.arrivals.offsets(seed);
    let total = due.len() as u64;
    let slack = Slack {
        arrival: objective.arrival.as_ns(),
        holding: objective.holding.as_ns(),
        propagation: objective.propagation.as_ns(),
    };
    let case =
        Case { load, due: &due, total, slack, leaks: reject_leaks(&versions.kubernetes).unwrap_or(true) };
    let met = drill.meeting(&load.name);
    let (expected, alternatives, source) = match met {
        None => (Outcomes::all_executed(total), BTreeMap::new(), "no level of the drill".to_owned()),
        Some(met) if met.shares() > 0 => {
            (Outcomes::all_executed(total), BTreeMap::new(), "it has seats and places enough".to_owned())
        }
        Some(met) => {
            let back = met.shares_back(|load| load.arrivals.offsets(seed)).ok().flatten();
            let restored = back.map(|SharesBack { at_ns, seats }| Restored { at: at_ns, seats });
            case.on(met.level, restored, versions)
        }
    };
    FlowPrediction {
        objective: objective.name.clone(),
        client: load.name.clone(),
        level: met.map(|met| met.level.name.clone()),
        total,
        expected,
        alternatives,
        source,
    }
}

/// Name of the alternative in which the level borrows.
const BORROWING: &str = "borrowing";

struct Case<'a> {
    load: &'a Load,
    due: &'a [u64],
    total: u64,
    slack: Slack,
    leaks: bool,
}

type Predicted = (Outcomes, BTreeMap<String, Outcomes>, String);

impl Case<'_> {
    fn on(&self, level: &ApfLevel, restored: Option<Restored>, versions: &Versions) -> Predicted {
        let all = Outcomes::all_executed(self.total);
        let borrows = level.borrowing_limit_percent.percent().is_none();
        let zero = self.without_seats(level, restored, self.leaks);
        let mut alternatives = BTreeMap::new();
        if borrows {
            alternatives.insert("no-borrowing".to_owned(), zero);
            return (all, alternatives, "conc_alloc.go: borrowingLimitPercent omitted borrows".to_owned());
        }
        alternatives.insert("another-level".to_owned(), all);
        if level.limit_response == (LimitResponse::Reject {}) {
            alternatives.insert("no-leak".to_owned(), self.without_seats(level, restored, false));
        } else {
            // Where counts can't tell the two apart, the limits that API servers show do.
            let borrowing = self.borrowing(level);
            if zero.excludes(&borrowing) {
                alternatives.insert(BORROWING.to_owned(), borrowing);
            }
        }
        if restored.is_some() {
            alternatives
                .insert("shares-not-restored".to_owned(), self.without_seats(level, None, self.leaks));
        }
        let minor = minor(&versions.kubernetes).map_or_else(String::new, |minor| format!(" of 1.{minor}"));
        (zero, alternatives, format!("queueset.go{minor}: a level without seats"))
    }

    /// With borrowing a level that queues has seats from some moment of the first ten seconds on.
    fn borrowing(&self, level: &ApfLevel) -> Outcomes {
        let period = Span(BORROWING_PERIOD).as_ns();
        let slack = Slack { propagation: period.saturating_add(self.slack.propagation), ..self.slack };
        let seats = Some(Restored { at: 0, seats: DEFAULT_SERVER_SEATS });
        zero_queue(level.room(), self.wait_ns(), self.due, seats, slack)
    }

    fn wait_ns(&self) -> u64 {
        Span(self.load.wait_limit()).as_ns()
    }

    fn without_seats(&self, level: &ApfLevel, restored: Option<Restored>, leaks: bool) -> Outcomes {
        match &level.limit_response {
            LimitResponse::Queue(_) => {
                let (room, wait) = (level.room(), self.wait_ns());
                if self.load.arrivals.at_a_time().is_some() {
                    // One waits, alone, until its time is over.
                    return zero_queue(room, wait, &spread(self.due, wait, self.slack), None, self.slack);
                }
                zero_queue(room, wait, self.due, restored, self.slack)
            }
            LimitResponse::Reject {} if self.load.while_held_by.is_some() => {
                Outcomes::all_limited(self.total)
            }
            LimitResponse::Reject {} if !leaks => Outcomes::all_limited(self.total),
            LimitResponse::Reject {} if self.load.arrivals.at_a_time().is_some() => {
                Outcomes::all_executed(self.total)
            }
            LimitResponse::Reject {} => {
                let least = match self.load.request {
                    LoadRequest::SlowCreate { duration } => duration.as_ns(),
                    _ => 0,
                };
                zero_reject(true, least, self.due, self.slack)
            }
        }
    }
}

/// Instants of a closed loop whose every request waits for `wait`.
fn spread(due: &[u64], wait: u64, slack: Slack) -> Vec<u64> {
    let each = wait.saturating_add(slack.arrival).saturating_add(slack.holding);
    (0..due.len() as u64).map(|index| index.saturating_mul(each)).collect()
}

/// What is expected of a watch that is open already.
pub const WATCH_GOES_ON: &str = "it goes on: a watch is under flow control until it is initialised, and not any more then (apf_filter.go)";

/// What is expected of a library that retries while its level is held and let go later.
pub const RETRIES_HIDE: &str = "every request succeeds for whoever asked, after one refused attempt or more; without retries each would be refused (client-go rest/with_retry.go, kube server_retry)";

pub(crate) fn loses_lease(drill: &Drill, objective: &LosesLease) -> Option<String> {
    let (earliest, latest) = drill.lease_lost(objective)?;
    Some(format!(
        "it stops leading {} to {} after its level is in force, and not at all where its level lets it through",
        Span(earliest),
        Span(latest)
    ))
}

/// Alternatives that no count of these predictions could be mistaken for.
#[must_use]
pub fn excluded(flows: &[&FlowPrediction]) -> BTreeMap<String, bool> {
    let names: BTreeSet<&String> = flows.iter().flat_map(|flow| flow.alternatives.keys()).collect();
    let told_apart = |name: &String| {
        flows
            .iter()
            .any(|flow| flow.alternatives.get(name).is_some_and(|other| flow.expected.excludes(other)))
    };
    names.into_iter().map(|name| (name.clone(), told_apart(name))).collect()
}

pub(crate) fn in_words(objective: &ApfOutcomes, flows: &[FlowPrediction]) -> Option<String> {
    let own: Vec<&FlowPrediction> = flows.iter().filter(|flow| flow.objective == objective.name).collect();
    let mut text = String::new();
    for flow in &own {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{} of {}: {}", flow.total, flow.client, outcomes(&flow.expected));
    }
    let excluded = excluded(&own);
    let named = |apart: bool| {
        excluded.iter().filter(|(_, a)| **a == apart).map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (told, open) = (named(true), named(false));
    if !told.is_empty() {
        let _ = write!(text, ". Excludes: {told}");
        if !excluded.contains_key(BORROWING)
            && own.iter().any(|flow| flow.alternatives.contains_key("another-level"))
        {
            text.push_str("; borrowing by the limits that API servers show");
        }
    }
    if !open.is_empty() {
        let _ = write!(text, ". Does not exclude: {open}");
    }
    (!text.is_empty()).then_some(text)
}

/// Counts in words, without those that are certainly none.
#[must_use]
pub fn outcomes(outcomes: &Outcomes) -> String {
    let words = outcomes.named().into_iter().filter(|(_, range)| range.high > 0).map(|(name, range)| {
        if range.low == range.high {
            format!("{} {name}", range.low)
        } else {
            format!("{} to {} {name}", range.low, range.high)
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
