//! Reads histories and holds them against the digests that the journal has of them.

use super::record::{OpRecord, Outcome, Record};
use super::recorder::Anchor;
use crate::chained::lines::MAX_LINE;
use crate::regular_file;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a history can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// It can't be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The history.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A line is not a record.
    #[error("{} line {line}: not a history record: {what}", path.display())]
    Corrupt {
        /// The history.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// What differs.
        what: String,
    },
    /// A prefix is not what the journal anchored.
    #[error("{} lines {first} to {last}: not what the journal anchored: {what}", path.display())]
    NotAnchored {
        /// The history.
        path: PathBuf,
        /// First line that may differ, counted from 1.
        first: u64,
        /// Last line that may differ.
        last: u64,
        /// What differs.
        what: String,
    },
}

/// One client's history.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Every record; record `n` is line `n + 1`.
    pub records: Vec<Record>,
    /// Bytes after the last newline: a write that was cut short by the recorder's death.
    pub torn_bytes: u64,
}

/// Most ids in the answers of one run's histories. A range of ids is short when written and long when
/// read: a forged history must not exhaust memory.
pub const MAX_IDS: u64 = 100_000_000;

/// Reads a whole history. A torn last line is left out and counted.
///
/// # Errors
/// When it can't be read, or a line is not a record.
pub fn read(path: &Path) -> Result<History, HistoryError> {
    read_within(path, &mut { MAX_IDS })
}

/// As [`read`], taking the ids that it holds from `room`.
///
/// # Errors
/// As [`read`], and when there is no room for them.
pub fn read_within(path: &Path, room: &mut u64) -> Result<History, HistoryError> {
    let failed = |source| HistoryError::Io { path: path.to_owned(), source };
    let mut input = BufReader::new(regular_file::open(path).map_err(failed)?);
    let mut records: Vec<Record> = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(failed)?;
        let corrupt = |what: String| HistoryError::Corrupt {
            path: path.to_owned(),
            line: records.len() as u64 + 1,
            what,
        };
        if line.pop_if(|last| *last == b'\n').is_none() {
            if line.len() as u64 >= MAX_LINE {
                return Err(corrupt(format!("longer than {MAX_LINE} bytes")));
            }
            return Ok(History { records, torn_bytes: line.len() as u64 });
        }
        let record: Record = serde_json::from_slice(&line).map_err(|e| corrupt(e.to_string()))?;
        *room = room
            .checked_sub(ids_in(&record))
            .ok_or_else(|| corrupt(format!("more than {MAX_IDS} ids up to here")))?;
        records.push(record);
    }
}

fn ids_in(record: &Record) -> u64 {
    match record {
        Record::Op(OpRecord { outcome: Outcome::Ok(answer), .. }) => {
            answer.ids.as_ref().map_or(0, |ids| ids.len() as u64)
        }
        _ => 0,
    }
}

/// What a history holds beyond its last anchor: recorded, but not vouched for by the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unanchored {
    /// Whole lines.
    pub records: u64,
    /// Bytes, a torn last line included.
    pub bytes: u64,
}

/// Holds a history against its anchors, which are in the journal's order.
///
/// # Errors
/// Names the lines between the last anchor that fits and the first that does not.
pub fn check_anchors(path: &Path, anchors: &[Anchor]) -> Result<Unanchored, HistoryError> {
    let failed = |source| HistoryError::Io { path: path.to_owned(), source };
    let file = regular_file::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut input = BufReader::new(file);
    let mut digest = Sha256::new();
    let mut done = 0u64;
    let mut lines = 0u64;
    for anchor in anchors {
        let differs = |what: String| HistoryError::NotAnchored {
            path: path.to_owned(),
            first: lines + 1,
            last: anchor.records.max(lines + 1),
            what,
        };
        let end = anchor.bytes;
        if end < done {
            return Err(differs(format!("an anchor at byte {end} follows one at byte {done}")));
        }
        if end > size {
            return Err(differs(format!("it has {size} bytes, {end} were anchored")));
        }
        let counted = lines + take(&mut input, end - done, |part| digest.update(part)).map_err(failed)?;
        let found = hex::encode(digest.clone().finalize());
        if found != anchor.sha256 {
            return Err(differs(format!(
                "digest of bytes 0 to {end} is {found}, expected {}",
                anchor.sha256
            )));
        }
        if counted != anchor.records {
            return Err(differs(format!("{counted} lines, {} were anchored", anchor.records)));
        }
        done = end;
        lines = counted;
    }
    let rest = size - done;
    Ok(Unanchored { records: take(&mut input, rest, |_| ()).map_err(failed)?, bytes: rest })
}

/// Hands over the next `bytes` in pieces and counts the lines that end in them.
fn take(input: &mut impl BufRead, bytes: u64, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut input = input.take(bytes);
    let mut lines = 0;
    loop {
        let part = input.fill_buf()?;
        if part.is_empty() {
            return Ok(lines);
        }
        each(part);
        lines += count_lines(part);
        let used = part.len();
        input.consume(used);
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, FakeClock};
    use crate::history::recorder::Recorder;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// A history of six records with an anchor after each second one; the last two have none.
    fn sample(dir: &Path) -> (PathBuf, Vec<Anchor>) {
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let clock = Arc::new(FakeClock::new());
        let mut recorder = Recorder::create(dir, "orders", clock.clone(), tx).unwrap();
        for n in 1..=6 {
            let record = Record::Closed {
                mono_ns: clock.mono(),
                boot: clock.boot(),
                scheduled: n,
                recorded: n,
                late: 0,
                lost: 0,
            };
            recorder.append(&record).unwrap();
            if n % 2 == 0 && n < 6 {
                recorder.anchor().unwrap();
            }
        }
        drop(recorder);
        let mut anchors = Vec::new();
        while let Ok(anchor) = rx.try_recv() {
            anchors.push(anchor);
        }
        (dir.join("histories/orders.jsonl"), anchors)
    }

    #[test]
    fn what_follows_the_last_anchor_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (path, anchors) = sample(dir.path());
        assert_eq!(anchors.len(), 2);
        let unanchored = check_anchors(&path, &anchors).unwrap();
        assert_eq!(unanchored.records, 2);
        assert_eq!(read(&path).unwrap().records.len(), 6);
    }

    #[test]
    fn a_torn_last_line_is_tolerated_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (path, anchors) = sample(dir.path());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let history = read(&path).unwrap();
        assert_eq!(history.records.len(), 5);
        assert!(history.torn_bytes > 0);
        assert_eq!(check_anchors(&path, &anchors).unwrap().records, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_changed_byte_before_the_last_anchor_is_seen_in_its_lines(at in any::<prop::sample::Index>(), by in 1u8..) {
            let dir = tempfile::tempdir().unwrap();
            let (path, anchors) = sample(dir.path());
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(anchors.last().unwrap().bytes as usize);
            let line = 1 + count_lines(&bytes[..at]);
            bytes[at] = bytes[at].wrapping_add(by);
            std::fs::write(&path, &bytes).unwrap();
            match check_anchors(&path, &anchors) {
                Err(HistoryError::NotAnchored { first, last, .. }) => prop_assert!((first..=last).contains(&line)),
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_shortened_history_is_seen(keep in any::<prop::sample::Index>()) {
            let dir = tempfile::tempdir().unwrap();
            let (path, anchors) = sample(dir.path());
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..keep.index(anchors.last().unwrap().bytes as usize)]).unwrap();
            let seen = matches!(check_anchors(&path, &anchors), Err(HistoryError::NotAnchored { .. }));
            prop_assert!(seen);
        }
    }
}
