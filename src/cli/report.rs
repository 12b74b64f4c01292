//! `quakeproof report`: the report of a run, in the format asked for.

use super::output::{print, say};
use crate::evidence::EvidenceError;
use crate::evidence::layout::{FINDINGS, RunDir};
use crate::evidence::load::load_with_head;
use crate::exit::ExitCode;
use crate::findings::{self, Bundle};
use crate::regular_file;
use crate::report::{Prepared, history, html, json, junit, markdown, openmetrics, prepare};
use crate::state::StateDir;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Formats that a report is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained file for people.
    Html,
    /// For pull requests and wikis.
    Markdown,
    /// For CI systems.
    Junit,
    /// For programs: `report.json`.
    Json,
    /// For Prometheus and the like: OpenMetrics text.
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// For other checkers of consistency: the operations that `linearizable` judges, as JSON lines.
    History,
}

/// Write a report of a run again, from its evidence; opens no connection
///
/// Exit codes: 0 written, 2 the histories can't be told apart by epoch (`history` only), 3 no such run, of a
/// newer format, or the file can't be written, 6 the evidence is damaged.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the run, its id, or the beginning of it
    #[arg(value_name = "DIR|RUN")]
    pub run: String,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
    /// Where to write it; standard output by default
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Judges a run from its evidence, finished or not, and writes the report.
///
/// Exit codes: as [`ReportArgs`] says.
#[must_use]
pub fn run(args: &ReportArgs, state: &StateDir) -> ExitCode {
    let dir = match state.resolve_run(&args.run) {
        Ok(dir) => dir,
        Err(e) => {
            say(&format!("error: {e}"));
            return ExitCode::Usage;
        }
    };
    let loaded = match load_with_head(&dir) {
        Ok(loaded) => loaded,
        Err(e) => {
            let exit = match e {
                EvidenceError::NotARun { .. }
                | EvidenceError::Foreign { .. }
                | EvidenceError::Newer { .. } => ExitCode::Usage,
                _ => ExitCode::Invalid,
            };
            let what = if exit == ExitCode::Invalid { "the evidence is damaged: " } else { "" };
            say(&format!("error: {what}{e}"));
            return exit;
        }
    };
    let mut text = match render(args.format, &prepare(&loaded.input, &loaded.journal_head)) {
        Ok(text) => text,
        Err(reason) => {
            say(&format!("error: the histories can't be told apart by epoch: {reason}"));
            return ExitCode::Inconclusive;
        }
    };
    if args.format == Format::Markdown {
        match findings(&dir) {
            Ok(more) => text.push_str(&more),
            Err(what) => say(&format!("warning: {FINDINGS} is left out: {what}")),
        }
    }
    let Some(file) = &args.out else { return print(Ok(text)) };
    if is_below(file, &dir) {
        let hint = "evidence is never overwritten: name a file outside of the run's directory";
        say(&format!("error: {} is in the run's own directory\n  hint: {hint}", file.display()));
        return ExitCode::Usage;
    }
    match std::fs::write(file, text) {
        Ok(()) => ExitCode::Ok,
        Err(e) => {
            let hint = "name a file in a directory that exists and that you may write";
            say(&format!("error: {}: {e}\n  hint: {hint}", file.display()));
            ExitCode::Usage
        }
    }
}

/// Whether the file is, or would be, somewhere below the directory.
fn is_below(file: &Path, dir: &Path) -> bool {
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Through links too, of the file itself and of its directory.
    let real = file.canonicalize().or_else(|_| parent.canonicalize());
    real.is_ok_and(|real| dir.canonicalize().is_ok_and(|dir| real.starts_with(dir)))
}

/// What was attached to the bundle, for the one format that no bundle holds.
fn findings(dir: &Path) -> Result<String, String> {
    let dir = RunDir::open(dir).map_err(|e| e.to_string())?;
    if !dir.findings().exists() {
        return Ok(String::new());
    }
    let bytes = regular_file::read(&dir.findings()).map_err(|e| e.to_string())?;
    let bundle = Bundle::of(&dir).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    findings::read(FINDINGS, &text, Some(&bundle))
        .map(|found| findings::markdown(&found))
        .map_err(|e| e.to_string())
}

fn render(format: Format, prepared: &Prepared<'_>) -> Result<String, String> {
    Ok(match format {
        Format::Html => html::render(prepared),
        Format::Markdown => markdown::render(prepared),
        Format::Junit => junit::render(&prepared.report),
        Format::Json => json::render(&prepared.report),
        Format::OpenMetrics => openmetrics::render(&prepared.report),
        Format::History => history::render(prepared.input)?,
    })
}
