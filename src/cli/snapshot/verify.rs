//! `quakeproof snapshot verify`: whether a snapshot can be relied on.

use super::{Failure, Page, mapped, misnamed, show, warn};
use crate::etcd::snapshot::{Raw, Verification, verify};
use crate::exit::ExitCode;
use clap::Args;
use std::path::PathBuf;

/// Verify a snapshot: its SHA-256 digest, and every page and entry of the database
///
/// Exit codes: 0 valid, 6 invalid, 3 no such file, 5 another process has it open.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The snapshot
    pub file: PathBuf,
    /// Accept a raw database, which has no digest, on its structure alone
    #[arg(long)]
    pub raw: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let file = mapped(&args.file)?;
    let raw = if args.raw { Raw::Accepted } else { Raw::Refused };
    let mut verification = verify(&file, raw);
    if let Some(inspection) = &mut verification.inspection {
        let revisions = [inspection.status.revision, inspection.current_revision];
        inspection.warnings.extend(misnamed(&args.file, &revisions));
        warn(&inspection.warnings);
    }
    Ok(match show(args.json, &verification, || render(&verification)) {
        ExitCode::Ok if !verification.valid => ExitCode::Invalid,
        code => code,
    })
}

fn render(verification: &Verification) -> String {
    let mut page = Page::default();
    for check in &verification.checks {
        let mark = if check.ok { "ok" } else { "INVALID" };
        page.line(check.name, &format!("{mark:<8} {}", check.detail.replace("\n  hint:", "; hint:")));
    }
    page.line("verdict", if verification.valid { "valid" } else { "INVALID" });
    if let Some(inspection) = &verification.inspection {
        page.0.push('\n');
        page.0.push_str(&super::inspect::render(inspection));
    }
    page.0
}
