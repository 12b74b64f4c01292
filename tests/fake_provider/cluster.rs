//! `Provider` and `Cluster` over fake clusters. `up` leaves the agent to itself: it
//! outlives the process that brought the cluster up, as a supervisor's child would.

use super::control::FakeControl;
use super::state::{FakeState, STATE_FILE};
use super::view::FakeClusterView;
use super::{Die, command};
use futures::future::BoxFuture;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quakeproof::agent::client::AgentClient;
use quakeproof::agent::protocol::{Request, Response};
use quakeproof::component::capability::Capability;
use quakeproof::component::network::{Dialer, DirectDialer, Endpoint, Identity};
use quakeproof::component::{ComponentControl, ComponentId, ControlError};
use quakeproof::plan::{Binding, PlannedCluster};
use quakeproof::provider::{Cluster, Progress, Provider, ProviderError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const PID_FILE: &str = "fake-agent.pid";

/// Fake clusters below one directory.
#[derive(Debug, Clone)]
pub struct FakeProvider {
    root: PathBuf,
}

impl FakeProvider {
    /// Clusters are directories of `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Directory of a cluster.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// Starts an agent that outlives this process, unless one is alive.
pub fn ensure_agent(dir: &Path) {
    if agent_pid(dir).is_none() {
        let mut child =
            command(dir, Die::Never).process_group(0).spawn().expect("the test binary runs itself");
        fs::write(dir.join(PID_FILE), child.id().to_string()).expect("there is space");
        // Reaped here for as long as this process lives, by init afterwards.
        thread::spawn(move || child.wait());
    }
}

/// Pid of the agent that [`ensure_agent`] started, if it is alive.
pub fn agent_pid(dir: &Path) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(dir.join(PID_FILE)).ok()?.trim().parse().ok()?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    // A zombie has no command line, and the number may be another process's by now.
    command.contains("fake_agent_process").then(|| Pid::from_raw(pid))
}

/// Kills that agent with SIGKILL; it is gone afterwards, and so are its locks.
pub fn kill_agent(dir: &Path) {
    let Some(pid) = agent_pid(dir) else { return };
    // It may be gone since it was looked for.
    let _ = kill(pid, Signal::SIGKILL);
    while !has_ended(pid) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Every thread has: the first may be a zombie, and the command line gone, while another
/// still holds what they share.
fn has_ended(pid: Pid) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    })
}

impl Provider for FakeProvider {
    fn capabilities(&self) -> BTreeSet<Capability> {
        [
            Capability::ControlComponents,
            Capability::ReplaceEtcdData,
            Capability::ReachEtcd,
            Capability::AddressApiServers,
            Capability::DeadMan,
        ]
        .into()
    }

    fn up<'a>(
        &'a self,
        name: &'a str,
        plan: &'a PlannedCluster,
        _: Progress<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>> {
        Box::pin(async move {
            let dir = self.dir(name);
            if dir.join(STATE_FILE).exists() {
                return Err(ProviderError::Exists { name: name.to_owned() });
            }
            FakeState::healthy(&plan.components).write(&dir);
            ensure_agent(&dir);
            Ok(Arc::new(FakeCluster::new(name, &dir)) as Arc<dyn Cluster>)
        })
    }

    fn attach<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>> {
        Box::pin(async move {
            let dir = self.dir(name);
            if !dir.join(STATE_FILE).exists() || FakeState::read(&dir).down {
                return Err(ProviderError::NoSuchCluster { name: name.to_owned() });
            }
            Ok(Arc::new(FakeCluster::new(name, &dir)) as Arc<dyn Cluster>)
        })
    }

    /// Leaves the file, so that a test can see in which state the cluster went down.
    fn down<'a>(&'a self, name: &'a str, _: Progress<'a>) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let dir = self.dir(name);
            if dir.join(STATE_FILE).exists() {
                kill_agent(&dir);
                FakeState::change(&dir, |state| state.down = true);
            }
            Ok(())
        })
    }
}

/// One fake cluster.
pub struct FakeCluster {
    name: String,
    dir: PathBuf,
}

impl FakeCluster {
    /// The cluster in `dir`.
    pub fn new(name: &str, dir: &Path) -> Self {
        Self { name: name.to_owned(), dir: dir.to_owned() }
    }

    /// Looks at it.
    pub fn view(&self) -> FakeClusterView {
        FakeClusterView::new(&self.dir)
    }
}

fn fake_identity(user: &str) -> Identity {
    Identity { user: user.to_owned(), cert_pem: String::new(), key_pem: String::new() }
}

impl Cluster for FakeCluster {
    fn name(&self) -> &str {
        &self.name
    }

    fn control(&self) -> Arc<dyn ComponentControl> {
        Arc::new(FakeControl::new(&self.dir))
    }

    fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::new(DirectDialer)
    }

    /// Port 1 of the loopback address: nobody listens.
    fn endpoint(&self, component: &ComponentId) -> Result<Endpoint, ProviderError> {
        let address = ([127, 0, 0, 1], 1).into();
        Ok(Endpoint { address, server_name: component.0.clone(), ca_pem: String::new() })
    }

    fn identity(&self, user: &str, _: &[&str]) -> Result<Identity, ProviderError> {
        Ok(fake_identity(user))
    }

    fn etcd_identity(&self) -> Result<Identity, ProviderError> {
        Ok(fake_identity("etcd-client"))
    }

    fn binding(&self) -> BoxFuture<'_, Result<Binding, ProviderError>> {
        Box::pin(async {
            let state = FakeState::read(&self.dir);
            let incarnations = state.components.iter().map(|(id, c)| (id.clone(), c.incarnation.clone()));
            Ok(Binding {
                cluster_uid: format!("fake-{}", self.name),
                cluster_name: self.name.clone(),
                ca_fingerprint: "0".repeat(64),
                reported_versions: BTreeMap::new(),
                binary_digests: BTreeMap::new(),
                addresses: BTreeMap::new(),
                incarnations: incarnations.collect(),
                ledger_namespace: String::new(),
                machine: BTreeMap::new(),
            })
        })
    }

    fn agent<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, ControlError>> {
        Box::pin(async move { AgentClient::new(&self.dir).ask(request).await })
    }

    fn private_file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn secret_files(&self) -> Vec<PathBuf> {
        vec![self.private_file("ca.key")]
    }

    fn agent_log(&self) -> Option<PathBuf> {
        None
    }

    fn logs(&self) -> Vec<(ComponentId, PathBuf)> {
        Vec::new()
    }
}
