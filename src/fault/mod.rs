//! Faults, a file per kind. A fault says how it is undone before it does anything,
//! and what shows, apart from its own calls, that it took hold and that it is over.

pub mod apf_level;
pub mod lose_etcd;
pub mod lose_members;
mod members;

use crate::agent::api::ApiAccess;
use crate::agent::undo::{InjectionId, OnLapse, Undo};
use crate::agent::view::{ClusterView, Look};
use crate::component::capability::Capability;
use crate::component::{ComponentControl, ComponentId, ControlError, Role, StopMethod};
use crate::drill::spec::Step;
use crate::guard::GuardToken;
use crate::plan::{PlannedComponent, of_role};
use futures::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use thiserror::Error;

/// One instance of a fault on bound targets.
#[derive(Debug, Clone, Copy)]
pub struct Injection<'a> {
    /// Run that it belongs to. Injection ids repeat from run to run; what a fault leaves
    /// on a standing cluster is named by both.
    pub run: &'a str,
    /// Which injection of the run.
    pub id: &'a InjectionId,
    /// What is hit.
    pub targets: &'a [ComponentId],
    /// Every component of the cluster: an undo may have to restart what was not hit.
    pub components: &'a [PlannedComponent],
    /// The step that ends it; absent: the undo does.
    pub closed_by: Option<&'a Step>,
    /// Objects of the API that the fault changes, as [`Fault::before`] found them.
    pub before: &'a [Value],
}

impl Injection<'_> {
    /// Components of a role, in start order.
    fn with_role(&self, role: Role) -> Vec<ComponentId> {
        of_role(self.components, role)
    }
}

/// What a plan knows of a fault when it says what will be harmed.
#[derive(Debug, Clone, Copy)]
pub struct Aim<'a> {
    /// What is hit.
    pub targets: &'a [ComponentId],
    /// Every component of the cluster.
    pub components: &'a [PlannedComponent],
    /// The step that ends it; absent: the undo does.
    pub closed_by: Option<&'a Step>,
}

impl Aim<'_> {
    fn names(&self) -> String {
        self.targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn count(&self, role: Role) -> usize {
        self.components.iter().filter(|c| c.role == role).count()
    }
}

/// What a fault works with.
#[derive(Clone, Copy)]
pub struct FaultContext<'a> {
    /// Stops, starts and moves.
    pub control: &'a dyn ComponentControl,
    /// Observes, apart from `control`.
    pub view: &'a dyn ClusterView,
    /// Asks API servers, exempt from flow control.
    pub api: &'a dyn ApiAccess,
}

/// Result of a fault's calls.
pub type Faulting<'a, T> = BoxFuture<'a, Result<T, FaultError>>;

/// A kind of disturbance, configured by a step of the drill.
pub trait Fault: Send + Sync {
    /// As in the drill file.
    fn kind(&self) -> &'static str;
    /// The role that every target must have.
    fn role(&self) -> Role;
    /// What is hit, of these components. Pure; empty when the fault names what is not there.
    fn targets(&self, components: &[PlannedComponent]) -> Vec<ComponentId>;
    /// What will not work meanwhile, and what is lost for good, in words.
    fn blast_radius(&self, aim: &Aim<'_>) -> String;
    /// Its undo in words.
    fn undo_in_words(&self) -> &'static str;
    /// Whether this later step ends the fault: by its undo, unless another kind of step is its end.
    fn closed_by(&self, step: &Step) -> bool {
        matches!(step, Step::End(end) if end.fault == self.kind())
    }
    /// What the provider must be able to do; the plan refuses early what it can't.
    fn needs(&self) -> BTreeSet<Capability>;
    /// How components are stopped, where they are; named in every recovery time.
    fn stop_method(&self) -> Option<StopMethod>;
    /// Reads the objects of the API that the fault changes, before anything is armed; none for most faults. Refuses
    /// a cluster on which the fault would have no effect.
    fn before<'a>(&'a self, _: FaultContext<'a>, _: &'a [ComponentId]) -> Faulting<'a, Vec<Value>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    /// What becomes of it when the runner dies, from arming on.
    fn on_lapse(&self) -> OnLapse {
        OnLapse::Revert
    }
    /// Whether clients that it does not hit go on being served.
    fn others_go_on(&self) -> bool {
        false
    }
    /// The inverse that holds from arming on, to be carried out within `within_ns`. Pure.
    fn undo(&self, injection: &Injection<'_>, within_ns: u64) -> Undo;
    /// The inverse that holds once going back would do harm; `None` for faults that
    /// can always be taken back. Pure.
    fn roll_forward(&self, _: &Injection<'_>, _within_ns: u64) -> Option<Undo> {
        None
    }
    /// Injects, if `guard` was given to the injection's run. The undo must be armed;
    /// targets must have been re-checked by identity.
    fn inject<'a>(
        &'a self,
        context: FaultContext<'a>,
        guard: &'a GuardToken,
        injection: Injection<'a>,
    ) -> Faulting<'a, ()>;
    /// One independent look at whether the fault took hold; says what was seen.
    /// Who wants to wait for it looks again.
    fn verify_injected<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String>;
    /// One independent look at whether the disturbance is gone; says what was seen.
    fn verify_ended<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String>;
}

/// Why a fault could not be injected or verified.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultError {
    /// The guard's token is another run's; nothing was touched.
    #[error(
        "the guard let run {authorized} inject, not run {run}\n  hint: take the drill lock for run {run} first"
    )]
    NotAuthorized {
        /// The run that may inject.
        authorized: String,
        /// The run that tried.
        run: String,
    },
    /// Controlling a component failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// An observation shows something else.
    #[error("expected that {expected}, but {seen}")]
    NotSeen {
        /// What must be.
        expected: String,
        /// What was seen.
        seen: String,
    },
    /// Nothing could be observed.
    #[error("it can't be told whether {expected}: {why}")]
    Untold {
        /// What must be.
        expected: String,
        /// Why it can't be told.
        why: String,
    },
}

/// Refuses an injection of another run than the one that the token was given to.
fn authorized(guard: &GuardToken, injection: &Injection<'_>) -> Result<(), FaultError> {
    if guard.run() == injection.run {
        return Ok(());
    }
    Err(FaultError::NotAuthorized { authorized: guard.run().to_owned(), run: injection.run.to_owned() })
}

/// What was seen when `look` is as expected.
fn expect_look(look: Look, expect_holds: bool, expected: &str) -> Result<String, FaultError> {
    let expected = || expected.to_owned();
    match (look, expect_holds) {
        (Look::Holds(seen), true) | (Look::Fails(seen), false) => Ok(seen),
        (Look::Holds(seen) | Look::Fails(seen), _) => Err(FaultError::NotSeen { expected: expected(), seen }),
        (Look::Unknown(why), _) => Err(FaultError::Untold { expected: expected(), why }),
    }
}
