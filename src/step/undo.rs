//! Has the agent carry out what is owed, and writes down how that went.

use crate::agent::protocol::{Held, HeldState, Request, Response};
use crate::agent::undo::InjectionId;
use crate::dispatch::dispatcher::Journalist;
use crate::journal::JournalError;
use crate::journal::entry::{DEAD_MAN, JournalEvent};
use crate::provider::Cluster;

/// How settling what is owed went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Nothing is left faulted.
    Clean,
    /// These undos failed, with the reason.
    Faulted(Vec<String>),
}

/// Has the agent undo every injection of the run that is still owed, the newest one first: an older
/// one was put in place without the newer one's disturbance, and may not be undone in it.
///
/// `known` are the injections that the journal says were armed, in that order. One that the
/// agent does not know was never injected: the agent's own record comes first.
///
/// # Errors
/// When the journal can't be written.
pub async fn settle(
    run: &str,
    known: &[InjectionId],
    cluster: &dyn Cluster,
    journalist: &Journalist,
    cause: &str,
) -> Result<Settled, JournalError> {
    let held = match cluster.agent(&Request::List).await {
        Ok(Response::Injections { injections }) => injections,
        Ok(other) => {
            return all_failed(known, journalist, &format!("unexpected answer of the agent: {other:?}"))
                .await;
        }
        Err(error) => return all_failed(known, journalist, &error.to_string()).await,
    };
    let mut failures = Vec::new();
    for injection in known.iter().rev() {
        let mine = held.iter().find(|h| h.run == run && &h.injection == injection);
        if let Some(failure) = settle_one(run, injection, mine, cluster, journalist, cause).await? {
            failures.push(format!("{injection}: {failure}"));
        }
    }
    Ok(if failures.is_empty() { Settled::Clean } else { Settled::Faulted(failures) })
}

async fn all_failed(
    known: &[InjectionId],
    journalist: &Journalist,
    reason: &str,
) -> Result<Settled, JournalError> {
    let mut failures = Vec::new();
    for injection in known {
        let (injection, reason) = (injection.clone(), reason.to_owned());
        failures.push(format!("{injection}: {reason}"));
        journalist.record(JournalEvent::UndoFailed { injection, reason }).await?;
    }
    Ok(if failures.is_empty() { Settled::Clean } else { Settled::Faulted(failures) })
}

/// Has the agent carry out one undo, unless nothing is owed; `Some` says why it failed.
///
/// # Errors
/// When the journal can't be written.
pub async fn settle_one(
    run: &str,
    injection: &InjectionId,
    held: Option<&Held>,
    cluster: &dyn Cluster,
    journalist: &Journalist,
    cause: &str,
) -> Result<Option<String>, JournalError> {
    let id = || injection.clone();
    let Some(held) = held else {
        let reason = "the agent was never told of it, so nothing was injected".to_owned();
        journalist.record(JournalEvent::Discharged { injection: id(), reason }).await?;
        return Ok(None);
    };
    let by_whom = match &held.state {
        HeldState::Discharged => {
            let reason = "the agent owes nothing for it".to_owned();
            journalist.record(JournalEvent::Discharged { injection: id(), reason }).await?;
            return Ok(None);
        }
        HeldState::Undone { by_lapse: true } => DEAD_MAN,
        _ => cause,
    };
    let started =
        JournalEvent::UndoStarted { injection: id(), mode: held.on_lapse, cause: by_whom.to_owned() };
    journalist.record(started).await?;
    let failure = match cluster.agent(&Request::Revert { run: run.to_owned(), injection: id() }).await {
        Ok(Response::Reverted { .. } | Response::Done) => None,
        Ok(Response::Error { message }) => Some(message),
        Ok(Response::Injections { .. }) => Some("unexpected answer of the agent".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    let event = match &failure {
        None => JournalEvent::UndoFinished { injection: id() },
        Some(reason) => JournalEvent::UndoFailed { injection: id(), reason: reason.clone() },
    };
    journalist.record(event).await?;
    Ok(failure)
}
