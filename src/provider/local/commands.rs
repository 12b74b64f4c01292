//! Command lines and kubeconfigs of the components.
//!
//! etcd's flags are those that 3.5 and 3.7 share. A restored data directory is
//! started with the same flags: etcd ignores `--initial-*` once it has a log.

use super::encryption;
use super::layout::{
    API_PORT, ClusterDir, ClusterSpec, ComponentSpec, ETCD_CLIENT_PORT, ETCD_PEER_PORT, EtcdMember, HostSpec,
    SERVICE_RANGE,
};
use super::pki::Authority;
use crate::component::{ComponentId, DataSlot, Role};
use crate::plan::{PlannedCluster, PlannedComponent};
use crate::provider::binaries::BinarySet;
use serde_json::json;
use std::net::Ipv4Addr;
use std::path::Path;

/// The command line of every component.
#[must_use]
pub fn components(
    dir: &ClusterDir,
    name: &str,
    plan: &PlannedCluster,
    hosts: &[HostSpec],
    binaries: &BinarySet,
) -> Vec<ComponentSpec> {
    let planned = &plan.components;
    let addresses = Addresses { planned, hosts };
    planned
        .iter()
        .map(|component| {
            let member = (component.role == Role::Etcd).then(|| addresses.member(name, component));
            let (program, args) = match &component.role {
                Role::Etcd => ("etcd", etcd(dir, component, &addresses, member.as_ref())),
                Role::KubeApiserver => {
                    let mut args = api_server(dir, component, &addresses);
                    if plan.encryption_at_rest.is_some() {
                        let file = encryption::file(&dir.data(&component.host, &DataSlot::InUse));
                        args.push(format!("--encryption-provider-config={}", shown(&file)));
                    }
                    ("kube-apiserver", args)
                }
                Role::KubeControllerManager => {
                    ("kube-controller-manager", controller_manager(dir, component))
                }
                Role::KubeScheduler => ("kube-scheduler", delegated(dir, component)),
            };
            ComponentSpec {
                component: component.component.clone(),
                role: component.role,
                host: component.host.clone(),
                program: binaries.path(program),
                args,
                member,
            }
        })
        .collect()
}

struct Addresses<'a> {
    planned: &'a [PlannedComponent],
    hosts: &'a [HostSpec],
}

impl Addresses<'_> {
    fn of(&self, component: &PlannedComponent) -> Ipv4Addr {
        let host = self.hosts.iter().find(|h| h.host == component.host);
        host.map_or(Ipv4Addr::UNSPECIFIED, |h| h.address)
    }

    fn members(&self) -> impl Iterator<Item = &PlannedComponent> {
        self.planned.iter().filter(|c| c.role == Role::Etcd)
    }

    fn member(&self, cluster: &str, component: &PlannedComponent) -> EtcdMember {
        let peer_url = |c: &PlannedComponent| format!("https://{}:{ETCD_PEER_PORT}", self.of(c));
        let initial: Vec<String> =
            self.members().map(|m| format!("{}={}", m.component, peer_url(m))).collect();
        EtcdMember {
            name: component.component.0.clone(),
            peer_url: peer_url(component),
            client_url: format!("https://{}:{ETCD_CLIENT_PORT}", self.of(component)),
            initial_cluster: initial.join(","),
            token: format!("quakeproof-{cluster}"),
        }
    }
}

fn etcd(
    dir: &ClusterDir,
    component: &PlannedComponent,
    addresses: &Addresses<'_>,
    member: Option<&EtcdMember>,
) -> Vec<String> {
    let Some(member) = member else { return Vec::new() };
    let address = addresses.of(component);
    let name = &component.component.0;
    let ca = shown(&dir.pki_file(&Authority::Etcd.certificate_file()));
    let file = |suffix: &str| shown(&dir.pki_file(&format!("{name}-{suffix}")));
    vec![
        format!("--name={name}"),
        format!("--data-dir={}", shown(&dir.data(&component.host, &DataSlot::InUse))),
        format!(
            "--listen-client-urls=https://{address}:{ETCD_CLIENT_PORT},https://127.0.0.1:{ETCD_CLIENT_PORT}"
        ),
        format!("--advertise-client-urls={}", member.client_url),
        format!("--listen-peer-urls={}", member.peer_url),
        format!("--initial-advertise-peer-urls={}", member.peer_url),
        format!("--initial-cluster={}", member.initial_cluster),
        format!("--initial-cluster-token={}", member.token),
        "--initial-cluster-state=new".to_owned(),
        "--client-cert-auth".to_owned(),
        format!("--trusted-ca-file={ca}"),
        format!("--cert-file={}", file("server.crt")),
        format!("--key-file={}", file("server.key")),
        "--peer-client-cert-auth".to_owned(),
        format!("--peer-trusted-ca-file={ca}"),
        format!("--peer-cert-file={}", file("peer.crt")),
        format!("--peer-key-file={}", file("peer.key")),
    ]
}

fn api_server(dir: &ClusterDir, component: &PlannedComponent, addresses: &Addresses<'_>) -> Vec<String> {
    let pki = |name: &str| shown(&dir.pki_file(name));
    let etcd: Vec<String> =
        addresses.members().map(|m| format!("https://{}:{ETCD_CLIENT_PORT}", addresses.of(m))).collect();
    let name = &component.component.0;
    vec![
        format!("--etcd-servers={}", etcd.join(",")),
        format!("--etcd-cafile={}", pki(&Authority::Etcd.certificate_file())),
        format!("--etcd-certfile={}", pki("apiserver-etcd-client.crt")),
        format!("--etcd-keyfile={}", pki("apiserver-etcd-client.key")),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={}", addresses.of(component)),
        format!("--tls-cert-file={}", pki(&format!("{name}.crt"))),
        format!("--tls-private-key-file={}", pki(&format!("{name}.key"))),
        format!("--client-ca-file={}", pki(&Authority::Kubernetes.certificate_file())),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--authorization-mode=Node,RBAC".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
    ]
}

fn controller_manager(dir: &ClusterDir, component: &PlannedComponent) -> Vec<String> {
    let pki = |name: &str| shown(&dir.pki_file(name));
    let ca = pki(&Authority::Kubernetes.certificate_file());
    let mut args = delegated(dir, component);
    args.extend([
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", pki("sa.key")),
        format!("--root-ca-file={ca}"),
        format!("--cluster-signing-cert-file={ca}"),
        format!("--cluster-signing-key-file={}", pki("ca.key")),
    ]);
    args
}

/// What controllers share. Looking up the request-header CA in the cluster is
/// skipped: a controller that starts before the API server serves would exit.
fn delegated(dir: &ClusterDir, component: &PlannedComponent) -> Vec<String> {
    let kubeconfig = shown(&dir.component_kubeconfig(&component.component));
    let ca = shown(&dir.pki_file(&Authority::Kubernetes.certificate_file()));
    vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--authentication-skip-lookup=true".to_owned(),
        format!("--client-ca-file={ca}"),
        "--leader-elect=true".to_owned(),
    ]
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Text of a component's kubeconfig. The n-th controller manager or scheduler
/// talks to the n-th API server, counted around.
#[must_use]
pub fn component_kubeconfig(dir: &ClusterDir, spec: &ClusterSpec, component: &ComponentId) -> Option<String> {
    let own = spec.component(component)?;
    let index =
        spec.components.iter().filter(|c| c.role == own.role).position(|c| &c.component == component)?;
    let servers: Vec<_> = spec.components.iter().filter(|c| c.role == Role::KubeApiserver).collect();
    let server = servers.get(index % servers.len().max(1))?;
    let address = spec.address(&server.component)?;
    let config = kubeconfig(
        &[("local".to_owned(), format!("https://{address}:{API_PORT}"))],
        json!({ "certificate-authority": dir.pki_file(&Authority::Kubernetes.certificate_file()) }),
        json!({
            "client-certificate": dir.pki_file(&format!("{component}.crt")),
            "client-key": dir.pki_file(&format!("{component}.key")),
        }),
    );
    Some(config)
}

/// Text of a kubeconfig with one context per server, the first being current.
#[must_use]
pub fn kubeconfig(
    servers: &[(String, String)],
    authority: serde_json::Value,
    user: serde_json::Value,
) -> String {
    let clusters: Vec<_> = servers
        .iter()
        .map(|(name, url)| {
            let mut cluster = authority.clone();
            cluster["server"] = json!(url);
            json!({ "name": name, "cluster": cluster })
        })
        .collect();
    let contexts: Vec<_> = servers
        .iter()
        .map(|(name, _)| json!({ "name": name, "context": { "cluster": name, "user": "user" } }))
        .collect();
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "contexts": contexts,
        "current-context": servers.first().map(|(name, _)| name),
        "users": [{ "name": "user", "user": user }],
    });
    // JSON is YAML, and needs no quoting rules of its own.
    format!("{document:#}\n")
}
