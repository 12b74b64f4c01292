//! One file per command; the only code that prints, reads the environment, or exits.

#[cfg(target_os = "linux")]
pub mod cluster;
pub mod doctor;
pub mod toolchain;
