//! The end of a cluster: one kill, and its files.

use super::layout::ClusterDir;
use super::process_identity::ProcessIdentity;
use std::fs;
use std::io;
use std::time::Duration;

/// How long the kernel may take to end every process of a cluster.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a cluster's directory says about the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The supervisor runs.
    Running,
    /// The supervisor has died, and everything with it.
    Dead,
    /// The supervisor was never started.
    Unfinished,
}

/// The condition of the cluster in `dir`, seen from outside the cluster.
#[must_use]
pub fn condition(dir: &ClusterDir) -> Condition {
    match supervisor(dir) {
        None => Condition::Unfinished,
        Some(identity) if identity.is_alive() => Condition::Running,
        Some(_) => Condition::Dead,
    }
}

/// Ends every process of the cluster in `dir` and removes its files; nothing
/// happens when there are none.
///
/// # Errors
/// When the supervisor may not be killed or a file not be removed.
pub fn remove(dir: &ClusterDir) -> io::Result<()> {
    if let Some(identity) = supervisor(dir) {
        // The kernel ends pid 1 of a pid namespace only after all others in it.
        identity.kill(PATIENCE)?;
    }
    match fs::remove_dir_all(dir.root()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn supervisor(dir: &ClusterDir) -> Option<ProcessIdentity> {
    serde_json::from_slice(&fs::read(dir.supervisor()).ok()?).ok()
}
