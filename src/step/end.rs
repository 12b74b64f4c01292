//! `end`: ends a fault by its undo, which the agent carries out as it would on an abort.

use super::kind::{StepDone, StepKind};
use super::{StepContext, StepError};
use crate::drill::lint::{Lint, Place, SoFar};
use crate::drill::suggest;
use crate::fault::apf_level::APF_LEVEL;
use crate::plan::PlannedStep;
use crate::step::injection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ends a fault by its undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct End {
    /// Kind of the fault that an earlier step injected, as `quorumLoss`.
    pub fault: String,
}

impl StepKind for End {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        if !so_far.ends(&self.fault) {
            let open: Vec<&str> = so_far.open.iter().map(|(_, kind)| *kind).collect();
            let help = suggest::hint(&self.fault, "faults that are not ended", &open)
                .unwrap_or_else(|| "put it after the step that injects the fault".to_owned());
            lint.error(&at.key("fault"), format!("no fault `{}` is there to be ended", self.fault), help);
        }
        if self.fault == "loseEtcd" {
            so_far.lost = None;
        }
        if self.fault == APF_LEVEL {
            so_far.levels.clear();
        }
    }

    fn execute<'a>(&'a self, planned: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(planned, self, ctx))
    }
}

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
