//! The runner carries out a plan; the dispatcher alone writes the journal.

mod cleanup;
pub mod clients;
pub mod dispatcher;
pub mod injection;
pub mod interrupt;
pub mod lifecycle;
pub mod observations;
mod preflight;
pub mod recover;
mod undo;
