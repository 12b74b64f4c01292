//! Attaches a findings file to a sealed bundle, beside what was sealed.

use super::{Bundle, Findings, read};
use crate::digest::sha256_hex;
use crate::drill::problem::DrillErrors;
use crate::durable::write_atomically;
use crate::evidence::EvidenceError;
use crate::evidence::layout::{FINDINGS, RunDir};
use crate::evidence::secrets;
use crate::regular_file;
use serde::Serialize;
use std::io;
use thiserror::Error;

/// Why findings were not attached.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The file is wrong.
    #[error(transparent)]
    Findings(#[from] DrillErrors),
    /// The bundle is not fit.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// Others are attached.
    #[error(
        "the bundle has other findings already\n  hint: start from those in {FINDINGS}, then say `--replace`"
    )]
    Exists,
    /// The file holds a secret.
    #[error(
        "line {line} holds a secret ({what}), which must not become part of a bundle\n  hint: take it out"
    )]
    Secret {
        /// Line, counted from 1.
        line: u64,
        /// Kind of secret.
        what: &'static str,
    },
}

/// What is attached to a bundle, as `verify` tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// Name of the file.
    pub file: &'static str,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
    /// What it is, and what it is not.
    pub detail: String,
}

/// Checks the findings in `text` against the bundle and attaches them. Others that are there are kept
/// unless `replace` is said.
///
/// # Errors
/// When they are wrong, of another bundle, hold a secret, or can't be written.
pub fn attach(dir: &RunDir, name: &str, text: &str, replace: bool) -> Result<Findings, AttachError> {
    let bundle = Bundle::of(dir)?;
    let findings = read(name, text, Some(&bundle))?;
    if let Some(leak) = secrets::scan_text(FINDINGS, text.as_bytes()).first() {
        return Err(AttachError::Secret { line: leak.line, what: leak.what });
    }
    let path = dir.findings();
    match regular_file::read(&path) {
        Ok(there) if there == text.as_bytes() => return Ok(findings),
        Ok(_) if !replace => return Err(AttachError::Exists),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(EvidenceError::io(path)(e).into()),
        _ => {}
    }
    write_atomically(&path, text.as_bytes()).map_err(EvidenceError::io(path))?;
    Ok(findings)
}

/// What is attached to a bundle, for whoever verifies it; nothing of it is evidence.
#[must_use]
pub fn attached(dir: &RunDir) -> Option<Attached> {
    const NO_EVIDENCE: &str =
        "attached later, not part of what was sealed, covered by no digest and no signature";
    let bytes = match regular_file::read(&dir.findings()) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => {
            let detail = format!("{NO_EVIDENCE}; can't be read: {e}");
            return Some(Attached { file: FINDINGS, sha256: String::new(), detail });
        }
    };
    let said =
        match Bundle::of(dir).map(|bundle| read(FINDINGS, &String::from_utf8_lossy(&bytes), Some(&bundle))) {
            Ok(Ok(findings)) => {
                let open = findings.findings.iter().filter(|f| f.is_open()).count();
                format!("{} findings, {open} open", findings.findings.len())
            }
            Ok(Err(errors)) => {
                let first = errors.problems().first().map_or("", |problem| problem.title.as_str());
                format!("not findings of this bundle: {first}")
            }
            Err(_) => "there is no sealed bundle to hold it against".to_owned(),
        };
    Some(Attached { file: FINDINGS, sha256: sha256_hex(&bytes), detail: format!("{NO_EVIDENCE}; {said}") })
}
