//! Probes: paced observations that a plan adds by itself.

pub mod lease;
pub mod ready;
pub mod spec;
pub mod steady;
pub mod truth;
