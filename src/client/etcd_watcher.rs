//! A watch on etcd itself that goes on after its last revision, as etcd's own client does.

use super::context::{ClientContext, Setup};
use super::etcd_range;
use super::session::{ATTEMPT_EVERY, Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::etcd::client::{EtcdClient, EtcdWatch, KeyEvent, WatchItem};
use crate::etcd::registry::{ledger_id, ledger_prefix};
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Event, Op, Outcome};
use crate::load::pacer::until;
use crate::wire::failure::FailureClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A watch on etcd itself, beside the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdWatcher {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

impl ClientUnderTest for EtcdWatcher {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::EtcdWatcher,
            talks_to: TalksTo::Etcd,
            works: Works::ByItsRules,
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, async |session, setup| {
            watch(session, setup).await.map(|()| session.unscheduled())
        }))
    }
}

/// A watch that is not accepted within this is given up and tried anew.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Code recorded when etcd cancels a watch because its revision was compacted:
/// what the API server makes of it.
pub const COMPACTED_CODE: u16 = 410;

/// Ranges, watches from the next revision, and goes on from the last revision
/// seen + 1 whenever the watch ends; a compaction makes it range again.
async fn watch(session: &mut Session, setup: &Setup) -> Result<(), Broken> {
    let mut etcd = EtcdClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let prefix = ledger_prefix(&setup.namespace);
    let stop = session.stop();
    let mut last_seen = None;
    let mut stream = 0;
    let mut next_attempt = session.clock().mono();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = until(session.clock(), next_attempt) => {}
        }
        next_attempt = session.clock().mono().plus(ATTEMPT_EVERY.as_nanos() as u64);
        let Some(last) = last_seen else {
            last_seen = etcd_range::range(session, &mut etcd, &prefix, None).await?;
            // A watch follows its range at once.
            next_attempt = if last_seen.is_some() { session.clock().mono() } else { next_attempt };
            continue;
        };
        let from = last + 1;
        let (timing, result) = session.timed(None, etcd.watch(&prefix, from, DEADLINE)).await;
        let (opened, outcome) = match result {
            None => (None, crate::wire::http::stopped()),
            Some(Ok(watch)) => (Some(watch), Outcome::Ok(Answer::default())),
            Some(Err(failure)) => (None, Outcome::Failed { status: None, reason: failure.class.to_string() }),
        };
        session.op(timing, Op::Watch { stream, from }, outcome)?;
        if let Some(watch) = opened {
            last_seen = follow(session, watch, stream, last).await?;
        }
        stream += 1;
    }
}

/// Records a stream to its end. Returns the revision to go on after, `None` after a compaction.
async fn follow(
    session: &mut Session,
    mut watch: EtcdWatch,
    stream: u64,
    last: u64,
) -> Result<Option<u64>, Broken> {
    let stop = session.stop();
    let mut last_seen = Some(last);
    let reason = loop {
        let item = tokio::select! {
            biased;
            () = stop.cancelled() => break FailureClass::Stopped.as_str(),
            item = watch.next() => item,
        };
        match item {
            Ok(WatchItem::Changed(change)) => {
                last_seen = Some(change.mod_revision);
                session.event(stream, event_of(&change))?;
            }
            Ok(WatchItem::Compacted { compact_revision }) => {
                last_seen = None;
                let message = format!("revision compacted; the oldest is {compact_revision}");
                session.event(stream, Event::Error { code: COMPACTED_CODE, message })?;
                break FailureClass::Compacted.as_str();
            }
            Ok(WatchItem::Cancelled { reason }) => {
                session.event(stream, Event::Error { code: 0, message: reason })?;
                break "cancelled";
            }
            Ok(WatchItem::Ended) => break "eof",
            Err(failure) => break failure.class.as_str(),
        }
    };
    session.event(stream, Event::Ended { reason: reason.to_owned() })?;
    Ok(last_seen)
}

fn event_of(change: &KeyEvent) -> Event {
    let revision = change.mod_revision;
    match ledger_id(&change.key) {
        Some(id) if change.deleted => Event::Delete { id, revision },
        Some(id) => Event::Put { id, revision },
        None => Event::Other { revision },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_ledger_key_carries_its_id_and_others_only_their_revision() {
        let change = |key: &str, deleted| {
            event_of(&KeyEvent { key: key.as_bytes().to_vec(), mod_revision: 9, deleted })
        };
        let key = format!("{}4", ledger_prefix("n"));
        assert_eq!(change(&key, false), Event::Put { id: 4, revision: 9 });
        assert_eq!(change(&key, true), Event::Delete { id: 4, revision: 9 });
        assert_eq!(change("/registry/configmaps/n/ledger-book", false), Event::Other { revision: 9 });
    }
}
