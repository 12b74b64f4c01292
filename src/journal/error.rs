//! What can go wrong with a journal.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a journal can't be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The disk is full, or a quota or size limit is reached.
    #[error(
        "no space left for {}: {source}\n  hint: free some space; an unfinished run is ended with `quakeproof recover`",
        path.display()
    )]
    NoSpace {
        /// The journal.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The directory or file can't be written to.
    #[error(
        "{} can't be written: {source}\n  hint: choose a writable directory with `--out` or QUAKEPROOF_STATE",
        path.display()
    )]
    ReadOnly {
        /// The journal.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another process writes it.
    #[error(
        "{} is being written by another process\n  hint: `quakeproof runs` shows which run is still active",
        path.display()
    )]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// A journal is there already.
    #[error("{} exists already\n  hint: one directory holds one run; choose another with `--out`", path.display())]
    Exists {
        /// The journal.
        path: PathBuf,
    },
    /// Nothing was written before the writer died: nothing can have been done either.
    #[error("{} is empty: the run ended before it did anything, nothing is owed", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// A line is not what it should be.
    #[error("{} line {line}: {what}", path.display())]
    Corrupt {
        /// The journal.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What differs.
        what: String,
    },
    /// Written by a version with another major format.
    #[error(
        "{} has format {found}, this version reads {supported}\n  hint: use the quakeproof version that wrote it, or a later one",
        path.display()
    )]
    Newer {
        /// The journal.
        path: PathBuf,
        /// Format found.
        found: String,
        /// Format that this version writes.
        supported: &'static str,
    },
    /// An earlier write failed and its remains could not be taken back.
    #[error("{} was left in an unknown state by an earlier failed write; nothing more is written to it", path.display())]
    Poisoned {
        /// The journal.
        path: PathBuf,
    },
    /// The run is over.
    #[error("the journal is closed: the run is over")]
    Closed,
    /// Anything else.
    #[error("{}: {source}", path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl JournalError {
    /// Sorts an I/O error by what a person can do about it.
    pub(super) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { path, source }
            }
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory => Self::ReadOnly { path, source },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::Io { path, source },
        }
    }
}
