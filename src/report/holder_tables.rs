//! Leases, leaders and consumers as tables that every format shows alike.

use super::build::word;
use super::figure;
use super::tables::Table;
use crate::check::leases::{Granted, LeaseFacts};
use crate::check::restore_facts::EtcdRestoreFacts;

/// Tables that have a row.
pub(super) fn tables(facts: &EtcdRestoreFacts) -> Vec<Table> {
    let all = [leases(facts), leaders(facts), consumers(facts)];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn leases(facts: &EtcdRestoreFacts) -> Table {
    let seconds = |n: Option<u64>| n.map_or_else(unknown, |n| format!("{n} s"));
    let rows = facts.leases.iter().map(|l| {
        let granted = match l.granted {
            Granted::BeforeSnapshot => "before the snapshot",
            Granted::AfterSnapshot => "after the snapshot",
            Granted::Meanwhile => "while it was taken",
        };
        let before =
            if l.given_back_before_loss { "given back".to_owned() } else { seconds(l.ttl_before_seconds) };
        vec![l.id.clone(), granted.to_owned(), before, seconds(l.ttl_after_seconds), outcome(l)]
    });
    Table {
        title: "etcd leases",
        columns: &["lease", "granted", "left before the loss", "left after the restore", "what became of it"],
        rows: rows.collect(),
    }
}

fn outcome(l: &LeaseFacts) -> String {
    match (l.came_back_with_full_ttl, l.not_found) {
        (_, Some(true)) => "not found".to_owned(),
        (Some(true), _) if l.given_back_before_loss => {
            format!("came back, with all of its {} s", l.granted_ttl_seconds)
        }
        (Some(true), _) => format!("all of its {} s again", l.granted_ttl_seconds),
        (Some(false), _) => "lives on".to_owned(),
        (None, _) => l.reason.clone().unwrap_or_else(unknown),
    }
}

fn leaders(facts: &EtcdRestoreFacts) -> Table {
    let rows = facts.leaders.iter().map(|l| {
        let holder = |h: &Option<String>| h.clone().unwrap_or_else(unknown);
        let overlap = match l.overlap_ns {
            Some(0) => "none".to_owned(),
            Some(ns) => figure::duration(ns),
            None => unknown(),
        };
        let transitions = l.transitions.map_or_else(unknown, |n| n.to_string());
        vec![l.lease.clone(), holder(&l.holder_before), holder(&l.holder_after), transitions, overlap]
    });
    Table {
        title: "Leaders",
        columns: &["lease", "before the fault", "at the end", "changes since the fault", "two at once"],
        rows: rows.collect(),
    }
}

fn consumers(facts: &EtcdRestoreFacts) -> Table {
    let rows = facts.consumers.iter().map(|c| {
        let duration = |ns: Option<u64>| ns.map_or_else(unknown, figure::duration);
        vec![
            format!("{} ({})", c.client, word(&c.kind)),
            format!("{} of {}", c.acted_after, c.made_after),
            duration(c.slowest_before_ns),
            duration(c.slowest_after_ns),
            c.lost.to_string(),
            c.acted_on_lost.map_or_else(|| "—".to_owned(), |n| n.to_string()),
            c.deleted.to_string(),
        ]
    });
    Table {
        title: "Consumers",
        columns: &[
            "client",
            "acted upon after the restore",
            "slowest before",
            "slowest after",
            "lost",
            "lost and acted upon",
            "deleted by somebody",
        ],
        rows: rows.collect(),
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}
