//! The auditor's part: planned and actual, scope, who and what, losses, findings to own.

use super::view::{clean, since, unknown};
use crate::check::Verdict;
use crate::escape::visible;
use crate::history::record::Record;
use crate::report::figure;
use crate::report::model::{Fault, Instant, Report};
use crate::timeline::EvidenceInput;

/// A planned step and what became of it.
pub(in crate::report) struct Step {
    pub(in crate::report) index: usize,
    pub(in crate::report) kind: String,
    pub(in crate::report) planned: String,
    pub(in crate::report) targets: String,
    pub(in crate::report) started: String,
    pub(in crate::report) took: String,
    pub(in crate::report) result: String,
    pub(in crate::report) ok: bool,
}

/// An injection and how far it came.
pub(in crate::report) struct Injection {
    pub(in crate::report) kind: String,
    pub(in crate::report) target: String,
    pub(in crate::report) rows: Vec<(&'static str, String)>,
    pub(in crate::report) note: String,
}

/// Planned and actual.
pub(super) fn steps(report: &Report, zero: u64) -> Vec<Step> {
    report
        .steps
        .iter()
        .map(|s| Step {
            index: s.index,
            kind: clean(&s.kind),
            planned: clean(&figure::settings(&s.planned)),
            targets: if s.targets.is_empty() { "—".to_owned() } else { clean(&s.targets.join(", ")) },
            started: s.started.as_ref().map_or_else(|| "never".to_owned(), |i| since(i, zero)),
            took: s.took_ns.map_or_else(|| "unknown".to_owned(), figure::duration),
            result: s.reason.as_deref().map_or_else(|| "done as planned".to_owned(), clean),
            ok: s.done,
        })
        .collect()
}

/// One injection.
pub(super) fn fault(f: &Fault, zero: u64) -> Injection {
    let at = |i: &Option<Instant>| i.as_ref().map_or_else(|| "never".to_owned(), |i| since(i, zero));
    let seen = |i: &Option<Instant>, what: Option<&String>| match (i, what) {
        (Some(i), Some(what)) => format!("{}: {}", since(i, zero), visible(what)),
        (i, _) => at(i),
    };
    Injection {
        kind: clean(&f.kind),
        target: clean(&f.target.join(", ")),
        rows: vec![
            ("Undo durable, lease granted", at(&f.armed)),
            ("Effect began", format!("{} to {}", at(&f.injecting), at(&f.injected))),
            ("Seen by an independent observation", seen(&f.verified, f.observation.as_ref())),
            ("Ended", seen(&f.ended, f.ended_by.as_ref())),
            ("End seen by an independent observation", seen(&f.end_verified, f.end_observation.as_ref())),
            ("Stopped by", f.stop_method.as_deref().map_or_else(|| "nothing was stopped".to_owned(), clean)),
            ("Undo", f.undo.as_deref().map_or_else(|| "not needed".to_owned(), clean)),
            ("Undo changed on the way", f.undo_amended.as_deref().map_or_else(|| "no".to_owned(), clean)),
        ],
        note: f.reason.as_deref().map(clean).unwrap_or_default(),
    }
}

/// What was in reach, and what was going to be harmed.
pub(super) fn scope(report: &Report) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for c in &report.clusters {
        let hosts: Vec<String> = c
            .hosts
            .iter()
            .map(|h| format!("{} ({})", visible(&h.name), visible(&h.components.join(", "))))
            .collect();
        out.push(("Hosts", hosts.join("; ")));
    }
    for s in &report.steps {
        if let Some(radius) = &s.blast_radius {
            out.push(("Blast radius", format!("step {}: {}", s.index, visible(radius))));
        }
        if let Some(undo) = &s.undo {
            out.push(("Undo", format!("step {}: {}", s.index, visible(undo))));
        }
    }
    out
}

/// Per history: due, recorded, late and lost operations, as its last line says.
pub(super) fn recorders(input: &EvidenceInput) -> Vec<[String; 5]> {
    input
        .histories
        .iter()
        .map(|(client, records)| {
            let mut sums: Option<[u64; 4]> = None;
            for record in records {
                if let Record::Closed { scheduled, late, lost, .. } = record {
                    let sum = sums.get_or_insert([0; 4]);
                    // As in the total: what was late does not count as recorded once more.
                    let in_time = scheduled.saturating_sub(late.saturating_add(*lost));
                    for (total, part) in sum.iter_mut().zip([*scheduled, in_time, *late, *lost]) {
                        *total = total.saturating_add(part);
                    }
                }
            }
            let cells = sums.map_or_else(
                || [const { String::new() }; 4].map(|_| "unknown: not closed".to_owned()),
                |sums| sums.map(|n| n.to_string()),
            );
            let [scheduled, recorded, late, lost] = cells;
            [clean(client), scheduled, recorded, late, lost]
        })
        .collect()
}

/// Who ran what, judged by what.
pub(super) fn identity(report: &Report) -> Vec<(&'static str, String)> {
    let run = &report.run;
    let reason = run.reason.as_ref();
    let mut out = vec![
        ("Drill owner", clean(&run.owner)),
        ("Purpose", clean(&run.purpose)),
        ("Operator", unknown(run.operator.as_ref(), reason)),
        ("Tool", unknown(run.tool.as_ref(), reason)),
        ("Judge", clean(&report.judge)),
        (
            "Approval",
            run.approval.as_deref().map_or_else(
                || format!("none: {}", visible(run.approval_reason.as_deref().unwrap_or("unknown"))),
                clean,
            ),
        ),
        ("Drill file, SHA-256", clean(&run.drill_digest)),
        ("Plan, SHA-256", unknown(run.plan_digest.as_ref(), reason)),
        ("Seed", run.seed.to_string()),
        ("Parameters", {
            let all: Vec<String> = run.parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
            if all.is_empty() { "none".to_owned() } else { clean(&all.join(", ")) }
        }),
    ];
    for c in &report.clusters {
        out.push(("Cluster UID", unknown(c.uid.as_ref(), c.reason.as_ref())));
        out.push(("Cluster CA, SHA-256", unknown(c.fingerprint.as_ref(), c.reason.as_ref())));
    }
    let e = &report.evidence;
    out.push(("Journal", format!("{} entries", e.entries)));
    out.push(("Journal head", unknown(e.journal_head.as_ref(), None)));
    out
}

/// Findings that somebody has to own: what was missed or could not be told.
pub(super) fn register(report: &Report) -> Vec<[String; 3]> {
    report
        .objectives
        .iter()
        .filter(|o| o.verdict != Verdict::Pass)
        .map(|o| [clean(&o.name), figure::met(o.verdict).to_owned(), clean(&o.reason)])
        .collect()
}
