//! `hold`: lets the clients run.

use super::kind::{StepDone, StepKind};
use super::{StepContext, StepError};
use crate::drill::lint::{Lint, Place, SoFar, WAIT};
use crate::drill::values::Span;
use crate::plan::PlannedStep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Lets the clients run for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// How long.
    #[serde(rename = "for")]
    pub duration: Span,
}

impl StepKind for Hold {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, _: &mut SoFar<'d>) {
        lint.span(&at.key("for"), self.duration, WAIT);
    }

    fn lasts(&self) -> Duration {
        self.duration.0
    }

    fn lasts_at_most(&self) -> Duration {
        self.duration.0
    }

    fn execute<'a>(&'a self, _: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(self, ctx))
    }
}

/// Waits for the declared time, or until somebody asks the run to end.
pub(super) async fn execute(step: &Hold, ctx: &mut StepContext) -> Result<(), StepError> {
    ctx.unless_interrupted(tokio::time::sleep(step.duration.0)).await
}
