//! What the parts of a drill need of a provider.

use crate::client::under_test::TalksTo;
use crate::component::capability::Capability::{
    self, AddressApiServers, ControlComponents, DeadMan, ReachEtcd, ReplaceEtcdData,
};
use crate::drill::spec::{Drill, ProviderKind};
use std::collections::BTreeSet;

/// What clusters of a provider can do, as far as a plan has to know before one exists.
#[must_use]
pub fn offered_by(provider: ProviderKind) -> BTreeSet<Capability> {
    match provider {
        ProviderKind::Local => {
            [ControlComponents, ReplaceEtcdData, ReachEtcd, AddressApiServers, DeadMan].into()
        }
    }
}

/// Needs of each part: what it is, in words, and what it can't do without.
pub(super) fn needs(drill: &Drill) -> Vec<(String, Vec<Capability>)> {
    let steps = drill.spec.steps.iter().enumerate().filter_map(|(i, step)| {
        let needs = match step.kind().fault() {
            Some(fault) => fault.needs().into_iter().collect(),
            None => step.kind().requires(),
        };
        (!needs.is_empty()).then(|| (format!("step {} (`{}`)", i + 1, step.key()), needs))
    });
    let clients = drill.spec.clients.iter().map(|client| {
        let needs = match client.kind().about().talks_to {
            TalksTo::Etcd => ReachEtcd,
            TalksTo::ApiServer | TalksTo::Named(_) => AddressApiServers,
        };
        (format!("client `{}` (`{}`)", client.name(), client.key()), vec![needs])
    });
    steps.chain(clients).collect()
}

/// Parts that need what is not offered, in words.
pub(super) fn missing(drill: &Drill, offered: &BTreeSet<Capability>) -> Vec<String> {
    needs(drill)
        .into_iter()
        .filter_map(|(part, needs)| {
            let lacking: Vec<&str> =
                needs.iter().filter(|n| !offered.contains(n)).map(|n| words(*n)).collect();
            (!lacking.is_empty()).then(|| format!("{part} needs {}", lacking.join(" and ")))
        })
        .collect()
}

fn words(capability: Capability) -> &'static str {
    match capability {
        ControlComponents => "components that can be stopped and started",
        ReplaceEtcdData => "etcd data directories that can be moved aside",
        ReachEtcd => "direct access to etcd",
        AddressApiServers => "API servers that can be addressed one by one",
        DeadMan => "faults that end by themselves when the runner dies",
    }
}
