//! The agent as a process of its own that is killed at every point where it matters,
//! under the undo of a lost etcd.

mod fake_provider;
#[path = "agent/objects.rs"]
mod objects;

use fake_provider::api::FakeApi;
use fake_provider::cluster::{FakeProvider, agent_pid, ensure_agent, kill_agent};
use fake_provider::control::FakeControl;
use fake_provider::state::{FakeState, IN_USE, ORIGINAL, planned};
use fake_provider::static_pods::FakeStaticPods;
use fake_provider::view::FakeClusterView;
use fake_provider::{Die, FakeHandle, guard_token, spawn};
use quakeproof::agent::execute::{UndoError, UndoOps, execute};
use quakeproof::agent::protocol::{Held, HeldState, Request, Response};
use quakeproof::agent::server::agent_dir;
use quakeproof::agent::store::LOG_FILE;
use quakeproof::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use quakeproof::agent::view::{ClusterView, Look};
use quakeproof::clock::SystemClock;
use quakeproof::component::{ComponentControl, ComponentId, DataSlot, Role, Tool, ToolRun};
use quakeproof::drill::spec::{ProviderKind, Topology};
use quakeproof::fault::lose_etcd::{LoseEtcd, Members, lost_slot};
use quakeproof::fault::{Fault, FaultContext, FaultError, Injection};
use quakeproof::plan::{PlannedCluster, PlannedComponent, Versions};
use quakeproof::provider::{Provider, ProviderError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const FAULT: LoseEtcd = LoseEtcd { members: Members::All };
const WITHIN_NS: u64 = 20_000_000_000;
/// Long enough that no test's run is ever late with a renewal.
const LONG_NS: u64 = 600_000_000_000;
/// Short enough to wait for, long enough to inject in on a loaded machine.
const SHORT_NS: u64 = 4_000_000_000;
/// Nothing that is awaited takes anywhere near as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// One that its undo ends.
fn injection<'a>(
    run: &'a str,
    id: &'a InjectionId,
    targets: &'a [ComponentId],
    components: &'a [PlannedComponent],
) -> Injection<'a> {
    Injection { run, id, targets, components, closed_by: None, before: &[] }
}

/// One run that loses etcd on a fake cluster.
struct Bench {
    dir: PathBuf,
    agent: FakeHandle,
    run: String,
    id: InjectionId,
    targets: Vec<ComponentId>,
    components: Vec<PlannedComponent>,
}

impl Bench {
    fn new(dir: &Path, die: Die) -> Self {
        Self {
            dir: dir.to_owned(),
            agent: spawn(dir, die),
            run: "run-1".to_owned(),
            id: InjectionId("2-loseEtcd".to_owned()),
            targets: vec![ComponentId("etcd-1".to_owned())],
            components: planned(),
        }
    }

    fn injection(&self) -> Injection<'_> {
        injection(&self.run, &self.id, &self.targets, &self.components)
    }

    /// Asks and, as a supervisor does, starts the next agent when one has died.
    async fn ask(&mut self, request: &Request) -> Response {
        let client = self.agent.client();
        let answer = client.request(request, PATIENCE);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return answer.expect("an agent answers"),
                () = tokio::time::sleep(Duration::from_millis(20)) => self.supervise(),
            }
        }
    }

    fn supervise(&mut self) {
        if self.agent.has_died() {
            self.agent.restart();
        }
    }

    async fn arm(&mut self, ttl_ns: u64) -> Undo {
        let undo = FAULT.undo(&self.injection(), WITHIN_NS);
        let arm = Request::Arm { run: self.run.clone(), undo: undo.clone(), ttl_ns };
        assert_eq!(self.ask(&arm).await, Response::Done);
        undo
    }

    async fn inject(&self) {
        let (control, view) = (FakeControl::new(&self.dir), FakeClusterView::new(&self.dir));
        let api = FakeApi::default();
        let context = FaultContext { control: &control, view: &view, api: &api };
        let guard = guard_token(&self.run, &control).await;
        FAULT.inject(context, &guard, self.injection()).await.unwrap();
        FAULT.verify_injected(context, self.injection()).await.unwrap();
        assert!(!self.agent.state().is_whole());
    }

    /// The restore procedure up to the moment before the restored etcd is started.
    async fn restore(&self) {
        let control = FakeControl::new(&self.dir);
        std::fs::write(self.dir.join("backup.db"), ORIGINAL).unwrap();
        let args = ["snapshot", "restore", "{file:backup.db}", "--data-dir", "{data:restored}"];
        let component = self.targets[0].clone();
        let args = args.map(str::to_owned).into();
        let run = ToolRun { component: component.clone(), tool: Tool::Etcdutl, args };
        assert_eq!(control.run_tool(&run).await.unwrap().code, 0);
        let restored = DataSlot::Aside("restored".to_owned());
        control.move_data(&component, &restored, &DataSlot::InUse).await.unwrap();
    }

    async fn amend(&mut self) {
        let undo = FAULT.roll_forward(&self.injection(), WITHIN_NS).unwrap();
        let amend = Request::Amend { run: self.run.clone(), undo };
        assert_eq!(self.ask(&amend).await, Response::Done);
    }

    async fn revert(&mut self) -> Response {
        let revert = Request::Revert { run: self.run.clone(), injection: self.id.clone() };
        self.ask(&revert).await
    }

    async fn held(&mut self) -> Vec<Held> {
        match self.ask(&Request::List).await {
            Response::Injections { injections } => injections,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for a state of this run's injection.
    async fn until(&mut self, wanted: impl Fn(&HeldState) -> bool) {
        let waiting = async {
            loop {
                let held = self.held().await;
                let own = held.iter().find(|h| h.run == self.run && h.injection == self.id);
                if own.is_some_and(|h| wanted(&h.state)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("the state is reached");
    }

    fn state(&self) -> FakeState {
        self.agent.state()
    }

    fn lost(&self) -> String {
        match lost_slot(&self.injection()) {
            DataSlot::Aside(label) => label,
            DataSlot::InUse => unreachable!("lost data is not in use"),
        }
    }

    /// Everything runs anew on the original data.
    fn assert_taken_back(&self) {
        let state = self.state();
        assert!(state.is_whole(), "{state:#?}");
        let etcd = state.component("etcd-1");
        assert_eq!(etcd.data.get(IN_USE).map(String::as_str), Some(ORIGINAL));
        assert_eq!(etcd.data.get(&self.lost()), None);
        self.assert_restarted(&state);
    }

    /// Everything runs anew on the restored data, and the original is still there, aside.
    fn assert_rolled_forward(&self) {
        let state = self.state();
        assert!(state.is_whole(), "{state:#?}");
        let etcd = state.component("etcd-1");
        assert!(etcd.data[IN_USE].starts_with("restored"), "{etcd:?}");
        assert_eq!(etcd.data.get(&self.lost()).map(String::as_str), Some(ORIGINAL));
        self.assert_restarted(&state);
    }

    fn assert_restarted(&self, state: &FakeState) {
        for component in &self.components {
            let found = &state.components[&component.component];
            assert!(!found.incarnation.ends_with("#0"), "{} was not restarted", component.component);
        }
    }
}

fn by_lapse(state: &HeldState) -> bool {
    *state == HeldState::Undone { by_lapse: true }
}

#[tokio::test]
async fn a_lapsed_lease_takes_the_loss_back_from_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(dir.path(), Die::Never);
    bench.arm(SHORT_NS).await;
    bench.inject().await;
    let injected = bench.state().operations.len();
    bench.until(by_lapse).await;
    bench.assert_taken_back();
    let agent = bench.agent.pid();
    assert!(bench.state().operations[injected..].iter().all(|operation| operation.pid == agent));
    let renew = Request::Renew { run: bench.run.clone() };
    assert!(matches!(bench.ask(&renew).await, Response::Error { .. }), "the run learns of it");
}

#[tokio::test]
async fn an_agent_killed_between_arm_and_lapse_is_followed_by_one_that_keeps_the_lease() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(dir.path(), Die::Never);
    bench.arm(SHORT_NS).await;
    let expires = bench.held().await[0].expires_ns;
    bench.inject().await;
    bench.agent.kill();
    bench.agent.restart();
    assert_eq!(bench.held().await[0].expires_ns, expires);
    bench.until(by_lapse).await;
    bench.assert_taken_back();
}

#[tokio::test]
async fn killed_at_every_entry_of_its_log_the_loss_is_taken_back() {
    // Started, armed, undoing, undone.
    let runs = (1..=4).map(|entry| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(dir.path(), Die::AtEntry(entry));
        bench.arm(SHORT_NS).await;
        bench.inject().await;
        bench.until(by_lapse).await;
        bench.assert_taken_back();
        let log = std::fs::read_to_string(agent_dir(dir.path()).join(LOG_FILE)).unwrap();
        assert_eq!(log.matches("\"started\"").count(), 2, "it died at entry {entry}");
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn killed_at_every_entry_of_its_log_an_amended_undo_rolls_forward() {
    // Started, armed, amended, undoing, undone.
    let runs = (1..=5).map(|entry| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(dir.path(), Die::AtEntry(entry));
        bench.arm(LONG_NS).await;
        bench.inject().await;
        bench.restore().await;
        bench.amend().await;
        FakeControl::new(&bench.dir).start(&bench.targets[0]).await.unwrap();
        assert!(matches!(bench.revert().await, Response::Reverted { .. }));
        bench.until(|state| matches!(state, HeldState::Undone { .. })).await;
        bench.assert_rolled_forward();
        let log = std::fs::read_to_string(agent_dir(dir.path()).join(LOG_FILE)).unwrap();
        assert_eq!(log.matches("\"started\"").count(), 2, "it died at entry {entry}");
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn an_amended_undo_rolls_forward_on_lapse_whether_or_not_etcd_was_started() {
    let runs = [true, false].map(|start| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(dir.path(), Die::Never);
        bench.arm(SHORT_NS).await;
        bench.inject().await;
        bench.restore().await;
        bench.amend().await;
        if start {
            FakeControl::new(&bench.dir).start(&bench.targets[0]).await.unwrap();
        }
        bench.until(by_lapse).await;
        bench.assert_rolled_forward();
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn killed_at_every_change_that_an_undo_makes_it_is_still_done_once_and_whole() {
    // Four stops of dependents, two moves (a restored directory is in the way), five starts.
    let runs = (1..=11).map(|operation| async move {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(dir.path(), Die::AtOperation(operation));
        bench.arm(LONG_NS).await;
        bench.inject().await;
        bench.restore().await;
        assert!(matches!(bench.revert().await, Response::Reverted { .. }));
        bench.assert_taken_back();
        let displaced = bench.state().component("etcd-1").data.clone();
        assert!(displaced.values().any(|timeline| timeline.starts_with("restored")), "nothing is deleted");
        let log = std::fs::read_to_string(agent_dir(dir.path()).join(LOG_FILE)).unwrap();
        assert_eq!(log.matches("\"started\"").count(), 2, "it died at operation {operation}");
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn a_torn_line_costs_nothing_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(dir.path(), Die::Never);
    bench.arm(LONG_NS).await;
    bench.inject().await;
    bench.agent.kill();
    let path = agent_dir(dir.path()).join(LOG_FILE);
    let mut log = std::fs::read(&path).unwrap();
    log.extend(b"{\"prev\":\"12");
    std::fs::write(&path, log).unwrap();
    bench.agent.restart();
    assert!(matches!(bench.revert().await, Response::Reverted { .. }));
    bench.assert_taken_back();
    let files = std::fs::read_dir(agent_dir(dir.path())).unwrap();
    let aside =
        files.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().contains(".torn-")).count();
    assert_eq!(aside, 1);
}

#[tokio::test]
async fn renewing_keeps_one_run_alive_while_another_lapses() {
    let dir = tempfile::tempdir().unwrap();
    let mut silent = Bench::new(dir.path(), Die::Never);
    let spare = ComponentId("kube-scheduler-9".to_owned());
    let undo = Undo {
        injection: silent.id.clone(),
        on_lapse: OnLapse::Revert,
        ops: vec![UndoOp::Start { component: spare }],
        within_ns: WITHIN_NS,
    };
    let lively = "run-2".to_owned();
    let arm = Request::Arm { run: lively.clone(), undo, ttl_ns: SHORT_NS };
    assert_eq!(silent.ask(&arm).await, Response::Done);
    silent.arm(SHORT_NS).await;
    silent.inject().await;
    let waiting = async {
        loop {
            let renew = Request::Renew { run: lively.clone() };
            assert_eq!(silent.ask(&renew).await, Response::Done);
            let held = silent.held().await;
            if held.iter().any(|h| h.run == silent.run && by_lapse(&h.state)) {
                return held;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let held = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert!(held.iter().any(|h| h.run == lively && h.state == HeldState::Armed));
    silent.assert_taken_back();
    let discharge = Request::Discharge { run: lively, injection: silent.id.clone() };
    assert_eq!(silent.ask(&discharge).await, Response::Done);
}

#[tokio::test]
async fn an_undo_that_fails_says_why_stays_owed_and_succeeds_when_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(dir.path(), Die::Never);
    bench.arm(LONG_NS).await;
    bench.inject().await;
    FakeState::change(dir.path(), |state| state.refused.push("start etcd-1".to_owned()));
    match bench.revert().await {
        Response::Error { message } => assert!(message.contains("refused by the test"), "{message}"),
        other => panic!("{other:?}"),
    }
    bench.until(|state| matches!(state, HeldState::UndoFailed { .. })).await;
    assert!(!bench.state().is_whole());
    FakeState::change(dir.path(), |state| state.refused.clear());
    assert!(matches!(bench.revert().await, Response::Reverted { .. }));
    bench.assert_taken_back();
}

#[tokio::test]
async fn a_fake_cluster_is_attached_to_until_it_is_down_whoever_serves_it() {
    let root = tempfile::tempdir().unwrap();
    let provider = FakeProvider::new(root.path());
    let plan = PlannedCluster {
        encryption_at_rest: None,
        name: "main".to_owned(),
        provider: ProviderKind::Local,
        standing: None,
        versions: Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() },
        topology: Topology::default(),
        components: planned(),
    };
    provider.up("main", &plan, &|_| {}).await.unwrap();
    let cluster = provider.attach("main").await.unwrap();
    let none = Response::Injections { injections: Vec::new() };
    assert_eq!(cluster.agent(&Request::List).await.unwrap(), none);
    let dir = provider.dir("main");
    let first = agent_pid(&dir).expect("it answers");
    kill_agent(&dir);
    let ended = async {
        while agent_pid(&dir).is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    ensure_agent(&dir);
    assert_eq!(cluster.agent(&Request::List).await.unwrap(), none);
    assert_ne!(agent_pid(&dir), Some(first));
    provider.down("main", &|_| {}).await.unwrap();
    assert!(matches!(provider.attach("main").await, Err(ProviderError::NoSuchCluster { .. })));
}

#[tokio::test]
async fn a_cluster_directory_of_any_depth_has_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(120)).join("e".repeat(120));
    std::fs::create_dir_all(&deep).unwrap();
    let mut bench = Bench::new(&deep, Die::Never);
    assert_eq!(bench.held().await, []);
}

#[tokio::test]
async fn without_the_loss_it_is_not_taken_for_injected() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), Die::Never);
    let (control, view) = (FakeControl::new(dir.path()), FakeClusterView::new(dir.path()));
    let api = FakeApi::default();
    let context = FaultContext { control: &control, view: &view, api: &api };
    let verified = FAULT.verify_injected(context, bench.injection()).await;
    assert!(matches!(verified, Err(FaultError::NotSeen { .. })), "{verified:?}");
    FAULT.verify_ended(context, bench.injection()).await.unwrap();
    bench.inject().await;
    let ended = FAULT.verify_ended(context, bench.injection()).await;
    assert!(matches!(ended, Err(FaultError::NotSeen { .. })), "{ended:?}");
}

#[tokio::test]
async fn the_right_of_another_run_injects_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new(dir.path(), Die::Never);
    let (control, view) = (FakeControl::new(dir.path()), FakeClusterView::new(dir.path()));
    let api = FakeApi::default();
    let context = FaultContext { control: &control, view: &view, api: &api };
    let guard = guard_token("run-2", &control).await;
    let refused = FAULT.inject(context, &guard, bench.injection()).await;
    assert!(matches!(refused, Err(FaultError::NotAuthorized { .. })), "{refused:?}");
    assert_eq!(bench.state().operations, []);
}

struct StaticPods {
    _dir: tempfile::TempDir,
    pods: FakeStaticPods,
    api: FakeApi,
    ops: UndoOps,
}

impl StaticPods {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pods = FakeStaticPods::healthy(dir.path());
        let ops = UndoOps {
            control: Arc::new(pods.clone()),
            view: Arc::new(pods.clone()),
            api: Arc::new(FakeApi::default()),
        };
        Self { _dir: dir, pods, api: FakeApi::default(), ops }
    }

    fn context(&self) -> FaultContext<'_> {
        FaultContext { control: &self.pods, view: &self.pods, api: &self.api }
    }
}

#[tokio::test]
async fn nothing_in_the_loss_of_etcd_assumes_processes() {
    let node = StaticPods::new();
    let (id, targets) = (InjectionId("0-loseEtcd".to_owned()), [ComponentId("etcd-1".to_owned())]);
    let components = planned();
    let injection = injection("r", &id, &targets, &components);
    let before = node.pods.list().await.unwrap();
    let guard = guard_token(injection.run, &node.pods).await;
    FAULT.inject(node.context(), &guard, injection).await.unwrap();
    FAULT.verify_injected(node.context(), injection).await.unwrap();
    assert_eq!(node.pods.served(), None);
    execute(&FAULT.undo(&injection, WITHIN_NS), &node.ops, &SystemClock::new()).await.unwrap();
    FAULT.verify_ended(node.context(), injection).await.unwrap();
    assert_eq!(node.pods.served().as_deref(), Some(ORIGINAL));
    let after = node.pods.list().await.unwrap();
    assert!(
        before.iter().zip(&after).all(|(b, a)| b.component == a.component && b.incarnation != a.incarnation)
    );
}

#[tokio::test]
async fn original_data_under_api_servers_that_lived_on_is_not_taken_for_undone() {
    let node = StaticPods::new();
    let (id, targets) = (InjectionId("0-loseEtcd".to_owned()), [ComponentId("etcd-1".to_owned())]);
    let components = planned();
    let injection = injection("r", &id, &targets, &components);
    let guard = guard_token(injection.run, &node.pods).await;
    FAULT.inject(node.context(), &guard, injection).await.unwrap();
    // etcd comes up empty, and an API server is started on that.
    node.pods.start(&targets[0]).await.unwrap();
    let api_servers: Vec<_> = components.iter().filter(|c| c.role == Role::KubeApiserver).collect();
    for server in &api_servers {
        node.pods.stop(&server.component, quakeproof::component::StopMethod::Kill).await.unwrap();
        node.pods.start(&server.component).await.unwrap();
    }
    let mut careless = FAULT.undo(&injection, 300_000_000);
    careless.ops.retain(|op| match op {
        UndoOp::Stop { component, .. } | UndoOp::Start { component } => component.0.starts_with("etcd"),
        _ => true,
    });
    let outcome = execute(&careless, &node.ops, &SystemClock::new()).await;
    assert!(
        matches!(&outcome, Err(UndoError::NotInTime { last, .. }) if last.contains("differs")),
        "{outcome:?}"
    );
    assert!(
        matches!(node.pods.api_ready(&api_servers[0].component).await, Look::Holds(_)),
        "readyz is no proof"
    );
    execute(&FAULT.undo(&injection, WITHIN_NS), &node.ops, &SystemClock::new()).await.unwrap();
    assert_eq!(node.pods.served().as_deref(), Some(ORIGINAL));
}
