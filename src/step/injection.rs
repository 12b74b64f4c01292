//! The life of one injection: arm, inject, verify, end, verify.
//!
//! Every effect is preceded by a durable record of how it is taken back, in the
//! journal and with the agent.

use crate::agent::protocol::{Request, Response};
use crate::agent::undo::{InjectionId, Undo};
use crate::agent::view::Look;
use crate::component::{ComponentId, ControlError, Role};
use crate::drill::spec::Step;
use crate::fault::{Fault, FaultContext, Injection};
use crate::journal::entry::{Fact, JournalEvent};
use crate::plan::{Plan, PlannedStep};
use crate::step::undo::settle_one;
use crate::step::{self, StepContext, StepError};
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks at a condition of the cluster that can only be polled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Limit of an undo that the plan says nothing about.
const UNDO_WITHIN_NS: u64 = 60_000_000_000;
/// How long an injected fault may take to be seen, or an ended one to be gone.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

/// An injection that is not ended yet.
pub struct OpenInjection {
    /// Which.
    pub id: InjectionId,
    /// Index of the step that made it.
    pub step: usize,
    /// Its kind of fault.
    pub fault: Arc<dyn Fault>,
    /// What it hit.
    pub targets: Vec<ComponentId>,
    /// Declared limit of its undo.
    pub within_ns: u64,
    /// Objects of the API that it changes, as they were.
    pub before: Vec<Value>,
}

impl OpenInjection {
    /// As the fault sees it.
    #[must_use]
    pub fn injection<'a>(&'a self, ctx: &'a StepContext) -> Injection<'a> {
        Injection {
            run: &ctx.run,
            id: &self.id,
            targets: &self.targets,
            components: &ctx.plan.cluster.components,
            closed_by: closing_step(&ctx.plan, self.step),
            before: &self.before,
        }
    }
}

/// The step that is planned to end the fault of step `index`.
fn closing_step(plan: &Plan, index: usize) -> Option<&Step> {
    let fault = plan.steps.get(index)?.fault.as_ref()?;
    Some(&plan.steps.get(fault.closed_by?)?.step)
}

impl std::fmt::Debug for OpenInjection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenInjection({})", self.id)
    }
}

/// Arms, injects and verifies the fault of a step.
///
/// # Errors
/// Before `Injecting` nothing has happened to the cluster; after it, the caller
/// has to have the agent undo what is armed.
pub async fn inject(planned: &PlannedStep, ctx: &mut StepContext) -> Result<(), StepError> {
    let fault = planned
        .step
        .kind()
        .fault()
        .ok_or_else(|| StepError::NotSeen(format!("step {} injects no fault", planned.index)))?;
    let id = step::injection_id(planned);
    note_revision_before(ctx).await?;
    let within_ns = planned.fault.as_ref().map_or(UNDO_WITHIN_NS, |fault| fault.undo_within_ns);
    let plan = Arc::clone(&ctx.plan);
    let run = ctx.run.clone();
    let control = ctx.cluster.control();
    let view = ctx.view.clone();
    let api = ctx.api();
    let fault_context = FaultContext { control: control.as_ref(), view: view.as_ref(), api: &api };
    let before = fault.before(fault_context, &planned.targets).await?;
    let injection = Injection {
        run: &run,
        id: &id,
        targets: &planned.targets,
        components: &plan.cluster.components,
        closed_by: closing_step(&plan, planned.index),
        before: &before,
    };
    let undo = fault.undo(&injection, within_ns);
    let ttl_ns = ctx.plan.limits.dead_man.as_ns();
    let armed = JournalEvent::UndoArmed { undo: undo.clone(), targets: planned.targets.clone(), ttl_ns };
    ctx.journalist.record(armed).await?;
    ctx.memory.open.push(OpenInjection {
        id: id.clone(),
        step: planned.index,
        fault: Arc::clone(&fault),
        targets: planned.targets.clone(),
        within_ns,
        before: before.clone(),
    });
    ask_agent(ctx, &Request::Arm { run: ctx.run.clone(), undo, ttl_ns }).await?;
    ctx.go_on()?;
    let statuses = ctx.cluster.control().list().await?;
    ctx.guard.recheck(planned.index, &planned.targets, &ctx.memory.incarnations, &statuses)?;
    let injecting = JournalEvent::Injecting {
        injection: id.clone(),
        kind: fault.kind().to_owned(),
        targets: planned.targets.clone(),
        stop_method: fault.stop_method(),
    };
    ctx.journalist.record(injecting).await?;
    still_leased(ctx).await?;
    fault.inject(fault_context, &ctx.guard, injection).await?;
    ctx.journalist.record(JournalEvent::Injected { injection: id.clone() }).await?;
    let observation = await_observation(ctx, || fault.verify_injected(fault_context, injection)).await?;
    ctx.journalist.record(JournalEvent::InjectionVerified { injection: id, observation }).await?;
    Ok(())
}

/// The revision that the old timeline has reached, as late as possible before the loss.
async fn note_revision_before(ctx: &mut StepContext) -> Result<(), StepError> {
    let Some(member) = ctx.components(Role::Etcd).into_iter().next() else { return Ok(()) };
    let state = ctx.view.etcd_state(&member).await.map_err(StepError::NotSeen)?;
    let at_ns = ctx.clock.mono();
    ctx.fact(Fact::RevisionBefore { revision: state.revision, raft_term: state.raft_term, at_ns }).await?;
    Ok(())
}

/// Amends the undo of every open injection to roll forward, durably. From here
/// on the old data never comes back into use.
///
/// # Errors
/// When it could not be made durable; nothing irreversible may follow.
pub async fn point_of_no_return(ctx: &mut StepContext) -> Result<(), StepError> {
    let seen = ctx.journalist.observations.borrow().max_revision();
    ctx.memory.lost_at_revision = ctx.memory.lost_at_revision.max(seen);
    let amended: Vec<Undo> = ctx
        .memory
        .open
        .iter()
        .filter_map(|open| open.fault.roll_forward(&open.injection(ctx), open.within_ns))
        .collect();
    for undo in amended {
        let reason =
            "the restored etcd is about to be started: going back would be a second rollback".to_owned();
        ctx.journalist.record(JournalEvent::UndoAmended { undo: undo.clone(), reason }).await?;
        ask_agent(ctx, &Request::Amend { run: ctx.run.clone(), undo }).await?;
    }
    Ok(())
}

/// Notes that a step has ended the injections whose end it is, and verifies that their disturbance is gone.
///
/// # Errors
/// When the disturbance is still seen.
pub async fn ended_by(planned: &PlannedStep, ctx: &mut StepContext) -> Result<(), StepError> {
    for open in ctx.memory.take_open(|open| open.fault.closed_by(&planned.step)) {
        let ended = JournalEvent::Ended { injection: open.id.clone(), by_step: planned.index };
        ctx.journalist.record(ended).await?;
        verify_end(&open, ctx).await?;
    }
    Ok(())
}

/// Has the agent undo every open injection of a kind, and verifies that the disturbance is gone.
///
/// # Errors
/// When the undo failed, or the disturbance is still seen.
pub async fn end_by_undo(planned: &PlannedStep, kind: &str, ctx: &mut StepContext) -> Result<(), StepError> {
    for open in ctx.memory.take_open(|open| open.fault.kind() == kind) {
        let held = match ctx.cluster.agent(&Request::List).await? {
            Response::Injections { injections } => {
                injections.into_iter().find(|h| h.run == ctx.run && h.injection == open.id)
            }
            _ => None,
        };
        let cause = by_step(planned.index);
        let (cluster, journalist) = (ctx.cluster.as_ref(), &ctx.journalist);
        let failed = settle_one(&ctx.run, &open.id, held.as_ref(), cluster, journalist, &cause).await?;
        if let Some(reason) = failed {
            return Err(ControlError::Failed { what: format!("end {}", open.id), reason }.into());
        }
        verify_end(&open, ctx).await?;
    }
    Ok(())
}

/// Cause of an undo that a step asked for, as the journal has it.
#[must_use]
pub fn by_step(step: usize) -> String {
    format!("step {step}")
}

async fn verify_end(open: &OpenInjection, ctx: &StepContext) -> Result<(), StepError> {
    let control = ctx.cluster.control();
    let view = ctx.view.clone();
    let api = ctx.api();
    let fault_context = FaultContext { control: control.as_ref(), view: view.as_ref(), api: &api };
    let observation =
        await_observation(ctx, || open.fault.verify_ended(fault_context, open.injection(ctx))).await?;
    ctx.journalist.record(JournalEvent::EndVerified { injection: open.id.clone(), observation }).await?;
    Ok(())
}

/// Asks right before an effect whether the agent still holds every lease of the run: a
/// runner that stood still for longer must not disturb what was undone without it.
///
/// # Errors
/// When a lease has lapsed, or the agent can't be asked.
pub async fn still_leased(ctx: &StepContext) -> Result<(), StepError> {
    ask_agent(ctx, &Request::Renew { run: ctx.run.clone() }).await
}

async fn ask_agent(ctx: &StepContext, request: &Request) -> Result<(), StepError> {
    match ctx.cluster.agent(request).await? {
        Response::Error { message } => {
            Err(ControlError::Failed { what: "the agent refused".to_owned(), reason: message }.into())
        }
        _ => Ok(()),
    }
}

/// Looks until an observation succeeds; its last failure is the error.
///
/// # Errors
/// That, or that somebody asked the run to end.
pub async fn await_observation<'a, E, Fut>(
    ctx: &StepContext,
    look: impl Fn() -> Fut,
) -> Result<String, StepError>
where
    E: std::fmt::Display,
    Fut: Future<Output = Result<String, E>> + 'a,
{
    let deadline = tokio::time::Instant::now() + SEEN_WITHIN;
    loop {
        ctx.go_on()?;
        match look().await {
            Ok(observation) => return Ok(observation),
            Err(error) if tokio::time::Instant::now() >= deadline => {
                return Err(StepError::NotSeen(error.to_string()));
            }
            Err(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

/// Looks until it holds, at most for `within`.
///
/// # Errors
/// What the last look showed, or that somebody asked the run to end.
pub async fn await_look<Fut>(
    ctx: &StepContext,
    within: Duration,
    look: impl Fn() -> Fut,
) -> Result<(), StepError>
where
    Fut: Future<Output = Look>,
{
    let deadline = tokio::time::Instant::now() + within;
    loop {
        ctx.go_on()?;
        match look().await {
            Look::Holds(_) => return Ok(()),
            other if tokio::time::Instant::now() >= deadline => {
                return Err(StepError::NotSeen(other.to_string()));
            }
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}
