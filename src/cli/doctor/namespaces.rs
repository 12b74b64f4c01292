//! Namespaces and the kernel's network devices: tried for real, in a child
//! process that leaves this machine's own network alone.
//!
//! The child is this very binary: where AppArmor decides by program, another
//! one (such as `unshare`) may be allowed what we are not.

use super::{Check, ExitCode};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getgid, getuid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Hidden command that must be dispatched to [`probe`] before any thread is started.
pub const PROBE_COMMAND: &str = "__probe-namespaces";

/// What the child tried, and how it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trial {
    name: String,
    error: Option<String>,
}

/// Settings that forbid user namespaces.
#[derive(Debug, Default)]
struct Sysctls {
    unprivileged_userns_clone: Option<u64>,
    max_user_namespaces: Option<u64>,
    apparmor_restrict: Option<u64>,
}

impl Sysctls {
    fn read() -> Self {
        let value = |name: &str| {
            fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse::<u64>().ok()
        };
        Self {
            unprivileged_userns_clone: value("kernel/unprivileged_userns_clone"),
            max_user_namespaces: value("user/max_user_namespaces"),
            apparmor_restrict: value("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }

    /// What an unprivileged user whose namespaces don't work can do.
    fn hint(&self) -> String {
        let fix = if self.unprivileged_userns_clone == Some(0) {
            "this kernel forbids them: `sudo sysctl -w kernel.unprivileged_userns_clone=1`"
        } else if self.max_user_namespaces == Some(0) {
            "this kernel allows none: `sudo sysctl -w user.max_user_namespaces=15000`"
        } else if self.apparmor_restrict.is_some_and(|n| n != 0) {
            "AppArmor restricts them: `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for quakeproof that has `userns,`"
        } else {
            "a container or a security policy may forbid them: allow user namespaces there"
        };
        format!("{fix}\nor run quakeproof as root")
    }
}

/// Everything about namespaces, network devices and their tools.
pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![tool("ip", "iproute2"), tool("nft", "nftables")];
    let sysctls = Sysctls::read();
    match spawn_probe() {
        Ok(trials) => checks.extend(trials.iter().map(|t| judge(t, &sysctls, getuid()))),
        Err(why) => checks.push(Check::fail("namespaces", why, sysctls.hint())),
    }
    checks
}

fn judge(trial: &Trial, sysctls: &Sysctls, uid: Uid) -> Check {
    let (name, needed) = match trial.name.as_str() {
        "namespaces" => ("namespaces", true),
        "mount" => ("mounts", true),
        "pid" => ("pid namespace", true),
        "bridge" => ("bridge", true),
        "veth" => ("veth", true),
        "nft" => ("nftables rules", true),
        "tbf" => ("rate limit (tbf)", false),
        "netem" => ("delay and loss (netem)", false),
        _ => ("dummy device", false),
    };
    let Some(error) = &trial.error else {
        let how = if uid.is_root() { "work, as root" } else { "work, rootless" };
        return Check::ok(name, how);
    };
    if !needed {
        return Check::warn(name, error, "faults that need it are not available on this kernel");
    }
    let hint = match name {
        "namespaces" | "mounts" | "pid namespace" if uid.is_root() => {
            "root lacks a capability, as in a container: give it CAP_SYS_ADMIN and CAP_NET_ADMIN".to_owned()
        }
        "namespaces" | "mounts" | "pid namespace" => sysctls.hint(),
        "nftables rules" => {
            "install nftables; the kernel needs nf_tables (`sudo modprobe nf_tables`)".to_owned()
        }
        device => format!("install iproute2; the kernel needs {device} (`sudo modprobe {device}`)"),
    };
    Check::fail(name, error, hint)
}

fn tool(name: &'static str, package: &str) -> Check {
    match find(name) {
        Some(path) => Check::ok(name, path.display().to_string()),
        None => Check::fail(name, "not found", format!("install {package}")),
    }
}

/// Looks in PATH and where system tools lie, which an unprivileged user's PATH often lacks.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|dir| dir.join(name)).find(|p| p.is_file())
}

fn spawn_probe() -> Result<Vec<Trial>, String> {
    let exe = std::env::current_exe().map_err(|e| format!("this program can't be found: {e}"))?;
    let output = Command::new(exe)
        .arg(PROBE_COMMAND)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("the probe does not start: {e}"))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("the probe ended with {} and no result: {}", output.status, said.trim())
    })
}

/// The child's part: enters namespaces of its own, tries things there, prints what failed.
/// Must run while the process has a single thread.
#[must_use]
pub fn probe() -> ExitCode {
    match serde_json::to_string(&trials()) {
        Ok(json) => {
            println!("{json}");
            ExitCode::Ok
        }
        Err(_) => ExitCode::Internal,
    }
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut record = |name: &str, result: Result<(), String>| {
        let ok = result.is_ok();
        trials.push(Trial { name: name.to_owned(), error: result.err() });
        ok
    };
    // Nothing may be tried outside: it would happen to the machine itself.
    if !record("namespaces", enter()) {
        return trials;
    }
    record("mount", mounts());
    record("bridge", command("ip", "link add qp-br type bridge"));
    record("veth", command("ip", "link add qp-a type veth peer name qp-b"));
    record("nft", command("nft", "add table inet quakeproof-doctor"));
    record("tbf", command("tc", "qdisc add dev qp-a root tbf rate 1mbit burst 32kbit latency 400ms"));
    record("netem", command("tc", "qdisc add dev qp-b root netem delay 1ms"));
    record("dummy", command("ip", "link add qp-d type dummy"));
    // Last: the first child after it is that namespace's pid 1, and no other can follow.
    record(
        "pid",
        unshare(CloneFlags::CLONE_NEWPID).map_err(|e| e.to_string()).and_then(|()| command("true", "")),
    );
    trials
}

fn enter() -> Result<(), String> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    if !uid.is_root() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(flags).map_err(|e| format!("unshare: {e}"))?;
    if !uid.is_root() {
        let write = |file: &str, text: String| {
            fs::write(format!("/proc/self/{file}"), text).map_err(|e| format!("writing {file}: {e}"))
        };
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("0 {uid} 1"))?;
        write("gid_map", format!("0 {gid} 1"))?;
    }
    Ok(())
}

fn mounts() -> Result<(), String> {
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
        .map_err(|e| format!("making mounts private: {e}"))?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), nothing)
        .map_err(|e| format!("mounting a tmpfs: {e}"))
}

fn command(name: &str, args: &str) -> Result<(), String> {
    let path = find(name).ok_or_else(|| format!("`{name}` not found"))?;
    let output = Command::new(path)
        .args(args.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("`{name}` does not run: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("failed");
    Err(first.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Status;

    fn trial(name: &str, error: Option<&str>) -> Trial {
        Trial { name: name.to_owned(), error: error.map(str::to_owned) }
    }

    #[test]
    fn each_way_of_forbidding_user_namespaces_gets_its_own_advice() {
        let hint = |s: Sysctls| {
            judge(&trial("namespaces", Some("EPERM")), &s, Uid::from_raw(1000)).hint.expect("a hint")
        };
        let clone = Sysctls { unprivileged_userns_clone: Some(0), ..Sysctls::default() };
        assert!(hint(clone).contains("kernel.unprivileged_userns_clone=1"));
        let none = Sysctls { max_user_namespaces: Some(0), ..Sysctls::default() };
        assert!(hint(none).contains("user.max_user_namespaces"));
        let apparmor = Sysctls { apparmor_restrict: Some(1), ..Sysctls::default() };
        assert!(hint(apparmor).contains("apparmor_restrict_unprivileged_userns=0"));
        assert!(hint(Sysctls::default()).contains("as root"));
    }

    #[test]
    fn devices_that_only_some_faults_need_warn_and_the_others_fail() {
        let judged = |name, error| judge(&trial(name, error), &Sysctls::default(), Uid::from_raw(0)).status;
        assert_eq!(judged("netem", Some("unknown qdisc")), Status::Warn);
        assert_eq!(judged("dummy", Some("unknown device type")), Status::Warn);
        assert_eq!(judged("bridge", Some("unknown device type")), Status::Fail);
        assert_eq!(judged("bridge", None), Status::Ok);
    }

    #[test]
    fn advice_for_root_speaks_of_capabilities_not_of_sysctls() {
        let check = judge(&trial("namespaces", Some("EPERM")), &Sysctls::default(), Uid::from_raw(0));
        assert!(check.hint.expect("a hint").contains("CAP_SYS_ADMIN"));
    }
}
