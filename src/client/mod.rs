//! Clients under test, a file per kind with what they share beside them. None retries behind its recorder.

pub mod cas_updater;
pub mod consumed;
pub mod context;
pub mod deployer;
pub mod election;
pub mod etcd_range;
pub mod etcd_watcher;
pub mod event_writer;
pub mod get_reader;
pub mod leader_elector;
pub mod lease_keeper;
pub mod ledger_writer;
pub mod list;
pub mod list_reader;
pub mod load;
pub mod load_request;
pub mod load_spec;
pub mod pace;
pub mod pod_creator;
pub mod recorded_transport;
pub mod reflector;
pub mod secret_reader;
pub mod session;
pub mod under_test;
pub mod watch_line;
pub mod watcher;
