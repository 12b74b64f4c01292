//! Ends a run's evidence: judged, reported, sealed.

use super::EvidenceError;
use super::layout::RunDir;
use super::load;
use super::manifest;
use super::signature::key::SigningKey;
use super::verify::{Judge, Reports};
use crate::durable::write_atomically;
use crate::plan::faithful;
use crate::report::{self, Prepared, Report, html, json, junit};
use std::io;

/// Judges the run, writes its reports, and seals the bundle with its manifest; `signer` vouches for it.
///
/// May be called again, as after a recovery. The old manifest and attestation go first: until
/// the new manifest is written the bundle counts as unfinished, not as tampered with.
///
/// # Errors
/// What can't be read or written, or [`EvidenceError::Leaks`]; the bundle is then left unsealed.
pub fn publish(
    dir: &RunDir,
    canaries: &[&str],
    signer: Option<&SigningKey>,
) -> Result<Report, EvidenceError> {
    let loaded = load::load_with_head(dir.path())?;
    let prepared = report::prepare(&loaded.input, &loaded.journal_head);
    for path in [dir.manifest(), dir.attestation()] {
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(EvidenceError::io(path)(e)),
            _ => {}
        }
    }
    for (name, bytes) in reports(&prepared) {
        let path = dir.path().join(name);
        write_atomically(&path, &bytes).map_err(EvidenceError::io(&path))?;
    }
    manifest::seal(dir, canaries, signer)?;
    Ok(prepared.report)
}

/// This version's judge, for [`verify`](super::verify::verify): the one that [`publish`] asks.
#[must_use]
pub fn judge() -> Judge<'static> {
    Judge {
        version: report::JUDGE,
        follows: &faithful::follows,
        reports: &|input, head| Ok(reports(&report::prepare(input, head))),
    }
}

/// Every report of a bundle. Total: what can't be judged is inconclusive, not an error.
fn reports(prepared: &Prepared<'_>) -> Reports {
    Reports::from([
        ("report.json", json::render(&prepared.report).into_bytes()),
        ("report.html", html::render(prepared).into_bytes()),
        ("junit.xml", junit::render(&prepared.report).into_bytes()),
    ])
}
