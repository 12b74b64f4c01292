//! Carries out an undo: its operations in order, each idempotent, all within the
//! time that the undo declares. The first one that fails ends the attempt; the
//! next attempt begins with the first operation again.

use super::api::ApiAccess;
use super::objects;
use super::undo::{Undo, UndoOp};
use super::view::{ClusterView, Look};
use crate::clock::{Clock, MonoNs};
use crate::component::{ComponentControl, ComponentId, ComponentState, ControlError, DataSlot, Role};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Time between two looks at something that is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What undo operations work with.
#[derive(Clone)]
pub struct UndoOps {
    /// Stops, starts and moves.
    pub control: Arc<dyn ComponentControl>,
    /// Observes.
    pub view: Arc<dyn ClusterView>,
    /// Asks API servers.
    pub api: Arc<dyn ApiAccess>,
}

/// Why an undo failed.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndoError {
    /// Controlling a component failed.
    #[error("undo operation {number} ({op}): {source}")]
    Control {
        /// 1, 2, ….
        number: usize,
        /// In words.
        op: String,
        /// Why.
        source: ControlError,
    },
    /// What was awaited can't come any more.
    #[error("undo operation {number} ({op}): {reason}")]
    Hopeless {
        /// 1, 2, ….
        number: usize,
        /// In words.
        op: String,
        /// Why.
        reason: String,
    },
    /// The declared time was over.
    #[error(
        "undo operation {number} ({op}) was not done within {within:?} of the undo's begin; last seen: {last}"
    )]
    NotInTime {
        /// 1, 2, ….
        number: usize,
        /// In words.
        op: String,
        /// The undo's declared time.
        within: Duration,
        /// What the last look showed.
        last: String,
    },
}

/// Carries out `undo`.
///
/// # Errors
/// At the first operation that fails or is not done by the declared time.
pub async fn execute(undo: &Undo, ops: &UndoOps, clock: &dyn Clock) -> Result<(), UndoError> {
    let deadline = clock.mono().plus(undo.within_ns);
    for (index, op) in undo.ops.iter().enumerate() {
        let attempt = Attempt {
            ops,
            clock,
            deadline,
            number: index + 1,
            op: in_words(op),
            within: Duration::from_nanos(undo.within_ns),
        };
        attempt.carry_out(op).await?;
    }
    Ok(())
}

/// One operation with its deadline.
struct Attempt<'a> {
    ops: &'a UndoOps,
    clock: &'a dyn Clock,
    deadline: MonoNs,
    number: usize,
    op: String,
    within: Duration,
}

impl Attempt<'_> {
    async fn carry_out(&self, op: &UndoOp) -> Result<(), UndoError> {
        let control = &*self.ops.control;
        match op {
            UndoOp::Stop { component, how } => self.control(control.stop(component, *how)).await,
            UndoOp::Start { component } => self.control(control.start(component)).await,
            UndoOp::Resume { component } => self.control(control.resume(component)).await,
            UndoOp::BringDataBack { component, from, displaced } => {
                self.control(bring_data_back(control, component, from, displaced)).await
            }
            UndoOp::AwaitReady { component } => self.until_holds(|| self.ready(component)).await,
            UndoOp::AwaitListEqualsEtcd => {
                self.until_holds(|| async { Ok(self.ops.view.list_equals_etcd().await) }).await
            }
            UndoOp::RemoveObjects { servers, run, paths } => {
                self.until_holds(|| async { Ok(objects::remove(&*self.ops.api, servers, run, paths).await) })
                    .await
            }
            UndoOp::PutObjectBack { servers, run, path, object } => {
                let back = || objects::put_back(&*self.ops.api, servers, run, path, object);
                self.until_holds(|| async { Ok(back().await) }).await
            }
        }
    }

    async fn control<T>(&self, call: impl Future<Output = Result<T, ControlError>>) -> Result<T, UndoError> {
        match tokio::time::timeout(self.remaining(), call).await {
            Ok(done) => done.map_err(|source| self.control_error(source)),
            Err(_) => Err(self.not_in_time("the control call has not returned".to_owned())),
        }
    }

    /// Looks again and again until it holds. There is no event to await: what is
    /// looked at is another program's answer.
    async fn until_holds<F>(&self, look: impl Fn() -> F) -> Result<(), UndoError>
    where
        F: Future<Output = Result<Look, UndoError>>,
    {
        let mut last = "nothing yet".to_owned();
        loop {
            match tokio::time::timeout(self.remaining(), look()).await {
                Ok(Ok(Look::Holds(_))) => return Ok(()),
                Ok(Ok(other)) => last = other.to_string(),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(self.not_in_time(last)),
            }
            if self.remaining().is_zero() {
                return Err(self.not_in_time(last));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// etcd and API servers must answer; controller managers and schedulers must run,
    /// since whether they lead depends on leases that outlive a killed predecessor. One
    /// that ended by itself may be started again by whoever runs the cluster, as a kubelet
    /// or the embedded supervisor does, so it is waited for.
    async fn ready(&self, component: &ComponentId) -> Result<Look, UndoError> {
        let all = self.control(self.ops.control.list()).await?;
        let Some(status) = all.into_iter().find(|s| s.component == *component) else {
            return Err(self.hopeless(format!("there is no component `{component}` any more")));
        };
        match (status.state, status.role) {
            (ComponentState::Running, Role::Etcd) => Ok(self.ops.view.etcd_healthy(component).await),
            (ComponentState::Running, Role::KubeApiserver) => Ok(self.ops.view.api_ready(component).await),
            (ComponentState::Running, Role::KubeControllerManager | Role::KubeScheduler) => {
                Ok(Look::Holds(format!("{component} runs")))
            }
            (ComponentState::Exited { how }, Role::KubeControllerManager | Role::KubeScheduler) => {
                Ok(Look::Fails(format!("{component} ended by itself: {how}")))
            }
            (ComponentState::Exited { how }, _) => {
                Err(self.hopeless(format!("{component} ended by itself: {how}")))
            }
            (ComponentState::Stopped, _) => Ok(Look::Fails(format!("{component} is stopped"))),
            (ComponentState::Paused, _) => Ok(Look::Fails(format!("{component} is paused"))),
        }
    }

    fn remaining(&self) -> Duration {
        Duration::from_nanos(self.deadline.since(self.clock.mono()))
    }

    fn control_error(&self, source: ControlError) -> UndoError {
        UndoError::Control { number: self.number, op: self.op.clone(), source }
    }

    fn hopeless(&self, reason: String) -> UndoError {
        UndoError::Hopeless { number: self.number, op: self.op.clone(), reason }
    }

    fn not_in_time(&self, last: String) -> UndoError {
        UndoError::NotInTime { number: self.number, op: self.op.clone(), within: self.within, last }
    }
}

/// Two moves; a crash between them leaves the slot in use empty and `from` in place,
/// so doing it again finishes it. Data is never deleted and never moved over other data.
async fn bring_data_back(
    control: &dyn ComponentControl,
    component: &ComponentId,
    from: &DataSlot,
    displaced: &DataSlot,
) -> Result<(), ControlError> {
    if control.data_dir(component, from).await?.is_none() {
        return Ok(());
    }
    if control.data_dir(component, &DataSlot::InUse).await?.is_some() {
        let free = free_slot(control, component, displaced).await?;
        control.move_data(component, &DataSlot::InUse, &free).await?;
    }
    control.move_data(component, from, &DataSlot::InUse).await
}

/// `slot`, or the first of `slot-2`, `slot-3`, … that holds nothing: an earlier attempt
/// may have displaced data before another start made new data.
async fn free_slot(
    control: &dyn ComponentControl,
    component: &ComponentId,
    slot: &DataSlot,
) -> Result<DataSlot, ControlError> {
    let DataSlot::Aside(label) = slot else { return Ok(slot.clone()) };
    let mut candidate = slot.clone();
    for suffix in 2_u32.. {
        if control.data_dir(component, &candidate).await?.is_none() {
            break;
        }
        candidate = DataSlot::Aside(format!("{label}-{suffix}"));
    }
    Ok(candidate)
}

fn in_words(op: &UndoOp) -> String {
    match op {
        UndoOp::Stop { component, .. } => format!("stop {component}"),
        UndoOp::Start { component } => format!("start {component}"),
        UndoOp::Resume { component } => format!("resume {component}"),
        UndoOp::BringDataBack { component, .. } => format!("bring back the data of {component}"),
        UndoOp::AwaitReady { component } => format!("await that {component} is ready"),
        UndoOp::RemoveObjects { paths, .. } => format!("remove {}", paths.join(", ")),
        UndoOp::PutObjectBack { path, .. } => format!("put {path} back"),
        UndoOp::AwaitListEqualsEtcd => "await that LIST equals etcd's own state".to_owned(),
    }
}
