//! Guards: nothing is injected without the lock on the cluster, and into nothing but the targets of the plan.

pub mod lock;
mod targets;

use crate::component::{ComponentId, ComponentState, ComponentStatus};
use crate::plan::Plan;
use lock::DrillLock;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use thiserror::Error;

/// Why a guard refuses. Nothing was harmed; the exit code is 5.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GuardError {
    /// Another run is at work on the cluster.
    #[error(
        "cluster `{cluster}` is in use by run {run} (process {pid}, since {since})\n  hint: wait for it, or end it with `quakeproof abort {run}`"
    )]
    Busy {
        /// Which cluster.
        cluster: String,
        /// Which run.
        run: String,
        /// Its process.
        pid: u32,
        /// When it took the lock.
        since: String,
    },
    /// An earlier run died on the cluster, or left something faulted.
    #[error("run {run} on cluster `{cluster}` is unfinished: {reason}\n  hint: quakeproof recover {run}")]
    RunUnfinished {
        /// Which cluster.
        cluster: String,
        /// Which run.
        run: String,
        /// What is unfinished.
        reason: String,
    },
    /// The lock belongs to another run than the one that would adopt it.
    #[error("the lock on cluster `{cluster}` belongs to run {run}, not to {wanted}")]
    NotYours {
        /// Which cluster.
        cluster: String,
        /// Which run has it.
        run: String,
        /// Which run wanted it.
        wanted: String,
    },
    /// The lock file can't be used.
    #[error("{}: {reason}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The lock held is of another cluster than the plan's.
    #[error("the lock is on cluster `{locked}`, the injection is on `{cluster}`")]
    WrongLock {
        /// Cluster of the lock.
        locked: String,
        /// Cluster of the plan.
        cluster: String,
    },
    /// A target of the drill matches nothing.
    #[error(
        "step {step} (`{kind}`) has no target:{candidates}\n  hint: change the step's selector or the cluster's topology"
    )]
    NoTarget {
        /// Index of the step.
        step: usize,
        /// Its kind.
        kind: &'static str,
        /// Why each component was not chosen, one per line.
        candidates: String,
    },
    /// A target is not what the fault is for, or not there.
    #[error("step {step} (`{kind}`) may not hit `{target}`: {reason}")]
    BadTarget {
        /// Index of the step.
        step: usize,
        /// Its kind.
        kind: &'static str,
        /// Which component.
        target: ComponentId,
        /// Why not.
        reason: String,
    },
    /// More would be harmed than the plan says.
    #[error("`{target}` is not among the targets that the plan allows: {allowed}")]
    NotAllowed {
        /// Which component.
        target: ComponentId,
        /// Those that are.
        allowed: String,
    },
    /// A target is not the one that was bound.
    #[error(
        "`{target}` is not the one that the run was bound to: {reason}\n  hint: the run is refused, not redirected; run the drill again"
    )]
    Changed {
        /// Which component.
        target: ComponentId,
        /// What changed.
        reason: String,
    },
}

/// The right to inject the faults of one plan into one locked cluster. There is no other way
/// to get one than [`authorize`].
#[derive(Debug)]
pub struct GuardToken {
    run: String,
    /// Targets by step.
    allowed: BTreeMap<usize, BTreeSet<ComponentId>>,
}

/// Checks every fault of the plan against the cluster that is locked: each target exists, is
/// what the fault is for, and no fault is without a target.
///
/// `cluster` is the cluster's name in the state directory.
///
/// # Errors
/// Everything in [`GuardError`] but the lock's own.
pub fn authorize(
    plan: &Plan,
    cluster: &str,
    lock: &DrillLock,
    statuses: &[ComponentStatus],
) -> Result<GuardToken, GuardError> {
    if lock.cluster() != cluster {
        return Err(GuardError::WrongLock { locked: lock.cluster().to_owned(), cluster: cluster.to_owned() });
    }
    let mut allowed = BTreeMap::new();
    for step in &plan.steps {
        if step.fault.is_some() {
            targets::check(step, statuses)?;
            allowed.insert(step.index, step.targets.iter().cloned().collect());
        }
    }
    Ok(GuardToken { run: lock.run().to_owned(), allowed })
}

impl GuardToken {
    /// The run that it was given to.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Right before an injection: are these the targets of the plan, and are they still the
    /// ones that were bound?
    ///
    /// `incarnations` are those of the binding; for a component that the run itself has
    /// restarted since, the one seen after that.
    ///
    /// # Errors
    /// [`GuardError::NotAllowed`], [`GuardError::Changed`].
    pub fn recheck(
        &self,
        step: usize,
        targets: &[ComponentId],
        incarnations: &BTreeMap<ComponentId, String>,
        statuses: &[ComponentStatus],
    ) -> Result<(), GuardError> {
        let allowed = self.allowed.get(&step);
        for target in targets {
            if !allowed.is_some_and(|a| a.contains(target)) {
                let allowed = allowed.into_iter().flatten().map(|t| t.0.as_str()).collect::<Vec<_>>();
                return Err(GuardError::NotAllowed { target: target.clone(), allowed: allowed.join(", ") });
            }
            same_as_bound(target, incarnations, statuses)
                .map_err(|reason| GuardError::Changed { target: target.clone(), reason })?;
        }
        Ok(())
    }
}

fn same_as_bound(
    target: &ComponentId,
    incarnations: &BTreeMap<ComponentId, String>,
    statuses: &[ComponentStatus],
) -> Result<(), String> {
    let status = statuses.iter().find(|s| s.component == *target).ok_or("it is gone")?;
    let bound = incarnations.get(target).ok_or("the binding does not know it")?;
    if status.incarnation != *bound {
        return Err(format!("it was started anew (incarnation {}, bound {bound})", status.incarnation));
    }
    match &status.state {
        ComponentState::Running => Ok(()),
        ComponentState::Stopped => Err("it is stopped".to_owned()),
        ComponentState::Paused => Err("it is frozen".to_owned()),
        ComponentState::Exited { how } => Err(format!("it has ended by itself: {}", how.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::component::{HostId, Role};
    use crate::journal::samples::id;
    use crate::state::StateDir;
    use targets::tests::{lose_etcd, plan};

    fn statuses() -> Vec<ComponentStatus> {
        let status = |name: &str, role, incarnation: &str| ComponentStatus {
            component: id(name),
            role,
            host: HostId(format!("host-{name}")),
            state: ComponentState::Running,
            incarnation: incarnation.to_owned(),
        };
        vec![status("etcd-1", Role::Etcd, "101"), status("kube-apiserver-1", Role::KubeApiserver, "102")]
    }

    fn with_lock<T>(run: impl FnOnce(&DrillLock) -> T) -> T {
        let root = tempfile::tempdir().unwrap();
        let state = StateDir::at(root.path());
        state.create().unwrap();
        let lock = DrillLock::acquire(&state, "main-1", "run-1", root.path(), &FakeClock::new()).unwrap();
        run(&lock)
    }

    fn authorized(targets: &[&str]) -> Result<GuardToken, GuardError> {
        with_lock(|lock| authorize(&plan(vec![lose_etcd(2, targets)]), "main-1", lock, &statuses()))
    }

    #[test]
    fn a_target_that_matches_nothing_says_why_each_candidate_was_not_chosen() {
        let error = authorized(&[]).unwrap_err();
        assert!(matches!(error, GuardError::NoTarget { step: 2, .. }));
        let text = error.to_string();
        assert!(text.contains("etcd-1: an etcd member, but the plan does not name it"), "{text}");
        assert!(
            text.contains("kube-apiserver-1: a kube-apiserver, the fault is for an etcd member"),
            "{text}"
        );
    }

    #[test]
    fn a_target_must_exist_and_be_what_the_fault_is_for() {
        assert!(matches!(authorized(&["etcd-9"]), Err(GuardError::BadTarget { .. })));
        assert!(matches!(authorized(&["kube-apiserver-1"]), Err(GuardError::BadTarget { .. })));
        assert!(authorized(&["etcd-1"]).is_ok());
    }

    #[test]
    fn a_lock_on_another_cluster_gives_no_token() {
        let refused = with_lock(|lock| authorize(&plan(vec![]), "other", lock, &statuses()));
        assert!(matches!(refused, Err(GuardError::WrongLock { .. })));
    }

    #[test]
    fn a_changed_target_is_refused_and_not_redirected() {
        let token = authorized(&["etcd-1"]).unwrap();
        let bound = BTreeMap::from([(id("etcd-1"), "101".to_owned())]);
        let check = |statuses: &[ComponentStatus]| token.recheck(2, &[id("etcd-1")], &bound, statuses);
        assert!(check(&statuses()).is_ok());
        let mut anew = statuses();
        anew[0].incarnation = "103".to_owned();
        assert!(check(&anew).unwrap_err().to_string().contains("started anew"));
        let mut ended = statuses();
        ended[0].state = ComponentState::Exited { how: "signal 9\u{1b}[2J".to_owned() };
        let text = check(&ended).unwrap_err().to_string();
        assert!(text.contains("ended by itself") && !text.contains('\u{1b}'), "{text}");
        let mut other = statuses();
        other[1].incarnation = "104".to_owned();
        assert!(check(&other).is_ok(), "what is no target may be started anew");
        assert!(check(&statuses()[1..]).unwrap_err().to_string().contains("gone"));
        let wider = token.recheck(2, &[id("kube-apiserver-1")], &bound, &statuses());
        assert!(matches!(wider, Err(GuardError::NotAllowed { .. })));
        let other_step = token.recheck(3, &[id("etcd-1")], &bound, &statuses());
        assert!(matches!(other_step, Err(GuardError::NotAllowed { .. })));
    }
}
