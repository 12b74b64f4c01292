//! What a step is to the rest of the tool. Each kind has a file of its own: its spec, what may stand before it, and
//! how it is carried out. Faults are steps too; theirs are in `fault/`.

use super::{StepContext, StepError};
use crate::component::ComponentId;
use crate::component::capability::Capability;
use crate::drill::lint::{Lint, Place, SoFar};
use crate::fault::Fault;
use crate::plan::{PlannedComponent, PlannedStep};
use crate::step::injection;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// A step under way.
pub type StepDone<'a> = BoxFuture<'a, Result<(), StepError>>;

/// A kind of step.
pub trait StepKind: Send + Sync {
    /// Values out of their range, and what does not fit the steps before it, which are in `so_far`.
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>);
    /// The fault that it injects; `None` for steps that are no fault.
    fn fault(&self) -> Option<Arc<dyn Fault>> {
        None
    }
    /// Whether it is done to etcd itself, whose state a probe then reads. A fault says so by its role.
    fn is_about_etcd(&self) -> bool {
        false
    }
    /// Components that it acts on, where it is no fault.
    fn acts_on(&self, _: &[PlannedComponent]) -> Vec<ComponentId> {
        Vec::new()
    }
    /// What the provider must be able to do, where it is no fault.
    fn requires(&self) -> Vec<Capability> {
        Vec::new()
    }
    /// How long clients are sure to be let run.
    fn lasts(&self) -> Duration {
        Duration::ZERO
    }
    /// The longest that it may wait, as far as the drill sets that.
    fn lasts_at_most(&self) -> Duration {
        Duration::ZERO
    }
    /// Carries it out. A fault is armed, injected and verified.
    fn execute<'a>(&'a self, planned: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(injection::inject(planned, ctx))
    }
}
