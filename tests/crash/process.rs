//! The runner, and `recover`, as processes of their own: the test binary runs itself again.

use crate::bench::{Bench, RUN};
use crate::fake_provider::view::FakeClusterView;
use nix::sys::signal::{Signal, raise};
use quakeproof::agent::view::ClusterView;
use quakeproof::client::context::ClientSignal;
use quakeproof::clock::SystemClock;
use quakeproof::dispatch::dispatcher::Watcher;
use quakeproof::dispatch::interrupt::Interrupt;
use quakeproof::evidence::secrets::KnownSecrets;
use quakeproof::guard::lock::DrillLock;
use quakeproof::journal::entry::{Entry, RunOutcome};
use quakeproof::plan::digest::plan_digest;
use quakeproof::provider::Cluster;
use quakeproof::runner::lifecycle::{self, RunRequest};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::runtime::Runtime;

const ROOT: &str = "CRASH_ROOT";
const ROLE: &str = "CRASH_ROLE";
const INTERRUPT_AT: &str = "CRASH_INTERRUPT_AT_ENTRY";
const FREEZE_AT: &str = "CRASH_FREEZE_AT_ENTRY";
const BYTES: &str = "CRASH_BYTES";
const READ_ONLY: &str = "CRASH_READ_ONLY";
/// The library's own hook.
const CRASH_AFTER: &str = "QUAKEPROOF_CRASH_AFTER_ENTRY";

/// What befalls a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fate {
    /// Killed with SIGKILL right after this entry is durable.
    pub crash_after: Option<u64>,
    /// Asked to end right after this entry.
    pub interrupt_at: Option<u64>,
    /// Stopped with SIGSTOP right after this entry.
    pub freeze_at: Option<u64>,
    /// No file of it may grow beyond this, once its run directory is made.
    pub bytes: Option<u64>,
    /// Its run directory can't be written.
    pub read_only: bool,
}

impl Fate {
    /// Killed right after an entry.
    pub fn killed(entry: u64) -> Self {
        Self { crash_after: Some(entry), ..Self::default() }
    }
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Carries the plan out.
    Run,
    /// Ends the run of a dead runner.
    Recover,
}

/// Starts a process.
pub fn start(bench: &Bench, role: Role, fate: Fate) -> Child {
    let name = format!("{}::runner_process", module_path!());
    let name = name.split_once("::").expect("a module path begins with its crate").1.to_owned();
    let exe = env::current_exe().expect("a running binary has a path");
    let mut command = match (fate.bytes, fate.read_only) {
        (Some(_), _) => {
            let mut shell = Command::new("sh");
            // A write beyond the limit is to fail, not to kill.
            shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(exe);
            shell
        }
        // Permissions hold back nobody who is root with all capabilities.
        (None, true) if nix::unistd::geteuid().is_root() => {
            let mut bounded = Command::new("setpriv");
            bounded.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(exe);
            bounded
        }
        _ => Command::new(exe),
    };
    command.args([&name, "--exact", "--nocapture"]);
    command.env(ROOT, bench.root()).env(ROLE, format!("{role:?}"));
    for (key, number) in [
        (CRASH_AFTER, fate.crash_after),
        (INTERRUPT_AT, fate.interrupt_at),
        (FREEZE_AT, fate.freeze_at),
        (BYTES, fate.bytes),
    ] {
        if let Some(number) = number {
            command.env(key, number.to_string());
        }
    }
    if fate.read_only {
        command.env(READ_ONLY, "1");
    }
    let log = File::options().create(true).append(true).open(bench.root().join("runner.stderr"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("the directory is writable"));
    command.spawn().expect("the test binary runs itself")
}

/// Entry point of those processes; does nothing in an ordinary test run.
#[test]
fn runner_process() {
    let Some(root) = env::var_os(ROOT).map(PathBuf::from) else { return };
    let bench = Bench::at(&root);
    if env::var(ROLE).is_ok_and(|role| role == format!("{:?}", Role::Recover)) {
        bench.recover();
        return;
    }
    let (dir, plan) = bench.make_run_dir();
    if env::var_os(READ_ONLY).is_some() {
        fs::set_permissions(dir.path(), Permissions::from_mode(0o555)).expect("it is ours");
    }
    let number = |name| env::var(name).ok().and_then(|n| n.parse().ok());
    if let Some(bytes) = number(BYTES) {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        setrlimit(Resource::Fsize, limit).expect("a limit may be lowered");
    }
    let interrupt = Interrupt::new();
    let watcher =
        At { interrupt: number(INTERRUPT_AT).map(|at| (at, interrupt.clone())), freeze: number(FREEZE_AT) };
    let request = RunRequest {
        run: RUN.to_owned(),
        plan_digest: plan_digest(&plan),
        plan: Arc::new(plan),
        dir,
        cluster: bench.cluster().to_owned(),
        lock: bench.lock(),
        provider: Arc::new(bench.provider()),
        view,
        keep_cluster: false,
        clock: Arc::new(SystemClock::new()),
        watcher: Arc::new(watcher),
        interrupt,
        operator: "tests".to_owned(),
        secrets: KnownSecrets::default(),
    };
    let (end, lock) = Runtime::new().expect("a runtime").block_on(lifecycle::run(request));
    match end {
        Ok(end) => free(lock, end.outcome),
        Err(error) => fs::write(bench.error_file(), error.to_string()).expect("there is space for an error"),
    }
}

/// As the commands do once the evidence is complete.
pub fn free(lock: DrillLock, outcome: RunOutcome) {
    if outcome != RunOutcome::Faulted {
        lock.release().expect("the record is ours");
    }
}

/// Looks at the fake cluster that `cluster` is.
fn view(cluster: Arc<dyn Cluster>) -> Arc<dyn ClusterView> {
    let file = cluster.private_file("any");
    Arc::new(FakeClusterView::new(file.parent().expect("private files are in the cluster's directory")))
}

/// Does something right after an entry became durable, before anybody goes on.
struct At {
    interrupt: Option<(u64, Interrupt)>,
    freeze: Option<u64>,
}

impl Watcher for At {
    fn entry(&self, entry: &Entry) {
        if let Some((_, interrupt)) = self.interrupt.as_ref().filter(|(at, _)| *at == entry.seq) {
            interrupt.ask("abort");
        }
        if self.freeze == Some(entry.seq) {
            raise(Signal::SIGSTOP).expect("a process may stop itself");
        }
    }

    fn signal(&self, _: &ClientSignal) {}

    fn note(&self, _: &str) {}
}
