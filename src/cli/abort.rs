//! `abort`: end a run now, from another terminal.

use super::session::{self, Found};
use super::{Failure, environment};
use crate::exit::ExitCode;
use crate::guard::lock::LockRecord;
use crate::journal::entry::RunOutcome;
use crate::state::StateDir;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;

/// End a run now: undo its fault and finish its evidence.
///
/// Exit codes: 0 when it has ended, 4 when an undo failed, 5 when it can't be told to.
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
        environment::say(&format!("run {} was told to end; waiting for it", found.id));
        while session::is_alive(&found)? {
            std::thread::sleep(LOOK_EVERY);
        }
        return Ok(ExitCode::Ok);
    }
    let (end, report) = session::end_run(&state, &found, false, "abort")?;
    session::print_report(&report, &found.dir);
    Ok(if end.outcome == RunOutcome::Faulted { ExitCode::Faulted } else { ExitCode::Ok })
}

/// The lock names the runner's process; that the journal is being written says that it lives.
fn tell_runner(state: &StateDir, found: &Found) -> Result<(), Failure> {
    let refused = |message: String| Failure { exit: ExitCode::Refused, message };
    let cluster = session::cluster_name(&found.plan, &found.id);
    let record = LockRecord::read(state, &cluster).map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    let record = record
        .filter(|record| record.run == found.id)
        .ok_or_else(|| refused(format!("cluster `{cluster}` is not locked by run {}", found.id)))?;
    let pid = Pid::from_raw(i32::try_from(record.pid).unwrap_or(i32::MAX));
    kill(pid, Signal::SIGTERM).map_err(|e| refused(format!("the runner (pid {pid}) can't be told: {e}")))
}
