//! The agent's own log: append-only JSON lines under the same chain rule as the journal
//! (see [`crate::chained::chain`]), so that it can be imported into the evidence as it is.

use super::undo::{InjectionId, Undo};
use crate::chained::chain::Head;
use crate::chained::format::{self, Compatibility};
use crate::chained::lines::ChainedLines;
use crate::clock::Stamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Major.minor of the log's format. A newer minor is read, a newer major refused.
pub const FORMAT_VERSION: &str = "1.0";

/// Where the log lies in the evidence of a run.
pub const EVIDENCE_FILE: &str = "agent/agent.jsonl";

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Hash of the previous line, hexadecimal; 64 zeros for the first.
    pub prev: String,
    /// 0, 1, 2, ….
    pub seq: u64,
    /// When it happened.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// What happened.
    pub event: LogEvent,
}

/// What happened to an undo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum LogEvent {
    /// An agent took over the log.
    Started {
        /// [`FORMAT_VERSION`] of the writer.
        format_version: String,
        /// Version of the tool.
        tool: String,
        /// Bytes of a torn last line that were put aside.
        torn_bytes: u64,
    },
    /// An undo became durable and a lease was granted.
    Armed {
        /// Run that owns the lease.
        run: String,
        /// The undo.
        undo: Undo,
        /// Lease length, nanoseconds.
        ttl_ns: u64,
    },
    /// Another undo holds from now on.
    Amended {
        /// Run that owns the lease.
        run: String,
        /// The undo.
        undo: Undo,
    },
    /// Leases go on for another TTL. Not every renewal is recorded; see [`crate::agent`].
    Renewed {
        /// Run that owns the leases.
        run: String,
        /// Which ones.
        injections: Vec<InjectionId>,
    },
    /// The lease lapsed and things stay as they are, which is safe.
    Lapsed {
        /// Run that owned the lease.
        run: String,
        /// Which.
        injection: InjectionId,
    },
    /// An undo begins.
    Undoing {
        /// Run that owns it.
        run: String,
        /// Which.
        injection: InjectionId,
        /// The lease lapsed; otherwise somebody asked.
        by_lapse: bool,
    },
    /// An undo was carried out and verified.
    Undone {
        /// Run that owns it.
        run: String,
        /// Which.
        injection: InjectionId,
    },
    /// An undo failed and is still owed.
    UndoFailed {
        /// Run that owns it.
        run: String,
        /// Which.
        injection: InjectionId,
        /// Why.
        reason: String,
    },
    /// A step ended the fault; nothing is owed.
    Discharged {
        /// Run that owned it.
        run: String,
        /// Which.
        injection: InjectionId,
    },
}

/// A log as read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadLog {
    /// Every whole line.
    pub entries: Vec<LogEntry>,
    /// Hash of the last whole line.
    pub head: Head,
    /// Bytes of whole lines; what follows is torn.
    pub whole_bytes: u64,
    /// What follows the last newline: a crash hit before it was answered for.
    pub torn: Vec<u8>,
}

/// Why a log can't be relied on.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogError {
    /// A line is not what the one before says it must be.
    #[error(
        "line {line} of the agent's log is broken: {reason}; what it owed is unknown, \
         so remove the cluster with `quakeproof cluster down`"
    )]
    Broken {
        /// 1, 2, ….
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Written by a newer tool.
    #[error("the agent's log has format {found}, this tool reads {FORMAT_VERSION}; use a newer quakeproof")]
    Newer {
        /// Format of the log.
        found: String,
    },
}

/// Reads a log. A torn last line is left out.
///
/// # Errors
/// When the chain is broken or the format is of another major version.
pub fn read(bytes: &[u8]) -> Result<ReadLog, LogError> {
    let mut lines = ChainedLines::new(bytes);
    let mut entries: Vec<LogEntry> = Vec::new();
    loop {
        let broken = |reason: String| LogError::Broken { line: entries.len() as u64 + 1, reason };
        let Some(line) = lines.next_line().map_err(|e| broken(e.to_string()))? else { break };
        refuse_newer(&line)?;
        let entry: LogEntry = serde_json::from_slice(&line).map_err(|e| broken(e.to_string()))?;
        lines.follow(&line, entry.seq, &entry.prev).map_err(broken)?;
        entries.push(entry);
    }
    Ok(ReadLog { entries, head: lines.head(), whole_bytes: lines.bytes(), torn: lines.torn().to_vec() })
}

/// A newer major version may have events that this one can't parse, so the version is looked at first.
fn refuse_newer(line: &[u8]) -> Result<(), LogError> {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(line) else { return Ok(()) };
    let Some(found) = value["event"]["started"]["formatVersion"].as_str() else { return Ok(()) };
    match format::compare(found, FORMAT_VERSION) {
        Compatibility::Known | Compatibility::NewerMinor => Ok(()),
        Compatibility::Refused => Err(LogError::Newer { found: found.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;

    fn started(version: &str) -> LogEvent {
        LogEvent::Started { format_version: version.to_owned(), tool: "0".to_owned(), torn_bytes: 0 }
    }

    fn discharged(injection: &str) -> LogEvent {
        LogEvent::Discharged { run: "r".to_owned(), injection: InjectionId(injection.to_owned()) }
    }

    fn chain(events: &[LogEvent]) -> Vec<u8> {
        let stamp = Stamp::now(&FakeClock::new());
        let (mut bytes, mut head) = (Vec::new(), Head::START);
        for (seq, event) in (0..).zip(events) {
            let entry = LogEntry { prev: head.to_string(), seq, stamp: stamp.clone(), event: event.clone() };
            let line = serde_json::to_vec(&entry).unwrap();
            head = head.then(&line);
            bytes.extend(line);
            bytes.push(b'\n');
        }
        bytes
    }

    #[test]
    fn a_whole_log_reads_as_written() {
        let bytes = chain(&[started(FORMAT_VERSION), discharged("a"), discharged("b")]);
        let log = read(&bytes).unwrap();
        assert_eq!(log.entries.len(), 3);
        assert_eq!(log.whole_bytes, bytes.len() as u64);
        assert_eq!(log.entries[2].event, discharged("b"));
    }

    #[test]
    fn a_torn_last_line_is_left_out_wherever_it_was_cut() {
        let bytes = chain(&[started(FORMAT_VERSION), discharged("a")]);
        let first = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
        for cut in first..bytes.len() {
            let log = read(&bytes[..cut]).unwrap();
            assert_eq!((log.entries.len(), log.whole_bytes), (1, first as u64), "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_or_missing_line_is_named() {
        let events = [started(FORMAT_VERSION), discharged("a"), discharged("b")];
        let text = String::from_utf8(chain(&events)).unwrap();
        let changed = text.replace("\"a\"", "\"x\"");
        assert!(matches!(read(changed.as_bytes()), Err(LogError::Broken { line: 3, .. })));
        let lines: Vec<_> = text.lines().collect();
        let missing = format!("{}\n{}\n", lines[0], lines[2]);
        assert!(matches!(read(missing.as_bytes()), Err(LogError::Broken { line: 2, .. })));
    }

    #[test]
    fn a_newer_minor_is_read_and_a_newer_major_refused() {
        assert!(read(&chain(&[started("1.7")])).is_ok());
        assert_eq!(read(&chain(&[started("2.0")])), Err(LogError::Newer { found: "2.0".to_owned() }));
    }
}
