//! The parts of the report that the HTML file has prepared already: instants, records, and the auditor's part.

use super::{code, safe};
use crate::report::html::Page;
use std::fmt::Write as _;

/// A list of names and values.
pub(super) fn pairs<'a>(out: &mut String, rows: impl IntoIterator<Item = (&'a str, &'a str)>) {
    for (name, value) in rows {
        let _ = writeln!(out, "- {}: {}", safe(name), safe(value));
    }
}

fn table<const N: usize>(out: &mut String, head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let _ = writeln!(out, "| {} |\n|{}", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push('\n');
}

/// The timeline without its picture.
pub(super) fn marks(out: &mut String, page: &Page) {
    if page.marks.is_empty() && page.unreached.is_empty() {
        return;
    }
    out.push_str(
        "## Timeline\n\nFrom the first fault on one monotonic clock; wall times are for people.\n\n",
    );
    let rows = page.marks.iter().map(|mark| mark.each_ref().map(|cell| safe(cell)));
    table(out, ["mark", "not before, not after", "wall time", "rests on"], rows);
    for (mark, reason) in &page.unreached {
        let _ = writeln!(out, "- not reached: {}: {}", safe(mark), safe(reason));
    }
    if !page.unreached.is_empty() {
        out.push('\n');
    }
    if !page.stop_methods.is_empty() {
        let _ = writeln!(out, "{}\n", safe(&page.stop_methods));
    }
}

/// What each client saw, with the records that a finding rests on.
pub(super) fn clients(out: &mut String, page: &Page) {
    for client in &page.clients {
        let _ = writeln!(
            out,
            "**{}**: {} Errors: {}.",
            safe(&client.name),
            safe(&client.saw),
            safe(&client.errors)
        );
        if !client.note.is_empty() {
            let _ = writeln!(out, "{}", safe(&client.note));
        }
        out.push('\n');
        if client.quotes.is_empty() {
            continue;
        }
        let rows = client.quotes.iter().map(|quote| {
            [
                safe(&quote.when),
                safe(&quote.what),
                safe(&quote.revision),
                safe(&quote.answer),
                code(&quote.reference),
            ]
        });
        table(out, ["when", "operation", "revision", "answer", "record"], rows);
    }
}

/// Which writes are gone, and what else changed.
pub(super) fn loss(out: &mut String, page: &Page) {
    for loss in &page.loss {
        let _ = writeln!(out, "## Writes lost on {}\n\n{}\n", safe(&loss.cluster), safe(&loss.sentence));
        pairs(out, loss.rows.iter().map(|(name, value)| (*name, value.as_str())));
        out.push('\n');
    }
    if !page.changed.is_empty() {
        out.push_str("## What else changed on the cluster\n\n");
        for change in &page.changed {
            let _ = writeln!(out, "- {}", safe(change));
        }
        out.push('\n');
    }
}

/// Planned against actual, scope, who and what, losses, and what is left to own.
pub(super) fn auditor(out: &mut String, page: &Page) {
    out.push_str("## For the auditor\n\n### Planned and actual\n\n");
    let steps = page.steps.iter().map(|step| {
        let result = if step.ok { safe(&step.result) } else { format!("not done: {}", safe(&step.result)) };
        [
            step.index.to_string(),
            safe(&step.kind),
            code(&step.planned),
            safe(&step.targets),
            safe(&step.started),
            safe(&step.took),
            result,
        ]
    });
    table(out, ["#", "step", "planned", "targets", "began", "took", "result"], steps);
    out.push_str("### Scope\n\n");
    pairs(out, page.scope.iter().map(|(name, value)| (*name, value.as_str())));
    out.push_str("\n### Faults\n\n");
    if page.faults.is_empty() {
        out.push_str("Nothing was injected.\n");
    }
    for fault in &page.faults {
        let _ = writeln!(out, "**{} on {}**\n", safe(&fault.kind), safe(&fault.target));
        pairs(out, fault.rows.iter().map(|(name, value)| (*name, value.as_str())));
        if !fault.note.is_empty() {
            let _ = writeln!(out, "\n{}", safe(&fault.note));
        }
    }
    out.push_str("\n### Deviations\n\n");
    if page.deviations.is_empty() {
        out.push_str(
            "None: the journal records no override, interruption, failed step, wall-clock step or late lease.\n",
        );
    }
    pairs(out, page.deviations.iter().map(|(when, what)| (when.as_str(), what.as_str())));
    out.push_str("\n### What the recorders lost\n\n");
    let total = page.recorder_total.each_ref().map(|n| safe(n));
    let [scheduled, recorded, late, lost] = total;
    let all = ["all".to_owned(), scheduled, recorded, late, lost];
    let rows = page.recorder.iter().map(|row| row.each_ref().map(|cell| safe(cell))).chain([all]);
    table(out, ["history", "scheduled", "recorded", "of those late", "lost"], rows);
    if !page.recorder_note.is_empty() {
        let _ = writeln!(out, "{}\n", safe(&page.recorder_note));
    }
    out.push_str("### Who and what\n\n");
    pairs(out, page.identity.iter().map(|(name, value)| (*name, value.as_str())));
    for (name, value) in &page.machine {
        let _ = writeln!(out, "- machine, {}: {}", safe(name), safe(value));
    }
    out.push_str(
        "\n### Verifying this report\n\n```sh\nquakeproof verify DIR             # integrity\n\
         quakeproof verify DIR --key PUB   # and origin, for a signed bundle\n```\n\n\
         DIR is the bundle. The command opens no connection; it recomputes the chain, every digest and the \
         findings from the raw records. Without a signature of a key that you trust it proves integrity only: \
         origin unproven.\n\n### Findings to own\n\n",
    );
    if page.register.is_empty() {
        out.push_str("No objective was missed or left open.\n");
        return;
    }
    let rows = page.register.iter().map(|row| {
        let [name, met, reason] = row.each_ref().map(|cell| safe(cell));
        [format!("{name} ({met}): {reason}"), " ".to_owned(), " ".to_owned(), " ".to_owned()]
    });
    let next = ["next run of this drill".to_owned(), " ".to_owned(), " ".to_owned(), " ".to_owned()];
    table(out, ["finding", "owner", "due date", "done"], rows.chain([next]));
    out.truncate(out.trim_end().len());
    out.push('\n');
}
