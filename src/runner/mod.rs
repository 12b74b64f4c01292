//! A run from its first phase to its last, and how another process ends one whose runner died.

mod cleanup;
pub mod clients;
pub mod lifecycle;
mod preflight;
pub mod recover;
