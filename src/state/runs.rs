//! The index of runs: which there are, where, and how they stand.

use super::{StateDir, StateError};
use crate::clock::WallTime;
use crate::durable::write_atomically;
use crate::journal::entry::{Entry, JournalEvent, RunOutcome};
use crate::journal::summary::RunSummary;
use crate::journal::{reader, writer};
use crate::regular_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// Run id.
    pub id: String,
    /// Drill name; empty when the journal can't be read.
    pub drill: String,
    /// When it was opened.
    pub started_at: Option<WallTime>,
    /// How it stands.
    pub state: RunState,
    /// How it ended.
    pub outcome: Option<RunOutcome>,
    /// What it proved, as its report says.
    pub verdict: Option<String>,
    /// Its directory.
    pub dir: PathBuf,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A living process writes its journal.
    Running,
    /// Its process is gone and it was not closed, or something is still owed: `quakeproof recover`.
    Unfinished,
    /// It was closed and owes nothing.
    Closed,
    /// Its journal can't be read.
    Unreadable,
}

impl RunState {
    /// As people read it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Unfinished => "unfinished",
            RunState::Closed => "closed",
            RunState::Unreadable => "unreadable",
        }
    }
}

/// Content of `runs/<id>.json`: a run that is kept elsewhere.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pointer {
    dir: PathBuf,
}

impl StateDir {
    /// Directory of a run that is kept in the state directory.
    #[must_use]
    pub fn run(&self, id: &str) -> PathBuf {
        self.runs().join(id)
    }

    /// Makes a run in another directory known to `runs`, `show` and `recover`.
    ///
    /// # Errors
    /// When the pointer can't be written.
    pub fn register(&self, id: &str, dir: &Path) -> Result<(), StateError> {
        let path = self.runs().join(format!("{id}.json"));
        let write = || -> io::Result<()> {
            let dir = fs::canonicalize(dir)?;
            write_atomically(&path, &serde_json::to_vec(&Pointer { dir })?)
        };
        write().map_err(|source| StateError::Unusable { path: path.clone(), source })
    }

    /// Every run, oldest first. A pointer to a directory that is gone, or that another run has been
    /// written to since, is left out.
    ///
    /// # Errors
    /// When the state directory can't be read; one that is not there has no runs.
    pub fn list_runs(&self) -> Result<Vec<RunRow>, StateError> {
        let mut rows: Vec<RunRow> = self.run_dirs()?.into_iter().map(|(id, dir)| row(id, dir)).collect();
        // Those that can't be read, of which nobody knows when they began, come last.
        rows.sort_by_key(|row| (row.started_at.is_none(), row.started_at.clone()));
        Ok(rows)
    }

    /// The directory of a run: by path, or by the beginning of its id.
    ///
    /// # Errors
    /// [`StateError::NoSuchRun`], [`StateError::Ambiguous`] with the candidates.
    pub fn resolve_run(&self, wanted: &str) -> Result<PathBuf, StateError> {
        let path = Path::new(wanted);
        if path.join("journal.jsonl").is_file() || path.join("manifest.json").is_file() {
            return Ok(path.to_owned());
        }
        let mut found: Vec<_> =
            self.run_dirs()?.into_iter().filter(|(id, _)| id.starts_with(wanted)).collect();
        match (found.len(), wanted.is_empty()) {
            (1, false) => Ok(found.remove(0).1),
            (0, _) | (_, true) => Err(StateError::NoSuchRun { wanted: wanted.to_owned() }),
            _ => Err(StateError::Ambiguous { wanted: wanted.to_owned(), candidates: ids(&found) }),
        }
    }

    /// The only run that is in one of `states`; for commands that are given none.
    ///
    /// # Errors
    /// [`StateError::NoneInState`], [`StateError::Ambiguous`] with the candidates.
    pub fn only_run(&self, states: &[RunState]) -> Result<PathBuf, StateError> {
        let words = states.iter().map(|s| s.word()).collect::<Vec<_>>().join(" or ");
        let rows = self.list_runs()?.into_iter().filter(|row| states.contains(&row.state));
        let mut found: Vec<_> = rows.map(|row| (row.id, row.dir)).collect();
        match found.len() {
            1 => Ok(found.remove(0).1),
            0 => Err(StateError::NoneInState { states: words }),
            _ => Err(StateError::Ambiguous { wanted: words, candidates: ids(&found) }),
        }
    }

    /// Directory of every run that is there, in order of id.
    ///
    /// # Errors
    /// As [`list_runs`](Self::list_runs).
    pub fn run_directories(&self) -> Result<Vec<PathBuf>, StateError> {
        Ok(self.run_dirs()?.into_values().collect())
    }

    fn run_dirs(&self) -> Result<BTreeMap<String, PathBuf>, StateError> {
        let unusable = |source| StateError::Unusable { path: self.runs(), source };
        let entries = match fs::read_dir(self.runs()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(e) => return Err(unusable(e)),
        };
        let mut dirs = BTreeMap::new();
        for entry in entries {
            let path = entry.map_err(unusable)?.path();
            let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
            if path.is_dir() {
                dirs.insert(name.to_owned(), path);
            } else if let Some(id) = name.strip_suffix(".json")
                && let Some(dir) = pointed_to(&path)
                && opened_in(&dir).is_none_or(|run| run == id)
            {
                dirs.insert(id.to_owned(), dir);
            }
        }
        Ok(dirs)
    }
}

fn pointed_to(path: &Path) -> Option<PathBuf> {
    let pointer: Pointer = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    pointer.dir.is_dir().then_some(pointer.dir)
}

/// The run that the journal in `dir` says it is of; `None` when that can't be read.
fn opened_in(dir: &Path) -> Option<String> {
    let mut line = String::new();
    io::BufReader::new(regular_file::open(&dir.join("journal.jsonl")).ok()?).read_line(&mut line).ok()?;
    let entry: Entry = serde_json::from_str(&line).ok()?;
    match entry.event {
        JournalEvent::RunOpened { run, .. } => Some(run),
        _ => None,
    }
}

fn ids(found: &[(String, PathBuf)]) -> String {
    found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
}

/// How the run in `dir` stands.
#[must_use]
pub fn row(id: String, dir: PathBuf) -> RunRow {
    let journal = dir.join("journal.jsonl");
    let mut row = RunRow {
        id,
        drill: String::new(),
        started_at: None,
        state: RunState::Unreadable,
        outcome: None,
        verdict: stored_verdict(&dir),
        dir,
    };
    let Ok(read) = reader::read(&journal) else { return row };
    let summary = RunSummary::of(&read.entries);
    row.state = if writer::is_being_written(&journal).unwrap_or(false) {
        RunState::Running
    } else if summary.is_settled() {
        RunState::Closed
    } else {
        RunState::Unfinished
    };
    row.outcome = summary.closed.map(|closed| closed.outcome);
    row.started_at = summary.started.map(|started| started.at);
    row.drill = summary.drill;
    row
}

fn stored_verdict(dir: &Path) -> Option<String> {
    let report: serde_json::Value =
        serde_json::from_slice(&regular_file::read(&dir.join("report.json")).ok()?).ok()?;
    report["verdict"].as_str().map(str::to_owned)
}

/// For each id, how many of its first characters tell it from all others; at least 8.
#[must_use]
pub fn unique_prefix_lengths(ids: &[&str]) -> Vec<usize> {
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let others = |at: usize| ids.iter().enumerate().filter(move |(i, _)| *i != at).map(|(_, id)| *id);
    let longest = |(at, id): (usize, &&str)| others(at).map(|other| shared(id, other)).max().unwrap_or(0);
    ids.iter().enumerate().map(|(at, id)| (longest((at, id)) + 1).max(8).min(id.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::journal::samples;
    use crate::journal::writer::JournalWriter;
    use std::sync::Arc;

    fn run(dir: &Path, entries: usize) -> JournalWriter {
        fs::create_dir_all(dir).unwrap();
        let mut writer =
            JournalWriter::create(&dir.join("journal.jsonl"), Arc::new(FakeClock::new())).unwrap();
        for event in &samples::events()[..entries] {
            writer.append(event.clone()).unwrap();
        }
        writer
    }

    #[test]
    fn runs_are_listed_with_how_they_stand_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDir::at(root.path());
        assert_eq!(state.list_runs().unwrap(), []);
        state.create().unwrap();
        drop(run(&state.run("aaaa-1"), 29));
        fs::write(state.run("aaaa-1").join("report.json"), r#"{"verdict":"fail"}"#).unwrap();
        drop(run(&state.run("aaaa-2"), 16));
        let elsewhere = root.path().join("out");
        let living = run(&elsewhere, 3);
        state.register(samples::RUN, &elsewhere).unwrap();
        state.register("bbbb-1", &elsewhere).unwrap();
        let rows = state.list_runs().unwrap();
        let seen: Vec<_> = rows.iter().map(|r| (r.id.as_str(), r.state, r.verdict.as_deref())).collect();
        assert_eq!(
            seen,
            [
                (samples::RUN, RunState::Running, None),
                ("aaaa-1", RunState::Closed, Some("fail")),
                ("aaaa-2", RunState::Unfinished, None),
            ],
            "and not the run whose directory another one took"
        );
        drop(living);
        assert_eq!(state.resolve_run("0199").unwrap(), fs::canonicalize(&elsewhere).unwrap());
        assert_eq!(state.resolve_run(elsewhere.to_str().unwrap()).unwrap(), elsewhere);
        assert!(matches!(state.resolve_run("aaaa"), Err(StateError::Ambiguous { .. })));
        assert!(matches!(state.resolve_run("zzz"), Err(StateError::NoSuchRun { .. })));
        assert!(state.only_run(&[RunState::Unfinished]).unwrap_err().to_string().contains(samples::RUN));
    }

    #[test]
    fn a_prefix_is_as_long_as_it_must_be() {
        assert_eq!(unique_prefix_lengths(&["0123456789ab", "0123456789xy", "zzzzzzzzzzzz"]), [11, 11, 8]);
        assert_eq!(unique_prefix_lengths(&["short"]), [5]);
    }
}
