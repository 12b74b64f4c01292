//! Components that are no processes: static pod manifests in a directory that a kubelet
//! would watch. Stopping moves the manifest out, an incarnation is a container id, data
//! are directories beside. Only what every `ComponentControl` promises is shared with
//! the other fake.

use super::state::{ORIGINAL, REVISION, planned};
use futures::future::BoxFuture;
use quakeproof::agent::view::{ClusterView, EtcdState, Look};
use quakeproof::component::{
    ComponentControl, ComponentId, ComponentState, ComponentStatus, ControlError, Controlled, DataSlot, Role,
    StopMethod, ToolOutput, ToolRun,
};
use quakeproof::plan::PlannedComponent;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A node's `manifests/`, `stopped/`, `containers/` and `data/`.
#[derive(Debug, Clone)]
pub struct FakeStaticPods {
    root: PathBuf,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> ControlError {
    move |e| ControlError::Failed { what: what.to_owned(), reason: e.to_string() }
}

fn unsupported(what: &str) -> ControlError {
    ControlError::Failed { what: what.to_owned(), reason: "a static pod can't be".to_owned() }
}

impl FakeStaticPods {
    /// A node on which everything runs on the original timeline.
    pub fn healthy(root: &Path) -> Self {
        let pods = Self { root: root.to_owned() };
        for folder in ["manifests", "stopped", "containers", "data"] {
            fs::create_dir_all(root.join(folder)).expect("the node's directory is writable");
        }
        for PlannedComponent { component, role, .. } in planned() {
            fs::write(pods.stopped(&component), "kind: Pod\n").expect("there is space");
            if role == Role::Etcd {
                let data = pods.data(&component, &DataSlot::InUse);
                fs::create_dir_all(&data).expect("the node's directory is writable");
                fs::write(data.join("timeline"), ORIGINAL).expect("there is space");
            }
            pods.run(&component).expect("nothing runs yet");
        }
        pods
    }

    fn manifest(&self, component: &ComponentId) -> PathBuf {
        self.root.join("manifests").join(format!("{component}.yaml"))
    }

    fn stopped(&self, component: &ComponentId) -> PathBuf {
        self.root.join("stopped").join(format!("{component}.yaml"))
    }

    /// `<container id> <timeline that an API server has loaded>`.
    fn container(&self, component: &ComponentId) -> PathBuf {
        self.root.join("containers").join(&component.0)
    }

    fn data(&self, component: &ComponentId, slot: &DataSlot) -> PathBuf {
        let name = match slot {
            DataSlot::InUse => "data".to_owned(),
            DataSlot::Aside(label) => format!("data.{label}"),
        };
        self.root.join("data").join(&component.0).join(name)
    }

    fn runs(&self, component: &ComponentId) -> bool {
        self.manifest(component).exists()
    }

    /// The timeline that etcd serves.
    pub fn served(&self) -> Option<String> {
        let etcd = ComponentId("etcd-1".to_owned());
        let timeline = self.data(&etcd, &DataSlot::InUse).join("timeline");
        self.runs(&etcd).then(|| fs::read_to_string(timeline).ok()).flatten()
    }

    fn loaded(&self, component: &ComponentId) -> Option<String> {
        let container = fs::read_to_string(self.container(component)).ok()?;
        let (_, timeline) = container.split_once(' ')?;
        self.runs(component).then(|| timeline.to_owned())
    }

    fn run(&self, component: &ComponentId) -> io::Result<()> {
        if self.runs(component) {
            return Ok(());
        }
        if component.0.starts_with("etcd") {
            let data = self.data(component, &DataSlot::InUse);
            fs::create_dir_all(&data)?;
            let timeline = data.join("timeline");
            if !timeline.exists() {
                fs::write(timeline, "empty")?;
            }
        }
        let id = uuid::Uuid::now_v7().simple().to_string();
        fs::write(self.container(component), format!("{id} {}", self.served().unwrap_or_default()))?;
        fs::rename(self.stopped(component), self.manifest(component))
    }
}

impl ComponentControl for FakeStaticPods {
    fn list(&self) -> Controlled<'_, Vec<ComponentStatus>> {
        Box::pin(async {
            let status = |planned: PlannedComponent| {
                let container = fs::read_to_string(self.container(&planned.component)).unwrap_or_default();
                let runs = self.runs(&planned.component);
                ComponentStatus {
                    component: planned.component,
                    role: planned.role,
                    host: planned.host,
                    state: if runs { ComponentState::Running } else { ComponentState::Stopped },
                    incarnation: container.split(' ').next().unwrap_or_default().to_owned(),
                }
            };
            Ok(planned().into_iter().map(status).collect())
        })
    }

    fn start<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async move { self.run(component).map_err(failed("move the manifest in")) })
    }

    fn stop<'a>(&'a self, component: &'a ComponentId, _: StopMethod) -> Controlled<'a, ()> {
        Box::pin(async move {
            if !self.runs(component) {
                return Ok(());
            }
            let moved = fs::rename(self.manifest(component), self.stopped(component));
            moved.map_err(failed("move the manifest out"))
        })
    }

    fn pause<'a>(&'a self, _: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async { Err(unsupported("pause")) })
    }

    fn resume<'a>(&'a self, _: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn move_data<'a>(
        &'a self,
        component: &'a ComponentId,
        from: &'a DataSlot,
        to: &'a DataSlot,
    ) -> Controlled<'a, ()> {
        Box::pin(async move {
            let (from, to) = (self.data(component, from), self.data(component, to));
            if !from.exists() && to.exists() {
                return Ok(());
            }
            if to.exists() || self.runs(component) {
                return Err(unsupported("move data while it runs or over other data"));
            }
            fs::rename(from, to).map_err(failed("move data"))
        })
    }

    fn data_dir<'a>(
        &'a self,
        component: &'a ComponentId,
        slot: &'a DataSlot,
    ) -> Controlled<'a, Option<PathBuf>> {
        Box::pin(async move { Ok(Some(self.data(component, slot)).filter(|path| path.exists())) })
    }

    fn run_tool<'a>(&'a self, _: &'a ToolRun) -> Controlled<'a, ToolOutput> {
        Box::pin(async { Err(unsupported("run a tool")) })
    }
}

impl ClusterView for FakeStaticPods {
    fn etcd_healthy<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move {
            match self.runs(member) {
                true => Look::Holds("a linearizable range was answered".to_owned()),
                false => Look::Fails("connection refused".to_owned()),
            }
        })
    }

    fn etcd_state<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Result<EtcdState, String>> {
        Box::pin(async move {
            match self.runs(member) {
                true => Ok(EtcdState { revision: REVISION, raft_term: 2 }),
                false => Err("connection refused".to_owned()),
            }
        })
    }

    fn api_ready<'a>(&'a self, server: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move {
            match self.loaded(server) {
                Some(_) if self.served().is_some() => Look::Holds("/readyz is ok".to_owned()),
                _ => Look::Fails("/readyz is not ok".to_owned()),
            }
        })
    }

    fn list_equals_etcd(&self) -> BoxFuture<'_, Look> {
        Box::pin(async {
            let served = self.served();
            let api_servers = planned().into_iter().filter(|c| c.role == Role::KubeApiserver);
            match api_servers.map(|c| c.component).find(|c| self.loaded(c) != served) {
                None => Look::Holds("every LIST equals etcd".to_owned()),
                Some(server) => Look::Fails(format!("LIST of {server} differs from etcd")),
            }
        })
    }
}
