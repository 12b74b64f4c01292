//! The components: what each is doing, and how that changes.
//!
//! Controller managers and schedulers that exit by themselves are started again, see
//! [`super::restart`]; nobody else does that here, where there is no kubelet.

use super::children::{Children, Ended, pid_of};
use super::host::Host;
use super::restart::{BackOff, is_restarted};
use crate::clock::{Clock, SystemClock};
use crate::component::{ComponentId, ComponentState, ComponentStatus, ControlError, DataSlot, StopMethod};
use crate::durable::sync_parent;
use crate::provider::local::layout::{ClusterDir, ClusterSpec, ComponentSpec, is_safe_label};
use crate::provider::local::log_tail;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

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
        let life = Life {
            dir: self.dir.clone(),
            spec: spec.clone(),
            host: host.clone(),
            children: Arc::clone(&self.children),
            table: Arc::clone(&self.table),
        };
        let pid = life.spawn().map_err(|e| ControlError::Failed { what, reason: e.to_string() })?;
        entry.runs(pid);
        drop(entries);
        self.table.changed.notify_all();
        thread::spawn(move || life.follow(pid));
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
        drop(entries);
        self.table.changed.notify_all();
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
}

impl Entry {
    fn runs(&mut self, pid: i32) {
        self.starts += 1;
        self.doing = Doing::Running { pid, paused: false, stopping: false };
    }

    /// It ended by itself and nothing has happened since its `starts`-th start.
    fn is_down_since(&self, starts: u64) -> bool {
        self.starts == starts && matches!(self.doing, Doing::Exited { .. })
    }
}

/// A component from a start that was asked for until it is stopped or not started again.
struct Life {
    dir: ClusterDir,
    spec: ComponentSpec,
    host: Host,
    children: Arc<Children>,
    table: Arc<Table>,
}

impl Life {
    fn spawn(&self) -> io::Result<i32> {
        fs::create_dir_all(self.dir.host(&self.spec.host))?;
        let log = self.log()?;
        let mut command = program_of_cluster(&self.spec.program);
        command
            .args(&self.spec.args)
            .current_dir(self.dir.host(&self.spec.host))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let children = Arc::clone(&self.children);
        self.host.run(move || children.spawn(&mut command).map(|child| pid_of(&child)))
    }

    /// Waits for the end of the process, again and again for as long as it is started again.
    fn follow(self, mut pid: i32) {
        let component = &self.spec.component;
        let path = self.dir.log(&self.spec.host, component);
        let (clock, mut back_off) = (SystemClock::new(), BackOff::default());
        loop {
            let since = clock.mono();
            let ended = self.children.wait(pid);
            let ran = Duration::from_nanos(clock.mono().since(since));
            let Some(starts) = self.table.ended(component, ended, &path) else { return };
            if !is_restarted(self.spec.role) {
                return;
            }
            let mut pause = back_off.after(ran);
            self.note(&format!("{component} {ended}; it is started again in {} s", pause.as_secs()));
            pid = loop {
                if !self.table.stays_down(component, starts, pause) {
                    return;
                }
                match self.start_again(starts) {
                    Some(Ok(pid)) => break pid,
                    Some(Err(error)) => {
                        pause = back_off.after(Duration::ZERO);
                        self.note(&format!("{component} can't be started again: {error}"));
                    }
                    None => return,
                }
            };
        }
    }

    /// `None` when somebody has started or stopped it meanwhile.
    fn start_again(&self, starts: u64) -> Option<io::Result<i32>> {
        let mut entries = self.table.lock();
        let entry = entries.get_mut(&self.spec.component).filter(|e| e.is_down_since(starts))?;
        let started = self.spawn();
        if let Ok(pid) = &started {
            entry.runs(*pid);
        }
        drop(entries);
        self.table.changed.notify_all();
        Some(started)
    }

    /// A line in the component's own log, where whoever wonders will look.
    fn note(&self, text: &str) {
        let written = self.log().and_then(|mut log| writeln!(log, "quakeproof supervisor: {text}"));
        if let Err(error) = written {
            eprintln!("log of {}: {error}", self.spec.component);
        }
    }

    fn log(&self) -> io::Result<File> {
        File::options().create(true).append(true).open(self.dir.log(&self.spec.host, &self.spec.component))
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ComponentId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the end of a process. Returns how often it had been started when it ended
    /// by itself, `None` when it was told to.
    fn ended(&self, component: &ComponentId, ended: Ended, log: &Path) -> Option<u64> {
        let mut entries = self.lock();
        let entry = entries.get_mut(component)?;
        let asked = matches!(entry.doing, Doing::Running { stopping: true, .. });
        entry.doing = if asked {
            Doing::Stopped
        } else {
            Doing::Exited { how: format!("{ended}{}", log_tail::of(log)) }
        };
        let starts = entry.starts;
        drop(entries);
        self.changed.notify_all();
        (!asked).then_some(starts)
    }

    /// Waits for `pause`, or until somebody starts or stops the component. Whether nobody did.
    fn stays_down(&self, component: &ComponentId, starts: u64, pause: Duration) -> bool {
        let down = |entries: &mut BTreeMap<ComponentId, Entry>| {
            entries.get(component).is_some_and(|e| e.is_down_since(starts))
        };
        let (mut entries, _) =
            self.changed.wait_timeout_while(self.lock(), pause, down).unwrap_or_else(PoisonError::into_inner);
        down(&mut entries)
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
