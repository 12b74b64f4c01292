//! The report as Markdown: the same order as the HTML file, without pictures.

use super::advice;
use super::figure;
use super::html::{Page, page};
use super::ladder;
use super::model::Report;
use super::prepared::Prepared;
use super::tables;
use crate::escape::{markdown as safe, markdown_code as code};
use std::fmt::Write as _;

mod audit;

/// The report as Markdown (GitHub's tables).
#[must_use]
pub fn render(prepared: &Prepared<'_>) -> String {
    let report = &prepared.report;
    let page = page(prepared);
    let mut out = String::new();
    head(&mut out, report, &page);
    objectives(&mut out, report);
    audit::marks(&mut out, &page);
    recovery(&mut out, report);
    predictions(&mut out, report);
    clients(&mut out, report);
    audit::clients(&mut out, &page);
    figures(&mut out, report);
    audit::loss(&mut out, &page);
    prevention(&mut out, report);
    audit::auditor(&mut out, &page);
    out
}

fn head(out: &mut String, report: &Report, page: &Page) {
    let verdict = figure::verdict(report.verdict).to_uppercase();
    let _ = writeln!(out, "# {verdict}: {}\n\n{}\n", safe(&report.run.title), safe(&report.summary));
    let outcome = match page.outcome_reason.as_str() {
        "" => page.outcome.clone(),
        reason => format!("{}: {reason}", page.outcome),
    };
    audit::pairs(
        out,
        page.facts.iter().map(|(k, v)| (*k, v.as_str())).chain([("Outcome", outcome.as_str())]),
    );
    for set in &page.overrides {
        let _ = writeln!(out, "- overridden: {}", code(set));
    }
    out.push('\n');
}

fn objectives(out: &mut String, report: &Report) {
    out.push_str(
        "## Objectives\n\n| objective | verdict | observed | target | reason |\n|---|---|---|---|---|\n",
    );
    for o in &report.objectives {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            safe(&o.name),
            figure::met(o.verdict),
            safe(&figure::observed(o)),
            safe(&figure::target(o)),
            safe(&o.reason)
        );
    }
    out.push('\n');
}

fn recovery(out: &mut String, report: &Report) {
    let rungs = ladder::rungs(report);
    if rungs.is_empty() {
        return;
    }
    out.push_str(
        "## Recovery\n\n| capability | from the fault | from the restore command |\n|---|---|---|\n",
    );
    for rung in rungs {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            rung.label,
            safe(&rung.from_fault.text()),
            safe(&rung.from_command.text())
        );
    }
    out.push('\n');
}

fn predictions(out: &mut String, report: &Report) {
    if report.predictions.is_empty() {
        return;
    }
    out.push_str(
        "## Predicted and observed\n\n| | subject | what | predicted | observed |\n|---|---|---|---|---|\n",
    );
    let mut rows: Vec<_> = report.predictions.iter().collect();
    rows.sort_by_key(|p| super::html::difference_rank(p.agrees));
    for p in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            super::html::agreement(p.agrees),
            safe(&p.subject),
            safe(&p.what),
            safe(&p.predicted),
            safe(&p.observed)
        );
    }
    out.push('\n');
}

fn clients(out: &mut String, report: &Report) {
    for facts in &report.facts.etcd_restore {
        let _ = writeln!(
            out,
            "## Clients\n\n| client | kind | view | operations | phantom objects | absent objects | events missed | silent | 410 | relists | revision went back | updates on lost state |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        );
        let number = |n: Option<u64>| n.map_or_else(|| "—".to_owned(), |n| n.to_string());
        for c in &facts.clients {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                safe(&c.name),
                super::build::word(&c.kind),
                c.view().words(),
                c.operations,
                number(c.phantom_objects),
                number(c.absent_objects),
                number(c.events_missed),
                c.silent_for_ns.map_or_else(|| "—".to_owned(), figure::duration),
                c.gone410,
                c.relists,
                number(c.rv_regressions),
                number(c.cas_on_lost_state)
            );
        }
        let l = &facts.ledger;
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        let _ = writeln!(
            out,
            "\nLedger: {} writes acknowledged, {} of them before the loss: {} kept, {} lost; {} indeterminate, {} phantom. Revision {} before the loss, {} after the restore; at least {} revisions seen with two contents.\n",
            l.acked,
            l.acked_before_loss,
            count(l.kept),
            count(l.lost),
            l.indeterminate,
            count(l.phantom),
            count(facts.revision_before),
            facts.revision_after,
            count(facts.revisions_reused)
        );
    }
}

fn figures(out: &mut String, report: &Report) {
    for table in tables::of(report) {
        let _ = writeln!(out, "## {}\n\n| {} |", table.title, table.columns.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
        for row in table.rows {
            let cells: Vec<String> = row.iter().map(|cell| safe(cell)).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out.push('\n');
    }
}

fn prevention(out: &mut String, report: &Report) {
    let advice = advice::of(report);
    if advice.is_empty() {
        return;
    }
    out.push_str("## What would have prevented it\n\n");
    for item in advice {
        let _ = writeln!(out, "**{}.** {}\n\n```sh", safe(&item.title), safe(&item.why));
        for command in &item.commands {
            let _ = writeln!(out, "{}", crate::escape::visible(command));
        }
        out.push_str("```\n\n");
    }
}
