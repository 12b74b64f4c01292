//! `abort`: end a run now, from another terminal.

use super::session::{self, Found};
use super::{Failure, environment, output};
use crate::exit::ExitCode;
use crate::guard::lock::LockRecord;
use crate::journal::entry::RunOutcome;
use crate::state::StateDir;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;

/// End a run now: undo its fault and finish its evidence
///
/// A run that has ended is left as it is. Exit codes: 0 when it has ended, 4 when an undo failed, 5 when
/// it can't be told to, 3 when there is no such run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run id, its unique prefix, or the run's directory. Default: the only run that did not end.
    run: Option<String>,
    #[command(flatten)]
    signing: session::Signing,
}

/// Runs the command.
///
/// # Errors
/// When there is no such run, or it can't be told to end.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let signer = args.signing.key()?;
    let state = environment::state_dir()?;
    let found = session::find_run(&state, args.run.as_deref())?;
    if session::is_alive(&found)? {
        let runner = tell_runner(&state, &found)?;
        output::say(&format!("run {} was told to end; waiting for it", found.id));
        await_end(&runner).map_err(|e| refused(format!("the runner can't be waited for: {e}")))?;
        if let Some(outcome) = session::outcome(&found) {
            return Ok(exit_code(outcome));
        }
    }
    if let Some((outcome, _)) = session::sealed(&found)? {
        return Ok(exit_code(outcome));
    }
    let (end, report) = session::end_run(&state, &found, false, "abort", signer.as_ref())?;
    session::print_report(&report, &found.dir);
    Ok(exit_code(end.outcome))
}

fn exit_code(outcome: RunOutcome) -> ExitCode {
    if outcome == RunOutcome::Faulted { ExitCode::Faulted } else { ExitCode::Ok }
}

fn refused(message: String) -> Failure {
    Failure { exit: ExitCode::Refused, message }
}

/// The lock names the runner's process; that the journal is being written says that it lives.
/// Returns a handle on that very process.
fn tell_runner(state: &StateDir, found: &Found) -> Result<OwnedFd, Failure> {
    let cluster = session::cluster_name(&found.plan, &found.id);
    let record = LockRecord::read(state, &cluster).map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    let record = record
        .filter(|record| record.run == found.id)
        .ok_or_else(|| refused(format!("cluster `{cluster}` is not locked by run {}", found.id)))?;
    let untold = |e: io::Error| refused(format!("the runner (pid {}) can't be told: {e}", record.pid));
    let pid = i32::try_from(record.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| untold(io::ErrorKind::NotFound.into()))?;
    let runner = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| untold(e.into()))?;
    pidfd_send_signal(&runner, Signal::TERM).map_err(|e| untold(e.into()))?;
    Ok(runner)
}

/// Until the process is gone: by then its evidence is finished, not only its journal.
fn await_end(runner: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(runner, PollFlags::IN)], None) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(drop).map_err(io::Error::from),
        }
    }
}
