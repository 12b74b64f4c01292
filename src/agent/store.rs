//! Makes the agent's log durable.
//!
//! A full disk must not stop an undo, so there are two ways to record: [`Store::must`]
//! for what the agent answers for (armed, amended, discharged), and [`Store::attempt`]
//! for what it does anyway. What could not be written is kept, in order, and written
//! before the next entry.

use super::log::{FORMAT_VERSION, LogEntry, LogError, LogEvent, read};
use crate::chained::chain::Head;
use crate::clock::Clock;
use crate::clock::Stamp;
use crate::durable::{sync_parent, write_atomically};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Name of the log in the agent's directory.
pub const LOG_FILE: &str = "agent.jsonl";

/// Told about each entry once it is durable.
pub type OnRecorded = Box<dyn Fn(&LogEntry) + Send>;

/// The log, open for appending by this process alone.
pub struct Store {
    file: File,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    whole_bytes: u64,
    head: Head,
    next_seq: u64,
    /// Bytes after `whole_bytes` may be left from a write that failed.
    dirty: bool,
    unwritten: Vec<(Stamp, LogEvent)>,
    on_recorded: OnRecorded,
}

/// Why the agent's log can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another agent serves this cluster.
    #[error("another agent holds {path}; only one may serve a cluster")]
    Held {
        /// The log.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("can't {what} {path}: {source}; free space or make the directory writable")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// What is in it can't be relied on.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Store {
    /// Opens or creates the log in `dir`, puts a torn last line aside into
    /// `agent.jsonl.torn-<offset>`, and records the start.
    ///
    /// # Errors
    /// When another agent holds the log, it can't be written, or its chain is broken.
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        on_recorded: OnRecorded,
    ) -> Result<(Self, Vec<LogEntry>), StoreError> {
        let path = dir.join(LOG_FILE);
        fs::create_dir_all(dir).map_err(io("create", dir))?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Held { path }),
            Err(TryLockError::Error(source)) => return Err(io("lock", &path)(source)),
        }
        sync_parent(&path).map_err(io("sync", dir))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io("read", &path))?;
        let log = read(&bytes)?;
        if !log.torn.is_empty() {
            let aside = dir.join(format!("{LOG_FILE}.torn-{}", log.whole_bytes));
            write_atomically(&aside, &log.torn).map_err(io("write", &aside))?;
        }
        let mut store = Self {
            file,
            path,
            clock,
            whole_bytes: log.whole_bytes,
            head: log.head,
            next_seq: log.entries.len() as u64,
            dirty: !log.torn.is_empty(),
            unwritten: Vec::new(),
            on_recorded,
        };
        store.attempt(LogEvent::Started {
            format_version: FORMAT_VERSION.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            torn_bytes: log.torn.len() as u64,
        });
        Ok((store, log.entries))
    }

    /// Records an event; it is durable when this returns.
    ///
    /// # Errors
    /// When it could not be made durable; then it has not happened.
    pub fn must(&mut self, event: LogEvent) -> Result<Stamp, StoreError> {
        let stamp = Stamp::now(&*self.clock);
        self.write_unwritten()?;
        self.write(&stamp, event)?;
        Ok(stamp)
    }

    /// Records an event that happens whether or not it can be made durable.
    pub fn attempt(&mut self, event: LogEvent) -> Stamp {
        let stamp = Stamp::now(&*self.clock);
        self.unwritten.push((stamp.clone(), event));
        // What fails stays in `unwritten`, for the next time.
        let _ = self.write_unwritten();
        stamp
    }

    /// An instant for an event that is not recorded.
    #[must_use]
    pub fn now(&self) -> Stamp {
        Stamp::now(&*self.clock)
    }

    fn write_unwritten(&mut self) -> Result<(), StoreError> {
        while let Some((stamp, event)) = self.unwritten.first().cloned() {
            self.write(&stamp, event)?;
            self.unwritten.remove(0);
        }
        Ok(())
    }

    fn write(&mut self, stamp: &Stamp, event: LogEvent) -> Result<(), StoreError> {
        let entry = LogEntry { prev: self.head.to_string(), seq: self.next_seq, stamp: stamp.clone(), event };
        let mut line = serde_json::to_vec(&entry).map_err(|e| io("encode for", &self.path)(e.into()))?;
        let head = self.head.then(&line);
        line.push(b'\n');
        if self.dirty {
            self.file.set_len(self.whole_bytes).map_err(io("truncate", &self.path))?;
        }
        self.dirty = true;
        self.file.write_all_at(&line, self.whole_bytes).map_err(io("write to", &self.path))?;
        self.file.sync_data().map_err(io("sync", &self.path))?;
        self.dirty = false;
        self.whole_bytes += line.len() as u64;
        self.head = head;
        self.next_seq += 1;
        (self.on_recorded)(&entry);
        Ok(())
    }
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::undo::InjectionId;
    use crate::clock::FakeClock;

    fn open(dir: &Path) -> Result<(Store, Vec<LogEntry>), StoreError> {
        Store::open(dir, Arc::new(FakeClock::new()), Box::new(|_| {}))
    }

    fn event(name: &str) -> LogEvent {
        LogEvent::Discharged { run: "r".to_owned(), injection: InjectionId(name.to_owned()) }
    }

    #[test]
    fn what_was_recorded_is_there_for_the_next_agent() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, before) = open(dir.path()).unwrap();
        assert!(before.is_empty());
        store.must(event("a")).unwrap();
        drop(store);
        let (_store, after) = open(dir.path()).unwrap();
        assert_eq!(after.last().unwrap().event, event("a"));
        assert!(matches!(after[0].event, LogEvent::Started { torn_bytes: 0, .. }));
    }

    #[test]
    fn a_torn_line_is_put_aside_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = open(dir.path()).unwrap();
        store.must(event("a")).unwrap();
        let whole = store.whole_bytes;
        drop(store);
        let path = dir.path().join(LOG_FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend(b"{\"prev\":\"half");
        fs::write(&path, &bytes).unwrap();
        let (mut store, entries) = open(dir.path()).unwrap();
        assert_eq!(entries.len(), 2);
        store.must(event("b")).unwrap();
        drop(store);
        let aside = dir.path().join(format!("{LOG_FILE}.torn-{whole}"));
        assert_eq!(fs::read(aside).unwrap(), b"{\"prev\":\"half");
        let (_store, entries) = open(dir.path()).unwrap();
        assert!(matches!(entries[2].event, LogEvent::Started { torn_bytes: 13, .. }));
        assert_eq!(entries[3].event, event("b"));
    }

    #[test]
    fn only_one_agent_may_write() {
        let dir = tempfile::tempdir().unwrap();
        let _held = open(dir.path()).unwrap();
        assert!(matches!(open(dir.path()), Err(StoreError::Held { .. })));
    }

    #[test]
    fn on_a_full_disk_answers_are_refused_and_deeds_are_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = open(dir.path()).unwrap();
        let good = store.file.try_clone().unwrap();
        store.file = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        assert!(matches!(store.must(event("refused")), Err(StoreError::Io { .. })));
        store.attempt(event("done anyway"));
        store.file = good;
        store.must(event("afterwards")).unwrap();
        drop(store);
        let (_store, entries) = open(dir.path()).unwrap();
        let events: Vec<_> = entries.into_iter().skip(1).map(|e| e.event).collect();
        assert_eq!(events, [event("done anyway"), event("afterwards")]);
    }
}
