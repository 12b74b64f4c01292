//! Why binaries are not to be had, with the ways out.

use super::pins::pinned_pairs;
use crate::exit::ExitCode;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A way to binaries that did not lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which way.
    pub way: &'static str,
    /// Why it did not.
    pub why: String,
}

impl Attempt {
    pub(super) fn new(way: &'static str, why: impl Into<String>) -> Self {
        Self { way, why: why.into() }
    }
}

/// Every way to a release was tried; none led there.
#[derive(Debug, Error)]
pub struct DeadEnd {
    /// As `kubernetes v1.37.2`.
    pub release: String,
    /// Each way and why it did not lead there, in the order tried.
    pub tried: Vec<Attempt>,
    /// What an explicit directory must hold.
    pub layout: String,
    /// Go version that a build needs.
    pub go: String,
    /// The directory that could be copied from another machine.
    pub cache: PathBuf,
    /// Downloads were not allowed.
    pub offline: bool,
}

impl fmt::Display for DeadEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no binaries for {}\n  tried:", self.release)?;
        for attempt in &self.tried {
            writeln!(f, "    {}: {}", attempt.way, attempt.why)?;
        }
        writeln!(f, "  ways out, any one of them:")?;
        writeln!(f, "    - set QUAKEPROOF_BIN_DIR to a directory that holds {}", self.layout)?;
        if self.offline {
            writeln!(f, "    - allow the download: leave out --offline and unset QUAKEPROOF_OFFLINE")?;
        } else {
            writeln!(f, "    - make the official release sites reachable")?;
        }
        writeln!(f, "    - install Go {} or newer; the binaries are then built from source", self.go)?;
        write!(f, "    - copy {} from a machine that has it", self.cache.display())
    }
}

/// Why binaries are not to be had. The text says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BinariesError {
    /// The versions are not a pinned pair.
    #[error(
        "kubernetes {kubernetes} with etcd {etcd} is not a pair that is pinned here\n  known pairs: {}\n  hint: name one of these; other versions are only used from an explicit directory (QUAKEPROOF_BIN_DIR) that holds kubernetes-{kubernetes}/ and etcd-{etcd}/",
        known_pairs()
    )]
    UnknownPair {
        /// As asked for.
        kubernetes: String,
        /// As asked for.
        etcd: String,
    },
    /// Every way was tried.
    #[error(transparent)]
    NothingLeft(#[from] Box<DeadEnd>),
    /// The explicit directory can't be what was meant.
    #[error("{}: {what}\n  hint: {hint}", path.display())]
    Explicit {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: String,
    },
    /// A download is not what its publisher says it is. Never skipped over: it
    /// may be an attack.
    #[error(
        "{url} has SHA-256 {actual}, but its publisher states {expected}; the file was thrown away\n  hint: try again; if it stays so, something between here and there changes downloads: use --offline to build from source"
    )]
    Checksum {
        /// What was downloaded.
        url: String,
        /// Digest stated by the publisher.
        expected: String,
        /// Digest of what arrived.
        actual: String,
    },
    /// A cached binary is not what was put there.
    #[error("{what} in {}\n  hint: `quakeproof toolchain provide` provides it anew", path.display())]
    Damaged {
        /// Which binary and how it differs.
        what: String,
        /// The cache entry.
        path: PathBuf,
    },
    /// `go build` ran and failed.
    #[error(
        "building {what} failed; the last lines of its output:\n{output}\n  hint: `go` must reach a module proxy (GOPROXY) or have the modules in its cache, and needs about 5 GB of disk"
    )]
    Build {
        /// Which binary of which release.
        what: String,
        /// Last lines that `go` printed.
        output: String,
    },
    /// A file or process operation failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl BinariesError {
    /// Exit code of a command that ends with this error.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            BinariesError::UnknownPair { .. } => ExitCode::Usage,
            _ => ExitCode::Refused,
        }
    }
}

fn known_pairs() -> String {
    let pairs: Vec<String> =
        pinned_pairs().iter().map(|(k, e)| format!("kubernetes {k} with etcd {e}")).collect();
    pairs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_pair_is_a_usage_error_that_lists_the_pairs() {
        let error = BinariesError::UnknownPair { kubernetes: "v1.2.3".into(), etcd: "v3.0.0".into() };
        assert_eq!(error.exit_code(), ExitCode::Usage);
        let text = error.to_string();
        for (kubernetes, etcd) in pinned_pairs() {
            assert!(text.contains(&format!("kubernetes {kubernetes} with etcd {etcd}")), "{text}");
        }
    }
}
