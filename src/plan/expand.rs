//! Components of the topology, and clients with the probes that a plan adds.

use super::minimum::Windows;
use super::steps::of_role;
use super::{MinimumOperations, PlannedClient, PlannedComponent};
use crate::client::under_test::{TalksTo, Works};
use crate::component::network::OBSERVER_USER;
use crate::component::{ComponentId, HostId, Role};
use crate::drill::spec::{Client, Drill, Topology};
use crate::fault::apf_level::client_user;
use crate::history::kind::ClientKind;
use crate::probe::{self, Identity, Needs, Probe};
use std::time::Duration;

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

/// What the plan adds by itself.
fn probes(drill: &Drill, components: &[PlannedComponent], windows: &Windows) -> Vec<PlannedClient> {
    let of_role = |role| of_role(components, role);
    let planned = |(kind, probe): (ClientKind, Probe)| PlannedClient {
        identity: match probe.identity {
            Identity::Observer => OBSERVER_USER.to_owned(),
            Identity::Own => client_user(&probe.name),
        },
        name: probe.name,
        kind,
        target: probe.target,
        spec: None,
        every_ns: Some(nanos(probe.every)),
        minimum: windows.paced(probe.every),
    };
    probe::planned(Needs { drill, of_role: &of_role }).into_iter().map(planned).collect()
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
