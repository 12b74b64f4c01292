//! `facts.apf[]` of the report: one entry per level of the drill.

use super::accounting::accounts;
use super::outcomes::held_by;
use super::requests::{
    self, Counts, Kind, Levels, counts, drill_levels, kinds, level_of, nearest_rank, run_id,
};
use super::servers::readings;
use crate::apf::range::{Outcomes, Range};
use crate::check::Judge;
use crate::clock::MonoNs;
use crate::component::{ComponentId, Role};
use crate::fault::apf_level::{ApfLevel, LimitResponse};
use crate::timeline::clients::ClientLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfFacts {
    /// Cluster that it is about.
    pub cluster: String,
    /// Name of the level in the drill.
    pub level: String,
    /// The level of the cluster that it changes; absent: it is the drill's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<String>,
    /// Name of the schema that sends clients to it, in the cluster.
    pub flow_schema: String,
    /// Each API server, as its own metrics have the level at the last reading.
    pub servers: Vec<ApfServer>,
    /// Each load that was meant for the level.
    pub phases: Vec<ApfPhase>,
    /// Loads of the drill on no level of it.
    pub control: ApfControl,
    /// What API servers counted against what clients recorded.
    pub accounting: ApfAccounting,
    /// What came through a level without seats while something held it, by server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leak: Vec<ApfLeak>,
}

/// One API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfServer {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Its limits, in seats.
    pub seats: ApfSeats,
}

/// Limits of a level; `null`: the server shows none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfSeats {
    /// `nominal_limit_seats`.
    pub nominal: Option<u64>,
    /// `lower_limit_seats`.
    pub lower: Option<u64>,
    /// `upper_limit_seats`.
    pub upper: Option<u64>,
    /// `current_limit_seats`.
    pub current: Option<u64>,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfPhase {
    /// Name of the client.
    pub name: String,
    /// The API server that it asked.
    pub server: String,
    /// `reject` or `queue`.
    pub limit_response: String,
    /// Shares of the level when the load began.
    pub shares: u32,
    /// Requests that were recorded.
    pub sent: u64,
    /// Executed, with success.
    pub ok: u64,
    /// Of these, answered after shares had been given to the level.
    pub ok_after_restore: u64,
    /// Refused.
    pub rejected: ApfRejected,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Answers whose headers name the level.
    pub headers_matched: u64,
    /// Answers without them, or with those of another level.
    pub headers_missing: u64,
    /// From due to answered.
    pub latency: ApfLatency,
    /// The same by what the answer was: `ok`, `queueFull`, `timeOut`, `concurrencyLimit`, `other`.
    #[serde(default)]
    pub latency_by_outcome: BTreeMap<String, ApfLatency>,
    /// Longest time from due to sent.
    pub sent_after_due_max_ns: u64,
    /// Least and most of `Retry-After`; `null`: no answer has one.
    pub retry_after_seconds: Option<MinMax>,
    /// What the plan predicted.
    pub predicted: Option<ApfPredicted>,
}

/// Refusals by reason, told apart by the level's response and the time that they took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfRejected {
    /// The queue was full.
    pub queue_full: u64,
    /// The wait had ended.
    pub time_out: u64,
    /// Nothing may wait.
    pub concurrency_limit: u64,
    /// Answers that are neither success nor flow control's.
    pub other: u64,
}

/// Latencies of answers; `null`: there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfLatency {
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Most.
    pub max_ns: Option<u64>,
}

/// Least and most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MinMax {
    /// Least.
    pub min: u64,
    /// Most.
    pub max: u64,
}

/// Predicted counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfPredicted {
    /// Executed.
    pub ok: Range,
    /// Refused.
    pub rejected: ApfPredictedRejected,
    /// Whether every count is within its bounds.
    pub holds: bool,
    /// Where the rule comes from.
    pub source: String,
}

/// Predicted refusals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfPredictedRejected {
    /// The queue was full.
    pub queue_full: Range,
    /// The wait had ended.
    pub time_out: Range,
    /// Nothing may wait.
    pub concurrency_limit: Range,
}

/// Loads that are on no level of the drill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfControl {
    /// Requests that were recorded.
    pub sent: u64,
    /// Executed, with success.
    pub ok: u64,
}

/// Whether servers and clients agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfAccounting {
    /// Every identity holds on every server; `null`: it can't be told.
    pub holds: Option<bool>,
    /// Those that don't, in words.
    pub differences: Vec<String>,
    /// Why it can't be told.
    pub reason: Option<String>,
}

/// The leak of one API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApfLeak {
    /// Which.
    pub server: String,
    /// Requests executed while another one held the level.
    pub admitted_while_held: u64,
    /// Of how many.
    pub sent_while_held: u64,
    /// Requests executed after the holder's end.
    pub admitted_after: u64,
    /// Requests that were surely executing at the same time: the holder's, and one that came through meanwhile.
    pub concurrent: u64,
}

/// An entry per level of the drill.
#[must_use]
pub fn apf(judge: &Judge) -> Vec<ApfFacts> {
    drill_levels(judge.input).map(|(_, level)| of_level(judge, level)).collect()
}

fn of_level(judge: &Judge, level: &ApfLevel) -> ApfFacts {
    let input = judge.input;
    let levels = Levels::of(input);
    let loads: Vec<&ClientLog> = judge.logs.iter().filter(|log| requests::is_load(log)).collect();
    let (own, others): (Vec<&ClientLog>, Vec<&ClientLog>) =
        loads.into_iter().partition(|log| level_of(log, input).is_some_and(|l| l.name == level.name));
    let control = others.iter().filter(|log| level_of(log, input).is_none()).map(|log| counts(log, input));
    let control = control.fold(ApfControl::default(), |sum, seen| ApfControl {
        sent: sum.sent + seen.recorded,
        ok: sum.ok + seen.ok,
    });
    ApfFacts {
        cluster: input.plan.cluster.name.clone(),
        level: level.name.clone(),
        existing: level.existing.as_ref().map(|existing| existing.level.clone()),
        flow_schema: level.own_name(run_id(input)),
        servers: servers(judge, level),
        phases: own.iter().map(|log| phase(judge, level, log, &levels)).collect(),
        control,
        accounting: accounting(judge, level),
        leak: leaks(judge, &own),
    }
}

fn servers(judge: &Judge, level: &ApfLevel) -> Vec<ApfServer> {
    let read = readings(judge.input, &level.name);
    let components = judge.input.plan.cluster.components.iter().filter(|c| c.role == Role::KubeApiserver);
    components
        .map(|component| {
            let last = read.get(&component.component).and_then(|readings| readings.last());
            let seat = |name: &str| last.and_then(|reading| reading.seats.get(name).copied());
            ApfServer {
                name: component.component.to_string(),
                version: judge.input.plan.cluster.versions.kubernetes.clone(),
                seats: ApfSeats {
                    nominal: seat("nominal"),
                    lower: seat("lower"),
                    upper: seat("upper"),
                    current: seat("current"),
                },
            }
        })
        .collect()
}

fn phase(judge: &Judge, level: &ApfLevel, log: &ClientLog, levels: &Levels) -> ApfPhase {
    let seen = counts(log, judge.input);
    let matched = log.ops().filter(|(_, op)| levels.is_on(op, &level.name)).count() as u64;
    let flow = judge.input.plan.flow.iter().find(|flow| flow.client == log.name());
    ApfPhase {
        name: log.name().to_owned(),
        server: log.planned.target.to_string(),
        limit_response: match level.limit_response {
            LimitResponse::Reject {} => "reject".to_owned(),
            LimitResponse::Queue(_) => "queue".to_owned(),
        },
        shares: requests::shares_at(judge.input, level, seen.first_sent),
        sent: seen.recorded,
        ok: seen.ok,
        ok_after_restore: seen.ok_after_restore,
        rejected: ApfRejected {
            queue_full: seen.queue_full,
            time_out: seen.time_out,
            concurrency_limit: seen.concurrency_limit,
            other: seen.other,
        },
        unanswered: seen.unanswered,
        headers_matched: matched,
        headers_missing: (seen.with_headers + seen.without_headers).saturating_sub(matched),
        latency: latency(&seen.all_latencies()),
        latency_by_outcome: seen
            .latencies
            .iter()
            .map(|(kind, sorted)| (kind.name().to_owned(), latency(sorted)))
            .collect(),
        sent_after_due_max_ns: seen.latest_sent_after_due,
        retry_after_seconds: seen.retry_after.map(|(min, max)| MinMax { min, max }),
        predicted: flow.map(|flow| predicted(&flow.expected, &seen, &flow.source)),
    }
}

fn latency(sorted: &[u64]) -> ApfLatency {
    let percentile = |percent| nearest_rank(sorted, sorted.len(), percent);
    ApfLatency { p50_ns: percentile(50), p99_ns: percentile(99), max_ns: percentile(100) }
}

fn predicted(expected: &Outcomes, seen: &Counts, source: &str) -> ApfPredicted {
    let within = expected.named().into_iter().zip(seen.named()).all(|((_, range), (_, n))| range.contains(n));
    ApfPredicted {
        ok: expected.ok,
        rejected: ApfPredictedRejected {
            queue_full: expected.queue_full,
            time_out: expected.time_out,
            concurrency_limit: expected.concurrency_limit,
        },
        holds: within && seen.other == 0 && seen.unanswered == 0,
        source: source.to_owned(),
    }
}

fn accounting(judge: &Judge, level: &ApfLevel) -> ApfAccounting {
    let accounts = accounts(judge.input, &judge.logs, &level.name);
    let unknown: Vec<String> = accounts.iter().filter_map(|a| a.counted.as_ref().err().cloned()).collect();
    let differences: Vec<String> = accounts
        .iter()
        .flat_map(|a| {
            a.differences.iter().map(|d| format!("{}: {}: {} and {}", a.server, d.identity, d.left, d.right))
        })
        .collect();
    let reason = match (accounts.is_empty(), unknown.is_empty()) {
        (true, _) => Some("no API server's counters were read".to_owned()),
        (false, false) => Some(unknown.join("; ")),
        (false, true) => None,
    };
    ApfAccounting { holds: reason.is_none().then_some(differences.is_empty()), differences, reason }
}

/// Per server that a holder held: what came through meanwhile and afterwards.
fn leaks(judge: &Judge, own: &[&ClientLog]) -> Vec<ApfLeak> {
    let holder_of = |log: &ClientLog| {
        let holder = log.planned.load()?.while_held_by.as_deref()?;
        own.iter().find(|other| other.name() == holder)
    };
    let held: Vec<(&ClientLog, &ClientLog)> =
        own.iter().filter_map(|log| Some((*log, *holder_of(log)?))).collect();
    held.iter()
        .filter_map(|(log, holder)| {
            let (_, end) = held_by(holder)?;
            let server = &log.planned.target;
            let meanwhile = counts(log, judge.input);
            Some(ApfLeak {
                server: server.to_string(),
                admitted_while_held: meanwhile.ok,
                sent_while_held: meanwhile.recorded,
                admitted_after: executed_after(judge, own, server, end),
                concurrent: counts(holder, judge.input).ok + u64::from(meanwhile.ok > 0),
            })
        })
        .collect()
}

/// Requests of these loads that one server executed and that were sent later than `after`.
fn executed_after(judge: &Judge, own: &[&ClientLog], server: &ComponentId, after: MonoNs) -> u64 {
    let on_server = own.iter().filter(|log| log.planned.target == *server);
    let executed = on_server.flat_map(|log| {
        kinds(log, judge.input).filter(|(_, op, kind)| {
            let sent = op.exchange.as_ref().and_then(|exchange| exchange.sent_ns);
            *kind == Kind::Ok && sent.is_some_and(|sent| sent > after)
        })
    });
    executed.count() as u64
}
