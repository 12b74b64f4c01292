//! `quakeproof verify`: whether a bundle's parts fit together and its findings follow from its records.

use super::output::{print, say};
use crate::escape::terminal;
use crate::evidence::publish::judge;
use crate::evidence::signature::key::VerifyingKey;
use crate::evidence::verify::{VerifyReport, verify};
use crate::exit::ExitCode;
use crate::state::StateDir;
use clap::Args;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Verify a run's evidence offline; opens no connection
///
/// Without a signature of a key that you trust it proves integrity: that the parts fit together and the
/// findings follow from the records. With `--key` it also proves origin: the holder of that key sealed
/// exactly these files.
///
/// Exit codes: 0 valid, 6 invalid or not signed by the given key, 3 no such run or key, or of a newer format.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Directory of the run, its id, or the beginning of it
    #[arg(value_name = "DIR|RUN")]
    pub run: String,
    /// Public key that must have signed the bundle (ed25519, PEM)
    #[arg(long, value_name = "PUB")]
    pub key: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Verifies a bundle with this version's judge. Opens no connection, reads no clock.
///
/// Exit codes: as [`VerifyArgs`] says.
#[must_use]
pub fn run(args: &VerifyArgs, state: &StateDir) -> ExitCode {
    let verified = verified(args, state);
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
        // Whether or not somebody could read it.
        _ if !report.is_valid() => ExitCode::Invalid,
        code => code,
    }
}

fn verified(args: &VerifyArgs, state: &StateDir) -> Result<VerifyReport, String> {
    let key = args.key.as_deref().map(VerifyingKey::read).transpose().map_err(|e| e.to_string())?;
    let dir = state.resolve_run(&args.run).map_err(|e| e.to_string())?;
    verify(&dir, &judge(), key.as_ref()).map_err(|e| e.to_string())
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
        line(format!("  {mark}  {:<11} {}", check.name, visible(&check.detail)));
    }
    if let Some(attached) = &report.attached {
        line(format!("  note     {:<11} {}: {}", "attached", attached.file, visible(&attached.detail)));
    }
    if let Some(opinion) = &report.other_opinion {
        let (theirs, ours) = (visible(&opinion.judge), visible(&opinion.ours));
        line(format!(
            "another judge's opinion, not an integrity failure: {theirs} in the report, {ours} here; findings, \
             report.html and junit.xml are what {theirs} wrote, and nothing here has checked them"
        ));
        for d in &opinion.differences {
            line(format!("  {}: {} | {}", visible(&d.path), visible(&d.first), visible(&d.second)));
        }
    }
    if let Some(first) = &report.first_difference {
        line(format!("first difference: {}", visible(first)));
    }
    line(visible(&report.statement));
    out
}

/// One line of text that only shows; hints stay readable.
fn visible(text: &str) -> String {
    terminal(&text.replace("\n  hint:", "; hint:")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::verify::{Check, Origin, OtherOpinion, Proof};

    #[test]
    fn an_unsigned_bundle_claims_no_origin_and_hostile_text_stays_text() {
        let mut report = VerifyReport {
            run: "r".to_owned(),
            checks: vec![Check { name: "files", ok: true, detail: "x\u{1b}[2J".to_owned() }],
            first_difference: None,
            attached: None,
            origin: Origin { proof: Proof::Unsigned, key_id: None },
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
