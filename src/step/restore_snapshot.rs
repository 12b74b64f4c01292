//! `restoreSnapshot`: brings every lost member back from a snapshot.
//!
//! Before the restored etcd is started, the undo of the loss is amended to roll
//! forward: from the first write that it acknowledges there is a new timeline,
//! and putting the old data back would be a second rollback.

use super::restore_spec::{ClusterToken, RestoreSnapshot};
use super::take_snapshot::{at_leisure, succeeded};
use super::{Snapshot, StepContext, StepError};
use crate::agent::view::Look;
use crate::component::{ComponentId, DataSlot, Role, StopMethod, Tool, ToolRun};
use crate::drill::spec::EncryptionKey;
use crate::fault::lose_etcd::key_slot;
use crate::journal::entry::{Fact, JournalEvent};
use crate::plan::PlannedStep;
use crate::step::injection;
use std::collections::BTreeMap;
use std::future::Future;

/// Restores, starts, restarts what the drill asks for, and reports the new revision.
pub(super) async fn execute(
    planned: &PlannedStep,
    step: &RestoreSnapshot,
    ctx: &mut StepContext,
) -> Result<(), StepError> {
    let command_ns = ctx.clock.mono();
    let mark = |name: &str| JournalEvent::Mark {
        name: name.to_owned(),
        lower_ns: command_ns,
        upper_ns: command_ns,
        source: format!("step {} began", planned.index),
    };
    ctx.journalist.record(mark("restoreCommand")).await?;
    let snapshot = fit_snapshot(step, ctx).await?;
    let restarted = components_to_restart(step, ctx);
    injection::still_leased(ctx).await?;
    let control = ctx.cluster.control();
    for component in restarted.keys() {
        control.stop(component, StopMethod::Kill).await?;
    }
    take_keys(planned, step, restarted.keys(), ctx).await?;
    let members = ctx.components(Role::Etcd);
    let highest = ctx.memory.lost_at_revision.max(ctx.journalist.observations.borrow().max_revision());
    let bump = step.bump_revision.amount(snapshot.contents.revision, highest).map_err(StepError::NotSeen)?;
    let token = match step.cluster_token {
        ClusterToken::New => format!("quakeproof-{}-{}", ctx.run, planned.index),
        ClusterToken::Kept => "{token}".to_owned(),
    };
    let restoring =
        Restoring { file: &snapshot.file, bump, token: &token, skip_hash_check: step.skip_hash_check };
    for member in &members {
        ctx.go_on()?;
        restore_member(member, &restoring, ctx).await?;
    }
    let restored_ns = ctx.clock.mono();
    ctx.go_on()?;
    injection::point_of_no_return(ctx).await?;
    for member in &members {
        control.start(member).await?;
    }
    let view = ctx.view.clone();
    for member in &members {
        comes_back(member, step, ctx, || view.etcd_healthy(member)).await?;
    }
    let state = ctx.view.etcd_state(&members[0]).await.map_err(StepError::NotSeen)?;
    for component in restarted.keys() {
        control.start(component).await?;
    }
    // Without its key an API server may never be ready: what it can do then is the drill's to see.
    let awaited = step.encryption_key == EncryptionKey::Present;
    let api_servers = ctx.components(Role::KubeApiserver);
    for component in restarted.keys().filter(|c| awaited && api_servers.contains(c)) {
        comes_back(component, step, ctx, || view.api_ready(component)).await?;
    }
    injection::ended_by(planned, ctx).await?;
    let fact = Fact::Restored {
        from: step.from.clone(),
        bump,
        revision_after: state.revision,
        raft_term: state.raft_term,
        command_ns,
        restored_ns,
        restarted,
    };
    ctx.fact(fact).await?;
    ctx.journalist.forget_streaks(ctx.clock.mono());
    Ok(())
}

/// Waits until a component that was started is seen to be ready.
async fn comes_back<Fut: Future<Output = Look>>(
    component: &ComponentId,
    step: &RestoreSnapshot,
    ctx: &StepContext,
    look: impl Fn() -> Fut,
) -> Result<(), StepError> {
    injection::await_look(ctx, step.ready_within.0, look).await.map_err(|error| match error {
        StepError::NotSeen(last) => StepError::NotSeen(format!(
            "{component} did not come back within {} (`readyWithin`) of its start; last seen: {last}\n  hint: its log is \
             in the evidence",
            step.ready_within
        )),
        other => other,
    })
}

/// The snapshot, once its file is known to be fit: before anything is stopped for it.
async fn fit_snapshot(step: &RestoreSnapshot, ctx: &StepContext) -> Result<Snapshot, StepError> {
    let taken = ctx.memory.snapshots.get(&step.from);
    let taken =
        taken.ok_or_else(|| StepError::NotSeen(format!("no snapshot named `{}` was taken", step.from)))?;
    let (path, name) = (ctx.cluster.private_file(&taken.file), step.from.clone());
    let contents = taken.contents.clone();
    at_leisure(move || contents.is_still(&path, &name)).await?;
    taken.contents.fit(step, &ctx.plan.cluster.versions.etcd).map_err(StepError::NotSeen)?;
    Ok(taken.clone())
}

fn components_to_restart(step: &RestoreSnapshot, ctx: &StepContext) -> BTreeMap<ComponentId, StopMethod> {
    let asked = step.restart.by_role().into_iter().flat_map(|(role, _, which)| {
        ctx.components(role).into_iter().filter(|component| which.takes(component))
    });
    asked.map(|component| (component, StopMethod::Kill)).collect()
}

/// Gives the stopped API servers the configuration that the drill declares instead of their own,
/// which is kept where the undo finds it.
async fn take_keys(
    planned: &PlannedStep,
    step: &RestoreSnapshot,
    stopped: impl Iterator<Item = &ComponentId>,
    ctx: &StepContext,
) -> Result<(), StepError> {
    let Some(label) = step.encryption_key.slot() else { return Ok(()) };
    let control = ctx.cluster.control();
    let api_servers = ctx.components(Role::KubeApiserver);
    let loss = ctx.memory.open.iter().find(|open| open.fault.closed_by(&planned.step));
    let Some(loss) = loss else { return Ok(()) };
    let own = key_slot(&loss.injection(ctx));
    for server in stopped.filter(|c| api_servers.contains(c)) {
        control.move_data(server, &DataSlot::InUse, &own).await?;
        control.move_data(server, &DataSlot::Aside(label.to_owned()), &DataSlot::InUse).await?;
    }
    Ok(())
}

/// What every member is restored with.
struct Restoring<'a> {
    /// The snapshot's private file.
    file: &'a str,
    /// Revisions to add.
    bump: Option<u64>,
    /// Cluster token.
    token: &'a str,
    /// The file has no digest, and need not have one.
    skip_hash_check: bool,
}

/// `etcdutl snapshot restore` into a directory of its own, which then takes the place of the lost one.
async fn restore_member(
    member: &ComponentId,
    restoring: &Restoring<'_>,
    ctx: &StepContext,
) -> Result<(), StepError> {
    let slot = "restored";
    let mut args = vec![
        "snapshot".to_owned(),
        "restore".to_owned(),
        format!("{{file:{}}}", restoring.file),
        "--data-dir".to_owned(),
        format!("{{data:{slot}}}"),
        "--name".to_owned(),
        "{name}".to_owned(),
        "--initial-cluster".to_owned(),
        "{initialCluster}".to_owned(),
        "--initial-cluster-token".to_owned(),
        restoring.token.to_owned(),
        "--initial-advertise-peer-urls".to_owned(),
        "{peerUrl}".to_owned(),
    ];
    if let Some(amount) = restoring.bump {
        args.extend(["--bump-revision".to_owned(), amount.to_string(), "--mark-compacted".to_owned()]);
    }
    if restoring.skip_hash_check {
        args.push("--skip-hash-check".to_owned());
    }
    let control = ctx.cluster.control();
    let run = ToolRun { component: member.clone(), tool: Tool::Etcdutl, args };
    succeeded("etcdutl snapshot restore", &control.run_tool(&run).await?)?;
    control.move_data(member, &DataSlot::Aside(slot.to_owned()), &DataSlot::InUse).await?;
    Ok(())
}
