//! Reads a journal line by line, following its chain.

use super::entry::{Entry, FORMAT_VERSION, JournalEvent};
use super::error::JournalError;
use crate::chained::chain::Head;
use crate::chained::format::{self, Compatibility};
use crate::chained::lines::ChainedLines;
use crate::clock::{BootId, MonoNs, WallTime};
use crate::regular_file;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A whole journal.
#[derive(Debug, Clone)]
pub struct Journal {
    /// Every entry; entry `n` is line `n + 1`.
    pub entries: Vec<Entry>,
    /// Hash of the last entry.
    pub head: Head,
    /// Bytes of the whole lines.
    pub bytes: u64,
    /// What follows the last newline: a write that was cut short. It was never durable.
    pub torn: Vec<u8>,
}

/// Reads and checks a whole journal.
///
/// # Errors
/// When it can't be read, a line is not an entry, the chain breaks, or the format is of
/// another major version. A torn last line is not an error.
pub fn read(path: &Path) -> Result<Journal, JournalError> {
    let file = regular_file::open(path).map_err(|e| JournalError::from_io(path, e))?;
    let mut reader = JournalReader::new(path, BufReader::new(file));
    let mut entries = Vec::new();
    for entry in reader.by_ref() {
        entries.push(entry?);
    }
    let lines = reader.lines;
    Ok(Journal { entries, head: lines.head(), bytes: lines.bytes(), torn: lines.torn().to_vec() })
}

/// Yields the entries of a journal; ends before a torn last line.
pub struct JournalReader<R> {
    path: PathBuf,
    lines: ChainedLines<R>,
    newer_minor: bool,
    ended: bool,
}

impl<R: BufRead> JournalReader<R> {
    /// Reads from `input`; `path` is for messages.
    pub fn new(path: &Path, input: R) -> Self {
        Self { path: path.to_owned(), lines: ChainedLines::new(input), newer_minor: false, ended: false }
    }

    /// Hash of the last entry yielded.
    #[must_use]
    pub fn head(&self) -> Head {
        self.lines.head()
    }

    /// What follows the last newline, once the entries are exhausted.
    #[must_use]
    pub fn torn(&self) -> &[u8] {
        self.lines.torn()
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, JournalError> {
        let line = match self.lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(self.corrupt(e.to_string())),
            Err(e) => return Err(JournalError::from_io(&self.path, e)),
        };
        let entry = self.parse(&line)?;
        self.lines.follow(&line, entry.seq, &entry.prev).map_err(|what| self.corrupt(what))?;
        Ok(Some(entry))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Entry, JournalError> {
        if self.lines.lines() == 0 {
            self.check_format(line)?;
        }
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => Ok(entry),
            Err(_) if self.newer_minor => self.parse_outline(line),
            Err(e) => Err(self.corrupt(format!("not a journal entry: {e}"))),
        }
    }

    /// The first line must open a run, in a format that this version reads.
    fn check_format(&mut self, line: &[u8]) -> Result<(), JournalError> {
        let value: Value =
            serde_json::from_slice(line).map_err(|e| self.corrupt(format!("not a journal entry: {e}")))?;
        let found =
            value.pointer("/event/runOpened/formatVersion").and_then(Value::as_str).ok_or_else(|| {
                self.corrupt("the first entry is not `runOpened` with a `formatVersion`".into())
            })?;
        match format::compare(found, FORMAT_VERSION) {
            Compatibility::Known => Ok(()),
            Compatibility::NewerMinor => {
                self.newer_minor = true;
                Ok(())
            }
            Compatibility::Refused => Err(JournalError::Newer {
                path: self.path.clone(),
                found: found.chars().take(20).collect(),
                supported: FORMAT_VERSION,
            }),
        }
    }

    /// An entry whose event this version does not know.
    fn parse_outline(&self, line: &[u8]) -> Result<Entry, JournalError> {
        let outline: Outline =
            serde_json::from_slice(line).map_err(|e| self.corrupt(format!("not a journal entry: {e}")))?;
        let kind = match &outline.event {
            Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
            Value::String(kind) => kind.clone(),
            _ => return Err(self.corrupt("`event` is neither an object nor a name".into())),
        };
        let Outline { prev, seq, at, mono_ns, boot, .. } = outline;
        Ok(Entry { prev, seq, at, mono_ns, boot, event: JournalEvent::Other { kind } })
    }

    fn corrupt(&self, what: String) -> JournalError {
        JournalError::Corrupt { path: self.path.clone(), line: self.lines.lines() + 1, what }
    }
}

impl<R: BufRead> Iterator for JournalReader<R> {
    type Item = Result<Entry, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_entry().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The parts of an entry that no minor version changes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    prev: String,
    seq: u64,
    at: WallTime,
    mono_ns: MonoNs,
    boot: BootId,
    event: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::samples;

    fn parse(text: &str) -> Result<(Vec<Entry>, Vec<u8>), JournalError> {
        let mut reader = JournalReader::new(Path::new("journal.jsonl"), text.as_bytes());
        let entries = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok((entries, reader.torn().to_vec()))
    }

    /// Rewrites a journal as one of another format version, with its chain made good.
    fn rechained(lines: &[String]) -> String {
        let mut head = Head::START;
        let mut out = String::new();
        for line in lines {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value["prev"] = head.to_string().into();
            let line = value.to_string();
            head = head.then(line.as_bytes());
            out.push_str(&line);
            out.push('\n');
        }
        out
    }

    fn lines_with_version(version: &str) -> Vec<String> {
        let text = samples::journal_text();
        let lines = text.lines().map(str::to_owned);
        let version = format!(r#""formatVersion":"{version}""#);
        lines
            .map(|line| line.replace(r#""formatVersion":"1.0","run""#, &format!("{version},\"run\"")))
            .collect()
    }

    #[test]
    fn a_torn_last_line_is_not_an_error_and_is_kept_apart() {
        let text = samples::journal_text();
        let whole = parse(&text).unwrap().0.len();
        let (entries, torn) = parse(&text[..text.len() - 1]).unwrap();
        assert_eq!(entries.len(), whole - 1);
        assert_eq!(torn, text.lines().last().unwrap().as_bytes());
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_named() {
        let text = samples::journal_text().replacen("\"etcd-1\"", "\"etcd-9\"", 1);
        let line = 1 + text.lines().position(|l| l.contains("etcd-9")).unwrap() as u64;
        match parse(&text).unwrap_err() {
            // The change shows in the `prev` of the next line, which names the changed one.
            JournalError::Corrupt { line: at, what, .. } => {
                assert_eq!(at, line + 1);
                assert!(what.contains(&format!("line {line} was changed")), "{what}");
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_newer_major_format_is_refused_with_the_way_out() {
        let error = parse(&rechained(&lines_with_version("2.0"))).unwrap_err();
        assert!(matches!(error, JournalError::Newer { .. }));
        assert!(error.to_string().contains("format 2.0"), "{error}");
        assert!(error.to_string().contains("hint: use the quakeproof version"), "{error}");
    }

    #[test]
    fn a_newer_minor_format_is_read_and_its_new_events_kept() {
        let mut lines = lines_with_version("1.9");
        let event =
            r#"{"prev":"","seq":1,"at":"x","monoNs":5,"boot":"b","event":{"moonPhase":{"full":true}}}"#;
        lines.insert(1, event.to_owned());
        for (seq, line) in lines.iter_mut().enumerate() {
            let mut value: Value = serde_json::from_str(line).unwrap();
            value["seq"] = seq.into();
            *line = value.to_string();
        }
        let (entries, _) = parse(&rechained(&lines)).unwrap();
        assert_eq!(entries[1].event, JournalEvent::Other { kind: "moonPhase".into() });
        assert_eq!(entries.len(), lines.len());
    }

    #[test]
    fn an_unknown_event_in_our_own_format_is_corruption() {
        let mut lines = lines_with_version("1.0");
        lines[1] = lines[1].replacen("\"clusterCreating\"", "\"clusterDreaming\"", 1);
        assert!(matches!(parse(&rechained(&lines)), Err(JournalError::Corrupt { line: 2, .. })));
    }

    #[test]
    fn what_is_damage_is_told_from_what_the_system_refuses() {
        let path = Path::new("journal.jsonl");
        let endless = BufReader::new(io::repeat(b' '));
        let error = JournalReader::new(path, endless).next().unwrap().unwrap_err();
        assert!(matches!(error, JournalError::Corrupt { line: 1, .. }), "{error}");
        assert!(error.to_string().contains("longer than"), "{error}");
        let directory = BufReader::new(std::fs::File::open("/").unwrap());
        let error = JournalReader::new(path, directory).next().unwrap().unwrap_err();
        assert!(matches!(error, JournalError::Io { .. }), "{error}");
    }

    #[test]
    fn nothing_is_read_behind_damage() {
        let text = samples::journal_text().replacen("\"seq\":1,", "\"seq\":7,", 1);
        let items: Vec<_> = JournalReader::new(Path::new("journal.jsonl"), text.as_bytes()).collect();
        assert!(matches!(&items[..], [Ok(_), Err(JournalError::Corrupt { line: 2, .. })]), "{items:?}");
    }

    #[test]
    fn of_a_forged_version_the_beginning_is_told() {
        let version = format!("2.{}", "0".repeat(19));
        let error = parse(&rechained(&lines_with_version(&version))).unwrap_err();
        assert!(matches!(&error, JournalError::Newer { found, .. } if *found == version[..20]), "{error}");
    }
}
