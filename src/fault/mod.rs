//! Faults, one file per kind.

pub mod lose_etcd;
