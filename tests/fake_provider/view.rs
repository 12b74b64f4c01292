//! `ClusterView` over a fake cluster's file. As with a real cluster, an API server whose
//! cache is of another timeline answers `/readyz` with ok.

use super::state::{FakeState, REVISION};
use futures::future::BoxFuture;
use quakeproof::agent::view::{ClusterView, EtcdState, Look};
use quakeproof::component::ComponentId;
use std::path::{Path, PathBuf};

/// Looks at a fake cluster.
#[derive(Debug, Clone)]
pub struct FakeClusterView {
    dir: PathBuf,
}

impl FakeClusterView {
    /// Looks at the cluster in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }
}

fn look(holds: bool, yes: &str, no: &str) -> Look {
    if holds { Look::Holds(yes.to_owned()) } else { Look::Fails(no.to_owned()) }
}

impl ClusterView for FakeClusterView {
    fn etcd_healthy<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move {
            let state = FakeState::read(&self.dir);
            let member = state.components.get(member);
            let healthy = member.is_some_and(|c| c.running && !c.paused);
            look(healthy, "a linearizable range was answered", "connection refused")
        })
    }

    fn etcd_state<'a>(&'a self, member: &'a ComponentId) -> BoxFuture<'a, Result<EtcdState, String>> {
        Box::pin(async move {
            let state = FakeState::read(&self.dir);
            match state.components.get(member) {
                Some(c) if c.running && !c.paused => {
                    Ok(EtcdState { revision: REVISION, raft_term: 2 + state.starts(member) })
                }
                _ => Err("connection refused".to_owned()),
            }
        })
    }

    fn api_ready<'a>(&'a self, server: &'a ComponentId) -> BoxFuture<'a, Look> {
        Box::pin(async move {
            let state = FakeState::read(&self.dir);
            let server = state.components.get(server);
            let ready = server.is_some_and(|c| c.running && !c.paused && c.loaded.is_some());
            look(ready && state.served().is_some(), "/readyz is ok", "/readyz is not ok")
        })
    }

    fn list_equals_etcd(&self) -> BoxFuture<'_, Look> {
        Box::pin(async {
            let state = FakeState::read(&self.dir);
            let lies = state.lies();
            look(lies.is_empty(), "every LIST equals etcd", &format!("LIST of {lies:?} differs from etcd"))
        })
    }
}
