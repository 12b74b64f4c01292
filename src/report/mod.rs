//! Reports: one model, one file per format.

pub mod escape;
