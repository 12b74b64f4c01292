//! `observe`: waits for a condition while the clients record.

use super::spec::{Observe, Until};
use super::{StepContext, StepError};
use crate::history::record::ClientKind;
use crate::journal::entry::Fact;
use crate::plan::PlannedStep;
use crate::runner::observations::Observations;

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
