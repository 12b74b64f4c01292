//! `restoreSnapshot` as a drill file has it.

use super::bump::Bump;
use super::kind::{StepDone, StepKind};
use super::restart::{Restart, Which};
use super::take_snapshot::SnapshotMethod;
use super::{StepContext, restore_snapshot};
use crate::component::capability::Capability;
use crate::component::{ComponentId, Role};
use crate::drill::lint::{Lint, Place, SoFar, WAIT};
use crate::drill::spec::EncryptionKey;
use crate::drill::suggest;
use crate::drill::values::Span;
use crate::plan::{PlannedComponent, PlannedStep, of_role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Restores every lost etcd member from a snapshot with the `etcdutl` of the
/// etcd that will run, starts it, and restarts what is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// Name given by an earlier `takeSnapshot`.
    pub from: String,
    /// How far the revision is moved forward. Anything but `none` also marks
    /// the old revisions compacted: etcdutl refuses either alone.
    #[serde(default)]
    pub bump_revision: Bump,
    /// Which components are stopped before the restore and started after it.
    #[serde(default)]
    pub restart: Restart,
    /// Which cluster token the restored members are given.
    #[serde(default)]
    pub cluster_token: ClusterToken,
    /// What the API servers find as the encryption key when they are started again. Anything
    /// but `present` is part of the fault, and takes API servers that are restarted.
    #[serde(default)]
    pub encryption_key: EncryptionKey,
    /// Restore a copy of a database, which has no digest: nothing shows that its values are what etcd wrote.
    #[serde(default)]
    pub skip_hash_check: bool,
    /// How long each restored member, and then each restarted API server, may take to answer.
    #[serde(default = "RestoreSnapshot::default_ready_within")]
    pub ready_within: Span,
}

impl RestoreSnapshot {
    fn default_ready_within() -> Span {
        Span::secs(60)
    }
}

/// Which cluster token the restored members are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterToken {
    /// One of its own: a member of the lost cluster that comes back can't join.
    #[default]
    New,
    /// That of the lost cluster.
    Kept,
}

impl StepKind for RestoreSnapshot {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        lint.span(&at.key("readyWithin"), self.ready_within, (Span::secs(1), WAIT.1));
        if so_far.lost.take().is_none() {
            let title = "nothing to restore: no `loseEtcd` step stands before this one";
            lint.error(&at.key("from"), title, "add `- loseEtcd: {members: all}` before it");
        }
        so_far.open.retain(|(_, kind)| *kind != "loseEtcd");
        so_far.restored = true;
        self.snapshot_is_fit(lint, at, so_far);
        self.restarts_what_is_there(lint, at);
        self.key_can_be_lost(lint, at);
    }

    fn is_about_etcd(&self) -> bool {
        true
    }

    /// etcd, and what the procedure restarts.
    fn acts_on(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        let mut hit = of_role(components, Role::Etcd);
        for (role, _, which) in self.restart.by_role() {
            hit.extend(of_role(components, role).into_iter().filter(|component| which.takes(component)));
        }
        hit
    }

    fn requires(&self) -> Vec<Capability> {
        vec![Capability::ControlComponents, Capability::ReplaceEtcdData, Capability::ReachEtcd]
    }

    fn execute<'a>(&'a self, planned: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(restore_snapshot::execute(planned, self, ctx))
    }
}

impl RestoreSnapshot {
    fn snapshot_is_fit(&self, lint: &mut Lint<'_>, at: &Place, so_far: &SoFar<'_>) {
        let from = at.key("from");
        match (so_far.taken(&self.from), self.skip_hash_check) {
            (None, _) => {
                let names: Vec<&str> = so_far.snapshots.iter().map(|(name, _)| *name).collect();
                let help = suggest::hint(&self.from, "snapshots taken before", &names).unwrap_or_else(|| {
                    format!("add `- takeSnapshot: {{as: {}}}` before `loseEtcd`", self.from)
                });
                let title = format!("no earlier step takes a snapshot named `{}`", self.from);
                lint.error(&from, title, help);
            }
            (Some(SnapshotMethod::CopyDatabase), false) => {
                let title = format!(
                    "`{}` is a copy of a database: it has no digest, and etcdutl refuses it",
                    self.from
                );
                let help = "take it with `method: save`, or accept that nothing shows it to be whole: `skipHashCheck: true`";
                lint.error(&from, title, help);
            }
            (Some(SnapshotMethod::Save), true) => {
                let title = format!("`{}` has a digest, which `skipHashCheck` leaves unchecked", self.from);
                lint.warning(&at.key("skipHashCheck"), title, "leave `skipHashCheck` out");
            }
            (Some(_), _) => {}
        }
    }

    /// Only an API server that starts reads its key, and only one that encrypts has one.
    fn key_can_be_lost(&self, lint: &mut Lint<'_>, at: &Place) {
        if self.encryption_key == EncryptionKey::Present {
            return;
        }
        let path = at.key("encryptionKey");
        if lint.drill.spec.cluster.encryption_at_rest.is_none() {
            let title = "the cluster encrypts nothing, so there is no key to be lost";
            lint.error(&path, title, "add `encryptionAtRest: {provider: secretbox}` to `cluster`");
        }
        if self.restart.api_servers != Which::All {
            let title = "an API server that keeps running keeps its key in memory";
            lint.error(&path, title, "set `restart: {apiServers: true}`");
        }
    }

    fn restarts_what_is_there(&self, lint: &mut Lint<'_>, at: &Place) {
        let components = crate::plan::components(lint.drill.spec.cluster.topology);
        for (role, key, which) in self.restart.by_role() {
            let path = at.key(&format!("restart.{key}"));
            let there = of_role(&components, role);
            let there: Vec<&str> = there.iter().map(|component| component.0.as_str()).collect();
            match which {
                Which::All if there.is_empty() => {
                    let title = format!("`{key}: true` restarts nothing: the topology has none");
                    lint.warning(&path, title, format!("set `topology.{key}`, or leave this out"));
                }
                Which::Named(names) => {
                    for name in names.iter().filter(|name| !there.contains(&name.0.as_str())) {
                        let help = suggest::hint(&name.0, "there are", &there)
                            .unwrap_or_else(|| format!("set `topology.{key}`, or leave it out"));
                        lint.error(&path, format!("the cluster has no `{name}` among its {key}"), help);
                    }
                }
                Which::All | Which::None => {}
            }
        }
    }
}
