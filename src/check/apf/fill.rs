//! How full the queue of a level was: by the model, from when requests were sent, and by API servers themselves.

use super::requests::{drill_levels, facts, is_load, level_of};
use super::servers::readings;
use crate::apf::level::{Arrival, Change, Response, fates, waiting};
use crate::clock::MonoNs;
use crate::component::ComponentId;
use crate::drill::values::Span;
use crate::fault::apf_level::{ApfLevel, LimitResponse};
use crate::journal::entry::Fact;
use crate::timeline::EvidenceInput;
use crate::timeline::clients::ClientLog;
use std::collections::BTreeMap;

/// An execution takes about this long; next to waits of seconds it does not matter how long.
const SERVICE_NS: u64 = 2_000_000;

/// The queue of one level on one API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFill {
    /// Name of the level in the drill.
    pub level: String,
    /// The API server.
    pub server: ComponentId,
    /// Requests in the queue from each of these instants on, by the model.
    pub model: Vec<(MonoNs, u64)>,
    /// What the server said: asked, answered, requests in the queue.
    pub seen: Vec<(MonoNs, MonoNs, u64)>,
}

/// Queues of levels that begin without seats, which is what the model knows exactly, in the order of the drill.
#[must_use]
pub fn queue_fills(input: &EvidenceInput, logs: &[ClientLog]) -> Vec<QueueFill> {
    let mut fills = Vec::new();
    for (_, level) in drill_levels(input).filter(|(_, level)| level.shares == 0 && level.existing.is_none()) {
        let LimitResponse::Queue(_) = &level.limit_response else { continue };
        let response = Response::Queue { capacity: usize::try_from(level.room()).unwrap_or(usize::MAX) };
        for (server, sent) in arrivals(input, logs, level) {
            let fates = fates(response, &changes(input, level, &server), &sent);
            let model = waiting(&sent, &fates).into_iter().map(|(at, count)| (MonoNs(at), count)).collect();
            let seen = seen(input, level, &server);
            fills.push(QueueFill { level: level.name.clone(), server, model, seen });
        }
    }
    fills
}

/// Requests that loads have sent to the level, by server, in order of time.
fn arrivals(
    input: &EvidenceInput,
    logs: &[ClientLog],
    level: &ApfLevel,
) -> BTreeMap<ComponentId, Vec<Arrival>> {
    let mut all: BTreeMap<ComponentId, Vec<Arrival>> = BTreeMap::new();
    let of_level =
        |log: &&ClientLog| is_load(log) && level_of(log, input).is_some_and(|l| l.name == level.name);
    for log in logs.iter().filter(of_level) {
        let wait = Span(log.planned.wait_limit()).as_ns();
        let sent = log.ops().filter_map(|(_, op)| op.exchange.as_ref()?.sent_ns);
        let arrival = |sent: MonoNs| Arrival { at: sent.0, wait_limit: wait, service: SERVICE_NS };
        all.entry(log.planned.target.clone()).or_default().extend(sent.map(arrival));
    }
    for arrivals in all.values_mut() {
        arrivals.sort_by_key(|arrival| arrival.at);
    }
    all
}

/// Seats as the journal has them: none until shares were given, then what the server itself counts with in the end.
fn changes(input: &EvidenceInput, level: &ApfLevel, server: &ComponentId) -> Vec<Change> {
    let given = readings(input, &level.name)
        .remove(server)
        .and_then(|all| all.iter().filter_map(|reading| reading.seats.get("nominal").copied()).max());
    let change = |fact: &Fact| match fact {
        Fact::SharesChanged { level: of, shares, return_ns, .. } if *of == level.name => {
            let seats = if *shares == 0 { 0 } else { given.unwrap_or(u64::MAX) };
            Some(Change { at: return_ns.0, seats })
        }
        _ => None,
    };
    facts(input).filter_map(change).collect()
}

fn seen(input: &EvidenceInput, level: &ApfLevel, server: &ComponentId) -> Vec<(MonoNs, MonoNs, u64)> {
    let of_level = |fact: &Fact| match fact {
        Fact::QueueFill { level: of, server: on, waiting, call_ns, return_ns, .. }
            if *of == level.name && on == server =>
        {
            Some((*call_ns, *return_ns, *waiting))
        }
        _ => None,
    };
    facts(input).filter_map(of_level).collect()
}
