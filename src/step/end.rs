//! `end`: ends a fault by its undo, which the agent carries out as it would on an abort.

use super::spec::End;
use super::{StepContext, StepError};
use crate::plan::PlannedStep;
use crate::runner::injection;

/// Has every open injection of that kind undone, and verifies that the disturbance is gone.
pub(super) async fn execute(
    planned: &PlannedStep,
    step: &End,
    ctx: &mut StepContext,
) -> Result<(), StepError> {
    injection::end_by_undo(planned, &step.fault, ctx).await?;
    ctx.journalist.forget_streaks(ctx.clock.mono());
    Ok(())
}
