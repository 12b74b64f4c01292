//! A real etcd on loopback, and its tools.

use quakeproof::cli::toolchain::options_from_env;
use quakeproof::plan::Versions;
use quakeproof::provider::binaries::{BinarySet, pinned_pairs, provide};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Every pinned version of etcd with its binaries.
pub fn pinned_etcds() -> Vec<(String, BinarySet)> {
    let provided = pinned_pairs().iter().map(|(kubernetes, etcd)| {
        let versions = Versions { kubernetes: (*kubernetes).to_owned(), etcd: (*etcd).to_owned() };
        let set = provide(&versions, &options_from_env(true), &|line| eprintln!("{line}")).unwrap();
        ((*etcd).to_owned(), set)
    });
    provided.collect()
}

/// What `etcdutl snapshot status` says.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub hash: u32,
    pub revision: i64,
    pub total_key: u64,
    pub total_size: u64,
    #[serde(default)]
    pub version: String,
}

/// Asks this etcdutl.
pub fn status(tools: &BinarySet, file: &Path) -> Status {
    let mut command = Command::new(tools.path("etcdutl"));
    let text = succeeded(command.args(["snapshot", "status", "-w", "json"]).arg(file));
    serde_json::from_str(&text).unwrap()
}

/// Restores a snapshot with a bumped revision; the path of the restored database.
pub fn restored_with_bump(tools: &BinarySet, file: &Path, dir: &Path, bump: i64) -> PathBuf {
    let mut command = Command::new(tools.path("etcdutl"));
    command.args(["snapshot", "restore", "--mark-compacted", "--bump-revision", &bump.to_string()]);
    succeeded(command.arg("--data-dir").arg(dir).arg(file));
    dir.join("member/snap/db")
}

fn succeeded(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A running etcd with a data directory of its own. Stopped when dropped.
pub struct Store {
    dir: tempfile::TempDir,
    tools: BinarySet,
    endpoint: String,
    process: Child,
}

impl Store {
    pub fn start(tools: &BinarySet) -> Self {
        // A port is free until somebody takes it: then etcd ends, and others are tried.
        let started = (0..5).find_map(|_| {
            let mut store = Self::spawn(tools);
            store.answers().then_some(store)
        });
        started.expect("etcd starts")
    }

    fn spawn(tools: &BinarySet) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [client, peer] = free_ports().map(|port| format!("http://127.0.0.1:{port}"));
        let process = Command::new(tools.path("etcd"))
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(["--name", "m", "--log-level", "error", "--initial-cluster", &format!("m={peer}")])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.path().join("etcd.log")).unwrap())
            .spawn()
            .unwrap();
        Self { dir, tools: tools.clone(), endpoint: client, process }
    }

    fn answers(&mut self) -> bool {
        let begin = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(120), "etcd does not answer");
            if self.command(&["endpoint", "health"]).output().unwrap().status.success() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.tools.path("etcdctl"));
        command.args(["--endpoints", &self.endpoint, "--command-timeout", "60s"]).args(args);
        command.stdin(Stdio::null());
        command
    }

    /// What etcdctl prints.
    pub fn ctl(&self, args: &[&str]) -> String {
        succeeded(&mut self.command(args))
    }

    pub fn snapshot(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        self.ctl(&["snapshot", "save", path.to_str().unwrap()]);
        path
    }

    /// A directory of the test.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The database that etcd has open.
    pub fn database(&self) -> PathBuf {
        self.dir.path().join("data/member/snap/db")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
