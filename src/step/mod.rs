//! Steps that are not faults, one file per kind.

pub mod spec;
