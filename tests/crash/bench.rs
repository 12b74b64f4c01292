//! One run on one fake cluster, and what must be true of both afterwards.

use crate::fake_provider::cluster::{FakeProvider, ensure_agent, kill_agent};
use crate::fake_provider::control::{UNPACKED, snapshot};
use crate::fake_provider::state::{FakeState, IN_USE, ORIGINAL, RESTORED, STATE_FILE};
use crate::process::{self, Fate, Role};
use nix::sys::signal::Signal;
use quakeproof::agent::client::AgentClient;
use quakeproof::agent::protocol::{HeldState, Request, Response};
use quakeproof::check::{Verdict, judge};
use quakeproof::client::context::ClientSignal;
use quakeproof::clock::SystemClock;
use quakeproof::dispatch::dispatcher::Watcher;
use quakeproof::drill::spec::Step;
use quakeproof::drill::values::Span;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::load::{load, read_plan};
use quakeproof::evidence::publish;
use quakeproof::evidence::secrets::KnownSecrets;
use quakeproof::evidence::verify::{Judge, verify};
use quakeproof::guard::GuardError;
use quakeproof::guard::lock::DrillLock;
use quakeproof::journal::JournalError;
use quakeproof::journal::entry::{Entry, JournalEvent, RunOutcome};
use quakeproof::journal::reader::{self, Journal};
use quakeproof::journal::summary::RunSummary;
use quakeproof::plan::Plan;
use quakeproof::plan::digest::canonical_bytes;
use quakeproof::plan::resolve::{ResolveInput, resolve};
use quakeproof::provider::Provider;
use quakeproof::runner::lifecycle::{RunEnd, RunError};
use quakeproof::runner::recover::{RecoverRequest, recover};
use quakeproof::state::StateDir;
use std::fs;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Id of every run; each has a directory of its own.
pub const RUN: &str = "0197a000-0000-7000-8000-00000000c0de";
const DRILL: &str = include_str!("drill.yaml");
const MEMBER: &str = "etcd-1";
/// Nothing that is awaited takes anywhere near as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// On a cluster that was there before, or on one made for the run.
    pub standing: bool,
    /// The restore restarts the API servers.
    pub restart: bool,
    /// Lease of every injection.
    pub dead_man: Duration,
}

impl Setup {
    /// On a standing cluster, with API servers that are kept and a lease that never lapses.
    pub const STANDING: Setup = Setup { standing: true, restart: false, dead_man: Duration::from_secs(300) };
    /// The same on a cluster made for the run.
    pub const FRESH: Setup = Setup { standing: false, ..Self::STANDING };

    /// The same with a lease that can be waited for.
    pub fn short_lease(self) -> Self {
        Self { dead_man: Duration::from_secs(2), ..self }
    }

    fn plan(self) -> Plan {
        let mut input = ResolveInput::plain("drill.yaml", DRILL);
        input.set.insert("restart".to_owned(), self.restart.to_string());
        let mut plan = resolve(input).expect("the drill is right");
        plan.clients.clear();
        plan.predictions.clear();
        plan.steady_state.clear();
        plan.limits.dead_man = Span(self.dead_man);
        plan.cluster.standing = self.standing.then(|| "standing".to_owned());
        for planned in &mut plan.steps {
            match &mut planned.step {
                Step::Hold(hold) => hold.duration = Span::millis(5),
                Step::Observe(observe) => observe.then = Span::millis(5),
                _ => {}
            }
        }
        plan
    }
}

/// One run on one fake cluster.
pub struct Bench {
    root: PathBuf,
    /// Removed when dropped, which also ends the cluster's agent.
    _dir: Option<tempfile::TempDir>,
}

impl Bench {
    /// Nothing has been run yet; a standing cluster stands.
    pub fn new(setup: Setup) -> Self {
        let dir = tempfile::tempdir().expect("there is space");
        let bench = Self { root: dir.path().to_owned(), _dir: Some(dir) };
        bench.state_dir().create().expect("there is space");
        let plan = setup.plan();
        fs::write(bench.root.join("plan.json"), canonical_bytes(&plan)).expect("there is space");
        fs::write(bench.root.join(UNPACKED), snapshot()).expect("there is space");
        if setup.standing {
            let up = block_on(async { bench.provider().up(bench.cluster(), &plan.cluster, &|_| {}).await });
            up.expect("there is no such cluster yet");
        }
        bench
    }

    /// As seen by another process.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), _dir: None }
    }

    /// Everything is below it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The plan that is carried out.
    pub fn plan(&self) -> Plan {
        let bytes = fs::read(self.root.join("plan.json")).expect("the bench has a plan");
        serde_json::from_slice(&bytes).expect("it is one")
    }

    /// Name of the cluster.
    pub fn cluster(&self) -> &'static str {
        if self.plan().cluster.standing.is_some() { "standing" } else { "drill" }
    }

    /// Owns it.
    pub fn provider(&self) -> FakeProvider {
        FakeProvider::new(&self.state_dir().clusters())
    }

    fn state_dir(&self) -> StateDir {
        StateDir::at(&self.root.join("state"))
    }

    fn run_path(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The evidence.
    pub fn run_dir(&self) -> RunDir {
        RunDir::open(&self.run_path()).expect("the run was begun")
    }

    /// Where a runner says why it could not write its journal.
    pub fn error_file(&self) -> PathBuf {
        self.root.join("error")
    }

    /// Makes the run's directory, as the command does before the runner begins.
    pub fn make_run_dir(&self) -> (RunDir, Plan) {
        let (dir, plan) = (RunDir::create(&self.run_path()).expect("there is space"), self.plan());
        fs::write(dir.drill(), DRILL).expect("there is space");
        fs::write(dir.plan(), canonical_bytes(&plan)).expect("there is space");
        (dir, plan)
    }

    /// Takes the drill lock for the run.
    pub fn lock(&self) -> DrillLock {
        let lock = self.try_lock(RUN, &self.run_path());
        lock.expect("nobody else drills here")
    }

    fn try_lock(&self, run: &str, path: &Path) -> Result<DrillLock, GuardError> {
        let (state, cluster) = (self.state_dir(), self.cluster());
        unless_shared(
            || DrillLock::acquire(&state, cluster, run, path, &SystemClock::new()),
            |error| matches!(error, GuardError::Busy { .. }),
        )
    }

    /// Takes the drill lock for another run, or says why that is refused.
    pub fn lock_for_next(&self) -> Result<DrillLock, GuardError> {
        self.try_lock("next", &self.root.join("next"))
    }

    /// Runs to its end, whatever that is.
    pub fn run(&self, role: Role, fate: Fate) -> ExitStatus {
        process::start(self, role, fate).wait().expect("a child can be awaited")
    }

    /// Runs and is killed by the crash hook.
    pub fn run_killed(&self, role: Role, fate: Fate) {
        let status = self.run(role, fate);
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{fate:?}: {status}\n{}", self.told());
    }

    /// Runs and ends by itself.
    pub fn run_to_end(&self, fate: Fate) {
        let status = self.run(Role::Run, fate);
        assert!(status.success(), "{fate:?}: {status}\n{}", self.told());
    }

    /// What the processes said, for failures.
    pub fn told(&self) -> String {
        let journal = fs::read_to_string(self.run_path().join("journal.jsonl")).unwrap_or_default();
        let stderr = fs::read_to_string(self.root.join("runner.stderr")).unwrap_or_default();
        let agent = fs::read_to_string(self.cluster_dir().join("fake-agent.stderr")).unwrap_or_default();
        format!("{journal}\n{stderr}\n{agent}")
    }

    /// Ends the run from this process, as the command does.
    pub fn recover(&self) -> RunEnd {
        let (state, cluster, path) = (self.state_dir(), self.cluster(), self.run_path());
        let lock = unless_shared(
            || DrillLock::adopt(&state, cluster, RUN, &path, &SystemClock::new()),
            |error| matches!(error, GuardError::Busy { .. }),
        );
        let lock = lock.expect("the runner is dead");
        let end = self.try_recover().expect("the journal can be continued");
        process::free(lock, end.outcome);
        end
    }

    /// As [`Self::recover`], without the lock.
    pub fn try_recover(&self) -> Result<RunEnd, RunError> {
        let dir = self.run_dir();
        let plan = Arc::new(read_plan(&dir).expect("the plan is there"));
        let once = || {
            block_on(recover(RecoverRequest {
                run: RUN.to_owned(),
                plan: plan.clone(),
                dir: dir.clone(),
                cluster: self.cluster().to_owned(),
                provider: Arc::new(self.provider()),
                keep_cluster: false,
                clock: Arc::new(SystemClock::new()),
                watcher: Arc::new(Unwatched),
                by: "recover",
                secrets: KnownSecrets::default(),
            }))
        };
        unless_shared(once, |error| matches!(error, RunError::Journal(JournalError::Busy { .. })))
    }

    fn cluster_dir(&self) -> PathBuf {
        self.provider().dir(self.cluster())
    }

    /// The cluster; `None` while none was made.
    pub fn state(&self) -> Option<FakeState> {
        let dir = self.cluster_dir();
        dir.join(STATE_FILE).exists().then(|| FakeState::read(&dir))
    }

    /// From here on these operations on the cluster fail, and no others.
    pub fn refuse(&self, operations: &[&str]) {
        let refused = operations.iter().map(|what| (*what).to_owned()).collect();
        FakeState::change(&self.cluster_dir(), |state| state.refused = refused);
    }

    /// Kills the cluster's agent, and starts the next one as a supervisor does.
    pub fn replace_agent(&self) {
        kill_agent(&self.cluster_dir());
        ensure_agent(&self.cluster_dir());
    }

    /// What the agent holds, by state; nothing where there is no cluster.
    pub fn held(&self) -> Vec<HeldState> {
        if self.state().is_none_or(|state| state.down) {
            return Vec::new();
        }
        let client = AgentClient::new(&self.cluster_dir());
        match block_on(client.request(&Request::List, PATIENCE)) {
            Ok(Response::Injections { injections }) => injections.into_iter().map(|h| h.state).collect(),
            other => panic!("{other:?}\n{}", self.told()),
        }
    }

    /// Waits until the agent owes nothing. Nobody asks it to do anything.
    pub fn await_dead_man(&self) {
        let owed = |state: &HeldState| matches!(state, HeldState::Armed | HeldState::Undoing);
        self.until("the dead-man to act", || !self.held().iter().any(owed));
    }

    /// Waits for a condition.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < PATIENCE, "waited in vain for {what}\n{}", self.told());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The journal so far.
    pub fn journal(&self) -> Journal {
        reader::read(&self.run_path().join("journal.jsonl")).expect("the chain holds")
    }

    /// Its entries.
    pub fn entries(&self) -> Vec<Entry> {
        self.journal().entries
    }

    /// The agent owes nothing and the file shows nothing faulted: everything runs, every
    /// API server serves what etcd has. Says which timeline that is.
    pub fn assert_nothing_faulted(&self) -> Option<String> {
        let state = self.state()?;
        self.assert_one_way(&state);
        assert!(state.is_whole(), "{state:#?}\n{}", self.told());
        Some(state.component(MEMBER).data[IN_USE].clone())
    }

    /// As [`Self::assert_nothing_faulted`], where there is a cluster that was not removed.
    pub fn assert_nothing_faulted_unless_removed(&self) -> Option<String> {
        let state = self.state()?;
        if state.down {
            self.assert_one_way(&state);
            return state.component(MEMBER).data.get(IN_USE).cloned();
        }
        self.assert_nothing_faulted()
    }

    /// Once a restored etcd was started, etcd is never started on the old data again, and never on none.
    fn assert_one_way(&self, state: &FakeState) {
        let started = state.started_on(MEMBER);
        let restored = started.iter().position(|timeline| timeline == RESTORED).unwrap_or(started.len());
        let (before, after) = started.split_at(restored);
        assert!(before.iter().all(|t| t == ORIGINAL), "{started:?}\n{}", self.told());
        assert!(after.iter().all(|t| t == RESTORED), "{started:?}\n{}", self.told());
    }

    /// The run is over: the journal is closed and owes nothing, the cluster is gone or in
    /// order and free for the next run, the evidence verifies, and nothing is claimed that
    /// was not seen.
    pub fn assert_over(&self) -> RunOutcome {
        let summary = RunSummary::of(&self.entries());
        assert!(summary.is_settled(), "{summary:#?}\n{}", self.told());
        assert_eq!(summary.violations, Vec::<String>::new());
        if let Some(state) = self.state() {
            self.assert_one_way(&state);
            let standing = self.plan().cluster.standing.is_some();
            assert_eq!(state.down, !standing, "{}", self.told());
            if standing {
                self.assert_nothing_faulted();
                let over =
                    |held: &HeldState| matches!(held, HeldState::Undone { .. } | HeldState::Discharged);
                assert!(self.held().iter().all(over), "{:?}\n{}", self.held(), self.told());
            }
        }
        self.lock_for_next().expect("the cluster is free").release().expect("the record is ours");
        self.assert_evidence_holds();
        summary.closed.expect("it is settled").outcome
    }

    fn assert_evidence_holds(&self) {
        let dir = self.run_dir();
        let report = publish::publish(&dir, &[], None).expect("the evidence can be read");
        // The bench takes clients out of the plan, which no plan of the drill does.
        let judging = Judge { follows: &|_, _| Ok(()), ..publish::judge() };
        let verified = verify(dir.path(), &judging, None).expect("it can be read again");
        assert!(verified.is_valid(), "{:?}", verified.first_difference);
        let judgement = judge(&load(dir.path()).expect("it can be read again"));
        assert_eq!(judgement.verdict, report.verdict);
        assert_ne!(judgement.verdict, Some(Verdict::Pass));
        assert_eq!(judgement.findings.len(), 2);
        for finding in judgement.findings {
            assert_eq!(finding.verdict, Verdict::Inconclusive, "{finding:?}");
            assert!(!finding.reason.is_empty(), "{finding:?}");
        }
    }

    /// Recovering a run that is over changes neither journal nor cluster.
    pub fn assert_recover_does_nothing(&self) {
        let journal = || fs::read(self.run_dir().journal()).expect("it is there");
        let before = (journal(), self.state());
        self.recover();
        assert_eq!((journal(), self.state()), before);
    }
}

struct Unwatched;

impl Watcher for Unwatched {
    fn entry(&self, _: &Entry) {}

    fn signal(&self, _: &ClientSignal) {}

    fn note(&self, _: &str) {}
}

/// Entries of a run that nobody disturbs.
pub fn undisturbed(setup: Setup) -> Vec<Entry> {
    let bench = Bench::new(setup);
    bench.run_to_end(Fate::default());
    assert_eq!(bench.assert_over(), RunOutcome::Completed, "{}", bench.told());
    bench.entries()
}

/// Number of the first entry that `is` what is looked for.
pub fn position(entries: &[Entry], is: impl Fn(&JournalEvent) -> bool) -> u64 {
    let found = entries.iter().find(|entry| is(&entry.event));
    found.expect("a run has such an entry").seq
}

/// A child that another test is just starting shares every lock of this process until it
/// runs its own program; what is `busy` for that reason is tried again.
fn unless_shared<T, E>(attempt: impl Fn() -> Result<T, E>, busy: impl Fn(&E) -> bool) -> Result<T, E> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(error) if busy(&error) && since.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
