//! quakeproof: chaos and disaster-recovery drills for Kubernetes, with evidence
//! that can be verified offline.
//!
//! Data flows one way: `drill → plan → runner → journal → timeline → check → report`.
//! See ARCHITECTURE.md for the map and the invariants.
#![warn(missing_docs)]
#![deny(unsafe_code)]

pub mod agent;
pub mod apf;
pub mod chained;
pub mod check;
pub mod cli;
pub mod client;
pub mod clock;
pub mod compare;
pub mod component;
pub mod digest;
pub mod dispatch;
pub mod drill;
pub mod durable;
pub mod escape;
pub mod etcd;
pub mod evidence;
pub mod exit;
pub mod fault;
pub mod findings;
pub mod guard;
pub mod history;
pub mod journal;
pub mod ledger;
pub mod load;
pub mod plan;
pub mod probe;
pub mod progress;
pub mod provider;
pub mod regular_file;
pub mod report;
pub mod runner;
pub mod schema;
pub mod state;
pub mod step;
pub mod timeline;
pub mod unix_socket;
pub mod version;
pub mod wire;
