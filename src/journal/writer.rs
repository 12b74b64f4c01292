//! Writes the journal: one process, one line per entry, durable before the caller goes on.

use super::crash;
use super::entry::{Entry, JournalEvent};
use super::error::JournalError;
use super::reader;
use crate::chained::chain::Head;
use crate::clock::Clock;
use crate::durable::sync_parent;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The only writer of a journal; holds its file lock until dropped.
pub struct JournalWriter {
    path: PathBuf,
    file: File,
    clock: Arc<dyn Clock>,
    head: Head,
    seq: u64,
    bytes: u64,
    poisoned: bool,
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        // Closing alone leaves it locked for as long as a child that was just forked has the file too.
        let _ = self.file.unlock();
    }
}

/// A journal taken over from a process that died.
pub struct Resumed {
    /// Continues the chain.
    pub writer: JournalWriter,
    /// What is there.
    pub entries: Vec<Entry>,
    /// Bytes of a torn last line, now in `journal.torn`; for [`JournalEvent::RunAdopted`].
    pub torn_bytes: u64,
}

impl JournalWriter {
    /// Creates the journal; file and directory entry are durable on return.
    ///
    /// # Errors
    /// [`JournalError::Exists`] when there is one, [`JournalError::ReadOnly`] and
    /// [`JournalError::NoSpace`] with what to do.
    pub fn create(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, JournalError> {
        let fail = |e| JournalError::from_io(path, e);
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(fail)?;
        lock(&file, path)?;
        file.sync_all().and_then(|()| sync_parent(path)).map_err(fail)?;
        let path = path.to_owned();
        Ok(Self { path, file, clock, head: Head::START, seq: 0, bytes: 0, poisoned: false })
    }

    /// Takes over the journal of a process that died. A torn last line is moved to
    /// `journal.torn` beside it, so that nothing is lost, before it is cut off.
    ///
    /// # Errors
    /// [`JournalError::Busy`] while its writer lives, [`JournalError::Newer`],
    /// [`JournalError::Corrupt`] with the line, [`JournalError::Empty`] when there is no entry.
    pub fn resume(path: &Path, clock: Arc<dyn Clock>) -> Result<Resumed, JournalError> {
        let fail = |e| JournalError::from_io(path, e);
        let mut file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        lock(&file, path)?;
        let journal = reader::read(path)?;
        if journal.entries.is_empty() {
            return Err(JournalError::Empty { path: path.to_owned() });
        }
        if !journal.torn.is_empty() {
            put_aside(&torn_path(path), &journal.torn).map_err(fail)?;
            file.set_len(journal.bytes).and_then(|()| file.sync_all()).map_err(fail)?;
        }
        file.seek(SeekFrom::Start(journal.bytes)).map_err(fail)?;
        let writer = Self {
            path: path.to_owned(),
            file,
            clock,
            head: journal.head,
            seq: journal.entries.len() as u64,
            bytes: journal.bytes,
            poisoned: false,
        };
        Ok(Resumed { writer, entries: journal.entries, torn_bytes: journal.torn.len() as u64 })
    }

    /// Appends an event. On return it is durable; only [`JournalEvent::HistoryAnchored`],
    /// which comes twice a second per client and promises nothing about the cluster,
    /// becomes durable with the next other entry.
    ///
    /// # Errors
    /// [`JournalError::NoSpace`] and others; the remains of the failed entry are taken
    /// back, so the journal stays readable. When that fails as well, or the kernel could not
    /// say whether the entry reached the disk, every later call is [`JournalError::Poisoned`].
    pub fn append(&mut self, event: JournalEvent) -> Result<Entry, JournalError> {
        if self.poisoned {
            return Err(JournalError::Poisoned { path: self.path.clone() });
        }
        let durable = !matches!(event, JournalEvent::HistoryAnchored { .. });
        let entry = Entry {
            prev: self.head.to_string(),
            seq: self.seq,
            at: self.clock.wall(),
            mono_ns: self.clock.mono(),
            boot: self.clock.boot(),
            event,
        };
        let fail = |e: io::Error| JournalError::from_io(&self.path, e);
        let mut line = serde_json::to_vec(&entry).map_err(|e| fail(e.into()))?;
        let head = self.head.then(&line);
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            let error = fail(error);
            let taken_back =
                self.file.set_len(self.bytes).and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)));
            self.poisoned = taken_back.is_err();
            return Err(error);
        }
        if durable && let Err(error) = self.file.sync_data() {
            // After a failed fsync the kernel may have dropped the pages: what is on disk is unknown.
            self.poisoned = true;
            return Err(fail(error));
        }
        self.head = head;
        self.seq += 1;
        self.bytes += line.len() as u64;
        crash::after_entry(&entry);
        Ok(entry)
    }

    /// Hash of the last entry.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Number of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.seq
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a living process writes the journal at `path`; `false` when there is none.
///
/// # Errors
/// When the file can't be opened.
pub fn is_being_written(path: &Path) -> io::Result<bool> {
    match File::open(path) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(e),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => JournalError::Busy { path: path.to_owned() },
        TryLockError::Error(e) => JournalError::from_io(path, e),
    })
}

fn torn_path(journal: &Path) -> PathBuf {
    journal.with_extension("torn")
}

/// Appends to what earlier crashes left; one torn line per line.
fn put_aside(path: &Path, torn: &[u8]) -> io::Result<()> {
    let mut aside = OpenOptions::new().append(true).create(true).open(path)?;
    aside.write_all(torn)?;
    aside.write_all(b"\n")?;
    aside.sync_all()?;
    sync_parent(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::journal::samples;

    fn clock() -> Arc<FakeClock> {
        Arc::new(FakeClock::new())
    }

    fn written(path: &Path, events: &[JournalEvent]) -> JournalWriter {
        let mut writer = JournalWriter::create(path, clock()).unwrap();
        for event in events {
            writer.append(event.clone()).unwrap();
        }
        writer
    }

    #[test]
    fn a_journal_whose_writer_is_gone_is_not_being_written_though_a_child_was_just_forked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let writer = JournalWriter::create(&path, clock()).unwrap();
        // Shares the lock, as a fork's copy does until another program is executed.
        let forked = writer.file.try_clone().unwrap();
        assert!(is_being_written(&path).unwrap());
        drop(writer);
        assert!(!is_being_written(&path).unwrap());
        drop(forked);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let events = samples::events();
        let writer = written(&path, &events);
        let journal = reader::read(&path).unwrap();
        assert_eq!(journal.entries.into_iter().map(|e| e.event).collect::<Vec<_>>(), events);
        assert_eq!(journal.head, writer.head());
        assert!(journal.torn.is_empty());
    }

    #[test]
    fn a_journal_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        assert!(!is_being_written(&path).unwrap());
        let writer = written(&path, &samples::events());
        assert!(matches!(JournalWriter::create(&path, clock()), Err(JournalError::Exists { .. })));
        assert!(matches!(JournalWriter::resume(&path, clock()), Err(JournalError::Busy { .. })));
        assert!(is_being_written(&path).unwrap());
        drop(writer);
        assert!(!is_being_written(&path).unwrap());
        assert!(JournalWriter::resume(&path, clock()).is_ok());
    }

    #[test]
    fn resume_works_at_every_cut_and_loses_no_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let events = &samples::events()[..3];
        drop(written(&path, events));
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
        for cut in 0..=whole.len() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("journal.jsonl");
            std::fs::write(&path, &whole[..cut]).unwrap();
            if cut < first {
                assert!(matches!(JournalWriter::resume(&path, clock()), Err(JournalError::Empty { .. })));
                assert_eq!(std::fs::read(&path).unwrap(), &whole[..cut], "an empty journal is left alone");
                continue;
            }
            let Resumed { mut writer, entries, torn_bytes } = JournalWriter::resume(&path, clock()).unwrap();
            let complete = whole[..cut].iter().rposition(|b| *b == b'\n').unwrap() + 1;
            assert_eq!(torn_bytes as usize, cut - complete);
            let torn = std::fs::read(dir.path().join("journal.torn")).ok();
            let put_aside = torn.as_ref().map(|torn| &torn[..torn.len() - 1]);
            assert_eq!(put_aside, Some(&whole[complete..cut]).filter(|torn| !torn.is_empty()));
            writer.append(JournalEvent::RunAdopted { by: "recover".into(), torn_bytes }).unwrap();
            assert_eq!(reader::read(&path).unwrap().entries.len(), entries.len() + 1);
        }
    }

    #[test]
    fn a_full_disk_is_named_and_leaves_a_readable_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut writer = written(&path, &samples::events()[..2]);
        // Every write to /dev/full fails with ENOSPC, as on a full disk; the rest of the writer is real.
        let real =
            std::mem::replace(&mut writer.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
        let event = JournalEvent::Interrupted { by: "SIGINT".into() };
        let error = writer.append(event.clone()).unwrap_err();
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        assert!(error.to_string().contains("hint: free some space"), "{error}");
        assert_eq!(writer.entries(), 2);
        // /dev/full can't be truncated either, so nothing may be appended any more.
        assert!(matches!(writer.append(event), Err(JournalError::Poisoned { .. })));
        drop(real);
        assert_eq!(reader::read(&path).unwrap().entries.len(), 2);
    }

    #[test]
    fn a_directory_that_can_t_be_written_is_named_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("not-a-directory");
        std::fs::write(&file, "").unwrap();
        let error = JournalWriter::create(&file.join("journal.jsonl"), clock()).err().unwrap();
        assert!(matches!(error, JournalError::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("--out"), "{error}");
    }

    #[test]
    fn only_the_anchor_of_a_history_need_not_be_durable_before_the_caller_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = written(&dir.path().join("journal.jsonl"), &samples::events()[..2]);
        // /dev/null takes every write, and fails when it is to be made durable.
        writer.file = OpenOptions::new().write(true).open("/dev/null").unwrap();
        let is_anchor = |event: &JournalEvent| matches!(event, JournalEvent::HistoryAnchored { .. });
        let (anchors, others): (Vec<_>, Vec<_>) = samples::events().into_iter().partition(is_anchor);
        writer.append(anchors[0].clone()).unwrap();
        assert_eq!(writer.entries(), 3);
        assert!(matches!(writer.append(others[0].clone()), Err(JournalError::Io { .. })));
        assert_eq!(writer.entries(), 3);
        // Whether it is on disk is unknown, so nothing may follow it, not even an anchor.
        assert!(matches!(writer.append(anchors[0].clone()), Err(JournalError::Poisoned { .. })));
    }

    #[test]
    fn a_journal_that_can_t_be_looked_at_is_not_said_to_be_idle() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("not-a-directory");
        std::fs::write(&file, "").unwrap();
        assert!(is_being_written(&file.join("journal.jsonl")).is_err());
    }
}
