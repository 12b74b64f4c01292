//! Who vouches for a bundle: an in-toto statement over its files, in a DSSE envelope signed
//! with ed25519.
//!
//! The envelope lies beside the manifest and not in it: it names the digests of the manifest and
//! of every file, `report.json` included, so nothing that it covers can speak of it.

mod dsse;
pub mod key;
mod statement;

pub use dsse::{Envelope, EnvelopeError};
pub use statement::{DRILL_RESULT, Statement, StatementError, Subject};

use super::manifest::Manifest;
use key::SigningKey;
use serde_json::Value;

/// The envelope that vouches for a bundle: its bytes as they lie in `attestation.dsse.json`.
///
/// `manifest` is written as `manifest_bytes`; `report` is `report.json`.
#[must_use]
pub fn attest(manifest: &Manifest, manifest_bytes: &[u8], report: &Value, key: &SigningKey) -> Vec<u8> {
    Envelope::sign(&Statement::of(manifest, manifest_bytes, report).to_bytes(), key).to_bytes()
}
