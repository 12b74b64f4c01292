//! `quakeproof cluster`: makes, lists and removes embedded clusters.

use super::output::{Data, say};
use super::toolchain::options_from_env;
use crate::component::{ComponentId, ControlError};
use crate::drill::lint::is_kebab;
use crate::drill::spec::{ProviderKind, Topology};
use crate::exit::ExitCode;
use crate::guard::lock::LockRecord;
use crate::journal::writer::is_being_written;
use crate::plan::{PlannedCluster, Versions, components};
use crate::provider::binaries::{self, BinariesError, etcd_for, known_kubernetes, newest_pair};
use crate::provider::local::{self, ClusterDir, Condition, LocalCluster, LocalProvider, SupervisorClient};
use crate::provider::{Cluster, Provider, ProviderError};
use crate::state::StateDir;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Make, list and remove embedded clusters
///
/// Exit codes: 0 done, 3 wrong usage, 5 refused or not possible.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Makes a cluster and returns once it is ready.
    Up(UpArgs),
    /// Removes a cluster and everything of it.
    Down {
        /// Name of the cluster.
        name: String,
    },
    /// Lists clusters.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints what a shell evaluates to point kubectl at a cluster.
    Env {
        /// Name of the cluster.
        name: String,
    },
    /// Prints the logs of a cluster's components.
    Logs {
        /// Name of the cluster.
        name: String,
        /// Only this component's, such as `etcd-1`.
        component: Option<String>,
    },
    /// Runs a command on a host of a cluster.
    Exec {
        /// Name of the cluster.
        name: String,
        /// Name of the host, such as `client` or `etcd-1`.
        host: String,
        /// The command with its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

/// What `cluster up` takes.
#[derive(Debug, Args)]
struct UpArgs {
    /// Name of the cluster.
    #[arg(default_value = "main", value_parser = cluster_name)]
    name: String,
    /// Version of Kubernetes, such as v1.37.2; the newest that is pinned by default.
    #[arg(long)]
    kubernetes: Option<String>,
    /// Version of etcd; the one pinned with the version of Kubernetes by default.
    #[arg(long)]
    etcd_version: Option<String>,
    /// etcd members: 1 or 3.
    #[arg(long, default_value_t = 1, value_parser = members)]
    etcd: u8,
    /// API servers: 1 or 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    api_servers: u8,
    /// Controller managers: 0 to 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    controller_managers: u8,
    /// Schedulers: 0 to 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    schedulers: u8,
    /// Loopback port of the first API server; the kernel chooses by default.
    #[arg(long)]
    port: Option<u16>,
    /// Downloads nothing from the release sites.
    #[arg(long)]
    offline: bool,
}

/// A drill must be able to name the cluster.
fn cluster_name(text: &str) -> Result<String, String> {
    if is_kebab(text) {
        Ok(text.to_owned())
    } else {
        Err("a cluster's name has at most 63 lower-case letters, digits and single dashes, beginning with a letter".to_owned())
    }
}

/// Two members tolerate no more failures than one.
fn members(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("etcd runs with 1 or 3 members".to_owned()),
    }
}

/// Why the command did not do what it was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The cluster could not be made, found or controlled.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A drill is being run on it.
    #[error(
        "cluster `{name}` is in use by run {run}\n  hint: `quakeproof abort {run}` ends it and reverts its fault"
    )]
    InUse {
        /// Name of the cluster.
        name: String,
        /// The run.
        run: String,
    },
    /// Standard output can't be written to.
    #[error("standard output: {0}")]
    Print(io::Error),
    /// There are no binaries of that version.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// SIGINT while the cluster came up.
    #[error("interrupted; what had been made is removed")]
    Interrupted,
    /// Nothing is known of that version.
    #[error(
        "no etcd version is pinned for Kubernetes {kubernetes}; pinned are {known}\n  hint: name one with `--etcd-version`"
    )]
    UnknownVersion {
        /// As asked for.
        kubernetes: String,
        /// What there is.
        known: String,
    },
}

impl ClusterError {
    fn exit_code(&self) -> ExitCode {
        match self {
            ClusterError::UnknownVersion { .. } => ExitCode::Usage,
            ClusterError::Interrupted => ExitCode::Interrupted,
            ClusterError::Print(_) => ExitCode::Internal,
            ClusterError::InUse { .. } | ClusterError::Provider(_) | ClusterError::Binaries(_) => {
                ExitCode::Refused
            }
        }
    }
}

impl From<ControlError> for ClusterError {
    fn from(error: ControlError) -> Self {
        ClusterError::Provider(error.into())
    }
}

/// Runs the command on clusters under `state_dir`; data to stdout, progress and errors to stderr.
pub fn run(args: ClusterArgs, state_dir: &Path) -> ExitCode {
    let done = match args.command {
        ClusterCommand::Up(up_args) => up(&up_args, state_dir),
        ClusterCommand::Down { name } => down(&name, state_dir),
        ClusterCommand::List { json } => list(state_dir, json),
        ClusterCommand::Env { name } => env(&name, state_dir),
        ClusterCommand::Logs { name, component } => logs(&name, component.as_deref(), state_dir),
        ClusterCommand::Exec { name, host, command } => exec(&name, &host, command, state_dir),
    };
    match done {
        Ok(()) => ExitCode::Ok,
        Err(error) => {
            say(&format!("error: {error}"));
            error.exit_code()
        }
    }
}

fn up(args: &UpArgs, state_dir: &Path) -> Result<(), ClusterError> {
    let versions = versions(args)?;
    let talk = say;
    let binaries = binaries::provide(&versions, &options_from_env(args.offline), &talk)?;
    let mut provider = LocalProvider::new(state_dir, binaries).map_err(io_failed("find this program"))?;
    if let Some(port) = args.port {
        provider = provider.with_first_port(port);
    }
    let topology = Topology {
        etcd: args.etcd,
        api_servers: args.api_servers,
        controller_managers: args.controller_managers,
        schedulers: args.schedulers,
    };
    let plan = PlannedCluster {
        encryption_at_rest: None,
        name: "main".to_owned(),
        provider: ProviderKind::Local,
        standing: Some(args.name.clone()),
        versions,
        components: components(topology),
        topology,
    };
    let cluster = runtime()?.block_on(async {
        tokio::select! {
            // In this order: a name that is taken is refused before an interrupt could remove what has it.
            biased;
            made = provider.up(&args.name, &plan, &talk) => made.map_err(ClusterError::from),
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(io_failed("listen for an interrupt"))?;
                provider.down(&args.name, &talk).await?;
                Err(ClusterError::Interrupted)
            }
        }
    })?;
    talk(&format!(
        "cluster {0} is ready; `eval \"$(quakeproof cluster env {0})\"` points kubectl at it",
        cluster.name()
    ));
    Ok(())
}

/// Under a running drill a cluster would take its evidence along; a dead run's cluster may go.
fn down(name: &str, state_dir: &Path) -> Result<(), ClusterError> {
    local::cluster_dir(state_dir, name)?;
    if let Ok(Some(record)) = LockRecord::read(&StateDir::at(state_dir), name)
        && is_being_written(&record.run_dir.join("journal.jsonl")).unwrap_or(false)
    {
        return Err(ClusterError::InUse { name: name.to_owned(), run: record.run });
    }
    Ok(local::remove(state_dir, name)?)
}

fn versions(args: &UpArgs) -> Result<Versions, ClusterError> {
    let kubernetes = args.kubernetes.clone().unwrap_or_else(|| newest_pair().0.to_owned());
    let pinned = etcd_for(&kubernetes).map(str::to_owned);
    match args.etcd_version.clone().or(pinned) {
        Some(etcd) => Ok(Versions { kubernetes, etcd }),
        None => Err(ClusterError::UnknownVersion { kubernetes, known: known_kubernetes() }),
    }
}

fn list(state_dir: &Path, as_json: bool) -> Result<(), ClusterError> {
    let mut clusters = Vec::new();
    for name in names(state_dir).map_err(io_failed("read the state directory"))? {
        let dir = ClusterDir::in_state(state_dir, &name);
        let state = match local::condition(&dir) {
            Condition::Running => "running",
            Condition::Dead => "dead",
            Condition::Unfinished => "unfinished",
        };
        let spec = LocalCluster::open(dir).ok().map(|c| c.spec().clone());
        clusters.push((name, state, spec));
    }
    if as_json {
        let documents: Vec<_> = clusters
            .iter()
            .map(|(name, state, spec)| {
                json!({
                    "name": name,
                    "state": state,
                    "versions": spec.as_ref().map(|s| &s.versions),
                    "hosts": spec.as_ref().map(|s| &s.hosts),
                    "gateways": spec.as_ref().map(|s| &s.gateways),
                })
            })
            .collect();
        return print(&format!("{:#}\n", serde_json::Value::from(documents)));
    }
    let mut text = format!("{:<20} {:<11} {:<11} {:<9} {}\n", "NAME", "STATE", "KUBERNETES", "ETCD", "API");
    for (name, state, spec) in clusters {
        let versions = spec.as_ref().map(|s| (s.versions.kubernetes.as_str(), s.versions.etcd.as_str()));
        let (kubernetes, etcd) = versions.unwrap_or(("-", "-"));
        let ports: Vec<String> = spec
            .iter()
            .flat_map(|s| s.gateways.iter().map(|g| format!("https://127.0.0.1:{}", g.port)))
            .collect();
        text.push_str(&format!("{name:<20} {state:<11} {kubernetes:<11} {etcd:<9} {}\n", ports.join(" ")));
    }
    print(&text)
}

fn names(state_dir: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(state_dir.join("clusters")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if local::is_safe_label(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn env(name: &str, state_dir: &Path) -> Result<(), ClusterError> {
    local::attach(state_dir, name)?;
    let path = local::cluster_dir(state_dir, name)?.kubeconfig();
    print(&format!("export KUBECONFIG={}\n", shell_quoted(&path.display().to_string())))
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn logs(name: &str, component: Option<&str>, state_dir: &Path) -> Result<(), ClusterError> {
    let dir = local::cluster_dir(state_dir, name)?;
    if !dir.root().exists() {
        return Err(ProviderError::NoSuchCluster { name: name.to_owned() }.into());
    }
    let cluster = LocalCluster::open(dir)?;
    let chosen: Vec<(ComponentId, PathBuf)> =
        cluster.logs().into_iter().filter(|(id, _)| component.is_none_or(|wanted| wanted == id.0)).collect();
    if chosen.is_empty() {
        cluster.endpoint(&ComponentId(component.unwrap_or_default().to_owned()))?;
    }
    let mut out = Data;
    for (id, path) in &chosen {
        let mut copy = || -> io::Result<()> {
            if chosen.len() > 1 {
                writeln!(out, "==> {id} <==")?;
            }
            let mut log = std::fs::File::open(path)?;
            io::copy(&mut log, &mut out).map(drop)
        };
        copy().map_err(io_failed(&format!("print {}", path.display())))?;
    }
    Ok(())
}

/// The command's own exit code is what counts; it can be any.
fn exec(name: &str, host: &str, command: Vec<String>, state_dir: &Path) -> Result<(), ClusterError> {
    local::attach(state_dir, name)?;
    match SupervisorClient::new(ClusterDir::in_state(state_dir, name)).exec(host, command)? {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}

fn print(text: &str) -> Result<(), ClusterError> {
    Data.write_all(text.as_bytes()).map_err(ClusterError::Print)
}

fn io_failed(what: &str) -> impl FnOnce(io::Error) -> ProviderError + use<> {
    let what = what.to_owned();
    move |source| ProviderError::Io { what, source }
}

fn runtime() -> Result<tokio::runtime::Runtime, ProviderError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io_failed("start the runtime"))
}
