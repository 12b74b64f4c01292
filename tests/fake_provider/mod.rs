//! A provider whose clusters are a JSON file. Its agent is the real one, in a process of
//! its own: the test binary runs itself again. So a test may kill runner or agent at any
//! point and then look at what the file says, whatever anybody returned.
//!
//! Used from an integration test by `mod fake_provider;`.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod api;
pub mod cluster;
pub mod control;
#[path = "../support/kept_snapshot.rs"]
mod kept_snapshot;
pub mod state;
pub mod static_pods;
pub mod view;

use control::FakeControl;
use nix::sys::signal::{Signal, raise};
use quakeproof::agent::client::AgentClient;
use quakeproof::agent::execute::UndoOps;
use quakeproof::agent::server;
use quakeproof::clock::SystemClock;
use quakeproof::component::ComponentControl;
use quakeproof::guard::lock::DrillLock;
use quakeproof::guard::{GuardToken, authorize};
use quakeproof::plan::resolve::{ResolveInput, resolve};
use quakeproof::state::StateDir;
use state::{FakeState, STATE_FILE};
use std::env;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use view::FakeClusterView;

const DIR: &str = "FAKE_AGENT_DIR";
const DIE_AT_ENTRY: &str = "FAKE_AGENT_DIE_AT_ENTRY";
const DIE_AT_OPERATION: &str = "FAKE_AGENT_DIE_AT_OPERATION";

/// A drill that loses every etcd member of a cluster.
const DRILL: &str = include_str!("../../scenarios/etcd/restore-without-bump.yaml");

/// The right of `run` to lose etcd on the cluster that `control` controls, got as a runner
/// gets it; the lock is free again afterwards.
pub async fn guard_token(run: &str, control: &dyn ComponentControl) -> GuardToken {
    let dir = tempfile::tempdir().expect("there is space");
    let state = StateDir::at(dir.path());
    state.create().expect("the directory is writable");
    let lock = DrillLock::acquire(&state, "main", run, dir.path(), &SystemClock::new()).expect("it is free");
    let plan = resolve(ResolveInput::plain("restore-without-bump.yaml", DRILL)).expect("scenarios are right");
    let statuses = control.list().await.expect("a fake cluster answers");
    authorize(&plan, lock.cluster(), &lock, &statuses).expect("the fake cluster has what the drill names")
}

/// When a fake agent kills itself with SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Die {
    /// Not by itself.
    #[default]
    Never,
    /// Right after this many entries of its log became durable; its start is the first.
    AtEntry(u64),
    /// Right after this many changes to the cluster.
    AtOperation(u64),
}

/// Entry point of the agent's process; does nothing in an ordinary test run.
#[test]
fn fake_agent_process() {
    let Some(dir) = env::var_os(DIR).map(PathBuf::from) else { return };
    let limit = |name| env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let (at_entry, at_operation) = (limit(DIE_AT_ENTRY), limit(DIE_AT_OPERATION));
    let (entries, operations) = (AtomicU64::new(0), AtomicU64::new(0));
    end_with(dir.join(STATE_FILE));
    let control = FakeControl::observed(&dir, move || count(&operations, at_operation));
    let view = FakeClusterView::new(&dir);
    let ops = || UndoOps {
        control: Arc::new(control),
        view: Arc::new(view),
        api: Arc::new(api::FakeApi::default()),
    };
    let clock = Arc::new(SystemClock::new());
    let ended = server::main(&dir, clock, ops, move |_| count(&entries, at_entry));
    panic!("the agent ended: {ended:?}");
}

fn count(counter: &AtomicU64, limit: Option<u64>) {
    if Some(counter.fetch_add(1, Ordering::SeqCst) + 1) == limit {
        raise(Signal::SIGKILL).expect("a process may kill itself");
    }
}

/// A test that was killed leaves agents behind; they end with the cluster's file.
fn end_with(file: PathBuf) {
    thread::spawn(move || {
        while file.exists() {
            thread::sleep(Duration::from_millis(500));
        }
        std::process::exit(0);
    });
}

/// A fake cluster's agent as a child of this process; killed when dropped.
pub struct FakeHandle {
    dir: PathBuf,
    child: Child,
}

/// Starts an agent for the cluster in `dir`, which is made if there is none.
pub fn spawn(dir: &Path, die: Die) -> FakeHandle {
    FakeState::ensure(dir);
    FakeHandle { dir: dir.to_owned(), child: command(dir, die).spawn().expect("the test binary runs itself") }
}

pub(crate) fn command(dir: &Path, die: Die) -> Command {
    let name = format!("{}::fake_agent_process", module_path!());
    let name = name.split_once("::").expect("a module path begins with its crate").1;
    let log = File::options().create(true).append(true).open(dir.join("fake-agent.stderr"));
    let mut command = Command::new(env::current_exe().expect("a running binary has a path"));
    command.args([name, "--exact", "--nocapture"]).env(DIR, dir).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log.expect("the cluster's directory is writable"));
    match die {
        Die::Never => {}
        Die::AtEntry(n) => drop(command.env(DIE_AT_ENTRY, n.to_string())),
        Die::AtOperation(n) => drop(command.env(DIE_AT_OPERATION, n.to_string())),
    }
    command
}

impl FakeHandle {
    /// What is on disk now.
    pub fn state(&self) -> FakeState {
        FakeState::read(&self.dir)
    }

    /// Asks the agent.
    pub fn client(&self) -> AgentClient {
        AgentClient::new(&self.dir)
    }

    /// Pid of the agent.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the agent with SIGKILL and reaps it.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be awaited");
    }

    /// Waits until the agent has been killed, by itself or by `kill`.
    pub fn wait_killed(&mut self) {
        let status = self.child.wait().expect("a child can be awaited");
        assert_eq!(
            status.signal(),
            Some(Signal::SIGKILL as i32),
            "the agent ended otherwise: {}",
            self.stderr()
        );
    }

    /// Whether the agent has ended, and how: as [`Self::wait_killed`].
    pub fn has_died(&mut self) -> bool {
        let died = self.child.try_wait().expect("a child can be awaited").is_some();
        if died {
            self.wait_killed();
        }
        died
    }

    /// Starts the next agent of the same cluster, as a supervisor does.
    pub fn restart(&mut self) {
        self.child = command(&self.dir, Die::Never).spawn().expect("the test binary runs itself");
    }

    /// What the agents of this cluster printed.
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.dir.join("fake-agent.stderr")).unwrap_or_default()
    }
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
