//! One file per command; the only code that prints, reads the environment, or exits.

pub mod check;
#[cfg(target_os = "linux")]
pub mod cluster;
pub mod doctor;
pub mod plan;
pub mod report;
pub mod runs;
pub mod schema;
pub mod show;
pub mod toolchain;
pub mod verify;
