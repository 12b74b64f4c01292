//! First stage of the supervisor: leaves the machine's namespaces behind and
//! starts the second stage as pid 1 of a new pid namespace.
//!
//! Runs single-threaded, because a user namespace can't be entered otherwise.

use super::layout::ClusterDir;
use super::process_identity::ProcessIdentity;
use super::protocol::Launched;
use super::wire::Channel;
use crate::durable::write_atomically;
use crate::exit::ExitCode;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid, setsid};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// Word after the cluster's directory that tells the second stage from the first.
pub const SECOND_STAGE: &str = "second-stage";

/// Runs the first stage for the cluster in `dir`. Standard input is the socket to the launcher.
pub fn run(dir: &ClusterDir) -> ExitCode {
    match enter(dir) {
        Ok(()) => ExitCode::Ok,
        Err((what, error)) => {
            report_failure(&what, &error);
            ExitCode::Refused
        }
    }
}

/// Tells the launcher that `what` failed, with a hint when namespaces are forbidden.
pub fn report_failure(what: &str, error: &io::Error) {
    eprintln!("{what}: {error}");
    let failed = Launched::Failed { what: format!("{what}: {error}"), hint: hint(error, &Limits::read()) };
    // The launcher may be gone; then there is nobody to tell.
    if let Ok(mut channel) = launcher() {
        let _ = channel.send(&failed, &[]);
    }
}

/// The connection to the launcher, which is standard input of both stages.
///
/// # Errors
/// When standard input is closed.
pub fn launcher() -> io::Result<Channel> {
    Ok(Channel::new(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?)))
}

fn enter(dir: &ClusterDir) -> Result<(), (String, io::Error)> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: Errno| (what, io::Error::from(error))
    };
    setsid().map_err(failed("leave the terminal's session"))?;
    let (user, group) = (geteuid(), getegid());
    if !user.is_root() {
        unshare(CloneFlags::CLONE_NEWUSER).map_err(failed("make a user namespace"))?;
        map_to_root(user.as_raw(), group.as_raw())
            .map_err(|e| ("become root of the user namespace".to_owned(), e))?;
    }
    let namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    unshare(namespaces).map_err(failed("make mount, pid and network namespaces"))?;
    let stage = Command::new("/proc/self/exe")
        .arg("__supervisor")
        .arg(dir.root())
        .arg(SECOND_STAGE)
        .current_dir("/")
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(|e| ("start the supervisor".to_owned(), e))?;
    let identity = ProcessIdentity::of(stage.id()).map_err(|e| ("identify the supervisor".to_owned(), e))?;
    serde_json::to_vec(&identity)
        .map_err(io::Error::from)
        .and_then(|text| write_atomically(&dir.supervisor(), &text))
        .map_err(|e| ("record the supervisor".to_owned(), e))
}

fn map_to_root(user: u32, group: u32) -> io::Result<()> {
    // Without this the kernel accepts no group map from an unprivileged process.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// What the kernel says about unprivileged user namespaces; `None` where it has no such limit.
#[derive(Debug, Default, Clone, Copy)]
struct Limits {
    unprivileged_clone: Option<u64>,
    max_user_namespaces: Option<u64>,
    apparmor_restricts: Option<u64>,
}

impl Limits {
    fn read() -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok()?.trim().parse().ok();
        Self {
            unprivileged_clone: read("kernel/unprivileged_userns_clone"),
            max_user_namespaces: read("user/max_user_namespaces"),
            apparmor_restricts: read("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

fn hint(error: &io::Error, limits: &Limits) -> String {
    let as_root = "or run as root";
    if limits.unprivileged_clone == Some(0) {
        return format!(
            "user namespaces are off: `sysctl -w kernel.unprivileged_userns_clone=1` as root, {as_root}"
        );
    }
    if limits.max_user_namespaces == Some(0) || error.raw_os_error() == Some(Errno::ENOSPC as i32) {
        return format!(
            "the limit of user namespaces is reached: raise it with `sysctl -w user.max_user_namespaces=15000` as root, {as_root}"
        );
    }
    let denied = matches!(error.kind(), io::ErrorKind::PermissionDenied);
    if denied && limits.apparmor_restricts == Some(1) {
        return format!(
            "AppArmor restricts user namespaces: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root, \
             or give quakeproof an AppArmor profile with `userns,`, {as_root}"
        );
    }
    if denied {
        return "namespaces are not allowed here; in a container, run it with `--privileged` or allow `unshare` and \
                mounting /proc in its seccomp and masking options"
            .to_owned();
    }
    "see supervisor.log in the cluster's directory; `quakeproof doctor` checks the machine".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_cause_of_forbidden_namespaces_has_its_own_hint() {
        let denied = io::Error::from(Errno::EPERM);
        let none = Limits::default();
        let cases = [
            (Limits { unprivileged_clone: Some(0), ..none }, "kernel.unprivileged_userns_clone=1"),
            (Limits { max_user_namespaces: Some(0), ..none }, "user.max_user_namespaces"),
            (Limits { apparmor_restricts: Some(1), ..none }, "apparmor_restrict_unprivileged_userns=0"),
            (none, "--privileged"),
        ];
        for (limits, expected) in cases {
            assert!(hint(&denied, &limits).contains(expected), "{limits:?}");
        }
        let exhausted = io::Error::from(Errno::ENOSPC);
        assert!(hint(&exhausted, &none).contains("user.max_user_namespaces"));
    }
}
