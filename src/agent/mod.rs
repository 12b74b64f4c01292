//! The agent: carries out undos under a lease and ends faults by itself when the lease lapses.

pub mod protocol;
pub mod undo;
