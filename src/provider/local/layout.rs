//! What an embedded cluster consists of, and where its files lie.

use crate::component::network::CLIENT_HOST;
use crate::component::{ComponentId, DataSlot, HostId, Role};
use crate::plan::{PlannedComponent, Versions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// First two octets of every cluster's network. Clusters can't see each other,
/// nor the machine's network, so all of them use the same addresses.
const NETWORK: [u8; 2] = [10, 217];
/// Last octet of the first host of a zone.
const FIRST_HOST: u8 = 10;
/// Port on which every API server listens.
pub const API_PORT: u16 = 6443;
/// Port on which every etcd member serves clients.
pub const ETCD_CLIENT_PORT: u16 = 2379;
/// Port on which every etcd member talks to its peers.
pub const ETCD_PEER_PORT: u16 = 2380;
/// Range of service addresses; nothing routes them.
pub const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Address of the service `kubernetes.default`, the first of [`SERVICE_RANGE`].
pub const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// A cluster as its supervisor runs it; `cluster.json` in the cluster's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Name in the state directory.
    pub name: String,
    /// Versions that were asked for.
    pub versions: Versions,
    /// Every host, the clients' host included.
    pub hosts: Vec<HostSpec>,
    /// Every component, in start order.
    pub components: Vec<ComponentSpec>,
    /// One loopback port of the machine per API server.
    pub gateways: Vec<GatewaySpec>,
    /// Directory of the Kubernetes binaries.
    pub dir_kubernetes: PathBuf,
    /// Directory of the etcd binaries.
    pub dir_etcd: PathBuf,
}

/// A host: a network namespace with one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostSpec {
    /// Name.
    pub host: HostId,
    /// Hosts of one zone share a bridge; zones are joined by routing.
    pub zone: u8,
    /// Address in the cluster's network.
    pub address: Ipv4Addr,
}

/// A component: a process on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSpec {
    /// Name.
    pub component: ComponentId,
    /// What it is for.
    pub role: Role,
    /// Where it runs.
    pub host: HostId,
    /// Absolute path of its binary.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// What the etcd tools need to know; etcd members only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<EtcdMember>,
}

/// What the etcd tools need to know of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMember {
    /// `--name`, the same as the component's.
    pub name: String,
    /// URL that its peers use.
    pub peer_url: String,
    /// URL that clients use.
    pub client_url: String,
    /// `--initial-cluster` of the cluster.
    pub initial_cluster: String,
    /// `--initial-cluster-token` of the cluster.
    pub token: String,
}

/// A loopback port of the machine that leads to an API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// Which API server.
    pub component: ComponentId,
    /// Port on 127.0.0.1 of the machine.
    pub port: u16,
}

impl ClusterSpec {
    /// The host called `host`.
    #[must_use]
    pub fn host(&self, host: &HostId) -> Option<&HostSpec> {
        self.hosts.iter().find(|h| &h.host == host)
    }

    /// The component called `component`.
    #[must_use]
    pub fn component(&self, component: &ComponentId) -> Option<&ComponentSpec> {
        self.components.iter().find(|c| &c.component == component)
    }

    /// Address of the component called `component`.
    #[must_use]
    pub fn address(&self, component: &ComponentId) -> Option<Ipv4Addr> {
        Some(self.host(&self.component(component)?.host)?.address)
    }
}

/// Gives each host that the components need, and the clients' host, an address
/// in its zone; `zones` names the zone of hosts that are not in zone 0.
#[must_use]
pub fn place_hosts(components: &[PlannedComponent], zones: &BTreeMap<HostId, u8>) -> Vec<HostSpec> {
    let mut hosts: Vec<HostSpec> = Vec::new();
    let names = components.iter().map(|c| c.host.clone()).chain([HostId(CLIENT_HOST.to_owned())]);
    for host in names {
        if hosts.iter().any(|h| h.host == host) {
            continue;
        }
        let zone = zones.get(&host).copied().unwrap_or(0);
        let before = hosts.iter().filter(|h| h.zone == zone).count();
        let last = FIRST_HOST.saturating_add(u8::try_from(before).unwrap_or(u8::MAX));
        hosts.push(HostSpec { host, zone, address: Ipv4Addr::new(NETWORK[0], NETWORK[1], zone, last) });
    }
    hosts
}

/// Address of a zone's bridge, through which its hosts reach other zones.
#[must_use]
pub fn zone_address(zone: u8) -> Ipv4Addr {
    Ipv4Addr::new(NETWORK[0], NETWORK[1], zone, 1)
}

/// Directory of one cluster in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterDir {
    root: PathBuf,
}

impl ClusterDir {
    /// The directory `root`, which need not exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Directory of the cluster called `name` in `state_dir`.
    #[must_use]
    pub fn in_state(state_dir: &Path, name: &str) -> Self {
        Self::new(state_dir.join("clusters").join(name))
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The [`ClusterSpec`].
    #[must_use]
    pub fn spec(&self) -> PathBuf {
        self.root.join("cluster.json")
    }

    /// Which process the supervisor is.
    #[must_use]
    pub fn supervisor(&self) -> PathBuf {
        self.root.join("supervisor.json")
    }

    /// What supervisor and agent print.
    #[must_use]
    pub fn supervisor_log(&self) -> PathBuf {
        self.root.join("supervisor.log")
    }

    /// Certificates and keys.
    #[must_use]
    pub fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// A file of `pki/`.
    #[must_use]
    pub fn pki_file(&self, name: &str) -> PathBuf {
        self.root.join("pki").join(name)
    }

    /// Kubeconfigs of the components.
    #[must_use]
    pub fn component_kubeconfig(&self, component: &ComponentId) -> PathBuf {
        self.root.join("pki").join(format!("{component}.kubeconfig"))
    }

    /// Kubeconfig for people, through the gateway.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// Directory of a host.
    #[must_use]
    pub fn host(&self, host: &HostId) -> PathBuf {
        self.root.join("hosts").join(&host.0)
    }

    /// Log of a component.
    #[must_use]
    pub fn log(&self, host: &HostId, component: &ComponentId) -> PathBuf {
        self.host(host).join(format!("{component}.log"))
    }

    /// A data slot of a component on `host`.
    #[must_use]
    pub fn data(&self, host: &HostId, slot: &DataSlot) -> PathBuf {
        let name = match slot {
            DataSlot::InUse => "data".to_owned(),
            DataSlot::Aside(label) => format!("data.{label}"),
        };
        self.host(host).join(name)
    }

    /// Files that never enter evidence.
    #[must_use]
    pub fn private(&self) -> PathBuf {
        self.root.join("private")
    }
}

/// Whether `label` may be part of a file name: letters, digits, `-`, `_` and
/// inner dots, at most 64 of them.
#[must_use]
pub fn is_safe_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 64
        && !label.starts_with(['.', '-'])
        && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, role: Role) -> PlannedComponent {
        PlannedComponent { component: ComponentId(name.into()), role, host: HostId(name.into()) }
    }

    #[test]
    fn every_host_has_an_address_of_its_own_in_its_zone() {
        let components = [
            component("etcd-1", Role::Etcd),
            component("etcd-2", Role::Etcd),
            component("kube-apiserver-1", Role::KubeApiserver),
        ];
        let zones = BTreeMap::from([(HostId("etcd-2".into()), 1)]);
        let hosts = place_hosts(&components, &zones);
        let shown: Vec<_> = hosts.iter().map(|h| format!("{} {}", h.host, h.address)).collect();
        assert_eq!(
            shown,
            [
                "etcd-1 10.217.0.10",
                "etcd-2 10.217.1.10",
                "kube-apiserver-1 10.217.0.11",
                "client 10.217.0.12"
            ]
        );
    }

    #[test]
    fn labels_can_not_leave_the_directory() {
        for bad in ["", ".", "..", "../x", "a/b", "-x", "a b", "\u{e9}"] {
            assert!(!is_safe_label(bad), "{bad:?}");
        }
        for good in ["lost", "run-1_a.2", "X"] {
            assert!(is_safe_label(good), "{good:?}");
        }
    }
}
