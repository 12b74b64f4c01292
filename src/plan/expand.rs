//! Components of the topology, and clients with the probes that a plan adds.

use super::minimum::Windows;
use super::steps::of_role;
use super::{MinimumOperations, PlannedClient, PlannedComponent};
use crate::client::under_test::{TalksTo, Works};
use crate::component::network::OBSERVER_USER;
use crate::component::{ComponentId, HostId, Role};
use crate::drill::spec::{ApiReady, Client, Drill, Objective, SteadyState, Step, Topology};
use crate::fault::apf_level::client_user;
use crate::history::record::ClientKind;
use std::time::Duration;

/// Time between two readings of etcd's own state.
const TRUTH_EVERY: Duration = Duration::from_millis(500);
/// Time between two looks at a leader's Lease, which is renewed every 2 s by default.
const LEADER_EVERY: Duration = Duration::from_millis(500);

/// Every component, in start order, each on a host of its own name.
#[must_use]
pub fn components(topology: Topology) -> Vec<PlannedComponent> {
    let roles = [
        (Role::Etcd, "etcd", topology.etcd),
        (Role::KubeApiserver, "kube-apiserver", topology.api_servers),
        (Role::KubeControllerManager, "kube-controller-manager", topology.controller_managers),
        (Role::KubeScheduler, "kube-scheduler", topology.schedulers),
    ];
    let named = |(role, name, count): (Role, &'static str, u8)| {
        (1..=count).map(move |n| {
            let name = format!("{name}-{n}");
            PlannedComponent { component: ComponentId(name.clone()), role, host: HostId(name) }
        })
    };
    roles.into_iter().flat_map(named).collect()
}

/// Probes first, so that they see the drill's clients start, then the drill's own clients.
pub(super) fn clients(drill: &Drill, components: &[PlannedComponent]) -> Vec<PlannedClient> {
    let windows = Windows::of(drill);
    let mut planned = probes(drill, components, &windows);
    let api_servers = of_role(components, Role::KubeApiserver);
    let etcd = of_role(components, Role::Etcd);
    let written_every = written_every(drill);
    for (i, client) in drill.spec.clients.iter().enumerate() {
        let about = client.kind().about();
        let every = about.every();
        planned.push(PlannedClient {
            name: about.name.to_owned(),
            kind: about.kind,
            target: match about.talks_to {
                TalksTo::ApiServer => api_servers[i % api_servers.len()].clone(),
                TalksTo::Named(server) => server.clone(),
                TalksTo::Etcd => etcd[0].clone(),
            },
            identity: client_user(about.name),
            spec: Some(client.clone()),
            every_ns: every.map(nanos),
            minimum: match (about.works, every) {
                (Works::ByStep, _) => MinimumOperations { before: 0, during: 0, after: 0 },
                (_, Some(every)) => windows.paced(every),
                (_, None) => windows.watching(written_every),
            },
        });
    }
    planned
}

/// What the plan adds by itself: the truth, readiness, leaders.
fn probes(drill: &Drill, components: &[PlannedComponent], windows: &Windows) -> Vec<PlannedClient> {
    let probe = |name: String, kind, target: &ComponentId, identity, every| PlannedClient {
        name,
        kind,
        target: target.clone(),
        identity,
        spec: None,
        every_ns: Some(nanos(every)),
        minimum: windows.paced(every),
    };
    let mut probes = Vec::new();
    if needs_truth(drill) {
        let etcd = ComponentId("etcd-1".to_owned());
        let name = "etcd-truth".to_owned();
        probes.push(probe(name, ClientKind::EtcdTruth, &etcd, OBSERVER_USER.to_owned(), TRUTH_EVERY));
    }
    let ready_every = ready_every(drill);
    let api_servers = of_role(components, Role::KubeApiserver);
    for component in &api_servers {
        let name = format!("ready-{component}");
        let identity = client_user(&name);
        probes.push(probe(name, ClientKind::ApiReady, component, identity, ready_every));
    }
    let led =
        [(Role::KubeControllerManager, "kube-controller-manager"), (Role::KubeScheduler, "kube-scheduler")];
    for (role, lease) in led {
        if !of_role(components, role).is_empty() {
            let name = format!("leader-{lease}");
            let identity = client_user(&name);
            probes.push(probe(name, ClientKind::LeaderLease, &api_servers[0], identity, LEADER_EVERY));
        }
    }
    probes
}

/// Whether something in the drill is judged by, or done to, etcd itself.
fn needs_truth(drill: &Drill) -> bool {
    let spec = &drill.spec;
    let step = |s: &Step| {
        let of_etcd = s.kind().fault().is_some_and(|fault| fault.role() == Role::Etcd);
        of_etcd || s.kind().is_about_etcd()
    };
    let objective = |o: &Objective| o.kind().rests_on_truth();
    spec.steps.iter().any(step)
        || spec.objectives.iter().any(objective)
        || spec.clients.iter().any(|c| matches!(c, Client::EtcdWatcher(_)))
}

/// Pace of the drill's own `apiReady` condition, else the default one.
fn ready_every(drill: &Drill) -> Duration {
    let condition = drill.spec.steady_state.iter().find_map(|s| match s {
        SteadyState::ApiReady(ready) => Some(ready.every),
        SteadyState::WriteSucceeds(_) => None,
    });
    condition.unwrap_or(ApiReady::default().every).0
}

/// Time between two writes of all ledger writers together.
fn written_every(drill: &Drill) -> Option<Duration> {
    let per_second = writes_per_second(drill);
    (per_second > 0).then(|| Duration::from_nanos(1_000_000_000 / per_second))
}

/// Rate of all ledger writers together.
pub(super) fn writes_per_second(drill: &Drill) -> u64 {
    let rate = |c: &Client| match c {
        Client::LedgerWriter(w) => u64::from(w.rate.0),
        _ => 0,
    };
    drill.spec.clients.iter().map(rate).sum()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
