//! Writes one history file, and says at which length it had which digest.

use super::record::{EventRecord, OpRecord, Record};
use crate::clock::Clock;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// A prefix of a history file and its digest, for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// File below the run directory: `histories/<client>.jsonl`.
    pub file: String,
    /// Length of the prefix.
    pub bytes: u64,
    /// Lines in it.
    pub records: u64,
    /// SHA-256 of the prefix, hexadecimal.
    pub sha256: String,
}

/// Writes one history. Lines are flushed with each anchor; an anchor is sent at
/// most every [`Recorder::ANCHOR_EVERY_NS`] and on close.
pub struct Recorder {
    file: String,
    out: BufWriter<File>,
    digest: Sha256,
    bytes: u64,
    records: u64,
    anchored_at_ns: u64,
    clock: Arc<dyn Clock>,
    anchors: UnboundedSender<Anchor>,
}

impl Recorder {
    /// Longest time for which records are not anchored while new ones arrive.
    pub const ANCHOR_EVERY_NS: u64 = 500_000_000;

    /// Creates `<run directory>/histories/<client>.jsonl`; it must not exist.
    ///
    /// # Errors
    /// When the file exists or can't be written.
    pub fn create(
        run_dir: &Path,
        client: &str,
        clock: Arc<dyn Clock>,
        anchors: UnboundedSender<Anchor>,
    ) -> io::Result<Self> {
        let file = format!("histories/{client}.jsonl");
        let path = run_dir.join(&file);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let out = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?);
        let anchored_at_ns = clock.mono().0;
        Ok(Self { file, out, digest: Sha256::new(), bytes: 0, records: 0, anchored_at_ns, clock, anchors })
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When the disk is full or the file is gone: the client must stop, its evidence is incomplete.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.digest.update(&line);
        self.bytes += line.len() as u64;
        self.records += 1;
        let now = self.clock.mono().0;
        if now.saturating_sub(self.anchored_at_ns) >= Self::ANCHOR_EVERY_NS {
            self.anchored_at_ns = now;
            self.anchor()?;
        }
        Ok(())
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// As [`Recorder::append`].
    pub fn op(&mut self, op: OpRecord) -> io::Result<()> {
        self.append(&Record::Op(op))
    }

    /// Appends a watch event.
    ///
    /// # Errors
    /// As [`Recorder::append`].
    pub fn event(&mut self, event: EventRecord) -> io::Result<()> {
        self.append(&Record::Event(event))
    }

    /// Flushes and announces the digest of everything written so far.
    ///
    /// # Errors
    /// As [`Recorder::append`].
    pub fn anchor(&mut self) -> io::Result<()> {
        self.out.flush()?;
        let anchor = Anchor {
            file: self.file.clone(),
            bytes: self.bytes,
            records: self.records,
            sha256: hex::encode(self.digest.clone().finalize()),
        };
        // The receiver is gone only when the run is over; the file itself is complete.
        let _ = self.anchors.send(anchor);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::history::record::Record;

    #[test]
    fn an_anchor_is_the_digest_of_the_bytes_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let clock = Arc::new(FakeClock::new());
        let mut recorder = Recorder::create(dir.path(), "orders", clock.clone(), tx).unwrap();
        let closed = Record::Closed {
            mono_ns: clock.mono(),
            boot: clock.boot(),
            scheduled: 1,
            recorded: 1,
            late: 0,
            lost: 0,
        };
        recorder.append(&closed).unwrap();
        recorder.anchor().unwrap();
        let anchor = rx.try_recv().unwrap();
        let bytes = std::fs::read(dir.path().join(&anchor.file)).unwrap();
        assert_eq!(anchor.bytes, bytes.len() as u64);
        assert_eq!(anchor.sha256, hex::encode(Sha256::digest(&bytes)));
        assert!(
            Recorder::create(dir.path(), "orders", clock, tokio::sync::mpsc::unbounded_channel().0).is_err()
        );
    }
}
