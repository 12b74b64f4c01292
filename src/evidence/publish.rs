//! Ends a run's evidence: judged, reported, sealed.

use super::EvidenceError;
use super::layout::RunDir;
use super::load;
use super::manifest::{self, write_atomically};
use super::verify::Judge;
use crate::report::{self, Report, html, json, junit};
use crate::timeline::EvidenceInput;
use std::io;

/// Judges the run, writes its reports, and seals the bundle with its manifest.
///
/// May be called again, as after a recovery. The old manifest goes first: until
/// the new one is written the bundle counts as unfinished, not as tampered with.
///
/// # Errors
/// What can't be read or written, or [`EvidenceError::Leaks`]; the bundle is then left unsealed.
pub fn publish(dir: &RunDir, canaries: &[&str]) -> Result<Report, EvidenceError> {
    let loaded = load::load_with_head(dir.path())?;
    let prepared = report::prepare(&loaded.input, &loaded.journal_head);
    match std::fs::remove_file(dir.manifest()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(EvidenceError::io(dir.manifest())(e)),
        _ => {}
    }
    for (path, text) in [
        (dir.report_json(), json::render(&prepared.report)),
        (dir.report_html(), html::render(&prepared)),
        (dir.junit(), junit::render(&prepared.report)),
    ] {
        write_atomically(&path, text.as_bytes()).map_err(EvidenceError::io(&path))?;
    }
    manifest::seal(dir, canaries)?;
    Ok(prepared.report)
}

/// This version's judge, for [`verify`](super::verify::verify): the one that [`publish`] asks.
#[must_use]
pub fn judge() -> Judge<'static> {
    Judge { version: report::JUDGE, report: &report_json }
}

/// The bytes of `report.json`. Total: what can't be judged is inconclusive, not an error.
fn report_json(input: &EvidenceInput, journal_head: &str) -> Result<Vec<u8>, String> {
    Ok(json::render(&report::prepare(input, journal_head).report).into_bytes())
}
