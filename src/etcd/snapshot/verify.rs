//! Whether a snapshot can be relied on: its digest, and every page and entry of it.

use super::inspect::Inspection;
use super::trailer::{Ending, digest, ending};
use serde::Serialize;
use std::panic::resume_unwind;
use std::thread;

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Whether every check was passed.
    pub valid: bool,
    /// The checks.
    pub checks: Vec<Check>,
    /// What the snapshot holds; `null` when it can't be read.
    pub inspection: Option<Inspection>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// `digest` or `structure`.
    pub name: &'static str,
    /// Whether it was passed.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
}

/// Whether a database without a digest is good enough when its structure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw {
    /// No: nothing shows that its values are what etcd wrote.
    Refused,
    /// Yes: somebody said so.
    Accepted,
}

/// Verifies a snapshot: the digest on one thread, structure and keys on two more.
#[must_use]
pub fn verify(bytes: &[u8], raw: Raw) -> Verification {
    let (digest, inspected) = thread::scope(|scope| {
        let digest = scope.spawn(|| check_digest(bytes, raw));
        let inspected = super::inspect::inspect(bytes);
        (digest.join().unwrap_or_else(|panic| resume_unwind(panic)), inspected)
    });
    let (structure, inspection) = match inspected {
        Ok(inspection) => (sound(&inspection), Some(inspection)),
        Err(error) => (Check { name: "structure", ok: false, detail: error.to_string() }, None),
    };
    let checks = vec![digest, structure];
    Verification { valid: checks.iter().all(|check| check.ok), checks, inspection }
}

fn sound(inspection: &Inspection) -> Check {
    let entries = inspection.status.total_key_before36;
    let pages = inspection.status.total_size_bytes / inspection.page_size_bytes;
    let detail = format!("{entries} entries in {} buckets on {pages} pages", inspection.buckets.len());
    Check { name: "structure", ok: true, detail }
}

fn check_digest(bytes: &[u8], raw: Raw) -> Check {
    let (ok, detail) = match ending(bytes) {
        Ending::Digest { image, stored } => {
            let (is, said) = (digest(image), hex::encode(stored));
            match is == said {
                true => (true, format!("SHA-256 {is}")),
                false => (
                    false,
                    format!(
                        "offset {0}: the digest stored there is {said}, that of the {0} bytes before it {is}: the \
                         file was changed or damaged",
                        image.len()
                    ),
                ),
            }
        }
        Ending::Raw if raw == Raw::Accepted => (true, "none; a raw database, accepted with --raw".to_owned()),
        Ending::Raw => (
            false,
            "none: a raw database, of which nothing shows that its values are what etcd wrote\n  hint: `--raw` \
             accepts it on its structure alone; a snapshot comes from `etcdctl snapshot save`"
                .to_owned(),
        ),
        Ending::Odd => (
            false,
            format!("none: {} bytes are neither a database nor a snapshot: truncated, or appended to", bytes.len()),
        ),
    };
    Check { name: "digest", ok, detail }
}
