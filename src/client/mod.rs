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
pub mod objects;
pub mod pace;
pub mod pod_creator;
pub mod recorded_transport;
pub mod reflector;
pub mod secret_reader;
pub mod session;
pub mod spec;
pub mod watch_line;
pub mod watcher;

use crate::history::record::ClientKind;
use crate::probe;
use context::ClientContext;
use tokio::task::JoinHandle;

/// Starts a client or probe of the planned kind. It runs until
/// [`ClientContext::stop`] is cancelled, and has closed its history when the handle is done.
pub fn spawn(ctx: ClientContext) -> JoinHandle<()> {
    match ctx.planned.kind {
        ClientKind::LedgerWriter => tokio::spawn(ledger_writer::run(ctx)),
        ClientKind::GetReader => tokio::spawn(get_reader::run(ctx)),
        ClientKind::ListReader => tokio::spawn(list_reader::run(ctx)),
        ClientKind::Watcher => tokio::spawn(watcher::run(ctx)),
        ClientKind::EtcdWatcher => tokio::spawn(etcd_watcher::run(ctx)),
        ClientKind::SecretReader => tokio::spawn(secret_reader::run(ctx)),
        ClientKind::EtcdTruth => tokio::spawn(probe::truth::run(ctx)),
        ClientKind::ApiReady => tokio::spawn(probe::ready::run(ctx)),
        ClientKind::LeaderLease => tokio::spawn(probe::lease::run(ctx)),
        ClientKind::CasUpdater => tokio::spawn(cas_updater::run(ctx)),
        ClientKind::Reflector => tokio::spawn(reflector::run(ctx)),
        ClientKind::LeaseKeeper => tokio::spawn(lease_keeper::run(ctx)),
        ClientKind::LeaderElector => tokio::spawn(leader_elector::run(ctx)),
        ClientKind::EventWriter => tokio::spawn(event_writer::run(ctx)),
        ClientKind::Deployer => tokio::spawn(deployer::run(ctx)),
        ClientKind::PodCreator => tokio::spawn(pod_creator::run(ctx)),
        ClientKind::Load | ClientKind::RetryingLoad => tokio::spawn(load::run(ctx)),
    }
}
