//! `apfShares`: changes the shares of a level that the drill made. The undo of the level removes it
//! whatever its shares are, so nothing further is owed.

use super::kind::{StepDone, StepKind};
use super::load::identity;
use super::{StepContext, StepError};
use crate::agent::api::ApiAccess;
use crate::component::{ComponentId, Role};
use crate::drill::lint::{Lint, Place, SoFar};
use crate::drill::spec::Step;
use crate::drill::suggest;
use crate::fault::apf_level::{ApfLevel, LEVELS, limits_in_force, shares_in_range};
use crate::journal::entry::Fact;
use crate::plan::PlannedStep;
use crate::step::injection::{await_observation, still_leased};
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes the shares of a level that an `apfLevel` made, and waits until every API server counts with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApfShares {
    /// Name of the level.
    pub level: String,
    /// `nominalConcurrencyShares` from now on.
    #[schemars(range(max = 10_000))]
    pub shares: u32,
}

impl StepKind for ApfShares {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        shares_in_range(lint, &at.key("shares"), self.shares);
        let names: Vec<&str> = so_far.levels.iter().map(|level| level.name.as_str()).collect();
        if !names.contains(&self.level.as_str()) {
            let help = suggest::hint(&self.level, "levels made before", &names)
                .unwrap_or_else(|| "put it after the `apfLevel` that makes the level".to_owned());
            let title = format!("no earlier step makes a level named `{}`", self.level);
            lint.error(&at.key("level"), title, help);
        }
    }

    fn execute<'a>(&'a self, planned: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(planned, self, ctx))
    }
}

/// Times that a change is tried again which somebody else's came in between.
const TRIES: usize = 5;

/// Changes the object, and waits until every API server has taken it in.
pub(super) async fn execute(
    planned: &PlannedStep,
    step: &ApfShares,
    ctx: &mut StepContext,
) -> Result<(), StepError> {
    let level = level_of(&step.level, ctx)?;
    let name = level.level_name(&ctx.run);
    let servers = ctx.components(Role::KubeApiserver);
    let api = ctx.api();
    still_leased(ctx).await?;
    let call_ns = ctx.clock.mono();
    let first =
        servers.first().ok_or_else(|| StepError::NotSeen("the cluster has no API server".to_owned()))?;
    let known = ctx.memory.levels.get(&step.level).cloned().flatten();
    let changed =
        change(&api, first, &name, step.shares, known.as_deref()).await.map_err(StepError::NotSeen)?;
    ctx.memory.levels.insert(step.level.clone(), changed);
    let return_ns = ctx.clock.mono();
    for server in &servers {
        await_observation(ctx, || limits_in_force(&api, server, &name)).await?;
    }
    let in_force_ns = ctx.clock.mono();
    ctx.fact(Fact::SharesChanged {
        step: planned.index,
        level: step.level.clone(),
        shares: step.shares,
        call_ns,
        return_ns,
        in_force_ns,
    })
    .await?;
    Ok(())
}

fn level_of<'a>(name: &str, ctx: &'a StepContext) -> Result<&'a ApfLevel, StepError> {
    let level = ctx.plan.steps.iter().find_map(|planned| match &planned.step {
        Step::ApfLevel(level) if level.name == name => Some(level),
        _ => None,
    });
    level.ok_or_else(|| StepError::NotSeen(format!("the plan has no level `{name}`")))
}

async fn change(
    api: &dyn ApiAccess,
    server: &ComponentId,
    name: &str,
    shares: u32,
    known: Option<&str>,
) -> Result<Option<String>, String> {
    let path = format!("{LEVELS}/{name}");
    for _ in 0..TRIES {
        let there = api.call(server, Method::GET, &path, None).await?;
        if !there.is_success() {
            return Err(format!("GET {path}: {}", there.refusal()));
        }
        let mut object = there.json();
        if known.is_some() && identity(&object).as_deref() != known {
            return Err(format!("somebody else changed or removed {path}"));
        }
        object["spec"]["limited"]["nominalConcurrencyShares"] = shares.into();
        let put = api.call(server, Method::PUT, &path, Some(&object)).await?;
        match put.status {
            409 => {}
            _ if put.is_success() => return Ok(identity(&put.json())),
            _ => return Err(format!("PUT {path}: {}", put.refusal())),
        }
    }
    Err(format!("PUT {path}: somebody else changed it {TRIES} times in between"))
}
