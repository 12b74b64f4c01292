//! Findings for people. All of their text is hostile.

use super::{Findings, Past};
use crate::escape::{markdown as safe, markdown_code as code, terminal};
use std::fmt::Write as _;
use tabled::builder::Builder;
use tabled::settings::Style;

/// Findings as a table for a terminal.
#[must_use]
pub fn table(findings: &[Past]) -> String {
    let mut builder = Builder::default();
    builder.push_record(["RUN", "DRILL", "FINDING", "OWNER", "DUE", "STANDING", "WHAT"]);
    for Past { run, drill, finding, .. } in findings {
        let short: String = run.chars().take(13).collect();
        let cells = [
            short,
            drill.clone(),
            finding.name.clone(),
            finding.owner.clone(),
            finding.due.to_string(),
            finding.standing(),
            finding.title.clone(),
        ];
        builder.push_record(cells.map(|cell| terminal(&cell).into_owned()));
    }
    let table = builder.build().with(Style::blank()).to_string();
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Findings as the last part of a report in Markdown.
#[must_use]
pub fn markdown(findings: &Findings) -> String {
    let mut out =
        "\n## Findings\n\nAttached later: not part of what was sealed, covered by no digest and no \
                   signature.\n\n"
            .to_owned();
    let unknown = || "not yet".to_owned();
    let reviewed = findings.reviewed.as_ref().map(|r| format!("by {} on {}", safe(&r.by), r.on));
    let _ = writeln!(out, "- reviewed: {}", reviewed.unwrap_or_else(unknown));
    let due = findings.next_due.map(|due| due.to_string());
    let _ = writeln!(out, "- drill due again: {}", due.unwrap_or_else(|| "not decided".to_owned()));
    let _ = writeln!(
        out,
        "- of the bundle whose manifest.json has SHA-256 {}\n",
        code(&findings.manifest_digest)
    );
    if findings.findings.is_empty() {
        out.push_str("Nothing was found that somebody has to own.\n");
        return out;
    }
    out.push_str(
        "| finding | what | objective | owner | due | scope | closed when | standing |\n|---|---|---|---|---|---|---|---|\n",
    );
    for f in &findings.findings {
        let or_dash = |text: &Option<String>| text.as_deref().map_or_else(|| "—".to_owned(), safe);
        let reason = f.acceptance.as_ref().map(|a| format!(": {}", a.reason)).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            safe(&f.name),
            safe(&f.title),
            or_dash(&f.objective),
            safe(&f.owner),
            f.due,
            safe(&f.scope),
            or_dash(&f.closed_when),
            safe(&format!("{}{reason}", f.standing()))
        );
    }
    out
}
