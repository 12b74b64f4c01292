//! The bytes of `plan.json` and their digest, which is what an approver signs.

use super::Plan;
use crate::digest::sha256_hex;

/// `plan.json`: keys in the order of the types, maps in the order of their keys,
/// so the same plan always has the same bytes.
///
/// # Panics
/// Never: a plan has no map with keys that are not text.
#[must_use]
pub fn canonical_bytes(plan: &Plan) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(plan).expect("a plan is JSON");
    bytes.push(b'\n');
    bytes
}

/// SHA-256 of `plan.json`, hexadecimal.
#[must_use]
pub fn plan_digest(plan: &Plan) -> String {
    sha256_hex(&canonical_bytes(plan))
}
