//! Whether somebody vouches for a bundle, and who.

use super::Checks;
use crate::evidence::EvidenceError;
use crate::evidence::layout::{ATTESTATION, RunDir};
use crate::evidence::manifest::Manifest;
use crate::evidence::signature::key::VerifyingKey;
use crate::evidence::signature::{DRILL_RESULT, Envelope, Statement, StatementError};
use crate::regular_file;
use serde::Serialize;
use std::io;

/// Name of the check.
pub(super) const CHECK: &str = "attestation";

/// Who vouches for a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// How far that is proven.
    pub proof: Proof,
    /// Key that signed, as the envelope says: the SHA-256 of its SubjectPublicKeyInfo; `null` when nobody did.
    pub key_id: Option<String>,
}

/// How far a bundle's origin is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Proof {
    /// Nobody signed.
    Unsigned,
    /// Somebody signed, and no key was given to check that with.
    Unproven,
    /// The given key signed exactly these files.
    Proven,
    /// The given key did not, or the attestation is of other files.
    Failed,
}

impl Origin {
    /// What a bundle that is valid otherwise stands for.
    pub(super) fn statement(&self) -> String {
        let key = self.key_id.as_deref().unwrap_or("unknown");
        match self.proof {
            Proof::Unsigned => "unsigned: integrity only, origin unproven".to_owned(),
            Proof::Unproven => format!(
                "signed by key id {key}: integrity only, origin unproven until the public key of whom you \
                 trust is given with `--key`"
            ),
            Proof::Proven => format!("signed by key {key}: integrity and origin proven"),
            Proof::Failed => "origin unproven".to_owned(),
        }
    }
}

/// Checks the attestation against the manifest and the report that it covers.
///
/// # Errors
/// [`EvidenceError::Newer`] for a statement of a newer version.
pub(super) fn check(
    dir: &RunDir,
    manifest: Option<&Manifest>,
    key: Option<&VerifyingKey>,
    checks: &mut Checks,
) -> Result<Origin, EvidenceError> {
    let bytes = match regular_file::read(&dir.attestation()) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let proof = match key {
                None => {
                    checks.held(CHECK, "none");
                    Proof::Unsigned
                }
                Some(key) => {
                    let what = format!("{ATTESTATION}: missing, so key {} signed nothing here", key.id());
                    checks.failed(CHECK, what);
                    Proof::Failed
                }
            };
            return Ok(Origin { proof, key_id: None });
        }
        Err(e) => {
            checks.failed(CHECK, format!("{ATTESTATION}: {e}"));
            return Ok(Origin { proof: Proof::Failed, key_id: None });
        }
    };
    let (key_id, result) = match Envelope::read(&bytes) {
        Ok(envelope) => {
            (Some(envelope.key_id().chars().take(64).collect()), vouches(dir, manifest, &envelope, key))
        }
        Err(e) => (None, Err(Objection::Invalid(e.to_string()))),
    };
    let proof = match result {
        Ok(detail) => {
            checks.held(CHECK, detail);
            if key.is_some() { Proof::Proven } else { Proof::Unproven }
        }
        Err(Objection::Newer(found)) => {
            return Err(EvidenceError::Newer { path: dir.attestation(), found, supported: DRILL_RESULT });
        }
        Err(Objection::Invalid(what)) => {
            checks.failed(CHECK, format!("{ATTESTATION}: {what}"));
            Proof::Failed
        }
        Err(Objection::OtherFiles(what)) => {
            checks.failed(CHECK, what);
            Proof::Failed
        }
    };
    Ok(Origin { proof, key_id })
}

enum Objection {
    Newer(String),
    Invalid(String),
    /// Names the file that differs itself.
    OtherFiles(String),
}

fn vouches(
    dir: &RunDir,
    manifest: Option<&Manifest>,
    envelope: &Envelope,
    key: Option<&VerifyingKey>,
) -> Result<String, Objection> {
    // The signature first: what nobody signed is not worth being read.
    if let Some(key) = key {
        envelope.check(key).map_err(|e| Objection::Invalid(e.to_string()))?;
    }
    let statement = Statement::read(&envelope.payload().unwrap_or_default()).map_err(|e| match e {
        StatementError::Newer(found) => Objection::Newer(found),
        other => Objection::Invalid(other.to_string()),
    })?;
    let manifest =
        manifest.ok_or_else(|| Objection::Invalid("there is no manifest to hold it against".to_owned()))?;
    let manifest_bytes = super::read(dir, "manifest.json").map_err(Objection::OtherFiles)?;
    let report = serde_json::from_slice(&super::read(dir, "report.json").map_err(Objection::OtherFiles)?)
        .map_err(|e| Objection::OtherFiles(format!("report.json: {e}")))?;
    statement.covers(manifest, &manifest_bytes, &report).map_err(|e| match e {
        StatementError::Subject(what) => Objection::OtherFiles(what),
        other => Objection::Invalid(other.to_string()),
    })?;
    let files = statement.subject.len();
    Ok(match key {
        Some(_) => format!("signed by the given key, over these {files} files"),
        None => format!("is of these {files} files; its signature is not checked, as no key was given"),
    })
}
