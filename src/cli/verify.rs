//! `quakeproof verify`: whether a bundle's parts fit together and its findings follow from its records.

use super::output::{print, say};
use crate::evidence::publish::judge;
use crate::evidence::verify::{VerifyReport, verify};
use crate::exit::ExitCode;
use crate::report::escape::terminal;
use crate::state::StateDir;
use clap::Args;
use std::fmt::Write as _;
use std::io;

/// Verify a run's evidence offline; opens no connection
///
/// Exit codes: 0 valid, 6 invalid, 3 no such run or of a newer format.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Directory of the run, its id, or the beginning of it
    #[arg(value_name = "DIR|RUN")]
    pub run: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Verifies a bundle with this version's judge. Opens no connection, reads no clock.
///
/// Exit codes: 0 valid, 6 invalid, 3 when there is no such run or it is of a newer format.
#[must_use]
pub fn run(args: &VerifyArgs, state: &StateDir) -> ExitCode {
    let verified = state
        .resolve_run(&args.run)
        .map_err(|e| e.to_string())
        .and_then(|dir| verify(&dir, &judge()).map_err(|e| e.to_string()));
    let report = match verified {
        Ok(report) => report,
        Err(e) => {
            say(&format!("error: {e}"));
            return ExitCode::Usage;
        }
    };
    let text = if args.json {
        serde_json::to_string_pretty(&report).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(render(&report))
    };
    match print(text) {
        ExitCode::Ok if !report.is_valid() => ExitCode::Invalid,
        code => code,
    }
}

/// The result for people. Details quote hostile text, so control characters are written out.
#[must_use]
pub fn render(report: &VerifyReport) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!("run {}", terminal(&report.run)));
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

/// One line of text that only shows; hints stay readable.
fn visible(text: &str) -> String {
    terminal(&text.replace("\n  hint:", "; hint:")).into_owned()
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
