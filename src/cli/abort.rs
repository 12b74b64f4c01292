//! `abort`: end a run now, from another terminal.

use super::session::{self, Found};
use super::{Failure, environment, output};
use crate::exit::ExitCode;
use crate::guard::lock::LockRecord;
use crate::journal::entry::RunOutcome;
use crate::journal::{reader, summary::RunSummary};
use crate::state::StateDir;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;

/// End a run now: undo its fault and finish its evidence
///
/// A run that has ended is left as it is. Exit codes: 0 when it has ended, 4 when an undo failed, 5 when
/// it can't be told to, 3 when there is no such run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, its unique prefix, or the run's directory. Default: the only run that did not end.
    run: Option<String>,
}

/// Time between two looks at whether the runner is done; its journal's lock can only be polled.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// When there is no such run, or it can't be told to end.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let state = environment::state_dir()?;
    let found = session::find_run(&state, args.run.as_deref())?;
    if session::is_alive(&found)? {
        tell_runner(&state, &found)?;
        output::say(&format!("run {} was told to end; waiting for it", found.id));
        while session::is_alive(&found)? {
            std::thread::sleep(LOOK_EVERY);
        }
    }
    let outcome = match closed(&found)? {
        Some(outcome) => {
            output::say(&format!("run {} has ended", found.id));
            outcome
        }
        None => {
            let (end, report) = session::end_run(&state, &found, false, "abort")?;
            session::print_report(&report, &found.dir);
            end.outcome
        }
    };
    Ok(if outcome == RunOutcome::Faulted { ExitCode::Faulted } else { ExitCode::Ok })
}

/// How the run ended; `None` when its runner died instead.
fn closed(found: &Found) -> Result<Option<RunOutcome>, Failure> {
    let journal = reader::read(&found.dir.journal()).map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    Ok(RunSummary::of(&journal.entries).closed.map(|closed| closed.outcome))
}

/// The lock names the runner's process; that the journal is being written says that it lives.
fn tell_runner(state: &StateDir, found: &Found) -> Result<(), Failure> {
    let refused = |message: String| Failure { exit: ExitCode::Refused, message };
    let cluster = session::cluster_name(&found.plan, &found.id);
    let record = LockRecord::read(state, &cluster).map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    let record = record
        .filter(|record| record.run == found.id && record.pid > 1)
        .ok_or_else(|| refused(format!("cluster `{cluster}` is not locked by run {}", found.id)))?;
    let pid = Pid::from_raw(i32::try_from(record.pid).unwrap_or(i32::MAX));
    kill(pid, Signal::SIGTERM).map_err(|e| refused(format!("the runner (pid {pid}) can't be told: {e}")))
}
