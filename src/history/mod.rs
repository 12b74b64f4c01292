//! Histories: what each client saw, written by its own recorder.

pub mod ids;
pub mod kind;
pub mod reader;
pub mod record;
pub mod recorder;
