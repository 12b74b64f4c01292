//! Drill files: what may be written, how it is read, what is wrong with it.

pub mod spec;
pub mod values;
