//! The state of a fake cluster: one JSON file, changed under a lock, replaced as a whole.

use quakeproof::component::{ComponentId, HostId, Role};
use quakeproof::plan::PlannedComponent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// Name of the file in the cluster's directory.
pub const STATE_FILE: &str = "fake-cluster.json";

/// Label of the data slot in use.
pub const IN_USE: &str = "inUse";

/// The timeline that every etcd member starts with.
pub const ORIGINAL: &str = "original";

/// What the timelines' names begin with that a snapshot was restored to.
pub const RESTORED: &str = "restored";

/// Revision of every timeline of a fake cluster: nobody writes to one.
pub const REVISION: u64 = 12;

/// Everything that a fault can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FakeState {
    /// Components, in no order of meaning.
    pub components: BTreeMap<ComponentId, FakeComponent>,
    /// Changes so far; numbers incarnations and timelines.
    pub changes: u64,
    /// Changes in the order in which they were made.
    pub operations: Vec<FakeOperation>,
    /// Operations that fail, as `start etcd-1`.
    pub refused: Vec<String>,
    /// Taken down.
    pub down: bool,
}

/// One component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FakeComponent {
    /// What it is for.
    pub role: Role,
    /// Where it runs.
    pub host: HostId,
    /// Runs, perhaps frozen.
    pub running: bool,
    /// Frozen.
    pub paused: bool,
    /// Changes with each start.
    pub incarnation: String,
    /// Slot label → timeline that lies in it.
    pub data: BTreeMap<String, String>,
    /// The timeline that an API server's watch cache was filled from.
    pub loaded: Option<String>,
}

/// A change and who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FakeOperation {
    /// Process that made it.
    pub pid: u32,
    /// As `stop etcd-1`.
    pub what: String,
}

/// Components of a fake cluster, in start order: two API servers, so that no test can
/// get away with restarting one.
pub fn planned() -> Vec<PlannedComponent> {
    let all = [
        ("etcd-1", Role::Etcd),
        ("kube-apiserver-1", Role::KubeApiserver),
        ("kube-apiserver-2", Role::KubeApiserver),
        ("kube-controller-manager-1", Role::KubeControllerManager),
        ("kube-scheduler-1", Role::KubeScheduler),
    ];
    let planned = all.into_iter().map(|(name, role)| PlannedComponent {
        component: ComponentId(name.to_owned()),
        role,
        host: HostId(format!("host-{name}")),
    });
    planned.collect()
}

impl FakeState {
    /// A cluster where everything runs on the original timeline.
    pub fn healthy(components: &[PlannedComponent]) -> Self {
        let fresh = |planned: &PlannedComponent| FakeComponent {
            role: planned.role,
            host: planned.host.clone(),
            running: true,
            paused: false,
            incarnation: format!("{}#0", planned.component),
            data: match planned.role {
                Role::Etcd => [(IN_USE.to_owned(), ORIGINAL.to_owned())].into(),
                _ => BTreeMap::new(),
            },
            loaded: (planned.role == Role::KubeApiserver).then(|| ORIGINAL.to_owned()),
        };
        Self {
            components: components.iter().map(|c| (c.component.clone(), fresh(c))).collect(),
            changes: 0,
            operations: Vec::new(),
            refused: Vec::new(),
            down: false,
        }
    }

    /// Makes the default cluster in `dir` unless there is one.
    pub fn ensure(dir: &Path) {
        if !dir.join(STATE_FILE).exists() {
            Self::healthy(&planned()).write(dir);
        }
    }

    /// What is on disk now.
    pub fn read(dir: &Path) -> Self {
        let bytes = fs::read(dir.join(STATE_FILE)).expect("the fake cluster has been made");
        serde_json::from_slice(&bytes).expect("only whole files are put in place")
    }

    /// Puts the state in place, whole.
    pub fn write(&self, dir: &Path) {
        let next = dir.join(format!("{STATE_FILE}.{}", std::process::id()));
        fs::create_dir_all(dir).expect("the cluster's directory can be made");
        fs::write(&next, serde_json::to_vec_pretty(self).expect("state is plain data"))
            .expect("there is space");
        fs::rename(next, dir.join(STATE_FILE)).expect("both are in one directory");
    }

    /// Changes the state; no two processes do at once.
    pub fn change<T>(dir: &Path, change: impl FnOnce(&mut Self) -> T) -> T {
        let lock = File::create(dir.join("fake-cluster.lock")).expect("the cluster's directory is writable");
        lock.lock().expect("the file system has locks");
        let mut state = Self::read(dir);
        let result = change(&mut state);
        state.write(dir);
        result
    }

    /// One component.
    pub fn component(&self, name: &str) -> &FakeComponent {
        &self.components[&ComponentId(name.to_owned())]
    }

    /// The timeline that a running etcd serves; the smallest member stands for all.
    pub fn served(&self) -> Option<&str> {
        let etcd = self.components.values().find(|c| c.role == Role::Etcd && c.running && !c.paused)?;
        etcd.data.get(IN_USE).map(String::as_str)
    }

    /// How often a component was started.
    pub fn starts(&self, component: &ComponentId) -> u64 {
        let what = format!("start {component}");
        self.operations.iter().filter(|operation| operation.what == what).count() as u64
    }

    /// The timelines that a member was started on, in order: the operations, replayed.
    pub fn started_on(&self, member: &str) -> Vec<String> {
        let mut data = BTreeMap::from([(IN_USE, ORIGINAL)]);
        let mut started = Vec::new();
        for operation in &self.operations {
            match operation.what.split(' ').collect::<Vec<_>>()[..] {
                ["start", m] if m == member => {
                    started.push((*data.entry(IN_USE).or_insert("empty")).to_owned());
                }
                ["restore", m, label] if m == member => drop(data.insert(label, RESTORED)),
                ["move", m, from, to] if m == member => {
                    let moved = data.remove(from).expect("only data that is there is moved");
                    data.insert(to, moved);
                }
                _ => {}
            }
        }
        started
    }

    /// Nothing is faulted: everything runs, and every API server serves what etcd has.
    pub fn is_whole(&self) -> bool {
        self.components.values().all(|c| c.running && !c.paused) && self.lies().is_empty()
    }

    /// API servers whose cache was filled from another timeline than etcd serves.
    pub fn lies(&self) -> Vec<&ComponentId> {
        let served = self.served();
        let api_servers = self.components.iter().filter(|(_, c)| c.role == Role::KubeApiserver);
        api_servers.filter(|(_, c)| !c.running || c.loaded.as_deref() != served).map(|(id, _)| id).collect()
    }
}
