//! Bundles that were tampered with, torn, or written on a full disk.

mod bundle;
mod crash;
mod findings;
mod publish;
mod schemas;
mod signing;
mod tampering;
