//! The one writer of a run's journal and state, what it knows of clients, and who asked the run to end.

pub mod dispatcher;
pub mod interrupt;
pub mod observations;
