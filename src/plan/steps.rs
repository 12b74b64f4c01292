//! Steps with their targets, and what faults harm and how they end.

use super::{PlannedComponent, PlannedFault, PlannedStep};
use crate::component::{ComponentId, Role};
use crate::drill::spec::{Drill, Step};
use crate::fault::{Aim, Fault};

/// Declared upper limit of an undo: stop, move data, start, wait for LIST to equal etcd.
const UNDO_WITHIN_NS: u64 = 60_000_000_000;

/// Every step with its targets resolved to names.
pub(super) fn resolve(drill: &Drill, components: &[PlannedComponent]) -> Vec<PlannedStep> {
    let steps = &drill.spec.steps;
    let planned = |(index, step): (usize, &Step)| {
        let fault = step.kind().fault();
        let targets = match &fault {
            Some(fault) => fault.targets(components),
            None => step.kind().acts_on(components),
        };
        let fault = fault.map(|fault| harm(fault.as_ref(), steps, index, &targets, components));
        PlannedStep { index, step: step.clone(), targets, fault }
    };
    steps.iter().enumerate().map(planned).collect()
}

/// Names of the components of one role, in plan order.
#[must_use]
pub fn of_role(components: &[PlannedComponent], role: Role) -> Vec<ComponentId> {
    components.iter().filter(|c| c.role == role).map(|c| c.component.clone()).collect()
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
        on_lapse: fault.on_lapse(),
        undo: fault.undo_in_words().to_owned(),
        undo_within_ns: UNDO_WITHIN_NS,
    }
}
