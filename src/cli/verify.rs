//! `quakeproof verify`: whether a bundle's parts fit together and its findings follow from its records.

use crate::evidence::verify::{Judge, VerifyReport, verify};
use crate::exit::ExitCode;
use clap::Args;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Arguments of `quakeproof verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Directory of the run
    pub dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Verifies a bundle with this version's judge. Opens no connection, reads no clock.
///
/// Exit codes: 0 valid, 6 invalid, 3 when it is not a run directory or of a newer format.
#[must_use]
pub fn run(args: &VerifyArgs, judge: &Judge<'_>) -> ExitCode {
    let report = match verify(&args.dir, judge) {
        Ok(report) => report,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::Usage;
        }
    };
    let text = if args.json {
        serde_json::to_string_pretty(&report).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(render(&report))
    };
    match text.and_then(|text| io::stdout().lock().write_all(text.as_bytes())) {
        // Whoever closed the pipe has seen enough; the code still tells the result.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: standard output: {e}");
            ExitCode::Internal
        }
        _ if report.is_valid() => ExitCode::Ok,
        _ => ExitCode::Invalid,
    }
}

/// The result for people. Details quote hostile text, so control characters are written out.
#[must_use]
pub fn render(report: &VerifyReport) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!("run {}", report.run.escape_debug()));
    for check in &report.checks {
        let mark = if check.ok { "ok     " } else { "INVALID" };
        line(format!("  {mark}  {:<10} {}", check.name, visible(&check.detail)));
    }
    if let Some(opinion) = &report.other_opinion {
        let (theirs, ours) = (visible(&opinion.judge), visible(&opinion.ours));
        line(format!(
            "another judge's opinion, not an integrity failure: {theirs} in the report, {ours} here"
        ));
        for d in &opinion.differences {
            line(format!("  {}: {} | {}", visible(&d.path), visible(&d.first), visible(&d.second)));
        }
    }
    if let Some(first) = &report.first_difference {
        line(format!("first difference: {}", visible(first)));
    }
    line(report.statement.clone());
    out
}

/// One line of text that only shows: control characters are written out, hints stay readable.
fn visible(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.replace("\n  hint:", "; hint:").chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::verify::{Check, OtherOpinion};

    #[test]
    fn an_unsigned_bundle_claims_no_origin_and_hostile_text_stays_text() {
        let mut report = VerifyReport {
            run: "r".to_owned(),
            checks: vec![Check { name: "files", ok: true, detail: "x\u{1b}[2J".to_owned() }],
            first_difference: None,
            other_opinion: Some(OtherOpinion { judge: "1".into(), ours: "2".into(), differences: vec![] }),
            statement: "unsigned: integrity only, origin unproven".to_owned(),
        };
        let text = render(&report);
        assert!(text.contains("integrity only, origin unproven"), "{text}");
        assert!(text.contains("another judge's opinion"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        report.checks[0].ok = false;
        assert!(!report.is_valid() && render(&report).contains("INVALID"));
    }
}
