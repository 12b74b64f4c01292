//! `observe`: waits for a condition while the clients record.

use super::kind::{StepDone, StepKind};
use super::{StepContext, StepError};
use crate::dispatch::observations::Observations;
use crate::drill::lint::{Lint, Place, SoFar, WAIT};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::journal::entry::Fact;
use crate::plan::PlannedStep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Waits for a condition while the clients record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Observe {
    /// The condition.
    pub until: Until,
    /// The step ends here even if the condition does not hold; the objectives
    /// that needed it are then inconclusive.
    pub at_most: Span,
    /// How long to go on recording once the condition holds.
    #[serde(default = "Observe::default_then")]
    pub then: Span,
}

impl Observe {
    fn default_then() -> Span {
        Span::secs(3)
    }
}

/// What an `observe` step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// etcd's revision is higher than any revision that the lost timeline reached.
    RevisionPassedLost,
    /// Every API server answers `/readyz` with ok.
    ApiReady,
}

impl StepKind for Observe {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        lint.span(&at.key("atMost"), self.at_most, WAIT);
        lint.span(&at.key("then"), self.then, (Span::millis(0), WAIT.1));
        if self.until == Until::RevisionPassedLost && !so_far.restored {
            let title = "`revisionPassedLost` can only hold after a `restoreSnapshot`";
            lint.error(&at.key("until"), title, "put this step after `restoreSnapshot`");
        }
    }

    /// How long the condition takes is not known.
    fn lasts(&self) -> Duration {
        self.then.0
    }

    fn lasts_at_most(&self) -> Duration {
        self.at_most.0.saturating_add(self.then.0)
    }

    fn execute<'a>(&'a self, planned: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(planned, self, ctx))
    }
}

/// Waits until the condition holds, at most for the declared time, then records a little longer.
pub(super) async fn execute(
    planned: &PlannedStep,
    step: &Observe,
    ctx: &mut StepContext,
) -> Result<(), StepError> {
    let lost_at = ctx.memory.lost_at_revision;
    let sustained = ctx.plan.limits.sustained;
    let holds = |seen: &Observations| match step.until {
        Until::RevisionPassedLost => seen.truth_revision() > lost_at,
        Until::ApiReady => seen
            .iter()
            .filter(|(_, client)| client.kind == ClientKind::ApiReady)
            .all(|(name, _)| seen.sustained(name, sustained)),
    };
    let mut observations = ctx.journalist.observations.clone();
    let wait = tokio::time::timeout(step.at_most.0, observations.wait_for(holds));
    let held = ctx.unless_interrupted(async { matches!(wait.await, Ok(Ok(_))) }).await?;
    let revision = ctx.journalist.observations.borrow().truth_revision();
    let detail = match step.until {
        Until::RevisionPassedLost => {
            format!("etcd is at revision {revision}; the lost timeline reached {lost_at}")
        }
        Until::ApiReady => "every API server's readyz".to_owned(),
    };
    let at_ns = ctx.clock.mono();
    ctx.fact(Fact::Observed { step: planned.index, held, detail, at_ns }).await?;
    ctx.unless_interrupted(tokio::time::sleep(step.then.0)).await
}
