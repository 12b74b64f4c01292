//! The state directory: clusters, runs and locks, outside of any cluster.

pub mod runs;

use nix::sys::statvfs::statvfs;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where the state of this user is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir(PathBuf);

/// Why the state directory can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StateError {
    /// Nothing says where it is.
    #[error(
        "there is no place for state: neither QUAKEPROOF_STATE, XDG_STATE_HOME nor HOME is an absolute path\n  hint: set QUAKEPROOF_STATE to a directory"
    )]
    NoPlace,
    /// It can't be made or written.
    #[error("{}: {source}\n  hint: set QUAKEPROOF_STATE to a directory that you may write", path.display())]
    Unusable {
        /// Which directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Not enough room.
    #[error(
        "{} has {free} bytes free, {needed} are needed\n  hint: free some space, or set QUAKEPROOF_STATE to another disk",
        path.display()
    )]
    NoSpace {
        /// Which directory.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free to this user.
        free: u64,
    },
    /// A run was asked for that there is none of.
    #[error("no run `{wanted}`\n  hint: `quakeproof runs` lists them")]
    NoSuchRun {
        /// As given.
        wanted: String,
    },
    /// No run is in any of the states asked for.
    #[error(
        "no run is {states}\n  hint: `quakeproof runs` lists them, and shows their directories with `--json`"
    )]
    NoneInState {
        /// In words.
        states: String,
    },
    /// A run was asked for by too short a prefix.
    #[error("`{wanted}` stands for several runs: {candidates}")]
    Ambiguous {
        /// As given.
        wanted: String,
        /// The runs.
        candidates: String,
    },
}

impl StateDir {
    /// `$QUAKEPROOF_STATE`, else `$XDG_STATE_HOME/quakeproof`, else `$HOME/.local/state/quakeproof`.
    /// Relative and empty values are passed over, as the XDG specification asks.
    ///
    /// # Errors
    /// [`StateError::NoPlace`] when none is set.
    pub fn locate(env: impl Fn(&str) -> Option<OsString>) -> Result<Self, StateError> {
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("QUAKEPROOF_STATE")
            .or_else(|| absolute("XDG_STATE_HOME").map(|path| path.join("quakeproof")))
            .or_else(|| absolute("HOME").map(|path| path.join(".local/state/quakeproof")))
            .map(Self)
            .ok_or(StateError::NoPlace)
    }

    /// A state directory at a given place.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Makes it and its parts, readable by this user alone. Does nothing to what is there.
    ///
    /// # Errors
    /// [`StateError::Unusable`].
    pub fn create(&self) -> Result<(), StateError> {
        for path in [self.clusters(), self.runs(), self.locks()] {
            private_dir(&path).map_err(|source| StateError::Unusable { path, source })?;
        }
        Ok(())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// One directory per cluster.
    #[must_use]
    pub fn clusters(&self) -> PathBuf {
        self.0.join("clusters")
    }

    /// One directory per run, and a pointer for each run that is kept elsewhere.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Who drills on which cluster.
    #[must_use]
    pub fn locks(&self) -> PathBuf {
        self.0.join("locks")
    }

    /// Refuses early when the disk has fewer than `bytes` left for this user.
    ///
    /// # Errors
    /// [`StateError::NoSpace`], or [`StateError::Unusable`] when that can't be found out.
    pub fn ensure_space(&self, bytes: u64) -> Result<(), StateError> {
        ensure_space(&self.0, bytes)
    }
}

/// As [`StateDir::ensure_space`], for the disk that `path` is on or would be made on.
///
/// # Errors
/// As there.
pub fn ensure_space(path: &Path, bytes: u64) -> Result<(), StateError> {
    let existing = path.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    let disk = statvfs(existing)
        .map_err(|e| StateError::Unusable { path: existing.to_owned(), source: e.into() })?;
    #[allow(clippy::useless_conversion, reason = "narrower than 64 bits on some targets")]
    let free = u64::from(disk.blocks_available()).saturating_mul(u64::from(disk.fragment_size()));
    if free < bytes {
        return Err(StateError::NoSpace { path: existing.to_owned(), needed: bytes, free });
    }
    Ok(())
}

/// Makes a directory and its parents with mode 0700.
fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // Refuses a path that exists but is no directory, and one that can't be read.
    fs::read_dir(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn located(pairs: &[(&str, &str)]) -> Result<StateDir, StateError> {
        StateDir::locate(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn the_first_of_three_variables_decides() {
        let (own, xdg, home) = (("QUAKEPROOF_STATE", "/q"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h"));
        assert_eq!(located(&[own, xdg, home]).unwrap().path(), Path::new("/q"));
        assert_eq!(located(&[xdg, home]).unwrap().path(), Path::new("/x/quakeproof"));
        assert_eq!(located(&[home]).unwrap().path(), Path::new("/h/.local/state/quakeproof"));
        assert_eq!(
            located(&[("QUAKEPROOF_STATE", "relative"), xdg]).unwrap().path(),
            Path::new("/x/quakeproof")
        );
        assert!(located(&[]).unwrap_err().to_string().contains("hint: set QUAKEPROOF_STATE"));
    }

    #[test]
    fn state_is_private_to_its_user() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(&dir.path().join("state"));
        state.create().unwrap();
        state.create().unwrap();
        for path in [state.path().to_owned(), state.runs(), state.locks(), state.clusters()] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        let error = StateDir::at(&path).create().unwrap_err();
        assert!(error.to_string().contains("QUAKEPROOF_STATE"), "{error}");
    }

    #[test]
    fn too_little_space_is_refused_with_both_figures() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(&dir.path().join("not/there/yet"));
        state.ensure_space(1).unwrap();
        let error = state.ensure_space(u64::MAX).unwrap_err();
        assert!(error.to_string().contains(&u64::MAX.to_string()), "{error}");
    }
}
