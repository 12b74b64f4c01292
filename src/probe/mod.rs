//! Probes: paced observations that a plan adds by itself.

pub mod spec;
