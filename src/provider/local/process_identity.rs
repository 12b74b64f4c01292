//! Which process the supervisor is, told apart from any other that may later
//! have the same pid.

use crate::clock::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A process of this machine: pid, start time and boot together never repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// Pid in the machine's pid namespace.
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: clock ticks since boot.
    pub start_ticks: u64,
    /// First digits of the boot id.
    pub boot: String,
}

impl ProcessIdentity {
    /// The process that has `pid` now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = Stat::read(pid)?;
        Ok(Self { pid, start_ticks: stat.start_ticks, boot: SystemClock::new().boot().0 })
    }

    /// Whether the process still runs; one that has ended but was not reaped does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        SystemClock::new().boot().0 == self.boot
            && Stat::read(self.pid).is_ok_and(|s| s.start_ticks == self.start_ticks && !s.ended)
    }

    /// Kills the process and returns once it is gone; `false` when it was gone already.
    ///
    /// # Errors
    /// When it may not be killed, or is still there after `patience`.
    pub fn kill(&self, patience: Duration) -> io::Result<bool> {
        let Some(handle) = self.open()? else { return Ok(false) };
        match pidfd_send_signal(&handle, Signal::KILL) {
            Err(rustix::io::Errno::SRCH) => return Ok(false),
            other => other?,
        }
        let mut polled = [PollFd::new(&handle, PollFlags::IN)];
        let timeout = Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        if poll(&mut polled, Some(&timeout))? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("process {} does not end", self.pid),
            ));
        }
        Ok(true)
    }

    /// A handle on exactly this process, `None` when it is gone. The identity is
    /// compared after the handle is open, so that no other process can slip in.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            other => other?,
        };
        Ok(self.is_alive().then_some(handle))
    }
}

struct Stat {
    start_ticks: u64,
    ended: bool,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/<pid>/stat"))
    }

    fn parse(text: &str) -> Option<Self> {
        // The command may contain spaces and parentheses; the last one ends it.
        let after_command = &text[text.rfind(')')? + 1..];
        let fields: Vec<&str> = after_command.split_ascii_whitespace().collect();
        // Field 3, the state, is the first here; field 22 the twentieth.
        let ended = matches!(*fields.first()?, "Z" | "X" | "x");
        Some(Self { start_ticks: fields.get(19)?.parse().ok()?, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_command_name_can_not_confuse_the_parser() {
        let text = "7 (a) Z 1 (b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.start_ticks, stat.ended), (4242, false));
    }

    #[test]
    fn only_the_very_same_process_is_killed() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap();
        let older = ProcessIdentity { start_ticks: identity.start_ticks - 1, ..identity.clone() };
        let rebooted = ProcessIdentity { boot: "00000000".into(), ..identity.clone() };
        for other in [older, rebooted] {
            assert!(!other.is_alive());
            assert!(!other.kill(Duration::from_secs(5)).unwrap());
        }
        assert!(identity.is_alive());
        assert!(identity.kill(Duration::from_secs(5)).unwrap());
        assert!(!identity.is_alive(), "an unreaped process has ended");
        child.wait().unwrap();
        assert!(!identity.kill(Duration::from_secs(5)).unwrap());
    }
}
