//! `quakeproof findings`: what people make of a run, attached to its bundle.

use super::{Failure, environment, output};
use crate::drill::file;
use crate::escape;
use crate::evidence::EvidenceError;
use crate::evidence::layout::RunDir;
use crate::exit::ExitCode;
use crate::findings::{self, AttachError, Bundle, Past};
use crate::regular_file;
use crate::state::StateDir;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// Own what a run found: who, until when, accepted by whom, closed by which later run
///
/// Findings lie in findings.yaml beside what was sealed. They are no evidence: no digest and no signature
/// covers them, and `verify` says so. Exit codes: 0 done, 3 no such run or the findings are wrong, 6 the
/// evidence is damaged.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print a findings file to fill in: one finding for each objective that was not met
    Draft {
        /// Directory of the run, its id, or the beginning of it
        run: String,
    },
    /// Check a findings file against a run's bundle and attach it
    Attach {
        /// Directory of the run, its id, or the beginning of it
        run: String,
        /// The findings file
        file: PathBuf,
        /// Take the place of other findings that are attached
        #[arg(long)]
        replace: bool,
    },
    /// List findings of one run, or of all runs that are known here
    List {
        /// Directory of the run, its id, or the beginning of it
        run: Option<String>,
        /// Only what nobody closed
        #[arg(long)]
        open: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Carries out the command.
///
/// # Errors
/// When there is no such run, the findings are wrong, or they can't be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let state = environment::state_dir()?;
    match &args.command {
        Command::Draft { run } => draft(&state, run),
        Command::Attach { run, file, replace } => attach(&state, run, file, *replace),
        Command::List { run, open, json } => list(&state, run.as_deref(), *open, *json),
    }
}

/// Findings of every run that is known here. Nothing is made for it, not even the state directory.
pub(super) fn of_past_runs() -> Result<Vec<Past>, Failure> {
    let state =
        StateDir::locate(|name| std::env::var_os(name)).map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    let dirs = state.run_directories().map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    Ok(usable(dirs))
}

/// The findings in these runs; says which can't be used.
fn usable(dirs: Vec<PathBuf>) -> Vec<Past> {
    let (all, unusable) = findings::past(dirs);
    for (path, what) in unusable {
        output::say(&format!("warning: {}: left out: {what}", path.display()));
    }
    all
}

fn find(state: &StateDir, run: &str) -> Result<RunDir, Failure> {
    let path = state.resolve_run(run).map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    RunDir::open(&path).map_err(|e| Failure::new(ExitCode::Usage, &e))
}

fn evidence(error: &EvidenceError) -> Failure {
    let exit = match error {
        EvidenceError::Newer { .. } | EvidenceError::NotARun { .. } => ExitCode::Usage,
        _ => ExitCode::Invalid,
    };
    Failure::new(exit, error)
}

fn draft(state: &StateDir, run: &str) -> Result<ExitCode, Failure> {
    let dir = find(state, run)?;
    let bundle = Bundle::of(&dir).map_err(|e| evidence(&e))?;
    let report = regular_file::read(&dir.report_json())
        .map_err(|e| evidence(&EvidenceError::io(dir.report_json())(e)))?;
    let report = serde_json::from_slice(&report).map_err(|e| Failure::new(ExitCode::Invalid, &e))?;
    Ok(output::print(Ok(findings::draft(&bundle, &report))))
}

fn attach(state: &StateDir, run: &str, path: &Path, replace: bool) -> Result<ExitCode, Failure> {
    let dir = find(state, run)?;
    let name = path.to_string_lossy();
    let text = file::read(path)
        .map_err(|e| Failure { exit: ExitCode::Usage, message: format!("error: {name}: {e}") })?;
    let attached = findings::attach(&dir, &name, &text, replace).map_err(|error| match &error {
        AttachError::Findings(errors) => Failure::laid_out(ExitCode::Usage, errors.to_string()),
        AttachError::Evidence(e) => evidence(e),
        other => Failure::new(ExitCode::Usage, other),
    })?;
    let open = attached.findings.iter().filter(|f| f.is_open()).count();
    output::say(&format!(
        "{} findings attached, {open} open; they are not part of what was sealed",
        attached.findings.len()
    ));
    for closed in attached.findings.iter().filter_map(|f| f.closed_by.as_deref()) {
        if let Some(doubt) = doubt(state, closed) {
            output::say(&format!("warning: closed by run {}: {doubt}", escape::terminal(closed)));
        }
    }
    Ok(ExitCode::Ok)
}

/// Why the run that is said to have closed a finding may not have.
fn doubt(state: &StateDir, run: &str) -> Option<String> {
    let Ok(path) = state.resolve_run(run) else { return Some("no such run is known here".to_owned()) };
    let verdict = crate::state::runs::row(run.to_owned(), path).verdict;
    match verdict.as_deref() {
        Some("pass") => None,
        Some(verdict) => Some(format!("its verdict is {verdict}")),
        None => Some("it has no verdict".to_owned()),
    }
}

fn list(state: &StateDir, run: Option<&str>, open: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let dirs = match run {
        Some(run) => vec![find(state, run)?.path().to_owned()],
        None => state.run_directories().map_err(|e| Failure::new(ExitCode::Refused, &e))?,
    };
    let mut all = usable(dirs);
    all.retain(|past| !open || past.finding.is_open());
    if as_json {
        return Ok(output::print(
            serde_json::to_string_pretty(&json!(all)).map(|text| text + "\n").map_err(io::Error::from),
        ));
    }
    if all.is_empty() {
        output::say("no findings");
        return Ok(ExitCode::Ok);
    }
    Ok(output::print(Ok(findings::table(&all))))
}
