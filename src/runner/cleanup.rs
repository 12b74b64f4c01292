//! Puts a cluster in order at the end of a run, whoever ends it.

use super::preflight;
use crate::agent::log::EVIDENCE_FILE;
use crate::agent::protocol::{Request, Response};
use crate::agent::undo::InjectionId;
use crate::digest::sha256_hex;
use crate::dispatch::dispatcher::Journalist;
use crate::durable::write_atomically;
use crate::evidence::layout::RunDir;
use crate::journal::JournalError;
use crate::journal::entry::JournalEvent;
use crate::journal::reader;
use crate::journal::summary::RunSummary;
use crate::plan::Plan;
use crate::provider::{Cluster, Provider};
use crate::step::undo::{self, Settled};

/// What ending a run needs to know.
pub struct Cleanup<'a> {
    /// Run id.
    pub run: &'a str,
    /// What was carried out.
    pub plan: &'a Plan,
    /// Its evidence.
    pub dir: &'a RunDir,
    /// Name of the cluster in the state directory.
    pub cluster: &'a str,
    /// Owns the cluster's life cycle.
    pub provider: &'a dyn Provider,
    /// A cluster made for the run is kept.
    pub keep_cluster: bool,
    /// Writes the journal.
    pub journalist: &'a Journalist,
}

/// Nothing is left faulted, or what is and why.
pub type Cleaned = Result<(), String>;

impl Cleanup<'_> {
    /// Has the agent undo everything that the journal shows as owed.
    ///
    /// # Errors
    /// When the journal can't be read or written.
    pub async fn settle(&self, cluster: &dyn Cluster, cause: &str) -> Result<Settled, JournalError> {
        undo::settle(self.run, &self.owed()?, cluster, self.journalist, cause).await
    }

    /// Takes the cluster down if it was made for the run; else puts it in order.
    ///
    /// # Errors
    /// When the journal can't be read or written.
    pub async fn clean_up(
        &self,
        cluster: &dyn Cluster,
        namespace: &str,
        cause: &str,
    ) -> Result<Cleaned, JournalError> {
        if self.plan.cluster.standing.is_none() && !self.keep_cluster {
            self.import_agent_log(cluster).await?;
            return self.remove_cluster().await;
        }
        if let Settled::Faulted(failures) = self.settle(cluster, cause).await? {
            return Ok(Err(failures.join("; ")));
        }
        self.import_agent_log(cluster).await?;
        let removed = preflight::remove_namespace(self.plan, cluster, namespace).await;
        Ok(removed.map_err(|error| error.to_string()))
    }

    /// Takes the agent's own record of the run into the evidence, anchored in the journal.
    async fn import_agent_log(&self, cluster: &dyn Cluster) -> Result<(), JournalError> {
        // Without it the journal still says what was asked of the agent and what it answered.
        let Some(Ok(bytes)) = cluster.agent_log().map(std::fs::read) else { return Ok(()) };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let bytes = &bytes[..whole];
        if write_atomically(&self.dir.path().join(EVIDENCE_FILE), bytes).is_err() {
            return Ok(());
        }
        let records = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let anchored = JournalEvent::HistoryAnchored {
            file: EVIDENCE_FILE.to_owned(),
            bytes: bytes.len() as u64,
            records,
            sha256: sha256_hex(bytes),
        };
        self.journalist.record(anchored).await.map(|_| ())
    }

    /// Removes the cluster, and with it everything that was owed on it.
    ///
    /// # Errors
    /// When the journal can't be read or written.
    pub async fn remove_cluster(&self) -> Result<Cleaned, JournalError> {
        if let Err(error) = self.provider.down(self.cluster, &|_| {}).await {
            return Ok(Err(format!("cluster `{}` could not be removed: {error}", self.cluster)));
        }
        self.journalist.record(JournalEvent::ClusterRemoved { cluster: self.cluster.to_owned() }).await?;
        self.discharge_all("the cluster was removed").await?;
        Ok(Ok(()))
    }

    /// Writes down that nothing is owed any more, because what it was owed on is gone.
    ///
    /// # Errors
    /// When the journal can't be read or written.
    pub async fn discharge_all(&self, reason: &str) -> Result<(), JournalError> {
        for injection in self.owed()? {
            self.journalist.record(JournalEvent::Discharged { injection, reason: reason.to_owned() }).await?;
        }
        Ok(())
    }

    fn owed(&self) -> Result<Vec<InjectionId>, JournalError> {
        let journal = reader::read(&self.dir.journal())?;
        let open = RunSummary::of(&journal.entries);
        Ok(open.open().map(|injection| injection.injection.clone()).collect())
    }
}

/// The journal can't be written any more: what was injected is taken back all
/// the same, without a word. `recover` writes it down when there is room again.
pub async fn emergency(run: &str, name: &str, removable: bool, provider: &dyn Provider) {
    if removable {
        let _ = provider.down(name, &|_| {}).await;
        return;
    }
    let Ok(cluster) = provider.attach(name).await else { return };
    let Ok(Response::Injections { injections }) = cluster.agent(&Request::List).await else { return };
    for held in injections.into_iter().rev().filter(|held| held.run == run) {
        let _ = cluster.agent(&Request::Revert { run: held.run, injection: held.injection }).await;
    }
}
