//! The agent as the supervisor starts it, within the cluster's namespaces.

use super::cluster::LocalCluster;
use super::layout::ClusterDir;
use crate::agent::execute::UndoOps;
use crate::agent::server;
use crate::agent::view::{ClusterView, Look};
use crate::clock::SystemClock;
use crate::etcd::view::{LiveView, Look as LiveLook};
use crate::provider::Cluster;
use crate::provider::component::ComponentId;
use futures::future::BoxFuture;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// `quakeproof __agent <cluster directory>`; `args` are the words after `__agent`.
/// Serves until it is killed.
#[must_use]
pub fn agent_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(root) = args.into_iter().next().map(PathBuf::from) else {
        eprintln!("`__agent` is started by a cluster's supervisor");
        return ExitCode::from(crate::exit::ExitCode::Usage as u8);
    };
    let cluster: Arc<dyn Cluster> = match LocalCluster::open(ClusterDir::new(&root)) {
        Ok(cluster) => Arc::new(cluster),
        Err(error) => {
            eprintln!("agent: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ops = || UndoOps {
        control: cluster.control(),
        view: Arc::new(FromInside(LiveView::new(Arc::clone(&cluster)))),
    };
    let Err(error) = server::main(&root, Arc::new(SystemClock::new()), ops, |_| {});
    eprintln!("agent: {error}");
    ExitCode::FAILURE
}

/// The agent's looks, taken through the same observer as the runner's.
struct FromInside(LiveView);

fn shown(look: LiveLook) -> Look {
    match look {
        Ok(None) => Look::Holds("yes".to_owned()),
        Ok(Some(why)) => Look::Fails(why),
        Err(why) => Look::Unknown(why),
    }
}

impl ClusterView for FromInside {
    fn etcd_healthy<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async { shown(self.0.etcd_healthy(member).await) })
    }

    fn api_ready<'a>(&'a self, server: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async { shown(self.0.api_ready(server).await) })
    }

    fn list_equals_etcd(&self) -> BoxFuture<'_, Look> {
        Box::pin(async { shown(self.0.list_equals_etcd().await) })
    }
}
