//! The watcher and reflector of the kube crate, given a transport that records every request.
//!
//! What the crate does with an answer (its retries, relists and backoff) is its own. Below it
//! there is no pool and no retry: each request has one connection and is one record. Above it,
//! what its store holds and which events it hands out is recorded as the client's view.

use super::context::{ClientContext, Setup};
use super::recorded_transport::{Journal, RecordedTransport};
use super::session::{Broken, Session};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::history::ids::IdSet;
use crate::history::kind::ClientKind;
use crate::history::record::Event;
use crate::ledger::id_of;
use crate::wire::connection::{Connector, Protocol};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event as Seen};
use kube::runtime::{WatchStreamExt, watcher as watch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The watcher and reflector of the kube crate with its default backoff: its own rules for
/// retries and relists are what is tested. Every request that it makes is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reflector {
    /// kebab-case name, unique in the drill.
    pub name: String,
}

impl ClientUnderTest for Reflector {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::Reflector,
            talks_to: TalksTo::ApiServer,
            works: Works::ByItsRules,
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(run(ctx))
    }
}

/// Reflects the ledger's namespace until told to end.
async fn run(ctx: ClientContext) {
    if let Some((session, setup)) = Session::open(ctx) {
        let stop = session.stop();
        let journal = Arc::new(Journal::new(session));
        let end = tokio::select! {
            biased;
            () = async { stop.cancelled().await; journal.settled().await } => Ok(()),
            end = reflect(&journal, &setup) => end,
        };
        if let Some((session, broken)) = journal.close() {
            let end = broken.map_or(end, Err).map(|()| session.unscheduled());
            session.close(end);
        }
    }
}

async fn reflect(journal: &Arc<Journal>, setup: &Setup) -> Result<(), Broken> {
    let connector = Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, Protocol::Http1)?;
    let transport = RecordedTransport::new(connector, journal.clone());
    // Made from a service, not from a `Config`: the crate's own retry policy is not in it.
    let client = kube::Client::new(transport, setup.namespace.clone());
    let api: Api<ConfigMap> = Api::namespaced(client, &setup.namespace);
    let (store, writer) = reflector::store();
    let events = watch(api, watcher::Config::default()).default_backoff().reflect(writer);
    let mut events = std::pin::pin!(events);
    while let Some(seen) = events.next().await {
        // Errors are what the transport has recorded already.
        if let Some(event) = seen.ok().and_then(|seen| event_of(&seen, &store, journal)) {
            journal.event(event);
        }
        if journal.is_broken() {
            break;
        }
    }
    Ok(())
}

fn event_of(seen: &Seen<ConfigMap>, store: &Store<ConfigMap>, journal: &Journal) -> Option<Event> {
    match seen {
        Seen::Apply(object) => {
            let revision = revision(object)?;
            Some(match ledger_id(object) {
                Some(id) => Event::Put { id, revision },
                None => Event::Other { revision },
            })
        }
        Seen::Delete(object) => {
            let revision = revision(object)?;
            Some(match ledger_id(object) {
                Some(id) => Event::Delete { id, revision },
                None => Event::Other { revision },
            })
        }
        // The reflector swaps its store when a list is complete.
        Seen::InitDone => Some(Event::Store { ids: ids(store), revision: journal.listed_at() }),
        Seen::Init | Seen::InitApply(_) => None,
    }
}

fn ids(store: &Store<ConfigMap>) -> IdSet {
    store.state().iter().filter_map(|object| ledger_id(object)).collect()
}

fn ledger_id(object: &ConfigMap) -> Option<u64> {
    id_of(object.metadata.name.as_deref()?)
}

fn revision(object: &ConfigMap) -> Option<u64> {
    object.metadata.resource_version.as_deref()?.parse().ok()
}
