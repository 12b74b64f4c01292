//! Keeps the agent running: it owes undos, so it must outlive its own faults.

use super::children::{Children, pid_of};
use crate::clock::{Clock, SystemClock};
use crate::provider::local::layout::ClusterDir;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);
/// An agent that has run for this long was healthy; the next backoff is the first again.
const HEALTHY: Duration = Duration::from_secs(10);

/// Starts the agent, and again whenever it ends.
pub fn keep_alive(dir: &ClusterDir, children: &Arc<Children>) {
    let (dir, children) = (dir.clone(), Arc::clone(children));
    thread::spawn(move || {
        let clock = SystemClock::new();
        let mut backoff = FIRST_BACKOFF;
        loop {
            let started = clock.mono();
            // The program that runs, even when its file has been replaced meanwhile.
            let mut command = Command::new("/proc/self/exe");
            command.arg("__agent").arg(dir.root()).stdin(Stdio::null());
            match children.spawn(&mut command) {
                Ok(child) => eprintln!("the agent {}", children.wait(pid_of(&child))),
                Err(error) => eprintln!("start the agent: {error}"),
            }
            if u128::from(clock.mono().since(started)) > HEALTHY.as_nanos() {
                backoff = FIRST_BACKOFF;
            }
            thread::sleep(backoff);
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        }
    });
}
