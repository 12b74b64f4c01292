//! The journal: append-only, hash-chained JSON lines; what happened to the run.

pub mod entry;
