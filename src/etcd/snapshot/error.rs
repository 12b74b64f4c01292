//! What can be wrong with a snapshot file, and where.

use std::fmt;

/// Damage at a place in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("page {page}, offset {offset}: {damage}")]
pub struct SnapshotError {
    /// Page on which it was found; pages are counted from 0 in units of the file's page size.
    pub page: u64,
    /// Where, bytes from the beginning of the file.
    pub offset: u64,
    /// What was found.
    pub damage: Damage,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Nothing that bbolt wrote.
    Foreign,
    /// bbolt's format of a version that this reader doesn't know.
    Format(u32),
    /// Larger than [`super::MAX_BYTES`].
    TooLarge,
    /// The file ends before the database does.
    Truncated {
        /// Bytes that the file has.
        has: u64,
        /// Bytes that the database needs at least.
        needs: u64,
    },
    /// Both meta pages are damaged: what is wrong with either.
    Metas(String, String),
    /// A page, element or bucket breaks a rule of bbolt.
    Structure(String),
    /// An entry breaks a rule of etcd.
    Entry(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(
                f,
                "no etcd database begins here\n  hint: a snapshot comes from `etcdctl snapshot save`; unpack or \
                 decrypt the file first if the backup tool packed it"
            ),
            Self::Format(version) => write!(
                f,
                "bbolt format {version}, and only format 2 is known\n  hint: use a newer quakeproof, or the \
                 etcdutl of the etcd that wrote it"
            ),
            Self::TooLarge => {
                write!(
                    f,
                    "the file is larger than 64 GiB\n  hint: etcd's own limit is far below; is it a snapshot?"
                )
            }
            Self::Truncated { has, needs } => write!(
                f,
                "the file is truncated: {has} bytes, and the database needs {needs}\n  hint: copy it again, or \
                 take another snapshot"
            ),
            Self::Metas(first, second) => {
                write!(f, "neither meta page is valid (first: {first}; second: {second}){AGAIN}")
            }
            Self::Structure(what) | Self::Entry(what) => write!(f, "{what}{AGAIN}"),
        }
    }
}

const AGAIN: &str = "\n  hint: the file is damaged; copy it again, or use another snapshot";
