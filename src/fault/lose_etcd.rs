//! `loseEtcd`: members killed, their data directories moved aside.
//!
//! Why its undo is not "put the directory back and start etcd": going back is itself a
//! revision rollback. An API server that lived through the loss, or through a restore,
//! holds a watch cache of another timeline; under it the original data makes a cluster
//! that answers `/readyz` with ok and LIST with objects that etcd does not have, and after
//! a bumped restore that does not heal. So every undo restarts every API server, controller
//! manager and scheduler, and ends only when LIST equals etcd's own state.
//!
//! Which data etcd is started on depends on one moment. Until a restored etcd is
//! started, nothing can have been acknowledged on a new timeline, and the original data
//! comes back ([`Fault::undo`]). Right before it is started the undo is amended to
//! [`Fault::roll_forward`], which never moves data: from then on the restored timeline is
//! the only one, since going back would lose what it has acknowledged.

use super::{Aim, Fault, FaultContext, Faulting, Injection, authorized, expect_look, members};
use crate::agent::undo::{OnLapse, Undo, UndoOp};
use crate::component::capability::Capability;
use crate::component::{ComponentId, DataSlot, Role, StopMethod};
use crate::drill::lint::{Lint, Place, SoFar};
use crate::drill::spec::Step;
use crate::guard::GuardToken;
use crate::plan::{PlannedComponent, of_role};
use crate::step::kind::StepKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kills etcd members and moves their data directories aside. The directories
/// are kept until the run has ended well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoseEtcd {
    /// Which members.
    pub members: Members,
}

/// Which etcd members a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Members {
    /// Every member.
    All,
}

/// Where the original data lies while it is lost.
#[must_use]
pub fn lost_slot(injection: &Injection<'_>) -> DataSlot {
    DataSlot::Aside(format!("lost-{}-{}", injection.run, injection.id))
}

/// Where data goes that is in use when the original comes back.
#[must_use]
pub fn displaced_slot(injection: &Injection<'_>) -> DataSlot {
    DataSlot::Aside(format!("displaced-{}-{}", injection.run, injection.id))
}

/// Everything that holds a view of etcd: API servers, then what works through them.
fn dependents(injection: &Injection<'_>) -> (Vec<ComponentId>, Vec<ComponentId>) {
    let mut controllers = injection.with_role(Role::KubeControllerManager);
    controllers.extend(injection.with_role(Role::KubeScheduler));
    (injection.with_role(Role::KubeApiserver), controllers)
}

/// Where an API server's own encryption key lies while a restore starts it with another.
#[must_use]
pub fn key_slot(injection: &Injection<'_>) -> DataSlot {
    DataSlot::Aside(format!("key-{}-{}", injection.run, injection.id))
}

/// API servers get their own key back, where the restore takes it from them.
fn keys_back<'a>(
    injection: &'a Injection<'_>,
    api_servers: &'a [ComponentId],
) -> impl Iterator<Item = UndoOp> + 'a {
    let taken =
        matches!(injection.closed_by, Some(Step::RestoreSnapshot(r)) if r.encryption_key.slot().is_some());
    api_servers.iter().filter(move |_| taken).cloned().map(|component| UndoOp::BringDataBack {
        component,
        from: key_slot(injection),
        displaced: displaced_slot(injection),
    })
}

fn stop(components: &[ComponentId]) -> impl Iterator<Item = UndoOp> + '_ {
    components.iter().cloned().map(|component| UndoOp::Stop { component, how: StopMethod::Kill })
}

/// Starts all, then waits for all: members of a cluster become ready only together.
fn start(components: &[ComponentId]) -> impl Iterator<Item = UndoOp> + '_ {
    let starts = components.iter().cloned().map(|component| UndoOp::Start { component });
    let waits = components.iter().cloned().map(|component| UndoOp::AwaitReady { component });
    starts.chain(waits)
}

impl StepKind for LoseEtcd {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        if so_far.lost.is_some() {
            let help = "restore etcd with `restoreSnapshot` before it is lost again";
            lint.error(&at.key("members"), "etcd is lost already", help);
        } else {
            so_far.begins(lint, at, self.kind());
        }
        so_far.lost = Some(at.index);
    }

    fn fault(&self) -> Option<Arc<dyn Fault>> {
        Some(Arc::new(self.clone()))
    }
}

impl Fault for LoseEtcd {
    fn kind(&self) -> &'static str {
        "loseEtcd"
    }

    fn role(&self) -> Role {
        Role::Etcd
    }

    fn targets(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        let Members::All = self.members;
        of_role(components, Role::Etcd)
    }

    fn blast_radius(&self, aim: &Aim<'_>) -> String {
        let lost = match aim.closed_by {
            Some(Step::RestoreSnapshot(r)) => {
                format!("every write since snapshot `{}` is lost for good once it is restored", r.from)
            }
            _ => "nothing is lost for good: the data directories are kept and put back".to_owned(),
        };
        let api_servers = match aim.count(Role::KubeApiserver) {
            1 => "the API server".to_owned(),
            n => format!("{n} API servers"),
        };
        format!(
            "all of etcd ({}) is killed and its data moved aside: no write and no quorum read through {api_servers} \
             until it is back; controllers and schedulers stand still; {lost}. Nothing outside this cluster is touched",
            aim.names(),
        )
    }

    fn undo_in_words(&self) -> &'static str {
        "until a restored etcd is started: stop every API server, bring the original data back, start everything \
         anew, and wait until LIST equals etcd's own state. From then on going back would be a second rollback, \
         so it rolls forward: restart everything on the restored data, same check"
    }

    fn closed_by(&self, step: &Step) -> bool {
        matches!(step, Step::RestoreSnapshot(_))
    }

    fn needs(&self) -> BTreeSet<Capability> {
        [
            Capability::ControlComponents,
            Capability::ReplaceEtcdData,
            Capability::ReachEtcd,
            Capability::AddressApiServers,
            Capability::DeadMan,
        ]
        .into()
    }

    fn stop_method(&self) -> Option<StopMethod> {
        Some(StopMethod::Kill)
    }

    fn undo(&self, injection: &Injection<'_>, within_ns: u64) -> Undo {
        let (api_servers, controllers) = dependents(injection);
        let members = injection.targets;
        let mut ops = Vec::new();
        ops.extend(stop(&api_servers));
        ops.extend(stop(&controllers));
        ops.extend(stop(members));
        ops.extend(members.iter().cloned().map(|component| UndoOp::BringDataBack {
            component,
            from: lost_slot(injection),
            displaced: displaced_slot(injection),
        }));
        ops.extend(start(members));
        ops.extend(keys_back(injection, &api_servers));
        ops.extend(start(&api_servers));
        ops.extend(start(&controllers));
        ops.push(UndoOp::AwaitListEqualsEtcd);
        Undo { injection: injection.id.clone(), on_lapse: self.on_lapse(), ops, within_ns }
    }

    fn roll_forward(&self, injection: &Injection<'_>, within_ns: u64) -> Option<Undo> {
        let (api_servers, controllers) = dependents(injection);
        let mut ops = Vec::new();
        ops.extend(start(injection.targets));
        ops.extend(stop(&api_servers));
        ops.extend(stop(&controllers));
        ops.extend(keys_back(injection, &api_servers));
        ops.extend(start(&api_servers));
        ops.extend(start(&controllers));
        ops.push(UndoOp::AwaitListEqualsEtcd);
        Some(Undo { injection: injection.id.clone(), on_lapse: OnLapse::RollForward, ops, within_ns })
    }

    fn inject<'a>(
        &'a self,
        context: FaultContext<'a>,
        guard: &'a GuardToken,
        injection: Injection<'a>,
    ) -> Faulting<'a, ()> {
        Box::pin(async move {
            authorized(guard, &injection)?;
            for member in injection.targets {
                context.control.stop(member, StopMethod::Kill).await?;
            }
            let lost = lost_slot(&injection);
            for member in injection.targets {
                context.control.move_data(member, &DataSlot::InUse, &lost).await?;
            }
            Ok(())
        })
    }

    fn verify_injected<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(async move {
            members::expect_stopped(context, injection.targets).await?;
            let mut seen = Vec::new();
            for member in injection.targets {
                let look = context.view.etcd_healthy(member).await;
                let refused = expect_look(look, false, &format!("{member} answers nothing"))?;
                seen.push(format!("{member} is stopped and does not answer: {refused}"));
            }
            Ok(seen.join("; "))
        })
    }

    fn verify_ended<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(members::expect_answers(context, injection.targets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::undo::InjectionId;
    use crate::component::HostId;
    use crate::step::restore_spec::RestoreSnapshot;

    fn cluster() -> Vec<PlannedComponent> {
        let component = |name: &str, role| PlannedComponent {
            component: ComponentId(name.to_owned()),
            role,
            host: HostId(format!("host-{name}")),
        };
        vec![
            component("etcd-1", Role::Etcd),
            component("etcd-2", Role::Etcd),
            component("kube-apiserver-1", Role::KubeApiserver),
            component("kube-apiserver-2", Role::KubeApiserver),
            component("kube-controller-manager-1", Role::KubeControllerManager),
            component("kube-scheduler-1", Role::KubeScheduler),
        ]
    }

    fn with_injection<T>(look: impl FnOnce(&Injection<'_>) -> T) -> T {
        let components = cluster();
        let targets = [ComponentId("etcd-1".to_owned()), ComponentId("etcd-2".to_owned())];
        let id = InjectionId("2-loseEtcd".to_owned());
        look(&Injection {
            run: "run-7",
            id: &id,
            targets: &targets,
            components: &components,
            closed_by: None,
            before: &[],
        })
    }

    fn last_position(ops: &[UndoOp], matching: impl Fn(&UndoOp) -> bool) -> usize {
        ops.iter().rposition(matching).expect("there is such an operation")
    }

    fn first_position(ops: &[UndoOp], matching: impl Fn(&UndoOp) -> bool) -> usize {
        ops.iter().position(matching).expect("there is such an operation")
    }

    fn starts(op: &UndoOp, prefix: &str) -> bool {
        matches!(op, UndoOp::Start { component } if component.0.starts_with(prefix))
    }

    #[test]
    fn data_comes_back_only_under_a_cluster_where_nothing_runs() {
        let fault = LoseEtcd { members: Members::All };
        let ops = with_injection(|injection| fault.undo(injection, 1)).ops;
        let first_move = first_position(&ops, |op| matches!(op, UndoOp::BringDataBack { .. }));
        let stopped: BTreeSet<_> = ops[..first_move]
            .iter()
            .map(|op| match op {
                UndoOp::Stop { component, .. } => component.clone(),
                other => panic!("{other:?} before everything is stopped"),
            })
            .collect();
        assert_eq!(stopped, cluster().into_iter().map(|c| c.component).collect());
    }

    #[test]
    fn everything_is_started_anew_in_order_and_checked_against_etcd() {
        let fault = LoseEtcd { members: Members::All };
        let undo = with_injection(|injection| fault.undo(injection, 1));
        let forward = with_injection(|injection| fault.roll_forward(injection, 1)).unwrap();
        for ops in [undo.ops, forward.ops] {
            let etcd_ready = last_position(
                &ops,
                |op| matches!(op, UndoOp::AwaitReady { component } if component.0.starts_with("etcd")),
            );
            let api_ready = last_position(
                &ops,
                |op| matches!(op, UndoOp::AwaitReady { component } if component.0.starts_with("kube-apiserver")),
            );
            assert!(etcd_ready < first_position(&ops, |op| starts(op, "kube-apiserver")));
            assert!(api_ready < first_position(&ops, |op| starts(op, "kube-controller-manager")));
            assert!(api_ready < first_position(&ops, |op| starts(op, "kube-scheduler")));
            for component in cluster().into_iter().filter(|c| c.role != Role::Etcd) {
                let stop = first_position(
                    &ops,
                    |op| matches!(op, UndoOp::Stop { component: c, .. } if *c == component.component),
                );
                assert!(stop < first_position(&ops, |op| starts(op, &component.component.0)));
            }
            assert_eq!(ops.last(), Some(&UndoOp::AwaitListEqualsEtcd));
        }
    }

    #[test]
    fn rolling_forward_never_moves_data_and_never_stops_etcd() {
        let fault = LoseEtcd { members: Members::All };
        let forward = with_injection(|injection| fault.roll_forward(injection, 1)).unwrap();
        assert_eq!(forward.on_lapse, OnLapse::RollForward);
        for op in forward.ops {
            match op {
                UndoOp::BringDataBack { .. } => panic!("moves data"),
                UndoOp::Stop { component, .. } => assert!(!component.0.starts_with("etcd")),
                _ => {}
            }
        }
    }

    #[test]
    fn a_key_that_the_restore_takes_away_is_back_before_the_api_server_starts() {
        let components = cluster();
        let targets = [ComponentId("etcd-1".to_owned())];
        let restore: RestoreSnapshot =
            serde_json::from_value(serde_json::json!({"from": "backup", "encryptionKey": "missing"}))
                .unwrap();
        let step = Step::RestoreSnapshot(restore);
        let id = InjectionId("2-loseEtcd".to_owned());
        let closed_by = Some(&step);
        let injection = Injection {
            run: "run-7",
            id: &id,
            targets: &targets,
            components: &components,
            closed_by,
            before: &[],
        };
        let fault = LoseEtcd { members: Members::All };
        for ops in [fault.undo(&injection, 1).ops, fault.roll_forward(&injection, 1).unwrap().ops] {
            let back = last_position(
                &ops,
                |op| matches!(op, UndoOp::BringDataBack { component, .. } if component.0.starts_with("kube-apiserver")),
            );
            assert!(back < first_position(&ops, |op| starts(op, "kube-apiserver")));
        }
    }

    #[test]
    fn data_put_aside_by_another_run_is_never_taken_for_ones_own() {
        let (own, other) = with_injection(|injection| {
            (lost_slot(injection), lost_slot(&Injection { run: "run-8", ..*injection }))
        });
        assert_ne!(own, other);
    }
}
