//! The evidence bundle: the run directory, its manifest, and its verification.
//!
//! Nothing here opens a connection or reads a clock.

pub mod layout;
pub mod load;
pub mod manifest;
mod patterns;
pub mod publish;
pub mod redact;
pub mod secrets;
pub mod signature;
pub mod verify;

use crate::chained::format::{self, Compatibility};
use crate::history::reader::HistoryError;
use crate::journal::JournalError;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why evidence can't be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// There is neither a journal nor a manifest.
    #[error(
        "{} is not a run directory: it has neither manifest.json nor journal.jsonl\n  hint: `quakeproof runs` lists them",
        path.display()
    )]
    NotARun {
        /// As given.
        path: PathBuf,
    },
    /// Another tool's files bear the names of this one's.
    #[error(
        "{} was not written by quakeproof: neither its manifest.json nor its journal.jsonl is of a run\n  hint: give the directory of a run; `quakeproof runs` lists them",
        path.display()
    )]
    Foreign {
        /// As given.
        path: PathBuf,
    },
    /// Written by another major format.
    #[error("{} has format {found}, this version reads {supported}\n  hint: use the quakeproof version that wrote it, or a later one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format found.
        found: String,
        /// Format that this version writes.
        supported: &'static str,
    },
    /// Judged by a later judge than this one, whose findings can't be recomputed here.
    #[error("{} was written by {found}, and this is {ours}\n  hint: use the quakeproof version that wrote it, or a later one", path.display())]
    NewerJudge {
        /// The file.
        path: PathBuf,
        /// Judge found.
        found: String,
        /// The judge that this version is.
        ours: String,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A secret would have become part of the bundle.
    #[error("the bundle would contain secrets, it is left without a manifest: {leaks}")]
    Leaks {
        /// Where, never what.
        leaks: String,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Refuses a document of another major format than `ours`.
fn refuse_other_format(path: &Path, document: &Value, ours: &'static str) -> Result<(), EvidenceError> {
    let Some(found) = document["formatVersion"].as_str() else {
        let what = "it has no formatVersion".to_owned();
        return Err(EvidenceError::Malformed { path: path.to_owned(), what });
    };
    match format::compare(found, ours) {
        Compatibility::Known | Compatibility::NewerMinor => Ok(()),
        Compatibility::Refused => Err(EvidenceError::Newer {
            path: path.to_owned(),
            found: found.chars().take(20).collect(),
            supported: ours,
        }),
    }
}

impl EvidenceError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
