//! A state directory of its own, the command under test, and looks at the machine.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quakeproof::cli::toolchain::options_from_env;
use quakeproof::plan::Versions;
use quakeproof::provider::binaries::{self, BinarySet, pinned_pairs};
use quakeproof::provider::local::{self, LocalCluster};

/// The command under test.
pub const QUAKEPROOF: &str = env!("CARGO_BIN_EXE_quakeproof");

/// Clusters are heavy, and some tests compare the whole machine before and after.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One test's surroundings. Removes every cluster of it at its end.
pub struct Lab {
    root: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    pub fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Self { root: tempfile::tempdir().unwrap(), _alone: alone }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Longer than the 107 bytes of a socket address, as state directories can be.
    pub fn state(&self) -> PathBuf {
        self.root.path().join("a-state-directory-with-a-long-name".repeat(3))
    }

    pub fn cluster_dir(&self, name: &str) -> PathBuf {
        self.state().join("clusters").join(name)
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(QUAKEPROOF);
        command.arg("cluster").args(args).env("QUAKEPROOF_STATE", self.state()).stdin(Stdio::null());
        command
    }

    pub fn cluster<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(&mut self.command(args))
    }

    pub fn up(&self, args: &[&str]) {
        self.cluster(["up"].iter().chain(args)).succeeded();
    }

    pub fn attach(&self, name: &str) -> LocalCluster {
        local::attach(&self.state(), name).unwrap()
    }

    /// Runs the kubectl of the newest pinned version as a user of `cluster env` would.
    pub fn kubectl(&self, name: &str, args: &str) -> Ran {
        let env = self.cluster(["env", name]).succeeded();
        let kubectl = newest_binaries().path("kubectl");
        let script = format!("{env}\nexec {} {args}", kubectl.display());
        Ran::of(Command::new("sh").args(["-c", &script]).env_remove("KUBECONFIG"))
    }

    pub fn supervisor_pid(&self, name: &str) -> u32 {
        let text = fs::read(self.cluster_dir(name).join("supervisor.json")).unwrap();
        let identity: serde_json::Value = serde_json::from_slice(&text).unwrap();
        u32::try_from(identity["pid"].as_u64().unwrap()).unwrap()
    }

    /// State of each cluster as `list` says.
    pub fn states(&self) -> Vec<(String, String)> {
        let text = self.cluster(["list", "--json"]).succeeded();
        let clusters: serde_json::Value = serde_json::from_str(&text).unwrap();
        let word = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
        clusters.as_array().unwrap().iter().map(|c| (word(&c["name"]), word(&c["state"]))).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.state().join("clusters")).into_iter().flatten().flatten() {
            let removed = local::remove(&self.state(), &entry.file_name().to_string_lossy());
            if let Err(error) = removed {
                eprintln!("left behind: {error}");
            }
        }
    }
}

/// How a command ended.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// Asserts the exit code, and that each of `words` is in the message.
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in: {}", self.stderr);
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Binaries of the n-th pinned pair, newest first.
pub fn pinned(index: usize) -> (Versions, BinarySet) {
    let (kubernetes, etcd) = pinned_pairs()[index];
    let versions = Versions { kubernetes: kubernetes.to_owned(), etcd: etcd.to_owned() };
    let set = binaries::provide(&versions, &options_from_env(true), &|line| eprintln!("{line}")).unwrap();
    (versions, set)
}

fn newest_binaries() -> BinarySet {
    pinned(0).1
}

/// Waits until `condition` holds, looking every 20 ms.
pub fn eventually(what: &str, within: Duration, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes in the pid namespace of `pid`, itself included.
pub fn processes_with(pid: u32) -> BTreeSet<u32> {
    let space = namespace(pid, "pid");
    space.map_or_else(BTreeSet::new, |space| {
        pids().into_iter().filter(|p| namespace(*p, "pid").as_ref() == Some(&space)).collect()
    })
}

/// Namespaces that the threads of `processes` live in.
pub fn namespaces_of(processes: &BTreeSet<u32>) -> BTreeSet<String> {
    processes.iter().flat_map(|pid| thread_namespaces(*pid)).collect()
}

/// Whether `pid` runs; one that only waits to be collected does not.
pub fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

/// The machine's own interfaces, routes, rules and mounts.
pub fn machine() -> String {
    let print = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let links = print("ip", &["-o", "-brief", "address"]);
    let routes = print("ip", &["route", "show", "table", "all"]);
    let rules = print("nft", &["list", "ruleset"]);
    format!("{links}\n{routes}\n{rules}\n{mounts}")
}

/// Resident memory of a process in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Words of a process's command line.
pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Files below `dir` that others than their owner can read.
pub fn readable_by_others(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(readable_by_others(&entry.path()));
        } else if kind.is_file() && entry.metadata().unwrap().permissions().mode() & 0o077 != 0 {
            found.push(entry.path());
        }
    }
    found
}

/// Every process of the machine.
pub fn pids() -> BTreeSet<u32> {
    fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn namespace(pid: u32, kind: &str) -> Option<String> {
    Some(fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?.display().to_string())
}

fn thread_namespaces(pid: u32) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        for entry in fs::read_dir(task.path().join("ns")).into_iter().flatten().flatten() {
            found.extend(fs::read_link(entry.path()).map(|target| target.display().to_string()));
        }
    }
    found
}
