//! Ends a run whose runner died, from another process, on another day.

use super::cleanup::{Cleaned, Cleanup};
use super::lifecycle::{RunEnd, RunError, ledger_namespace};
use crate::clock::Clock;
use crate::dispatch::dispatcher::{Dispatcher, Journalist, Watcher};
use crate::evidence::layout::RunDir;
use crate::evidence::secrets::KnownSecrets;
use crate::journal::JournalError;
use crate::journal::entry::{JournalEvent, Phase, RunOutcome};
use crate::journal::summary::RunSummary;
use crate::journal::writer::JournalWriter;
use crate::plan::Plan;
use crate::provider::{Provider, ProviderError};
use std::sync::Arc;

/// What is known of a run that did not end.
pub struct RecoverRequest {
    /// Run id.
    pub run: String,
    /// What was carried out.
    pub plan: Arc<Plan>,
    /// Its evidence.
    pub dir: RunDir,
    /// Name of the cluster in the state directory.
    pub cluster: String,
    /// Owns the cluster's life cycle.
    pub provider: Arc<dyn Provider>,
    /// A cluster made for the run is kept.
    pub keep_cluster: bool,
    /// Clock of the recovering process.
    pub clock: Arc<dyn Clock>,
    /// Sees what happens while it happens.
    pub watcher: Arc<dyn Watcher>,
    /// `recover` or `abort`.
    pub by: &'static str,
    /// Learns the secrets of the cluster while it exists.
    pub secrets: KnownSecrets,
}

/// Undoes what is owed, removes what the run made, and closes its journal.
/// A run that is closed already is left as it is, unless it was closed with something left faulted.
///
/// # Errors
/// When the journal can't be read or continued.
pub async fn recover(request: RecoverRequest) -> Result<RunEnd, RunError> {
    let path = request.dir.journal();
    let resumed = JournalWriter::resume(&path, Arc::clone(&request.clock))?;
    let summary = RunSummary::of(&resumed.entries);
    if let Some(closed) = summary.closed.as_ref().filter(|closed| closed.outcome != RunOutcome::Faulted) {
        return Ok(RunEnd { outcome: closed.outcome, reason: closed.reason.clone() });
    }
    let (dispatcher, journalist) =
        Dispatcher::new(resumed.writer, Arc::clone(&request.clock), Arc::clone(&request.watcher));
    let dispatcher = tokio::spawn(dispatcher.run());
    let end = adopt(&request, &summary, journalist, resumed.torn_bytes).await;
    let _ = dispatcher.await;
    Ok(end?)
}

async fn adopt(
    request: &RecoverRequest,
    summary: &RunSummary,
    journalist: Journalist,
    torn_bytes: u64,
) -> Result<RunEnd, JournalError> {
    journalist.record(JournalEvent::RunAdopted { by: request.by.to_owned(), torn_bytes }).await?;
    journalist.record(JournalEvent::Phase { phase: Phase::Cleanup }).await?;
    let cleanup = Cleanup {
        run: &request.run,
        plan: &request.plan,
        dir: &request.dir,
        cluster: &request.cluster,
        provider: request.provider.as_ref(),
        keep_cluster: request.keep_cluster,
        journalist: &journalist,
    };
    let (outcome, reason) = match put_in_order(request, summary, &cleanup).await? {
        Ok(()) => {
            (RunOutcome::Recovered, Some("the runner died; the run was ended by another process".to_owned()))
        }
        Err(failure) => (RunOutcome::Faulted, Some(failure)),
    };
    journalist.record(JournalEvent::RunClosed { outcome, reason: reason.clone() }).await?;
    Ok(RunEnd { outcome, reason })
}

async fn put_in_order(
    request: &RecoverRequest,
    summary: &RunSummary,
    cleanup: &Cleanup<'_>,
) -> Result<Cleaned, JournalError> {
    let standing = request.plan.cluster.standing.is_some();
    if !standing && summary.clusters_owed.is_empty() {
        return Ok(Ok(()));
    }
    match request.provider.attach(&request.cluster).await {
        Ok(cluster) => {
            cluster.secret_files().iter().for_each(|file| request.secrets.learn_file(file));
            // The undo comes first even where the cluster goes, so that its course is on record.
            cleanup.settle(cluster.as_ref(), request.by).await?;
            cleanup.clean_up(cluster.as_ref(), &ledger_namespace(&request.run), request.by).await
        }
        Err(ProviderError::NoSuchCluster { .. }) if standing => {
            cleanup.discharge_all("the cluster does not exist any more").await?;
            Ok(Ok(()))
        }
        // Also where there is none: it may have come to parts of one, and its removal is owed on record.
        Err(_) if !standing => cleanup.remove_cluster().await,
        Err(error) => Ok(Err(error.to_string())),
    }
}
