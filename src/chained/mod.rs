//! Hash-chained JSON lines with a format version: what the journal and the agent's log have in common.

pub mod chain;
pub mod format;
pub mod lines;
