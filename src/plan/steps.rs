//! Steps with their targets, and what faults harm and how they end.

use super::{PlannedComponent, PlannedFault, PlannedStep};
use crate::agent::undo::OnLapse;
use crate::drill::spec::{Drill, Step};
use crate::fault::{self, Aim, Fault};
use crate::provider::component::{ComponentId, Role};
use crate::step::spec::RestoreSnapshot;

/// Declared upper limit of an undo: stop, move data, start, wait for LIST to equal etcd.
const UNDO_WITHIN_NS: u64 = 60_000_000_000;

/// Every step with its targets resolved to names.
pub(super) fn resolve(drill: &Drill, components: &[PlannedComponent]) -> Vec<PlannedStep> {
    let steps = &drill.spec.steps;
    let planned = |(index, step): (usize, &Step)| {
        let fault = fault::of(step);
        let targets = match (&fault, step) {
            (Some(fault), _) => fault.targets(components),
            (None, Step::TakeSnapshot(_)) => of_role(components, Role::Etcd).into_iter().take(1).collect(),
            (None, Step::RestoreSnapshot(restore)) => restored(restore, components),
            _ => Vec::new(),
        };
        let fault = fault.map(|fault| harm(fault.as_ref(), steps, index, &targets, components));
        PlannedStep { index, step: step.clone(), targets, fault }
    };
    steps.iter().enumerate().map(planned).collect()
}

/// Names of the components of one role, in order.
pub(super) fn of_role(components: &[PlannedComponent], role: Role) -> Vec<ComponentId> {
    components.iter().filter(|c| c.role == role).map(|c| c.component.clone()).collect()
}

/// etcd, and what the procedure restarts.
fn restored(restore: &RestoreSnapshot, components: &[PlannedComponent]) -> Vec<ComponentId> {
    let mut hit = of_role(components, Role::Etcd);
    for (role, _, which) in restore.restart.by_role() {
        hit.extend(of_role(components, role).into_iter().filter(|component| which.takes(component)));
    }
    hit
}

fn harm(
    fault: &dyn Fault,
    steps: &[Step],
    index: usize,
    targets: &[ComponentId],
    components: &[PlannedComponent],
) -> PlannedFault {
    let closed_by = (index + 1..steps.len()).find(|i| fault.closed_by(&steps[*i]));
    let aim = Aim { targets, components, closed_by: closed_by.map(|i| &steps[i]) };
    PlannedFault {
        blast_radius: fault.blast_radius(&aim),
        closed_by,
        on_lapse: OnLapse::Revert,
        undo: fault.undo_in_words().to_owned(),
        undo_within_ns: UNDO_WITHIN_NS,
    }
}
