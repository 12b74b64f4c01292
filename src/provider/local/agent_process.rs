//! The agent as the supervisor starts it, within the cluster's namespaces.

use super::cluster::LocalCluster;
use super::layout::ClusterDir;
use crate::agent::execute::UndoOps;
use crate::agent::server;
use crate::clock::SystemClock;
use crate::exit::ExitCode;
use crate::provider::Cluster;
use crate::provider::live_api::LiveApi;
use crate::provider::live_view::LiveView;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// `quakeproof __agent <cluster directory>`; `args` are the words after `__agent`.
/// Serves until it is killed.
#[must_use]
pub fn agent_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(root) = args.into_iter().next().map(PathBuf::from) else {
        eprintln!("`__agent` is started by a cluster's supervisor");
        return ExitCode::Usage;
    };
    let cluster: Arc<dyn Cluster> = match LocalCluster::open(ClusterDir::new(&root)) {
        Ok(cluster) => Arc::new(cluster),
        Err(error) => {
            eprintln!("agent: {error}");
            return ExitCode::Refused;
        }
    };
    let ops = || UndoOps {
        control: cluster.control(),
        view: Arc::new(LiveView::new(Arc::clone(&cluster))),
        api: Arc::new(LiveApi::new(Arc::clone(&cluster))),
    };
    let Err(error) = server::main(&root, Arc::new(SystemClock::new()), ops, |_| {});
    eprintln!("agent: {error}");
    ExitCode::Refused
}
