//! Steps that are not faults, a file per kind with what they share beside them, and the one place that carries a step out.

pub mod apf_shares;
pub mod bump;
pub mod end;
pub mod hold;
pub mod injection;
pub mod kind;
pub mod load;
pub mod observe;
pub mod restart;
mod restore_snapshot;
pub mod restore_spec;
mod snapshot_file;
pub mod take_snapshot;
pub mod undo;

use crate::agent::undo::InjectionId;
use crate::agent::view::ClusterView;
use crate::client::load::LoadGate;
use crate::clock::{Clock, MonoNs};
use crate::component::{ComponentId, ControlError, Role};
use crate::dispatch::dispatcher::Journalist;
use crate::dispatch::interrupt::Interrupt;
use crate::guard::GuardToken;
use crate::journal::JournalError;
use crate::journal::entry::{Fact, JournalEvent};
use crate::plan::{Plan, PlannedStep, of_role};
use crate::provider::Cluster;
use crate::provider::live_api::LiveApi;
use crate::step::injection::OpenInjection;
use snapshot_file::SnapshotFile;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use thiserror::Error;

/// What a step works with.
pub struct StepContext {
    /// Run id.
    pub run: String,
    /// What was approved.
    pub plan: Arc<Plan>,
    /// The cluster under test.
    pub cluster: Arc<dyn Cluster>,
    /// Independent observations of it.
    pub view: Arc<dyn ClusterView>,
    /// Writes the journal, tells what the clients saw.
    pub journalist: Journalist,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// Ends waits early.
    pub interrupt: Interrupt,
    /// Permission to do harm to the plan's targets.
    pub guard: GuardToken,
    /// Starts the clients that wait for a `load` step, by name.
    pub loads: BTreeMap<String, LoadGate>,
    /// Namespace of the clients' objects.
    pub namespace: String,
    /// What earlier steps left for later ones.
    pub memory: Memory,
}

/// What earlier steps left for later ones.
#[derive(Debug, Default)]
pub struct Memory {
    /// Snapshots by name: what was found in each, and the provider's private file name.
    pub snapshots: BTreeMap<String, Snapshot>,
    /// Incarnations as bound, or as seen after the run itself restarted a component.
    pub incarnations: BTreeMap<ComponentId, String>,
    /// Injections that are not ended yet.
    pub open: Vec<OpenInjection>,
    /// UID and generation of each level of the drill, as this run left it; `None`: it was not there.
    pub levels: BTreeMap<String, Option<String>>,
    /// Highest revision that anybody saw before the last loss.
    pub lost_at_revision: u64,
}

impl Memory {
    /// Takes the open injections that `are` meant; the others stay open.
    pub fn take_open(&mut self, are: impl Fn(&OpenInjection) -> bool) -> Vec<OpenInjection> {
        let (taken, left) = std::mem::take(&mut self.open).into_iter().partition(are);
        self.open = left;
        taken
    }
}

/// A snapshot that was taken.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Name of the file in the provider's private directory.
    pub file: String,
    /// What was found in it when it was taken.
    contents: SnapshotFile,
}

/// Why a step failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StepError {
    /// Somebody asked the run to end.
    #[error("interrupted by {0}")]
    Interrupted(String),
    /// A component could not be controlled.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The journal could not be written; nothing further is done.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The fault could not be injected or seen.
    #[error(transparent)]
    Fault(#[from] crate::fault::FaultError),
    /// A guard refused.
    #[error(transparent)]
    Guard(#[from] crate::guard::GuardError),
    /// A tool ended badly.
    #[error("{tool} ended with code {code}: {stderr}")]
    Tool {
        /// Tool and verb.
        tool: String,
        /// Exit code.
        code: i32,
        /// What it said.
        stderr: String,
    },
    /// What should have been seen was not.
    #[error("{0}")]
    NotSeen(String),
}

impl StepContext {
    /// Awaits `wait`, unless somebody asks the run to end first. Only for waits:
    /// an effect under way is never dropped half-done.
    ///
    /// # Errors
    /// [`StepError::Interrupted`].
    pub async fn unless_interrupted<T>(&self, wait: impl Future<Output = T>) -> Result<T, StepError> {
        tokio::select! {
            value = wait => Ok(value),
            by = self.interrupt.asked() => Err(StepError::Interrupted(by)),
        }
    }

    /// Checks between two effects whether somebody asked the run to end.
    ///
    /// # Errors
    /// [`StepError::Interrupted`].
    pub fn go_on(&self) -> Result<(), StepError> {
        self.interrupt.by().map_or(Ok(()), |by| Err(StepError::Interrupted(by)))
    }

    /// Components of one role, in plan order.
    #[must_use]
    pub fn components(&self, role: Role) -> Vec<ComponentId> {
        of_role(&self.plan.cluster.components, role)
    }

    /// Asks API servers, exempt from flow control.
    #[must_use]
    pub fn api(&self) -> LiveApi {
        LiveApi::new(Arc::clone(&self.cluster))
    }

    /// Writes a fact into the journal.
    ///
    /// # Errors
    /// As [`Journalist::record`].
    pub async fn fact(&self, fact: Fact) -> Result<MonoNs, StepError> {
        Ok(self.journalist.record(JournalEvent::Fact { fact }).await?.mono_ns)
    }
}

/// Carries out one step.
///
/// # Errors
/// Whatever kept it from being carried out; the caller undoes what is open.
pub async fn execute(planned: &PlannedStep, ctx: &mut StepContext) -> Result<(), StepError> {
    ctx.go_on()?;
    planned.step.kind().execute(planned, ctx).await
}

/// Identity of the injection that a step makes.
#[must_use]
pub fn injection_id(planned: &PlannedStep) -> InjectionId {
    InjectionId(format!("{}-{}", planned.index, planned.step.key()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::undo::OnLapse;
    use crate::drill::spec::{ApfLevel, LoseEtcd, RestoreSnapshot, Step};

    /// A level that encloses a restore stays open: the restore is not its end.
    #[test]
    fn a_step_ends_only_the_injections_whose_end_it_is() {
        let level: ApfLevel = serde_json::from_value(serde_json::json!({
            "name": "jail", "shares": 0, "limitResponse": {"reject": {}}, "clients": ["tenant"]
        }))
        .unwrap();
        let loss: LoseEtcd = serde_json::from_value(serde_json::json!({"members": "all"})).unwrap();
        let restore: RestoreSnapshot = serde_json::from_value(serde_json::json!({"from": "backup"})).unwrap();
        let open = |step: usize, injected: Step| OpenInjection {
            id: InjectionId(format!("{step}-{}", injected.key())),
            step,
            fault: injected.kind().fault().unwrap(),
            targets: Vec::new(),
            within_ns: 1,
            before: Vec::new(),
        };
        let both = vec![open(0, Step::ApfLevel(level)), open(1, Step::LoseEtcd(loss))];
        let mut memory = Memory { open: both, ..Memory::default() };
        let restore = Step::RestoreSnapshot(restore);
        let ended = memory.take_open(|open| open.fault.closed_by(&restore));
        assert_eq!(ended.iter().map(|o| o.id.0.as_str()).collect::<Vec<_>>(), ["1-loseEtcd"]);
        assert_eq!(memory.open.iter().map(|o| o.id.0.as_str()).collect::<Vec<_>>(), ["0-apfLevel"]);
    }

    /// A fault says its own key, and so does the registry.
    #[test]
    fn every_fault_has_the_key_of_its_step() {
        for (key, spec) in [
            ("loseEtcd", serde_json::json!({"members": "all"})),
            ("memberLoss", serde_json::json!({"member": "etcd-1"})),
            ("quorumLoss", serde_json::json!({})),
            (
                "apfLevel",
                serde_json::json!({"name": "j", "shares": 0, "limitResponse": {"reject": {}}, "clients": []}),
            ),
        ] {
            let step: Step = serde_json::from_value(serde_json::json!({key: spec})).unwrap();
            let fault = step.kind().fault().unwrap();
            assert_eq!((step.key(), fault.kind()), (key, key));
            let on_lapse = fault.on_lapse();
            assert_eq!(on_lapse, OnLapse::Revert, "as its undo says until it is amended");
        }
    }
}
