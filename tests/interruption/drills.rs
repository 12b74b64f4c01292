//! Runs of a short drill, started as people start them and watched through their journal.

use crate::lab::{Lab, QUAKEPROOF, Ran};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quakeproof::agent::protocol::{Held, Request, Response};
use quakeproof::agent::undo::OnLapse;
use quakeproof::cli::toolchain::options_from_env;
use quakeproof::journal::entry::{Entry, JournalEvent};
use quakeproof::journal::reader;
use quakeproof::plan::Versions;
use quakeproof::provider::Cluster;
use quakeproof::provider::binaries::{self, pinned_pairs};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any part of a run takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);
/// The cluster that `standing.yaml` names.
pub const STANDING: &str = "standing";

/// A state directory in which drills are run, with a cluster that stands.
pub struct Site {
    pub lab: Lab,
    begin: Instant,
}

impl Site {
    /// Without any cluster.
    pub fn empty() -> Self {
        let lab = Lab::new();
        require_binaries();
        Self { lab, begin: Instant::now() }
    }

    /// With the cluster that `standing.yaml` names.
    pub fn standing() -> Self {
        let site = Self::empty();
        site.lab.up(&[STANDING, "--controller-managers", "0", "--schedulers", "0"]);
        site.lap("the cluster stands");
        site
    }

    /// Says how long a part of the test took.
    pub fn lap(&self, what: &str) {
        eprintln!("{:7.1} s  {what}", self.begin.elapsed().as_secs_f64());
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(QUAKEPROOF);
        command.args(args).env("QUAKEPROOF_STATE", self.lab.state()).stdin(Stdio::null());
        command
    }

    pub fn quakeproof<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Starts the drill in `standing.yaml`; its evidence goes to a directory called `name`.
    pub fn start(&self, name: &str, args: &[&str]) -> Run {
        self.start_killed(name, args, "")
    }

    /// The same; the runner kills itself after the event, unless that is empty.
    pub fn start_killed(&self, name: &str, args: &[&str], event: &str) -> Run {
        self.start_in(&self.lab.root().join(name), "standing.yaml", args, event)
    }

    /// Starts a drill of `tests/data/interruption` with its evidence in `dir`.
    pub fn start_in(&self, dir: &Path, drill: &str, args: &[&str], killed_after: &str) -> Run {
        let talk = |ending: &str| {
            let name = dir.file_name().unwrap().to_string_lossy();
            self.lab.root().join(format!("{name}.{ending}"))
        };
        let (out, err) = (talk("out"), talk("err"));
        let drill = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/interruption").join(drill);
        let mut command = self.command(["run"]);
        command.arg(drill).args(args).arg("--out").arg(dir);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        if !killed_after.is_empty() {
            command.env("QUAKEPROOF_CRASH_AFTER_EVENT", killed_after);
        }
        Run { child: command.spawn().unwrap(), dir: dir.to_owned(), out, err }
    }

    /// Whose cluster it is, as the lock's record says.
    pub fn lock_record(&self, cluster: &str) -> PathBuf {
        self.lab.state().join("locks").join(cluster)
    }

    /// What the agent of the standing cluster holds for a run.
    pub fn held_by_agent(&self, run: &str) -> Option<Held> {
        let cluster = self.lab.attach(STANDING);
        match block_on(cluster.agent(&Request::List)).unwrap() {
            Response::Injections { injections } => injections.into_iter().find(|held| held.run == run),
            other => panic!("{other:?}"),
        }
    }

    /// Has `recover` end the run; asserts that the evidence is whole and the cluster free.
    pub fn recover(&self, run: &Run, code: i32) -> Ran {
        let recovered = self.quakeproof([OsStr::new("recover"), run.dir.as_os_str()]);
        let Ran { stdout, stderr, .. } = &recovered;
        assert_eq!(recovered.code, Some(code), "stdout: {stdout}\nstderr: {stderr}");
        self.verify(run);
        recovered
    }

    /// Asserts that the evidence is whole, owes nothing, and that the cluster is free.
    pub fn verify(&self, run: &Run) {
        self.quakeproof([OsStr::new("verify"), run.dir.as_os_str()]).succeeded();
        assert!(!self.lock_record(STANDING).exists(), "the cluster is still locked");
    }
}

/// A run that was started.
pub struct Run {
    child: Child,
    pub dir: PathBuf,
    out: PathBuf,
    err: PathBuf,
}

impl Run {
    pub fn journal(&self) -> Vec<Entry> {
        reader::read(&self.dir.join("journal.jsonl")).map(|j| j.entries).unwrap_or_default()
    }

    /// The run's id, once the journal is open.
    pub fn id(&self) -> String {
        match self.journal().first().map(|e| &e.event) {
            Some(JournalEvent::RunOpened { run, .. }) => run.clone(),
            other => panic!("the journal begins with {other:?}"),
        }
    }

    pub fn report(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.dir.join("report.json")).unwrap()).unwrap()
    }

    /// Modes and causes of the undos that began.
    pub fn undos(&self) -> Vec<(OnLapse, String)> {
        let started = |entry: Entry| match entry.event {
            JournalEvent::UndoStarted { mode, cause, .. } => Some((mode, cause)),
            _ => None,
        };
        self.journal().into_iter().filter_map(started).collect()
    }

    /// Waits for the `nth` entry of an event.
    pub fn reached(&mut self, event: &str, nth: usize) -> Entry {
        let begin = Instant::now();
        loop {
            let over = self.child.try_wait().unwrap();
            if let Some(entry) = self.journal().into_iter().filter(|e| name(e) == event).nth(nth - 1) {
                return entry;
            }
            let said = || std::fs::read_to_string(&self.err).unwrap();
            assert!(over.is_none(), "ended ({over:?}) before {event}:{nth}: {}", said());
            assert!(begin.elapsed() < LONG, "no {event}:{nth} in time: {}", said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Waits for its end.
    pub fn ended(&mut self, within: Duration) -> Ran {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let stdout = std::fs::read_to_string(&self.out).unwrap();
                return Ran { code: status.code(), stdout, stderr: self.said() };
            }
            assert!(begin.elapsed() < within, "still runs after {within:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end and asserts its exit code.
    pub fn ended_with(&mut self, code: i32) -> Ran {
        let ran = self.ended(LONG);
        assert_eq!(ran.code, Some(code), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
        ran
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Nothing is left to be killed where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of an entry's event, as the journal has it.
pub fn name(entry: &Entry) -> String {
    let event = serde_json::to_value(&entry.event).unwrap();
    event.as_object().unwrap().keys().next().unwrap().clone()
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn require_binaries() {
    let (kubernetes, etcd) = pinned_pairs()[0];
    let versions = Versions { kubernetes: kubernetes.to_owned(), etcd: etcd.to_owned() };
    if let Err(error) = binaries::provide(&versions, &options_from_env(true), &|_| {}) {
        panic!("these tests need the real binaries (QUAKEPROOF_BIN_DIR or the cache): {error}");
    }
}
