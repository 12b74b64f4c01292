//! The embedded cluster: real upstream binaries as processes in namespaces of this machine.
//!
//! The runner stays outside. It starts a supervisor, which leaves the machine's
//! namespaces and becomes pid 1 of the cluster's own; from then on everything is
//! asked of the supervisor over a Unix socket. See ARCHITECTURE.md.

mod agent_process;
mod cluster;
mod commands;
mod control;
mod digest;
mod encryption;
mod enter;
mod launch;
mod layout;
mod log_tail;
mod pki;
mod process_identity;
mod protocol;
mod removal;
mod supervisor;
mod wire;

pub use agent_process::agent_main;
pub use cluster::LocalCluster;
pub use control::SupervisorClient;
pub use layout::{ClusterDir, ClusterSpec, is_safe_label};
pub use removal::{Condition, condition};

use super::binaries::BinarySet;
use super::{Capability, Cluster, Progress, Provider, ProviderError};
use crate::component::Role;
use crate::exit::ExitCode;
use crate::plan::{PlannedCluster, of_role};
use crate::provider::ready::{self, ADMIN_GROUP};
use futures::future::BoxFuture;
use launch::{Gateways, Launching};
use pki::{ADMIN_USER, Authority};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `quakeproof __supervisor <cluster directory>`. Must be called while the
/// process has one thread; `args` are the words after `__supervisor`.
#[must_use]
pub fn supervisor_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let Some(root) = args.next() else {
        eprintln!("`__supervisor` is started by `quakeproof cluster up`");
        return ExitCode::Usage;
    };
    let dir = ClusterDir::new(PathBuf::from(root));
    match args.next() {
        None => enter::run(&dir),
        Some(stage) if stage == enter::SECOND_STAGE => supervisor::run(&dir),
        Some(other) => {
            eprintln!("unknown stage {}", other.display());
            ExitCode::Usage
        }
    }
}

/// Makes and removes embedded clusters under one state directory.
#[derive(Debug, Clone)]
pub struct LocalProvider {
    state_dir: PathBuf,
    binaries: BinarySet,
    program: PathBuf,
    first_port: Option<u16>,
}

impl LocalProvider {
    /// Clusters under `state_dir/clusters`, made of `binaries`. The supervisor is
    /// the program that runs now.
    ///
    /// # Errors
    /// When the path of the running program can't be found.
    pub fn new(state_dir: impl Into<PathBuf>, binaries: BinarySet) -> io::Result<Self> {
        let state_dir = std::path::absolute(state_dir.into())?;
        Ok(Self { state_dir, binaries, program: std::env::current_exe()?, first_port: None })
    }

    /// The same with another program as supervisor: for callers that are not `quakeproof` themselves.
    #[must_use]
    pub fn with_program(self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self }
    }

    /// The same with fixed gateway ports: the first API server's, and the ones after it.
    #[must_use]
    pub fn with_first_port(self, first_port: u16) -> Self {
        Self { first_port: Some(first_port), ..self }
    }

    async fn make(
        &self,
        name: &str,
        plan: &PlannedCluster,
        progress: Progress<'_>,
    ) -> Result<Arc<dyn Cluster>, ProviderError> {
        let dir = self.dir(name)?;
        check_binaries(&self.binaries, plan)?;
        create_dir(&dir, name)?;
        let made = self.make_in(&dir, name, plan, progress).await;
        if made.is_err() {
            // Whatever was begun ends here; the reason for it is what the caller must hear.
            if let Err(error) = removal::remove(&dir) {
                progress(&format!("could not clean up: {error}"));
            }
        }
        made
    }

    async fn make_in(
        &self,
        dir: &ClusterDir,
        name: &str,
        plan: &PlannedCluster,
        progress: Progress<'_>,
    ) -> Result<Arc<dyn Cluster>, ProviderError> {
        let servers = of_role(&plan.components, Role::KubeApiserver);
        let gateways = Gateways::open(servers, self.first_port)?;
        let hosts = layout::place_hosts(&plan.components, &BTreeMap::new());
        let spec = ClusterSpec {
            name: name.to_owned(),
            versions: plan.versions.clone(),
            components: commands::components(dir, name, plan, &hosts, &self.binaries),
            hosts,
            gateways: gateways.specs.clone(),
            dir_kubernetes: self.binaries.dir_kubernetes.clone(),
            dir_etcd: self.binaries.dir_etcd.clone(),
        };
        let bootstrap = write_files(dir, &spec, plan).map_err(|source| ProviderError::Io {
            what: format!("write {}", dir.root().display()),
            source,
        })?;

        progress(&format!("starting {} components of {name}", spec.components.len()));
        let (program, launch_dir) = (self.program.clone(), dir.clone());
        let launching =
            tokio::task::spawn_blocking(move || Launching::start(&program, &launch_dir, &gateways))
                .await
                .map_err(|e| ProviderError::Io {
                what: "start the supervisor".to_owned(),
                source: io::Error::other(e),
            })??;
        progress("waiting until every API server is ready and the controllers lead");
        let cluster = LocalCluster::open(dir.clone())?;
        let roles: Vec<_> = spec.components.iter().map(|c| (c.component.clone(), c.role)).collect();
        ready::bring_up(&cluster, &roles, &bootstrap).await?;
        launching.keep()?;
        Ok(Arc::new(cluster))
    }

    fn dir(&self, name: &str) -> Result<ClusterDir, ProviderError> {
        cluster_dir(&self.state_dir, name)
    }
}

impl Provider for LocalProvider {
    fn capabilities(&self) -> BTreeSet<Capability> {
        BTreeSet::from([
            Capability::ControlComponents,
            Capability::ReplaceEtcdData,
            Capability::ReachEtcd,
            Capability::AddressApiServers,
            Capability::DeadMan,
        ])
    }

    fn up<'a>(
        &'a self,
        name: &'a str,
        plan: &'a PlannedCluster,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>> {
        Box::pin(self.make(name, plan, progress))
    }

    fn attach<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Cluster>, ProviderError>> {
        Box::pin(async move { Ok(Arc::new(attach(&self.state_dir, name)?) as Arc<dyn Cluster>) })
    }

    fn down<'a>(&'a self, name: &'a str, progress: Progress<'a>) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            progress(&format!("removing {name}"));
            let (state_dir, name) = (self.state_dir.clone(), name.to_owned());
            tokio::task::spawn_blocking(move || remove(&state_dir, &name)).await.unwrap_or_else(|error| {
                Err(ProviderError::Io {
                    what: "remove the cluster".to_owned(),
                    source: io::Error::other(error),
                })
            })
        })
    }
}

/// Attaches to the cluster `name` under `state_dir` from outside of it.
///
/// # Errors
/// When there is none, or its supervisor, and with it everything, has died.
pub fn attach(state_dir: &Path, name: &str) -> Result<LocalCluster, ProviderError> {
    let dir = cluster_dir(state_dir, name)?;
    if !dir.root().exists() {
        return Err(ProviderError::NoSuchCluster { name: name.to_owned() });
    }
    match condition(&dir) {
        Condition::Running => LocalCluster::open(dir),
        Condition::Unfinished => Err(ProviderError::Unavailable {
            what: format!("cluster `{name}` was never finished"),
            hint: format!("`quakeproof cluster down {name}` removes what there is"),
        }),
        Condition::Dead => Err(ProviderError::Unavailable {
            what: format!(
                "the supervisor of cluster `{name}` has died, and every process of the cluster with it"
            ),
            hint: format!(
                "its logs are in {}; `quakeproof cluster down {name}` removes the rest",
                dir.root().display()
            ),
        }),
    }
}

/// Ends every process of the cluster `name` and removes its files; succeeds when
/// there is none, when it was never finished, and when it is dead already. Blocks.
///
/// # Errors
/// When its supervisor may not be killed or a file not be removed.
pub fn remove(state_dir: &Path, name: &str) -> Result<(), ProviderError> {
    let dir = cluster_dir(state_dir, name)?;
    removal::remove(&dir)
        .map_err(|source| ProviderError::Io { what: format!("remove cluster `{name}`"), source })
}

/// Directory of the cluster `name`, which becomes a file name.
///
/// # Errors
/// When the name can't be one.
pub fn cluster_dir(state_dir: &Path, name: &str) -> Result<ClusterDir, ProviderError> {
    if !is_safe_label(name) {
        return Err(ProviderError::Unavailable {
            what: format!("{name:?} can't be the name of a cluster"),
            hint: "use up to 64 letters, digits, `-`, `_` and inner dots".to_owned(),
        });
    }
    Ok(ClusterDir::in_state(state_dir, name))
}

fn check_binaries(binaries: &BinarySet, plan: &PlannedCluster) -> Result<(), ProviderError> {
    let name = |role: &Role| match role {
        Role::Etcd => "etcd",
        Role::KubeApiserver => "kube-apiserver",
        Role::KubeControllerManager => "kube-controller-manager",
        Role::KubeScheduler => "kube-scheduler",
    };
    let needed = plan.components.iter().map(|c| name(&c.role)).chain(["etcdctl", "etcdutl"]);
    let missing = needed.map(|n| binaries.path(n)).find(|path| !path.is_file());
    missing.map_or(Ok(()), |path| {
        Err(ProviderError::Unavailable {
            what: format!("there is no {}", path.display()),
            hint: format!(
                "`quakeproof toolchain provide` gets Kubernetes {} and etcd {}",
                plan.versions.kubernetes, plan.versions.etcd
            ),
        })
    })
}

/// Creating the directory is what claims the name.
fn create_dir(dir: &ClusterDir, name: &str) -> Result<(), ProviderError> {
    let failed = |source| ProviderError::Io { what: format!("make {}", dir.root().display()), source };
    let parent = dir.root().parent().unwrap_or(dir.root());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    match fs::DirBuilder::new().mode(0o700).create(dir.root()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ProviderError::Exists { name: name.to_owned() })
        }
        other => other.map_err(failed),
    }
}

/// Writes everything that the supervisor and the components read. Returns the
/// identity that bootstraps the cluster, which is kept nowhere.
fn write_files(
    dir: &ClusterDir,
    spec: &ClusterSpec,
    plan: &PlannedCluster,
) -> io::Result<crate::component::network::Identity> {
    pki::create(dir, spec)?;
    fs::DirBuilder::new().mode(0o700).create(dir.private())?;
    for component in &spec.components {
        if matches!(component.role, Role::KubeControllerManager | Role::KubeScheduler)
            && let Some(text) = commands::component_kubeconfig(dir, spec, &component.component)
        {
            pki::write_secret(&dir.component_kubeconfig(&component.component), &text)?;
        }
    }
    if let Some(encryption) = plan.encryption_at_rest {
        encryption::write(dir, &spec.components, encryption)?;
    }
    let admin = pki::issue(dir, Authority::Kubernetes, ADMIN_USER, &[ADMIN_GROUP])?;
    pki::write_secret(&dir.pki_file("admin.crt"), &admin.cert_pem)?;
    pki::write_secret(&dir.pki_file("admin.key"), &admin.key_pem)?;
    let servers: Vec<_> = spec
        .gateways
        .iter()
        .enumerate()
        .map(|(index, gateway)| {
            let context =
                if index == 0 { spec.name.clone() } else { format!("{}-{}", spec.name, gateway.component) };
            (context, format!("https://127.0.0.1:{}", gateway.port))
        })
        .collect();
    let authority =
        json!({ "certificate-authority": dir.pki_file(&Authority::Kubernetes.certificate_file()) });
    let user = json!({
        "client-certificate": dir.pki_file("admin.crt"),
        "client-key": dir.pki_file("admin.key"),
    });
    pki::write_secret(&dir.kubeconfig(), &commands::kubeconfig(&servers, authority, user))?;
    fs::write(dir.spec(), serde_json::to_vec_pretty(spec)?)?;
    pki::issue(dir, Authority::Kubernetes, "kubernetes-super-admin", &["system:masters"])
}
