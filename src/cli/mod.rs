//! One file per command; the only code that prints, reads the environment, or exits.

pub mod doctor;
pub mod toolchain;
#[cfg(target_os = "linux")]
pub mod cluster;
pub mod check;
pub mod plan;
pub mod schema;
pub mod runs;
pub mod show;
pub mod verify;
pub mod report;
