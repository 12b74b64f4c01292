//! An embedded cluster as runner and agent see it.

use super::control::SupervisorClient;
use super::layout::{API_PORT, ClusterDir, ClusterSpec, ETCD_CLIENT_PORT};
use super::pki::{self, Authority};
use super::removal::{Condition, condition};
use super::{digest, encryption};
use crate::agent::client::AgentClient;
use crate::agent::protocol::{Request, Response};
use crate::agent::server::agent_dir;
use crate::agent::store::LOG_FILE;
use crate::component::network::{Dialer, Endpoint, Identity, OBSERVER_USER};
use crate::component::{ComponentControl, ComponentId, ControlError, Role};
use crate::digest::sha256_hex;
use crate::plan::Binding;
use crate::provider::ready;
use crate::provider::{Cluster, ProviderError};
use futures::future::BoxFuture;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// A cluster with a directory; whether its supervisor lives shows when it is asked.
#[derive(Debug, Clone)]
pub struct LocalCluster {
    dir: ClusterDir,
    spec: ClusterSpec,
    client: SupervisorClient,
}

impl LocalCluster {
    /// The cluster in `dir`.
    ///
    /// # Errors
    /// When its `cluster.json` can't be read.
    pub fn open(dir: ClusterDir) -> Result<Self, ProviderError> {
        let read = || -> io::Result<ClusterSpec> { Ok(serde_json::from_slice(&std::fs::read(dir.spec())?)?) };
        let spec = read()
            .map_err(|source| ProviderError::Io { what: format!("read {}", dir.spec().display()), source })?;
        Ok(Self { client: SupervisorClient::new(dir.clone()), dir, spec })
    }

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    fn unknown(&self, component: &ComponentId) -> ProviderError {
        let known: Vec<&str> = self.spec.components.iter().map(|c| c.component.0.as_str()).collect();
        ControlError::NoSuchComponent {
            component: component.clone(),
            cluster: self.spec.name.clone(),
            known: known.join(", "),
        }
        .into()
    }

    fn died(&self) -> String {
        let name = &self.spec.name;
        format!(
            "the supervisor of cluster `{name}` has died, and every process of the cluster with it; \
             `quakeproof cluster down {name}` removes the rest"
        )
    }

    async fn bind(&self) -> Result<Binding, ProviderError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source: io::Error| ProviderError::Io { what, source }
        };
        let statuses = self.client.list().await?;
        let ca_pem = pki::authority_pem(&self.dir, Authority::Kubernetes).map_err(failed("read the CA"))?;
        let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes())
            .map_err(|e| failed("read the CA")(io::Error::other(e)))?;
        let tools = digest::of_binaries(&self.spec);
        let (uid, tools) = tokio::join!(self.uid(), tools);
        let tools = tools.map_err(failed("read the binaries"))?;
        let reported = |program: &PathBuf| tools.versions.get(program).cloned().unwrap_or_default();
        Ok(Binding {
            cluster_uid: uid?,
            cluster_name: self.spec.name.clone(),
            ca_fingerprint: sha256_hex(&ca),
            reported_versions: (self.spec.components.iter())
                .map(|c| (c.component.clone(), reported(&c.program)))
                .collect(),
            binary_digests: tools.digests,
            addresses: self.spec.hosts.iter().map(|h| (h.host.clone(), h.address.to_string())).collect(),
            incarnations: statuses.into_iter().map(|s| (s.component, s.incarnation)).collect(),
            ledger_namespace: String::new(),
            machine: machine(),
        })
    }

    async fn uid(&self) -> Result<String, ProviderError> {
        let not_ready =
            |reason: String| ProviderError::NotReady { component: "kube-apiserver".to_owned(), reason };
        let servers = self.spec.components.iter().filter(|c| c.role == Role::KubeApiserver);
        let observer = self.identity(OBSERVER_USER, &[])?;
        let mut last = not_ready("the cluster has none".to_owned());
        for server in servers {
            let mut http = ready::client(self, &server.component, &observer)?;
            let path = "/api/v1/namespaces/kube-system";
            let answer = http.send(hyper::Method::GET, path, None, ready::DEADLINE).await;
            match answer.as_ref().map(ready::json_of) {
                Ok(namespace) => match namespace["metadata"]["uid"].as_str() {
                    Some(uid) => return Ok(uid.to_owned()),
                    None => last = not_ready(format!("{path}: {}", ready::explain(&answer))),
                },
                Err(_) => last = not_ready(format!("{path}: {}", ready::explain(&answer))),
            }
        }
        Err(last)
    }
}

fn machine() -> BTreeMap<String, String> {
    let name = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    BTreeMap::from([
        ("os".to_owned(), text(name.sysname())),
        ("kernel".to_owned(), text(name.release())),
        ("arch".to_owned(), text(name.machine())),
        ("cpus".to_owned(), cpus.to_string()),
    ])
}

impl Cluster for LocalCluster {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn control(&self) -> Arc<dyn ComponentControl> {
        Arc::new(self.client.clone())
    }

    fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::new(self.client.clone())
    }

    fn endpoint(&self, component: &ComponentId) -> Result<Endpoint, ProviderError> {
        let own = self.spec.component(component).ok_or_else(|| self.unknown(component))?;
        let address = self.spec.address(component).ok_or_else(|| self.unknown(component))?;
        let (authority, port) = match own.role {
            Role::Etcd => (Authority::Etcd, ETCD_CLIENT_PORT),
            Role::KubeApiserver => (Authority::Kubernetes, API_PORT),
            Role::KubeControllerManager | Role::KubeScheduler => return Err(self.unknown(component)),
        };
        let ca_pem = pki::authority_pem(&self.dir, authority)
            .map_err(|source| ProviderError::Io { what: "read the CA".to_owned(), source })?;
        Ok(Endpoint { address: SocketAddr::from((address, port)), server_name: own.host.0.clone(), ca_pem })
    }

    fn identity(&self, user: &str, groups: &[&str]) -> Result<Identity, ProviderError> {
        pki::issue(&self.dir, Authority::Kubernetes, user, groups)
            .map_err(|source| ProviderError::Io { what: format!("issue a certificate for {user}"), source })
    }

    fn etcd_identity(&self) -> Result<Identity, ProviderError> {
        pki::issue(&self.dir, Authority::Etcd, OBSERVER_USER, &[])
            .map_err(|source| ProviderError::Io { what: "issue a certificate for etcd".to_owned(), source })
    }

    fn binding(&self) -> BoxFuture<'_, Result<Binding, ProviderError>> {
        Box::pin(self.bind())
    }

    fn agent<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, ControlError>> {
        let client = AgentClient::new(self.dir.root());
        Box::pin(async move {
            // An agent that died is started again and worth waiting for; not so without a supervisor.
            if condition(&self.dir) == Condition::Dead {
                return Err(ControlError::Unreachable { reason: self.died() });
            }
            client.ask(request).await
        })
    }

    fn private_file(&self, name: &str) -> PathBuf {
        self.dir.private().join(name)
    }

    fn secret_files(&self) -> Vec<PathBuf> {
        let files =
            std::fs::read_dir(self.dir.pki()).into_iter().flatten().flatten().map(|entry| entry.path());
        let keys = files.filter(|path| path.extension().is_some_and(|extension| extension == "key"));
        keys.chain(encryption::files(&self.dir, &self.spec.components)).collect()
    }

    fn agent_log(&self) -> Option<PathBuf> {
        Some(agent_dir(self.dir.root()).join(LOG_FILE))
    }

    fn logs(&self) -> Vec<(ComponentId, PathBuf)> {
        self.spec
            .components
            .iter()
            .map(|c| (c.component.clone(), self.dir.log(&c.host, &c.component)))
            .collect()
    }
}
