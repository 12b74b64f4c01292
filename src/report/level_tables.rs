//! Priority levels as tables that every format shows alike.

use super::figure;
use super::tables::Table;
use crate::apf::range::Range;
use crate::check::apf::facts::{ApfFacts, ApfLatency, ApfPhase};

/// Tables that have a row.
pub(super) fn tables(facts: &ApfFacts) -> Vec<Table> {
    let all = [requests(facts), latencies(facts), seats(facts), leaks(facts), accounting(facts)];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// What people look for in the cluster is its own level, not what the drill calls it.
fn name(facts: &ApfFacts) -> String {
    match &facts.existing {
        Some(existing) => format!("{} ({existing})", facts.level),
        None => facts.level.clone(),
    }
}

fn requests(facts: &ApfFacts) -> Table {
    let row = |phase: &ApfPhase| {
        let predicted = phase.predicted.as_ref();
        let cell = |seen: u64, range: Option<Range>| match range {
            Some(range) if range.low == range.high && range.contains(seen) => seen.to_string(),
            Some(range) => format!("{seen} (predicted {})", words(range)),
            None => seen.to_string(),
        };
        let refused = |of: fn(&crate::check::apf::facts::ApfPredictedRejected) -> Range| {
            predicted.map(|predicted| of(&predicted.rejected))
        };
        vec![
            name(facts),
            phase.name.clone(),
            format!("{}, {} shares", phase.limit_response, phase.shares),
            phase.sent.to_string(),
            cell(phase.ok, predicted.map(|predicted| predicted.ok)),
            cell(phase.rejected.queue_full, refused(|r| r.queue_full)),
            cell(phase.rejected.time_out, refused(|r| r.time_out)),
            cell(phase.rejected.concurrency_limit, refused(|r| r.concurrency_limit)),
            (phase.rejected.other + phase.unanswered).to_string(),
        ]
    };
    Table {
        title: "Requests under flow control",
        columns: &[
            "level",
            "load",
            "begins with",
            "sent",
            "executed",
            "queue full",
            "timed out",
            "no seat",
            "otherwise",
        ],
        rows: facts.phases.iter().map(row).collect(),
    }
}

/// Refusals at once and waits of seconds have no common median worth reading.
fn latencies(facts: &ApfFacts) -> Table {
    let figure = |ns: Option<u64>| ns.map_or_else(|| "—".to_owned(), figure::duration);
    let words = |outcome: &str| match outcome {
        "ok" => "executed",
        "queueFull" => "queue full",
        "timeOut" => "timed out",
        "concurrencyLimit" => "no seat",
        _ => "otherwise",
    };
    let of_phase = |phase: &ApfPhase| {
        let row = |(outcome, latency): (&String, &ApfLatency)| {
            let figures = [latency.p50_ns, latency.p99_ns, latency.max_ns].map(figure);
            let head = [name(facts), phase.name.clone(), words(outcome).to_owned()];
            head.into_iter().chain(figures).collect::<Vec<_>>()
        };
        phase.latency_by_outcome.iter().map(row).collect::<Vec<_>>()
    };
    Table {
        title: "From due to answered, by what the answer was",
        columns: &["level", "load", "answer", "median", "99th percentile", "longest"],
        rows: facts.phases.iter().flat_map(of_phase).collect(),
    }
}

fn words(range: Range) -> String {
    if range.low == range.high { range.low.to_string() } else { format!("{} to {}", range.low, range.high) }
}

fn seats(facts: &ApfFacts) -> Table {
    let seat = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let rows = facts.servers.iter().map(|server| {
        let seats = &server.seats;
        let limits = [seats.nominal, seats.lower, seats.upper, seats.current].map(seat);
        [name(facts), server.name.clone(), server.version.clone()].into_iter().chain(limits).collect()
    });
    Table {
        title: "Seats at the end, by each API server's own metrics",
        columns: &["level", "API server", "version", "nominal", "lower", "upper", "current"],
        rows: rows.collect(),
    }
}

fn leaks(facts: &ApfFacts) -> Table {
    let rows = facts.leak.iter().map(|leak| {
        vec![
            name(facts),
            leak.server.clone(),
            format!("{} of {}", leak.admitted_while_held, leak.sent_while_held),
            leak.admitted_after.to_string(),
            leak.concurrent.to_string(),
        ]
    });
    Table {
        title: "What a level without seats lets through",
        columns: &["level", "API server", "executed while held", "executed afterwards", "at the same time"],
        rows: rows.collect(),
    }
}

fn accounting(facts: &ApfFacts) -> Table {
    let accounting = &facts.accounting;
    let said = match (accounting.holds, &accounting.reason) {
        (Some(true), _) => "agree".to_owned(),
        (Some(false), _) => accounting.differences.join("; "),
        (None, reason) => format!("can't be told: {}", reason.as_deref().unwrap_or("unknown")),
    };
    let control = &facts.control;
    let others = match control.sent {
        0 => "none sent".to_owned(),
        sent => format!("{} of {sent} executed", control.ok),
    };
    Table {
        title: "Clients and API servers",
        columns: &["level", "counted by both", "requests on other levels"],
        rows: vec![vec![name(facts), said, others]],
    }
}
