//! One file per command; the only code that prints, reads the environment, or exits.

pub mod report;
