//! What commands take from the environment and say on the terminal, in one place.

use super::Failure;
use crate::exit::ExitCode;
use crate::state::StateDir;
use std::io::IsTerminal;
use std::path::Path;

/// The state directory, made if it is not there.
pub fn state_dir() -> Result<StateDir, Failure> {
    let state =
        StateDir::locate(|name| std::env::var_os(name)).map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    state.create().map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    Ok(state)
}

/// Who runs this: user and host name, for the record.
pub fn operator() -> String {
    let uid = nix::unistd::Uid::current();
    let user = nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |u| u.name);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    if host.is_empty() { user } else { format!("{user}@{host}") }
}

/// An async runtime for one command.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(ExitCode::Internal, &e))
}

/// Standard error is a terminal that may move its cursor and use colour.
pub fn lively() -> bool {
    std::io::stderr().is_terminal() && !plain()
}

/// Standard output may use colour.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && !plain()
}

/// Columns of a report on standard output: the terminal's, or 110 for a file or a pipe.
pub fn columns() -> usize {
    const WIDEST: u16 = 110;
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    usize::from(size.map(|s| s.ws_col).filter(|columns| *columns > 0).unwrap_or(WIDEST).min(WIDEST))
}

/// The state directory, for a command that looks at a run. One that is given as a directory needs none.
pub fn state_for(run: &str) -> Result<StateDir, Failure> {
    state_dir().or_else(|failure| match Path::new(run).is_dir() {
        true => Ok(StateDir::at(Path::new(run))),
        false => Err(failure),
    })
}

/// `NO_COLOR` or `CI` asks for plain lines.
fn plain() -> bool {
    ["NO_COLOR", "CI"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
