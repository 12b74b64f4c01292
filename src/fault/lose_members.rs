//! `memberLoss` and `quorumLoss`: etcd members killed, their data left where it is.
//!
//! Nothing is rolled back by either: what was acknowledged is on the disks of a majority,
//! so the undo is to start the members again, whatever has happened meanwhile. API servers
//! live through both, and their caches stay on the one timeline that there is.

use super::{Aim, Fault, FaultContext, FaultError, Faulting, Injection, authorized, expect_look, members};
use crate::agent::undo::{OnLapse, Undo, UndoOp};
use crate::component::capability::Capability;
use crate::component::{ComponentId, Role, StopMethod};
use crate::drill::lint::{Lint, Place, SoFar};
use crate::drill::suggest;
use crate::guard::GuardToken;
use crate::plan::{PlannedComponent, of_role};
use crate::step::kind::StepKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Kills one etcd member; the others keep quorum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberLoss {
    /// Which, as `etcd-2`.
    pub member: ComponentId,
}

/// Kills so many etcd members, the last ones by name, that the rest has no quorum:
/// two of three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuorumLoss {}

/// Members whose loss leaves `members` without quorum.
#[must_use]
pub fn majority(members: usize) -> usize {
    members / 2 + 1
}

fn start_again(injection: &Injection<'_>, on_lapse: OnLapse, within_ns: u64) -> Undo {
    let starts = injection.targets.iter().cloned().map(|component| UndoOp::Start { component });
    let waits = injection.targets.iter().cloned().map(|component| UndoOp::AwaitReady { component });
    let ops = starts.chain(waits).chain([UndoOp::AwaitListEqualsEtcd]).collect();
    Undo { injection: injection.id.clone(), on_lapse, ops, within_ns }
}

async fn kill(
    context: FaultContext<'_>,
    guard: &GuardToken,
    injection: Injection<'_>,
) -> Result<(), FaultError> {
    authorized(guard, &injection)?;
    for member in injection.targets {
        context.control.stop(member, StopMethod::Kill).await?;
    }
    Ok(())
}

/// The targets are stopped, and the rest answers or not, as it must.
async fn seen(
    context: FaultContext<'_>,
    injection: Injection<'_>,
    rest_answers: bool,
) -> Result<String, FaultError> {
    members::expect_stopped(context, injection.targets).await?;
    let mut seen: Vec<String> =
        injection.targets.iter().map(|member| format!("{member} is stopped")).collect();
    for member in injection.with_role(Role::Etcd).iter().filter(|m| !injection.targets.contains(m)) {
        let expected = if rest_answers { "answers" } else { "does not answer" };
        let look = context.view.etcd_healthy(member).await;
        let told = expect_look(look, rest_answers, &format!("{member} {expected} a linearizable read"))?;
        seen.push(format!("{member} {expected} a linearizable read: {told}"));
    }
    Ok(seen.join("; "))
}

/// Members that are killed and keep their data: which, and what the others can do meanwhile.
trait MembersKilled: Clone + Send + Sync + 'static {
    const KIND: &'static str;
    /// The others answer.
    const QUORUM_STAYS: bool;
    fn of(&self, members: Vec<ComponentId>) -> Vec<ComponentId>;
    fn harm(&self, aim: &Aim<'_>) -> String;
    fn can_be(&self, _: &mut Lint<'_>, _: &Place) {}
}

impl MembersKilled for MemberLoss {
    const KIND: &'static str = "memberLoss";
    const QUORUM_STAYS: bool = true;

    fn of(&self, members: Vec<ComponentId>) -> Vec<ComponentId> {
        members.into_iter().filter(|m| *m == self.member).collect()
    }

    fn harm(&self, aim: &Aim<'_>) -> String {
        format!(
            "{} is killed, {} members keep quorum: requests under way through it fail or hang, and when it led, \
             nothing is written until another is elected, about a second; nothing is lost. Nothing outside this \
             cluster is touched",
            aim.names(),
            aim.count(Role::Etcd).saturating_sub(1),
        )
    }

    /// One member of several, by its name.
    fn can_be(&self, lint: &mut Lint<'_>, at: &Place) {
        let count = lint.drill.spec.cluster.topology.etcd;
        let path = at.key("member");
        let names: Vec<String> = (1..=count).map(|n| format!("etcd-{n}")).collect();
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        if !known.contains(&self.member.0.as_str()) {
            let help = suggest::hint(&self.member.0, "etcd members", &known).unwrap_or_default();
            lint.error(&path, format!("the cluster has no etcd member `{}`", self.member), help);
        } else if count < 3 {
            let title = "the loss of the only member is the loss of the quorum";
            lint.error(&path, title, "use `quorumLoss: {}`, or set `topology.etcd: 3`");
        }
    }
}

impl MembersKilled for QuorumLoss {
    const KIND: &'static str = "quorumLoss";
    const QUORUM_STAYS: bool = false;

    fn of(&self, members: Vec<ComponentId>) -> Vec<ComponentId> {
        let survivors = members.len() - majority(members.len()).min(members.len());
        members.into_iter().skip(survivors).collect()
    }

    fn harm(&self, aim: &Aim<'_>) -> String {
        format!(
            "{} of {} etcd members ({}) are killed: no write and no quorum read until they are back; controllers \
             and schedulers lose their leases after about 10 s and exit; nothing acknowledged is lost. Nothing \
             outside this cluster is touched",
            aim.targets.len(),
            aim.count(Role::Etcd),
            aim.names(),
        )
    }
}

impl<T: MembersKilled> StepKind for T {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        self.can_be(lint, at);
        so_far.begins(lint, at, T::KIND);
    }

    fn fault(&self) -> Option<Arc<dyn Fault>> {
        Some(Arc::new(self.clone()))
    }
}

impl<T: MembersKilled> Fault for T {
    fn kind(&self) -> &'static str {
        T::KIND
    }

    fn role(&self) -> Role {
        Role::Etcd
    }

    fn targets(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        self.of(of_role(components, Role::Etcd))
    }

    fn blast_radius(&self, aim: &Aim<'_>) -> String {
        self.harm(aim)
    }

    fn undo_in_words(&self) -> &'static str {
        "start the members again with the data that they have, and wait until each answers a linearizable read and \
         LIST equals etcd's own state"
    }

    fn needs(&self) -> BTreeSet<Capability> {
        [Capability::ControlComponents, Capability::ReachEtcd, Capability::DeadMan].into()
    }

    fn stop_method(&self) -> Option<StopMethod> {
        Some(StopMethod::Kill)
    }

    fn others_go_on(&self) -> bool {
        T::QUORUM_STAYS
    }

    fn undo(&self, injection: &Injection<'_>, within_ns: u64) -> Undo {
        start_again(injection, self.on_lapse(), within_ns)
    }

    fn inject<'a>(
        &'a self,
        context: FaultContext<'a>,
        guard: &'a GuardToken,
        injection: Injection<'a>,
    ) -> Faulting<'a, ()> {
        Box::pin(kill(context, guard, injection))
    }

    fn verify_injected<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(seen(context, injection, T::QUORUM_STAYS))
    }

    fn verify_ended<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(async move { members::expect_answers(context, &injection.with_role(Role::Etcd)).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::undo::InjectionId;
    use crate::drill::spec::Topology;
    use crate::plan::components;

    fn id(name: &str) -> ComponentId {
        ComponentId(name.to_owned())
    }

    #[test]
    fn quorum_is_lost_by_the_fewest_members_that_take_it_along() {
        let of = |etcd| QuorumLoss {}.targets(&components(Topology { etcd, ..Topology::default() }));
        assert_eq!(of(3), [id("etcd-2"), id("etcd-3")]);
        assert_eq!(of(1), [id("etcd-1")]);
        assert_eq!([1, 2, 3, 4, 5].map(majority), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_member_that_is_not_there_is_no_target() {
        let all = components(Topology { etcd: 3, ..Topology::default() });
        assert_eq!(MemberLoss { member: id("etcd-3") }.targets(&all), [id("etcd-3")]);
        assert!(MemberLoss { member: id("etcd-4") }.targets(&all).is_empty());
        assert!(MemberLoss { member: id("kube-apiserver-1") }.targets(&all).is_empty());
    }

    #[test]
    fn the_undo_moves_no_data_and_starts_all_members_before_it_waits_for_one() {
        let all = components(Topology { etcd: 3, ..Topology::default() });
        let targets = QuorumLoss {}.targets(&all);
        let id_of = InjectionId("2-quorumLoss".to_owned());
        let injection = Injection {
            run: "r",
            id: &id_of,
            targets: &targets,
            components: &all,
            closed_by: None,
            before: &[],
        };
        let ops = QuorumLoss {}.undo(&injection, 1).ops;
        let start = |name: &str| UndoOp::Start { component: id(name) };
        let wait = |name: &str| UndoOp::AwaitReady { component: id(name) };
        let expected =
            [start("etcd-2"), start("etcd-3"), wait("etcd-2"), wait("etcd-3"), UndoOp::AwaitListEqualsEtcd];
        assert_eq!(ops, expected);
    }
}
