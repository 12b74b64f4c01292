//! `hold`: lets the clients run.

use super::spec::Hold;
use super::{StepContext, StepError};

/// Waits for the declared time, or until somebody asks the run to end.
pub(super) async fn execute(step: &Hold, ctx: &mut StepContext) -> Result<(), StepError> {
    ctx.unless_interrupted(tokio::time::sleep(step.duration.0)).await
}
