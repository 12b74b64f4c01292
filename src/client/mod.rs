//! Clients under test, one file per kind. None retries behind its recorder.

pub mod context;
pub mod ledger;
pub mod spec;
