//! `manifest.json`: the digest of every file of the bundle and the head of the journal.

use super::EvidenceError;
use super::layout::RunDir;
use super::secrets;
use super::signature::{attest, key::SigningKey};
use crate::digest::sha256_of;
use crate::durable::write_atomically;
use crate::journal::reader;
use crate::regular_file;
use serde::{Deserialize, Serialize};
use std::io;

/// Major.minor of the manifest's format.
pub const FORMAT_VERSION: &str = "1.0";

/// What a bundle consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: String,
    /// Version of the tool that wrote it.
    pub tool: String,
    /// Run id.
    pub run: String,
    /// Where the journal ended.
    pub journal: JournalEnd,
    /// Every file but the manifest, by path.
    pub files: Vec<ManifestFile>,
}

/// Where the journal ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JournalEnd {
    /// Hash of the last entry, hexadecimal.
    pub head: String,
    /// Number of entries.
    pub entries: u64,
}

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManifestFile {
    /// Path below the run directory, with `/`.
    pub path: String,
    /// Length.
    pub size_bytes: u64,
    /// SHA-256 of the contents, hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// Takes stock of a run directory.
    ///
    /// # Errors
    /// When a file can't be read or the journal is damaged.
    pub fn of(dir: &RunDir) -> Result<Self, EvidenceError> {
        let journal = reader::read(&dir.journal())?;
        let run = crate::journal::summary::RunSummary::of(&journal.entries).run;
        let mut files = Vec::new();
        for path in dir.files()? {
            let full = dir.path().join(&path);
            let (size_bytes, sha256) =
                regular_file::open(&full).and_then(sha256_of).map_err(EvidenceError::io(full))?;
            files.push(ManifestFile { path, size_bytes, sha256 });
        }
        Ok(Self {
            format_version: FORMAT_VERSION.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            run,
            journal: JournalEnd { head: journal.head.to_string(), entries: journal.entries.len() as u64 },
            files,
        })
    }

    /// Reads `manifest.json`; `None` when there is none.
    ///
    /// # Errors
    /// [`EvidenceError::Newer`] for another major format, [`EvidenceError::Malformed`] otherwise.
    pub fn read(dir: &RunDir) -> Result<Option<Self>, EvidenceError> {
        let path = dir.manifest();
        let bytes = match regular_file::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(EvidenceError::io(path)(e)),
        };
        let malformed = |e: serde_json::Error| EvidenceError::Malformed {
            path: path.clone(),
            what: format!("not a manifest: {e}"),
        };
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(malformed)?;
        super::refuse_other_format(&path, &value, FORMAT_VERSION)?;
        serde_json::from_slice(&bytes).map(Some).map_err(malformed)
    }
}

/// Ends a bundle: looks for secrets, then writes the attestation, if somebody vouches, and last of all
/// the manifest, each whole or not at all. A bundle with a manifest is finished and signed as asked.
///
/// `canaries` are secrets that the caller knows of, such as the cluster's private keys.
///
/// # Errors
/// [`EvidenceError::Leaks`] when a file holds a secret; the bundle is then left unsealed.
pub fn seal(dir: &RunDir, canaries: &[&str], signer: Option<&SigningKey>) -> Result<Manifest, EvidenceError> {
    let leaks = secrets::scan(dir, canaries)?;
    if !leaks.is_empty() {
        let leaks = leaks.iter().take(10).map(ToString::to_string).collect::<Vec<_>>().join("; ");
        return Err(EvidenceError::Leaks { leaks });
    }
    let manifest = Manifest::of(dir)?;
    let mut text =
        serde_json::to_vec_pretty(&manifest).map_err(|e| EvidenceError::io(dir.manifest())(e.into()))?;
    text.push(b'\n');
    if let Some(key) = signer {
        let path = dir.report_json();
        let report = regular_file::read(&path).map_err(EvidenceError::io(&path))?;
        let report = serde_json::from_slice(&report)
            .map_err(|e| EvidenceError::Malformed { path, what: format!("not a report: {e}") })?;
        let envelope = attest(&manifest, &text, &report, key);
        write_atomically(&dir.attestation(), &envelope).map_err(EvidenceError::io(dir.attestation()))?;
    }
    write_atomically(&dir.manifest(), &text).map_err(EvidenceError::io(dir.manifest()))?;
    Ok(manifest)
}
