//! The journal: append-only, hash-chained JSON lines; what happened to the run.

mod crash;
pub mod entry;
mod error;
pub mod reader;
#[cfg(test)]
pub(crate) mod samples;
pub mod summary;
pub mod writer;

pub use error::JournalError;
