//! The components: what each is doing, and how that changes.

use super::children::{Children, Ended, pid_of};
use super::host::Host;
use crate::durable::sync_parent;
use crate::provider::component::{
    ComponentId, ComponentState, ComponentStatus, ControlError, DataSlot, StopMethod,
};
use crate::provider::local::layout::{ClusterDir, ClusterSpec, ComponentSpec, is_safe_label};
use crate::provider::local::log_tail;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Every component of the cluster.
pub struct Components {
    dir: ClusterDir,
    cluster: String,
    specs: Vec<ComponentSpec>,
    children: Arc<Children>,
    table: Arc<Table>,
}

#[derive(Default)]
struct Table {
    entries: Mutex<BTreeMap<ComponentId, Entry>>,
    changed: Condvar,
}

#[derive(Default)]
struct Entry {
    /// How often the component has been started.
    starts: u64,
    doing: Doing,
}

#[derive(Default)]
enum Doing {
    #[default]
    Stopped,
    Running {
        pid: i32,
        paused: bool,
        stopping: bool,
    },
    Exited {
        how: String,
    },
}

impl Components {
    /// All components of `spec`, none started.
    #[must_use]
    pub fn new(dir: &ClusterDir, spec: &ClusterSpec, children: &Arc<Children>) -> Self {
        let entries = spec.components.iter().map(|c| (c.component.clone(), Entry::default())).collect();
        Self {
            dir: dir.clone(),
            cluster: spec.name.clone(),
            specs: spec.components.clone(),
            children: Arc::clone(children),
            table: Arc::new(Table { entries: Mutex::new(entries), changed: Condvar::new() }),
        }
    }

    /// What a component was made from.
    ///
    /// # Errors
    /// When there is no such component.
    pub fn spec(&self, component: &ComponentId) -> Result<&ComponentSpec, ControlError> {
        self.specs.iter().find(|s| &s.component == component).ok_or_else(|| ControlError::NoSuchComponent {
            component: component.clone(),
            cluster: self.cluster.clone(),
            known: self.specs.iter().map(|s| s.component.0.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// What every component is doing.
    #[must_use]
    pub fn list(&self) -> Vec<ComponentStatus> {
        let entries = self.table.lock();
        let status = |spec: &ComponentSpec| {
            let entry = entries.get(&spec.component)?;
            let pid = if let Doing::Running { pid, .. } = entry.doing { pid } else { 0 };
            let state = match &entry.doing {
                Doing::Stopped => ComponentState::Stopped,
                Doing::Running { paused: true, .. } => ComponentState::Paused,
                Doing::Running { .. } => ComponentState::Running,
                Doing::Exited { how } => ComponentState::Exited { how: how.clone() },
            };
            Some(ComponentStatus {
                component: spec.component.clone(),
                role: spec.role,
                host: spec.host.clone(),
                state,
                incarnation: format!("{}:{pid}", entry.starts),
            })
        };
        self.specs.iter().filter_map(status).collect()
    }

    /// Starts a component unless it runs.
    ///
    /// # Errors
    /// When it is unknown, being stopped, or can't be executed.
    pub fn start(&self, component: &ComponentId, host: &Host) -> Result<(), ControlError> {
        let spec = self.spec(component)?;
        let what = format!("start {component}");
        let mut entries = self.table.lock();
        let entry = entries.entry(component.clone()).or_default();
        match entry.doing {
            Doing::Running { stopping: true, .. } => {
                return Err(ControlError::Failed { what, reason: "it is being stopped".to_owned() });
            }
            Doing::Running { .. } => return Ok(()),
            Doing::Stopped | Doing::Exited { .. } => {}
        }
        let pid = self.spawn(spec, host).map_err(|e| ControlError::Failed { what, reason: e.to_string() })?;
        entry.starts += 1;
        entry.doing = Doing::Running { pid, paused: false, stopping: false };
        drop(entries);
        self.watch(component.clone(), self.dir.log(&spec.host, component), pid);
        Ok(())
    }

    /// Stops a component and returns once it is gone.
    ///
    /// # Errors
    /// When it is unknown.
    pub fn stop(&self, component: &ComponentId, how: StopMethod) -> Result<(), ControlError> {
        self.spec(component)?;
        let mut entries = self.table.lock();
        let Some(entry) = entries.get_mut(component) else { return Ok(()) };
        if let Doing::Running { pid, paused, stopping } = &mut entry.doing {
            *stopping = true;
            match how {
                StopMethod::Kill => self.children.signal(*pid, Signal::SIGKILL),
                StopMethod::Terminate => self.children.signal(*pid, Signal::SIGTERM),
            }
            if *paused {
                // A frozen process takes no notice of SIGTERM until it goes on.
                self.children.signal(*pid, Signal::SIGCONT);
            }
        }
        let running = |entries: &mut BTreeMap<ComponentId, Entry>| {
            entries.get(component).is_some_and(|e| matches!(e.doing, Doing::Running { .. }))
        };
        entries = self.table.changed.wait_while(entries, running).unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get_mut(component) {
            entry.doing = Doing::Stopped;
        }
        Ok(())
    }

    /// Freezes a component.
    ///
    /// # Errors
    /// When it is unknown or does not run.
    pub fn pause(&self, component: &ComponentId) -> Result<(), ControlError> {
        self.freeze(component, true)
    }

    /// Lets a component go on; nothing happens when it is not frozen.
    ///
    /// # Errors
    /// When it is unknown or does not run.
    pub fn resume(&self, component: &ComponentId) -> Result<(), ControlError> {
        self.freeze(component, false)
    }

    fn freeze(&self, component: &ComponentId, frozen: bool) -> Result<(), ControlError> {
        self.spec(component)?;
        let mut entries = self.table.lock();
        match entries.get_mut(component).map(|e| &mut e.doing) {
            Some(Doing::Running { pid, paused, .. }) => {
                self.children.signal(*pid, if frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
                *paused = frozen;
                Ok(())
            }
            _ => Err(ControlError::Failed {
                what: format!("{} {component}", if frozen { "pause" } else { "resume" }),
                reason: "it does not run".to_owned(),
            }),
        }
    }

    /// Path of a data slot, `None` when there is nothing.
    ///
    /// # Errors
    /// When the component is unknown or the label unfit for a file name.
    pub fn data_dir(
        &self,
        component: &ComponentId,
        slot: &DataSlot,
    ) -> Result<Option<PathBuf>, ControlError> {
        let path = self.slot(component, slot)?;
        Ok(path.exists().then_some(path))
    }

    /// Path of a data slot, whether there is something or not.
    ///
    /// # Errors
    /// When the component is unknown or the label unfit for a file name.
    pub fn slot(&self, component: &ComponentId, slot: &DataSlot) -> Result<PathBuf, ControlError> {
        let spec = self.spec(component)?;
        match slot {
            DataSlot::Aside(label) if !is_safe_label(label) => Err(ControlError::Failed {
                what: format!("find data of {component}"),
                reason: format!(
                    "{label:?} can't be part of a file name; use letters, digits, `-`, `_` and `.`"
                ),
            }),
            _ => Ok(self.dir.data(&spec.host, slot)),
        }
    }

    /// Moves a stopped component's data, durably.
    ///
    /// # Errors
    /// When it runs, there is nothing to move, or the target is taken.
    pub fn move_data(
        &self,
        component: &ComponentId,
        from: &DataSlot,
        to: &DataSlot,
    ) -> Result<(), ControlError> {
        let (source, target) = (self.slot(component, from)?, self.slot(component, to)?);
        let refused =
            |reason: String| ControlError::Failed { what: format!("move data of {component}"), reason };
        // Held throughout, so that nobody starts the component meanwhile.
        let entries = self.table.lock();
        if source == target || (!source.exists() && target.exists()) {
            return Ok(());
        }
        if entries.get(component).is_some_and(|e| matches!(e.doing, Doing::Running { .. })) {
            return Err(refused("it runs; stop it first".to_owned()));
        }
        if !source.exists() {
            return Err(refused(format!("there is nothing at {}", source.display())));
        }
        if target.exists() {
            return Err(refused(format!("{} is taken", target.display())));
        }
        let moved = fs::rename(&source, &target).and_then(|()| sync_parent(&target));
        drop(entries);
        moved.map_err(|e| refused(e.to_string()))
    }

    fn spawn(&self, spec: &ComponentSpec, host: &Host) -> io::Result<i32> {
        fs::create_dir_all(self.dir.host(&spec.host))?;
        let log =
            File::options().create(true).append(true).open(self.dir.log(&spec.host, &spec.component))?;
        let mut command = program_of_cluster(&spec.program);
        command
            .args(&spec.args)
            .current_dir(self.dir.host(&spec.host))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let children = Arc::clone(&self.children);
        host.run(move || children.spawn(&mut command).map(|child| pid_of(&child)))
    }

    fn watch(&self, component: ComponentId, log: PathBuf, pid: i32) {
        let (table, children) = (Arc::clone(&self.table), Arc::clone(&self.children));
        thread::spawn(move || {
            let ended = children.wait(pid);
            table.ended(&component, ended, &log);
        });
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ComponentId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, component: &ComponentId, ended: Ended, log: &Path) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(component) {
            let asked = matches!(entry.doing, Doing::Running { stopping: true, .. });
            entry.doing = if asked {
                Doing::Stopped
            } else {
                Doing::Exited { how: format!("{ended}{}", log_tail::of(log)) }
            };
        }
        self.changed.notify_all();
    }
}

/// A command with none of the launcher's environment: a proxy or an `ETCD_…`
/// variable of whoever made the cluster would change how it behaves.
#[must_use]
pub fn program_of_cluster(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}
