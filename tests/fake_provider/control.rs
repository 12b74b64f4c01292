//! `ComponentControl` over a fake cluster's file.

use super::kept_snapshot;
use super::state::{FakeComponent, FakeOperation, FakeState, IN_USE, RESTORED};
use quakeproof::component::{
    ComponentControl, ComponentId, ComponentState, ComponentStatus, ControlError, Controlled, DataSlot, Role,
    StopMethod, Tool, ToolOutput, ToolRun,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Controls a fake cluster from whatever process.
#[derive(Clone)]
pub struct FakeControl {
    dir: PathBuf,
    /// Called after each change.
    changed: Arc<dyn Fn() + Send + Sync>,
}

pub fn label(slot: &DataSlot) -> &str {
    match slot {
        DataSlot::InUse => IN_USE,
        DataSlot::Aside(label) => label,
    }
}

fn failed(what: &str, reason: &str) -> ControlError {
    ControlError::Failed { what: what.to_owned(), reason: reason.to_owned() }
}

/// Name of a file above the cluster's directory that [`snapshot`] may lie in already: a process that may write
/// only small files can link it.
pub const UNPACKED: &str = "snapshot.db";

/// A snapshot that a real etcd made, of revision [`super::state::REVISION`].
pub fn snapshot() -> Vec<u8> {
    kept_snapshot::unpacked("etcd-3.7.3.db")
}

impl FakeControl {
    /// Controls the cluster in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self::observed(dir, || {})
    }

    /// As [`Self::new`]; `changed` is called after each change.
    pub fn observed(dir: &Path, changed: impl Fn() + Send + Sync + 'static) -> Self {
        Self { dir: dir.to_owned(), changed: Arc::new(changed) }
    }

    fn change<T>(
        &self,
        what: String,
        component: &ComponentId,
        change: impl FnOnce(&mut FakeComponent, Facts) -> Result<T, ControlError>,
    ) -> Result<T, ControlError> {
        let result = FakeState::change(&self.dir, |state| {
            if state.refused.contains(&what) {
                return Err(failed(&what, "refused by the test"));
            }
            let facts = Facts { change: state.changes + 1, served: state.served().map(str::to_owned) };
            let known = state.components.keys().map(|c| c.0.as_str()).collect::<Vec<_>>().join(", ");
            let found = state.components.get_mut(component).ok_or_else(|| ControlError::NoSuchComponent {
                component: component.clone(),
                cluster: "fake".to_owned(),
                known,
            })?;
            let before = found.clone();
            let done = change(found, facts)?;
            if *found != before {
                state.changes += 1;
                state.operations.push(FakeOperation { pid: std::process::id(), what });
            }
            Ok((done, state.components[component] != before))
        });
        let (done, changed) = result?;
        if changed {
            (self.changed)();
        }
        Ok(done)
    }
}

/// What a change may rest on.
struct Facts {
    change: u64,
    served: Option<String>,
}

impl ComponentControl for FakeControl {
    fn list(&self) -> Controlled<'_, Vec<ComponentStatus>> {
        Box::pin(async {
            let status = |(component, c): (ComponentId, FakeComponent)| ComponentStatus {
                component,
                role: c.role,
                host: c.host,
                state: match (c.running, c.paused) {
                    (true, false) => ComponentState::Running,
                    (true, true) => ComponentState::Paused,
                    (false, _) => ComponentState::Stopped,
                },
                incarnation: c.incarnation,
            };
            Ok(FakeState::read(&self.dir).components.into_iter().map(status).collect())
        })
    }

    fn start<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async move {
            self.change(format!("start {component}"), component, |c, facts| {
                if c.running {
                    return Ok(());
                }
                c.running = true;
                c.paused = false;
                c.incarnation = format!("{component}#{}", facts.change);
                if c.role == Role::Etcd {
                    c.data.entry(IN_USE.to_owned()).or_insert_with(|| format!("empty-{}", facts.change));
                }
                if c.role == Role::KubeApiserver {
                    c.loaded = facts.served;
                }
                Ok(())
            })
        })
    }

    fn stop<'a>(&'a self, component: &'a ComponentId, _: StopMethod) -> Controlled<'a, ()> {
        Box::pin(async move {
            self.change(format!("stop {component}"), component, |c, _| {
                c.running = false;
                c.paused = false;
                c.loaded = None;
                Ok(())
            })
        })
    }

    fn pause<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async move {
            self.change(format!("pause {component}"), component, |c, _| {
                c.paused = c.running;
                Ok(())
            })
        })
    }

    fn resume<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(async move {
            self.change(format!("resume {component}"), component, |c, _| {
                c.paused = false;
                Ok(())
            })
        })
    }

    fn move_data<'a>(
        &'a self,
        component: &'a ComponentId,
        from: &'a DataSlot,
        to: &'a DataSlot,
    ) -> Controlled<'a, ()> {
        let (from, to) = (label(from), label(to));
        Box::pin(async move {
            let what = format!("move {component} {from} {to}");
            self.change(what.clone(), component, |c, _| {
                if c.running {
                    return Err(failed(&what, "it runs"));
                }
                match (c.data.contains_key(from), c.data.contains_key(to)) {
                    (true, true) => Err(failed(&what, "there is data in the target")),
                    (false, false) => Err(failed(&what, "there is no such data")),
                    (false, true) => Ok(()),
                    (true, false) => {
                        let timeline = c.data.remove(from).expect("it is there");
                        c.data.insert(to.to_owned(), timeline);
                        Ok(())
                    }
                }
            })
        })
    }

    fn data_dir<'a>(
        &'a self,
        component: &'a ComponentId,
        slot: &'a DataSlot,
    ) -> Controlled<'a, Option<PathBuf>> {
        Box::pin(async move {
            let state = FakeState::read(&self.dir);
            let there = state.components.get(component).is_some_and(|c| c.data.contains_key(label(slot)));
            Ok(there.then(|| self.dir.join(format!("{component}.{}", label(slot)))))
        })
    }

    /// Knows `etcdctl snapshot save FILE`, and `etcdutl snapshot restore FILE --data-dir {data:LABEL}`.
    /// What is saved is always the same snapshot of a real etcd.
    fn run_tool<'a>(&'a self, run: &'a ToolRun) -> Controlled<'a, ToolOutput> {
        Box::pin(async move {
            let answer =
                |code, stdout: String, stderr: &str| ToolOutput { code, stdout, stderr: stderr.to_owned() };
            let words: Vec<&str> = run.args.iter().map(String::as_str).collect();
            let after = |word: &str| words.iter().skip_while(|w| **w != word).nth(1).copied();
            let file = |named: &str| {
                let name = named.strip_prefix("{file:").and_then(|n| n.strip_suffix('}'));
                name.map_or_else(|| PathBuf::from(named), |n| self.dir.join(n))
            };
            if let (Tool::Etcdctl, Some(saved)) = (run.tool, after("save")) {
                if FakeState::read(&self.dir).served().is_none() {
                    return Ok(answer(1, String::new(), "etcd does not answer"));
                }
                let unpacked = self.dir.ancestors().map(|above| above.join(UNPACKED)).find(|f| f.exists());
                match unpacked {
                    Some(unpacked) => std::fs::hard_link(unpacked, file(saved)),
                    None => std::fs::write(file(saved), snapshot()),
                }
                .map_err(|e| failed("save a snapshot", &e.to_string()))?;
                return Ok(answer(0, String::new(), ""));
            }
            let data =
                words.iter().find_map(|w| w.split_once("{data:").map(|(_, rest)| rest.trim_end_matches('}')));
            if let (Tool::Etcdutl, Some(restored), Some(label)) = (run.tool, after("restore"), data) {
                if !file(restored).exists() {
                    return Ok(answer(1, String::new(), "no file"));
                }
                let what = format!("restore {} {label}", run.component);
                return self.change(what, &run.component, |c, facts| {
                    if c.data.contains_key(label) {
                        return Ok(answer(1, String::new(), "data-dir not empty"));
                    }
                    c.data.insert(label.to_owned(), format!("{RESTORED}-{}", facts.change));
                    Ok(answer(0, String::new(), ""))
                });
            }
            Err(failed("run a tool", &format!("the fake does not know {words:?}")))
        })
    }
}
