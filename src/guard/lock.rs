//! The drill lock: one run per cluster, also after a runner's death.
//!
//! `locks/<cluster>.lock` is locked in the kernel while a runner lives; `locks/<cluster>` says
//! which run it is. The record outlives the runner, so that the next run is refused until
//! `recover` has ended the dead one.

use super::GuardError;
use crate::clock::{Clock, WallTime};
use crate::durable::write_atomically;
use crate::journal::summary::RunSummary;
use crate::journal::{JournalError, reader};
use crate::state::StateDir;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Who drills on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRecord {
    /// Run id.
    pub run: String,
    /// Process that holds, or held, the lock.
    pub pid: u32,
    /// Since when.
    pub started_at: WallTime,
    /// The run's directory.
    pub run_dir: PathBuf,
}

impl LockRecord {
    /// Who drills on a cluster, or did when it died; `None` when nobody does.
    ///
    /// # Errors
    /// When the record can't be read.
    pub fn read(state: &StateDir, cluster: &str) -> Result<Option<Self>, GuardError> {
        read_record(&state.locks().join(cluster))
    }
}

/// The drill lock on one cluster, held by this process. Dropping it frees the kernel's lock
/// but leaves the record, as dying does; [`DrillLock::release`] is for runs that ended well.
#[derive(Debug)]
pub struct DrillLock {
    cluster: String,
    record_path: PathBuf,
    record: LockRecord,
    held: File,
}

impl Drop for DrillLock {
    fn drop(&mut self) {
        // Closing alone leaves it held for as long as a child that was just forked has the file too.
        let _ = self.held.unlock();
    }
}

impl DrillLock {
    /// Takes the lock for a new run.
    ///
    /// # Errors
    /// [`GuardError::Busy`] while another runner lives, [`GuardError::RunUnfinished`] when one
    /// died or left something owed.
    pub fn acquire(
        state: &StateDir,
        cluster: &str,
        run: &str,
        run_dir: &Path,
        clock: &dyn Clock,
    ) -> Result<Self, GuardError> {
        let (held, record_path) = hold(state, cluster)?;
        if let Some(earlier) = read_record(&record_path)?
            && let Some(reason) = unfinished(&earlier)
        {
            return Err(GuardError::RunUnfinished { cluster: cluster.to_owned(), run: earlier.run, reason });
        }
        Self::record(cluster, run, run_dir, clock, held, record_path)
    }

    /// Takes the lock over from a dead runner of the same run.
    ///
    /// # Errors
    /// [`GuardError::Busy`] while it lives, [`GuardError::NotYours`] when the cluster is
    /// another run's that is unfinished.
    pub fn adopt(
        state: &StateDir,
        cluster: &str,
        run: &str,
        run_dir: &Path,
        clock: &dyn Clock,
    ) -> Result<Self, GuardError> {
        let (held, record_path) = hold(state, cluster)?;
        if let Some(earlier) = read_record(&record_path)?
            && earlier.run != run
            && unfinished(&earlier).is_some()
        {
            let cluster = cluster.to_owned();
            return Err(GuardError::NotYours { cluster, run: earlier.run, wanted: run.to_owned() });
        }
        Self::record(cluster, run, run_dir, clock, held, record_path)
    }

    fn record(
        cluster: &str,
        run: &str,
        run_dir: &Path,
        clock: &dyn Clock,
        held: File,
        record_path: PathBuf,
    ) -> Result<Self, GuardError> {
        let record = LockRecord {
            run: run.to_owned(),
            pid: std::process::id(),
            started_at: clock.wall(),
            run_dir: std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned()),
        };
        serde_json::to_vec(&record)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&record_path, &text))
            .map_err(|e| lock_error(&record_path, &e))?;
        Ok(Self { cluster: cluster.to_owned(), record_path, record, held })
    }

    /// Frees the cluster: the run has ended in order and owes nothing.
    ///
    /// # Errors
    /// When the record can't be removed.
    pub fn release(self) -> Result<(), GuardError> {
        std::fs::remove_file(&self.record_path).map_err(|e| lock_error(&self.record_path, &e))
    }

    /// Name of the cluster in the state directory.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The run that holds it.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.record.run
    }
}

fn hold(state: &StateDir, cluster: &str) -> Result<(File, PathBuf), GuardError> {
    let record_path = state.locks().join(cluster);
    let plain = !cluster.is_empty()
        && cluster.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !plain {
        let reason = "a cluster's name has only lower-case letters, digits and dashes";
        return Err(lock_error(&record_path, &io::Error::other(reason)));
    }
    let path = state.locks().join(format!("{cluster}.lock"));
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|e| lock_error(&path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok((file, record_path)),
        Err(TryLockError::Error(e)) => Err(lock_error(&path, &e)),
        Err(TryLockError::WouldBlock) => {
            let holder = read_record(&record_path)?;
            let unknown = || "unknown".to_owned();
            Err(GuardError::Busy {
                cluster: cluster.to_owned(),
                pid: holder.as_ref().map_or(0, |h| h.pid),
                since: holder.as_ref().map_or_else(unknown, |h| h.started_at.0.clone()),
                run: holder.map_or_else(unknown, |h| h.run),
            })
        }
    }
}

fn read_record(path: &Path) -> Result<Option<LockRecord>, GuardError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| GuardError::Lock {
            path: path.to_owned(),
            reason: format!(
                "not a lock record: {e}\n  hint: make sure that no run is unfinished (`quakeproof runs`), then remove the file"
            ),
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(lock_error(path, &e)),
    }
}

/// What keeps a run whose process is gone from being over; `None` when nothing does.
fn unfinished(record: &LockRecord) -> Option<String> {
    let journal = record.run_dir.join("journal.jsonl");
    match reader::read(&journal) {
        // The run's directory is made before the lock is taken, its journal after: it died, or
        // was refused, in between.
        Err(JournalError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotFound && record.run_dir.join("histories").is_dir() =>
        {
            None
        }
        Err(e) => Some(format!("its journal can't be read: {e}")),
        // It died before its first entry was durable: nothing was done.
        Ok(read) if read.entries.is_empty() => None,
        Ok(read) => {
            let summary = RunSummary::of(&read.entries);
            let open: Vec<_> = summary.open().map(|i| i.injection.0.as_str()).collect();
            if !open.is_empty() {
                Some(format!("an undo is owed for {}", open.join(", ")))
            } else if summary.closed.is_none() {
                Some(format!("process {} ended without closing it", record.pid))
            } else {
                None
            }
        }
    }
}

fn lock_error(path: &Path, error: &io::Error) -> GuardError {
    GuardError::Lock { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::journal::samples;
    use crate::journal::writer::JournalWriter;
    use std::sync::Arc;

    struct Place {
        root: tempfile::TempDir,
        state: StateDir,
    }

    impl Place {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let state = StateDir::at(&root.path().join("state"));
            state.create().unwrap();
            Self { root, state }
        }

        /// A run directory whose journal has the first `entries` entries of the sample.
        fn run_dir(&self, name: &str, entries: usize) -> PathBuf {
            let dir = self.root.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            let mut writer =
                JournalWriter::create(&dir.join("journal.jsonl"), Arc::new(FakeClock::new())).unwrap();
            for event in &samples::events()[..entries] {
                writer.append(event.clone()).unwrap();
            }
            dir
        }

        fn acquire(&self, run: &str, dir: &Path) -> Result<DrillLock, GuardError> {
            DrillLock::acquire(&self.state, "main", run, dir, &FakeClock::new())
        }

        fn adopt(&self, run: &str, dir: &Path) -> Result<DrillLock, GuardError> {
            DrillLock::adopt(&self.state, "main", run, dir, &FakeClock::new())
        }
    }

    #[test]
    fn a_lock_that_is_dropped_is_free_though_a_child_was_just_forked() {
        let place = Place::new();
        let dir = place.run_dir("run", 1);
        let lock = DrillLock::acquire(&place.state, "c", "run-1", &dir, &FakeClock::new()).unwrap();
        // Shares the lock, as a fork's copy does until another program is executed.
        let forked = lock.held.try_clone().unwrap();
        drop(lock);
        assert!(hold(&place.state, "c").is_ok());
        drop(forked);
    }

    #[test]
    fn a_second_run_is_refused_while_the_first_lives() {
        let place = Place::new();
        let dir = place.run_dir("one", 3);
        let lock = place.acquire("one", &dir).unwrap();
        match place.acquire("two", &dir).unwrap_err() {
            GuardError::Busy { run, pid, .. } => assert_eq!((run.as_str(), pid), ("one", std::process::id())),
            other => panic!("{other}"),
        }
        lock.release().unwrap();
        place.acquire("two", &dir).unwrap();
    }

    #[test]
    fn a_dead_run_blocks_the_cluster_until_it_is_recovered() {
        let place = Place::new();
        let dir = place.run_dir("one", 16);
        drop(place.acquire("one", &dir).unwrap());
        let error = place.acquire("two", &dir).unwrap_err();
        assert!(matches!(error, GuardError::RunUnfinished { .. }));
        assert!(error.to_string().contains("hint: quakeproof recover one"), "{error}");
        assert!(matches!(place.adopt("two", &dir), Err(GuardError::NotYours { .. })));
        place.adopt("one", &dir).unwrap().release().unwrap();
        place.acquire("two", &dir).unwrap();
    }

    #[test]
    fn a_run_that_was_closed_but_not_released_blocks_nothing() {
        let place = Place::new();
        let dir = place.run_dir("one", samples::events().len());
        drop(place.acquire("one", &dir).unwrap());
        place.acquire("two", &dir).unwrap();
    }

    #[test]
    fn a_run_whose_journal_is_gone_blocks_with_the_reason() {
        let place = Place::new();
        drop(place.acquire("one", &place.root.path().join("gone")).unwrap());
        let error = place.acquire("two", place.root.path()).unwrap_err();
        assert!(error.to_string().contains("journal can't be read"), "{error}");
    }

    #[test]
    fn a_name_can_t_lead_out_of_the_lock_directory() {
        let place = Place::new();
        for name in ["", "../x", "a/b", "A"] {
            assert!(
                DrillLock::acquire(&place.state, name, "r", place.root.path(), &FakeClock::new()).is_err()
            );
        }
    }
}
