//! Clients under test, one file per kind. None retries behind its recorder.

pub mod cas_updater;
pub mod connection;
pub mod consumed;
pub mod context;
pub mod deployer;
pub mod election;
pub mod etcd_watcher;
pub mod event_writer;
pub mod failure;
pub mod get_reader;
pub mod http;
pub mod leader_elector;
pub mod lease_keeper;
pub mod ledger;
pub mod ledger_writer;
pub mod list;
pub mod list_reader;
pub mod live_api;
pub mod load;
pub mod load_request;
pub mod load_spec;
pub mod objects;
pub mod pace;
pub mod pod_creator;
pub mod recorded_transport;
pub mod reflector;
pub mod secret_reader;
pub mod session;
pub mod under_test;
pub mod watch_line;
pub mod watcher;

use crate::probe;
use context::ClientContext;
use tokio::task::JoinHandle;

/// Starts a client of the drill, or a probe that the plan added. It runs until
/// [`ClientContext::stop`] is cancelled, and has closed its history when the handle is done.
pub fn spawn(ctx: ClientContext) -> JoinHandle<()> {
    match ctx.planned.spec.clone() {
        Some(client) => tokio::spawn(client.kind().run(ctx)),
        None => tokio::spawn(probe::run(ctx)),
    }
}
