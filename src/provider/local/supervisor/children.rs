//! The supervisor's processes: started under one lock, reaped in one place.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exited with code {code}"),
            Ended::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Every process that the supervisor started and that nobody has collected yet.
/// As pid 1 it also inherits orphans, whose end interests nobody.
#[derive(Default)]
pub struct Children {
    table: Mutex<HashMap<i32, Option<Ended>>>,
    changed: Condvar,
}

impl Children {
    /// Starts the thread that reaps.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start() -> io::Result<Arc<Self>> {
        let children = Arc::new(Self::default());
        let reaper = Arc::clone(&children);
        thread::Builder::new().name("reaper".into()).spawn(move || reaper.reap())?;
        Ok(children)
    }

    /// Starts `command`; its end is told by [`Children::wait`], never by the child itself.
    ///
    /// # Errors
    /// As `Command::spawn`.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut table = self.lock();
        let child = command.spawn()?;
        table.insert(pid_of(&child), None);
        self.changed.notify_all();
        Ok(child)
    }

    /// Waits until the process has ended and forgets it. Exactly one caller may wait for a process.
    pub fn wait(&self, pid: i32) -> Ended {
        let mut table = self.lock();
        loop {
            match table.get(&pid) {
                Some(None) => table = self.changed.wait(table).unwrap_or_else(PoisonError::into_inner),
                Some(Some(ended)) => {
                    let ended = *ended;
                    table.remove(&pid);
                    return ended;
                }
                None => return Ended::Code(-1),
            }
        }
    }

    /// Signals a process that has not been collected yet; others are left alone,
    /// because their pid may belong to someone else by now.
    pub fn signal(&self, pid: i32, signal: Signal) {
        let table = self.lock();
        if table.get(&pid) == Some(&None)
            && let Err(error) = kill(Pid::from_raw(pid), signal)
        {
            eprintln!("{signal} to {pid}: {error}");
        }
    }

    fn reap(&self) -> ! {
        loop {
            // Look first and collect under the lock: a process that fails to
            // execute is collected by `spawn` itself while it holds the lock.
            match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
                Ok(status) => {
                    if let Some(pid) = status.pid() {
                        self.collect(pid);
                    }
                }
                Err(Errno::ECHILD) => {
                    let table = self.lock();
                    let idle = |t: &mut HashMap<_, Option<Ended>>| t.values().all(Option::is_some);
                    drop(self.changed.wait_while(table, idle).unwrap_or_else(PoisonError::into_inner));
                }
                Err(_) => {}
            }
        }
    }

    fn collect(&self, pid: Pid) {
        let mut table = self.lock();
        let ended = match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => Ended::Code(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => Ended::Signal(signal as i32),
            _ => return,
        };
        if let Some(slot) = table.get_mut(&pid.as_raw()) {
            *slot = Some(ended);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Option<Ended>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pid of a child as signals take it.
#[must_use]
pub fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap_or(i32::MAX)
}
