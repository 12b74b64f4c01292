//! Steps with their targets, and what faults harm and how they end.

use super::{PlannedComponent, PlannedFault, PlannedStep};
use crate::agent::undo::OnLapse;
use crate::drill::spec::{Drill, Step};
use crate::fault::lose_etcd::{LoseEtcd, Members};
use crate::provider::component::{ComponentId, Role};
use crate::step::spec::RestoreSnapshot;

/// Declared upper limit of an undo: stop, move data, start, wait for LIST to equal etcd.
const UNDO_WITHIN_NS: u64 = 60_000_000_000;

/// Every step with its targets resolved to names.
pub(super) fn resolve(drill: &Drill, components: &[PlannedComponent]) -> Vec<PlannedStep> {
    let steps = &drill.spec.steps;
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            let (targets, fault) = match step {
                Step::TakeSnapshot(_) => {
                    (of_role(components, Role::Etcd).into_iter().take(1).collect(), None)
                }
                Step::LoseEtcd(LoseEtcd { members: Members::All }) => {
                    let targets = of_role(components, Role::Etcd);
                    let fault = lose_etcd(steps, index, &targets, components);
                    (targets, Some(fault))
                }
                Step::RestoreSnapshot(restore) => (restored(restore, components), None),
                Step::Hold(_) | Step::Observe(_) => (Vec::new(), None),
            };
            PlannedStep { index, step: step.clone(), targets, fault }
        })
        .collect()
}

/// Names of the components of one role, in order.
pub(super) fn of_role(components: &[PlannedComponent], role: Role) -> Vec<ComponentId> {
    components.iter().filter(|c| c.role == role).map(|c| c.component.clone()).collect()
}

/// etcd, and what the procedure restarts.
fn restored(restore: &RestoreSnapshot, components: &[PlannedComponent]) -> Vec<ComponentId> {
    let restart = restore.restart;
    let roles = [
        (Role::Etcd, true),
        (Role::KubeApiserver, restart.api_servers),
        (Role::KubeControllerManager, restart.controller_managers),
        (Role::KubeScheduler, restart.schedulers),
    ];
    roles.into_iter().filter(|(_, hit)| *hit).flat_map(|(role, _)| of_role(components, role)).collect()
}

fn lose_etcd(
    steps: &[Step],
    index: usize,
    targets: &[ComponentId],
    components: &[PlannedComponent],
) -> PlannedFault {
    let closed_by = (index + 1..steps.len()).find(|i| matches!(steps[*i], Step::RestoreSnapshot(_)));
    let api_servers = of_role(components, Role::KubeApiserver).len();
    let lost = match closed_by.map(|i| &steps[i]) {
        Some(Step::RestoreSnapshot(r)) => {
            format!("every write since snapshot `{}` is lost for good once it is restored", r.from)
        }
        _ => "nothing is lost for good: the data directories are kept and put back".to_owned(),
    };
    PlannedFault {
        blast_radius: format!(
            "all of etcd ({}) is killed and its data moved aside: no write and no quorum read through {} until it \
             is back; controllers and schedulers stand still; {lost}. Nothing outside this cluster is touched",
            names(targets),
            if api_servers == 1 { "the API server".to_owned() } else { format!("{api_servers} API servers") },
        ),
        closed_by,
        on_lapse: OnLapse::Revert,
        undo: "until a restored etcd is started: stop every API server, bring the original data back, start \
               everything anew, and wait until LIST equals etcd's own state. From then on going back would be a \
               second rollback, so it rolls forward: restart everything on the restored data, same check"
            .to_owned(),
        undo_within_ns: UNDO_WITHIN_NS,
    }
}

fn names(targets: &[ComponentId]) -> String {
    targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
