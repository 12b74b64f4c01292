//! `recover`: end a run whose runner died.

use super::{Failure, environment, session};
use crate::exit::ExitCode;
use crate::journal::entry::RunOutcome;

/// End a run whose runner died: undo what it owes and judge what it saw
///
/// Exit codes: the judged one (0, 1, 2), 4 when an undo failed, 5 when the runner is still alive.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, its unique prefix, or the run's directory. Default: the only run that did not end.
    run: Option<String>,
    /// Keep a cluster that was made for the run, in order and unfaulted.
    #[arg(long)]
    keep_cluster: bool,
}

/// Runs the command.
///
/// # Errors
/// When there is no such run, it is still alive, or it can't be ended.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let state = environment::state_dir()?;
    let found = session::find_run(&state, args.run.as_deref())?;
    let (end, report) = session::end_run(&state, &found, args.keep_cluster, "recover")?;
    session::print_report(&report, &found.dir);
    Ok(match end.outcome {
        RunOutcome::Faulted => ExitCode::Faulted,
        RunOutcome::Refused => ExitCode::Refused,
        _ => session::judged(&report),
    })
}
