//! Reads from a run directory what judging needs, and checks no more than that takes.

use super::EvidenceError;
use super::layout::RunDir;
use crate::agent::log::{self, LogEntry};
use crate::history;
use crate::journal::entry::JournalEvent;
use crate::journal::reader;
use crate::plan::{self, Plan};
use crate::regular_file;
use crate::timeline::EvidenceInput;
use std::collections::BTreeMap;
use std::path::Path;

/// A run's evidence, and where its journal ended.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Everything that judging may look at.
    pub input: EvidenceInput,
    /// Hash of the last journal entry, hexadecimal.
    pub journal_head: String,
}

/// Reads the evidence of a run, finished or not. Torn last lines are left out.
///
/// # Errors
/// [`EvidenceError::NotARun`], or what does not parse, by file and line.
pub fn load(dir: &Path) -> Result<EvidenceInput, EvidenceError> {
    load_with_head(dir).map(|loaded| loaded.input)
}

/// As [`load`], with the hash of the last journal entry.
///
/// # Errors
/// As [`load`].
pub fn load_with_head(dir: &Path) -> Result<Loaded, EvidenceError> {
    let dir = RunDir::open(dir)?;
    let plan = read_plan(&dir)?;
    let journal = reader::read(&dir.journal())?;
    let binding = journal.entries.iter().rev().find_map(|entry| match &entry.event {
        JournalEvent::Bound { binding } => Some((**binding).clone()),
        _ => None,
    });
    let mut histories = BTreeMap::new();
    let mut room = history::reader::MAX_IDS;
    for file in history_files(&dir)? {
        let name = file.trim_start_matches("histories/").trim_end_matches(".jsonl").to_owned();
        histories.insert(name, history::reader::read_within(&dir.path().join(file), &mut room)?.records);
    }
    let journal_head = journal.head.to_string();
    let agent = read_agent_log(&dir)?;
    let input = EvidenceInput { plan, binding, journal: journal.entries, histories, agent };
    Ok(Loaded { input, journal_head })
}

/// Reads `plan.json`.
///
/// # Errors
/// When it is missing, of another major format, or not a plan.
pub fn read_plan(dir: &RunDir) -> Result<Plan, EvidenceError> {
    let path = dir.plan();
    let bytes = regular_file::read(&path).map_err(EvidenceError::io(&path))?;
    let malformed = |e: serde_json::Error| EvidenceError::Malformed {
        path: path.clone(),
        what: format!("not a plan: {e}"),
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(malformed)?;
    super::refuse_other_format(&path, &value, plan::FORMAT_VERSION)?;
    serde_json::from_slice(&bytes).map_err(malformed)
}

/// What the agent wrote down. No log is no error: where the cluster could not be reached none was taken in.
fn read_agent_log(dir: &RunDir) -> Result<Vec<LogEntry>, EvidenceError> {
    let path = dir.path().join(log::EVIDENCE_FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = regular_file::read(&path).map_err(EvidenceError::io(&path))?;
    let log =
        log::read(&bytes).map_err(|error| EvidenceError::Malformed { path, what: error.to_string() })?;
    Ok(log.entries)
}

/// Histories of a run, as paths below its directory.
///
/// # Errors
/// As [`RunDir::files`].
pub(super) fn history_files(dir: &RunDir) -> Result<Vec<String>, EvidenceError> {
    let mut files = dir.files()?;
    files.retain(|f| f.starts_with("histories/") && f.ends_with(".jsonl"));
    Ok(files)
}
