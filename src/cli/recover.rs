//! `recover`: end a run whose runner died.

use super::{Failure, environment, session};
use crate::exit::ExitCode;
use crate::journal::entry::RunOutcome;

/// End a run whose runner died: undo what it owes and judge what it saw
///
/// A run that has ended is left as it is. Exit codes: the judged one (0, 1, 2), 4 when an undo failed,
/// 5 when the runner is still alive, 3 when there is no such run, 6 when its evidence is damaged.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, its unique prefix, or the run's directory. Default: the only run that did not end.
    run: Option<String>,
    /// Keep a cluster that was made for the run, in order and unfaulted.
    #[arg(long)]
    keep_cluster: bool,
    #[command(flatten)]
    signing: session::Signing,
}

/// Runs the command.
///
/// # Errors
/// When there is no such run, it is still alive, or it can't be ended.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let signer = args.signing.key()?;
    let state = environment::state_dir()?;
    let found = session::find_run(&state, args.run.as_deref())?;
    let (outcome, report) = match session::sealed(&found)? {
        Some(ended) => ended,
        None => {
            let (end, report) =
                session::end_run(&state, &found, args.keep_cluster, "recover", signer.as_ref())?;
            (end.outcome, report)
        }
    };
    session::print_report(&report, &found.dir);
    Ok(match outcome {
        RunOutcome::Faulted => ExitCode::Faulted,
        RunOutcome::Refused => ExitCode::Refused,
        _ => session::judged(&report),
    })
}
