//! Starts the plan's clients, waits until they have seen enough, and ends them.

use crate::client::context::{ClientContext, Setup};
use crate::client::load::{self, LoadGate};
use crate::client::under_test::Works;
use crate::clock::Clock;
use crate::component::network::{CLIENT_GROUP, Identity, OBSERVER_USER};
use crate::dispatch::dispatcher::Journalist;
use crate::dispatch::observations::Observations;
use crate::history::kind::ClientKind;
use crate::history::recorder::Recorder;
use crate::ledger::Ledger;
use crate::plan::{Plan, PlannedClient};
use crate::probe;
use crate::provider::{Cluster, ProviderError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long clients may take to close their histories before they are given up.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Clients that run.
pub struct Clients {
    tested: Group,
    /// Ended last, so that the truth covers everything that the others saw.
    observers: Group,
    loads: BTreeMap<String, LoadGate>,
}

#[derive(Default)]
struct Group {
    stop: CancellationToken,
    names: Vec<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl Group {
    /// A history that its client does not close in time says so by its missing last line.
    async fn end(self) {
        self.stop.cancel();
        for mut task in self.tasks {
            if tokio::time::timeout(CLOSE_WITHIN, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

/// Starts every client of the plan, each with its own recorder and connection.
///
/// # Errors
/// When a certificate can't be issued or a history can't be created.
pub fn start(
    plan: &Plan,
    cluster: &dyn Cluster,
    journalist: &Journalist,
    clock: &Arc<dyn Clock>,
    run_dir: &Path,
    namespace: &str,
) -> Result<Clients, ProviderError> {
    let ledger = Arc::new(Ledger::new());
    let mut clients =
        Clients { tested: Group::default(), observers: Group::default(), loads: BTreeMap::new() };
    for planned in &plan.clients {
        let group = match planned.kind {
            ClientKind::EtcdTruth => &mut clients.observers,
            _ => &mut clients.tested,
        };
        let recorder =
            Recorder::create(run_dir, &planned.name, Arc::clone(clock), journalist.anchors.clone()).map_err(
                |source| ProviderError::Io { what: format!("history of `{}`", planned.name), source },
            )?;
        let is_load =
            planned.spec.as_ref().is_some_and(|client| client.kind().about().works == Works::ByStep);
        let load = is_load.then(|| {
            let (gate, told) = load::gate();
            clients.loads.insert(planned.name.clone(), gate);
            told
        });
        let setup = Setup {
            planned: planned.clone(),
            dialer: cluster.dialer(),
            endpoint: cluster.endpoint(&planned.target)?,
            identity: identity(planned, cluster)?,
            ledger: Arc::clone(&ledger),
            namespace: namespace.to_owned(),
            seed: plan.seed,
        };
        let context = ClientContext {
            setup,
            load,
            clock: Arc::clone(clock),
            recorder,
            signals: journalist.signals.clone(),
            stop: group.stop.clone(),
        };
        group.names.push(planned.name.clone());
        group.tasks.push(spawn(context));
    }
    Ok(clients)
}

fn identity(planned: &PlannedClient, cluster: &dyn Cluster) -> Result<Identity, ProviderError> {
    if planned.talks_to_etcd() {
        return cluster.etcd_identity();
    }
    let groups: &[&str] = if planned.identity == OBSERVER_USER { &[] } else { &[CLIENT_GROUP] };
    cluster.identity(&planned.identity, groups)
}

/// Starts a client of the drill, or a probe that the plan added. It runs until
/// [`ClientContext::stop`] is cancelled, and has closed its history when the handle is done.
pub fn spawn(ctx: ClientContext) -> JoinHandle<()> {
    match ctx.setup.planned.spec.clone() {
        Some(client) => tokio::spawn(client.kind().run(ctx)),
        None => tokio::spawn(probe::run(ctx)),
    }
}

impl Clients {
    /// Starts the loads, by client.
    #[must_use]
    pub fn loads(&self) -> BTreeMap<String, LoadGate> {
        self.loads.clone()
    }

    /// Ends every client and waits until each has closed its history; the observers
    /// once they have looked after the others were gone.
    pub async fn stop(self, journalist: &Journalist, clock: &dyn Clock) {
        let Clients { tested, observers, .. } = self;
        tested.end().await;
        let since = clock.mono();
        let mut observations = journalist.observations.clone();
        let looked = observations.wait_for(|seen| {
            observers.names.iter().all(|name| seen.of(name).is_some_and(|o| o.last_good_call >= since))
        });
        // Without that last look late views stay unjudged, and the judge says so.
        let _ = tokio::time::timeout(CLOSE_WITHIN, looked).await;
        observers.end().await;
    }
}

/// Whether every client has as many good operations as the plan asks for before the fault.
#[must_use]
pub fn baseline_reached(plan: &Plan, seen: &Observations) -> bool {
    missing_from_baseline(plan, seen).is_empty()
}

/// Clients that have not seen enough yet, with how much they have seen.
#[must_use]
pub fn missing_from_baseline(plan: &Plan, seen: &Observations) -> Vec<String> {
    plan.clients
        .iter()
        .filter_map(|client| {
            let good = seen.of(&client.name).map_or(0, |c| c.good);
            let last = seen.of(&client.name).map(|c| format!("{:?}", c.last)).unwrap_or_default();
            (good < client.minimum.before).then(|| {
                format!("{}: {good} of {} good operations {last}", client.name, client.minimum.before)
            })
        })
        .collect()
}

/// Whether the service is good again: every ready probe and every writer, sustained.
#[must_use]
pub fn service_good(plan: &Plan, seen: &Observations) -> bool {
    plan.clients
        .iter()
        .filter(|c| matches!(c.kind, ClientKind::ApiReady | ClientKind::LedgerWriter))
        .all(|c| seen.sustained(&c.name, plan.limits.sustained))
}
