//! Which components a fault may hit.

use super::GuardError;
use crate::component::{ComponentStatus, Role};
use crate::drill::spec::Step;
use crate::plan::PlannedStep;
use std::fmt::Write as _;

/// Checks the targets of one fault step against the components there are.
pub(super) fn check(step: &PlannedStep, statuses: &[ComponentStatus]) -> Result<(), GuardError> {
    let (kind, wanted) = kind_and_role(&step.step);
    if step.targets.is_empty() {
        return Err(GuardError::NoTarget { step: step.index, kind, candidates: reasons(wanted, statuses) });
    }
    for target in &step.targets {
        let bad =
            |reason: String| GuardError::BadTarget { step: step.index, kind, target: target.clone(), reason };
        let Some(status) = statuses.iter().find(|s| s.component == *target) else {
            let known = statuses.iter().map(|s| s.component.0.as_str()).collect::<Vec<_>>().join(", ");
            return Err(bad(format!("the cluster has no such component; it has {known}")));
        };
        if wanted.is_some_and(|role| status.role != role) {
            return Err(bad(not_for(status.role, wanted)));
        }
    }
    Ok(())
}

/// The step's key in the drill file, and the role that its targets must have.
fn kind_and_role(step: &Step) -> (&'static str, Option<Role>) {
    (step.key(), step.kind().fault().map(|fault| fault.role()))
}

fn reasons(wanted: Option<Role>, statuses: &[ComponentStatus]) -> String {
    if statuses.is_empty() {
        return " the cluster has no components".to_owned();
    }
    let mut text = String::new();
    for status in statuses {
        let why = match wanted {
            Some(role) if status.role != role => not_for(status.role, wanted),
            _ => format!("{}, but the plan does not name it", with_article(status.role)),
        };
        // Writing to a string can't fail.
        let _ = write!(text, "\n  {}: {why}", status.component);
    }
    text
}

fn not_for(role: Role, wanted: Option<Role>) -> String {
    let wanted = wanted.map_or("something else", with_article);
    format!("{}, the fault is for {wanted}", with_article(role))
}

fn with_article(role: Role) -> &'static str {
    match role {
        Role::Etcd => "an etcd member",
        Role::KubeApiserver => "a kube-apiserver",
        Role::KubeControllerManager => "a kube-controller-manager",
        Role::KubeScheduler => "a kube-scheduler",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::agent::undo::OnLapse;
    use crate::drill::spec::{
        ClusterSpec, Drill, Limits, LoseEtcd, Metadata, ProviderKind, Spec, Step, Topology,
    };
    use crate::fault::lose_etcd::Members;
    use crate::journal::samples::id;
    use crate::plan::{Plan, PlannedCluster, PlannedFault, PlannedStep, Versions};
    use std::collections::BTreeMap;

    pub(in crate::guard) fn lose_etcd(index: usize, targets: &[&str]) -> PlannedStep {
        PlannedStep {
            index,
            step: Step::LoseEtcd(LoseEtcd { members: Members::All }),
            targets: targets.iter().map(|t| id(t)).collect(),
            fault: Some(PlannedFault {
                blast_radius: "no API".to_owned(),
                closed_by: None,
                on_lapse: OnLapse::Revert,
                undo: "original data back".to_owned(),
                undo_within_ns: 1,
            }),
        }
    }

    pub(in crate::guard) fn plan(steps: Vec<PlannedStep>) -> Plan {
        let drill = Drill {
            api_version: crate::drill::spec::API_VERSION.to_owned(),
            kind: "Drill".to_owned(),
            metadata: Metadata {
                name: "d".to_owned(),
                title: "t".to_owned(),
                owner: "o".to_owned(),
                reason: "r".to_owned(),
                expected_verdict: None,
            },
            spec: Spec {
                cluster: ClusterSpec {
                    encryption_at_rest: None,
                    provider: ProviderKind::Local,
                    name: None,
                    kubernetes: None,
                    etcd: None,
                    topology: Topology::default(),
                },
                parameters: BTreeMap::new(),
                profiles: BTreeMap::new(),
                limits: Limits::default(),
                steady_state: vec![],
                clients: vec![],
                steps: vec![],
                objectives: vec![],
            },
        };
        Plan {
            format_version: crate::plan::FORMAT_VERSION.to_owned(),
            drill,
            drill_digest: String::new(),
            parameters: BTreeMap::new(),
            overrides: BTreeMap::new(),
            profile: None,
            seed: 1,
            cluster: PlannedCluster {
                encryption_at_rest: None,
                name: "main".to_owned(),
                provider: ProviderKind::Local,
                standing: None,
                versions: Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() },
                topology: Topology::default(),
                components: vec![],
            },
            clients: vec![],
            steps,
            steady_state: vec![],
            objectives: vec![],
            predictions: vec![],
            consumers: vec![],
            flow: vec![],
            limits: Limits::default(),
        }
    }
}
