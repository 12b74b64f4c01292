//! in-toto Statement, version 1, about a drill's bundle:
//! <https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>.

use crate::digest::sha256_hex;
use crate::evidence::manifest::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

/// Type of a statement of version 1.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// What every version of the predicate's type begins with.
const DRILL_RESULT_ANY: &str = "https://quakeproof.dev/attestation/drill-result/";

/// Type of the predicate: what a drill came to.
pub const DRILL_RESULT: &str = "https://quakeproof.dev/attestation/drill-result/v1";

/// Name of the subject that stands for the manifest.
const MANIFEST: &str = "manifest.json";

/// What is stated of which files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    statement_type: String,
    /// The manifest, then every file that it lists, in its order.
    pub subject: Vec<Subject>,
    predicate_type: String,
    /// What the drill came to.
    pub predicate: Value,
}

/// A file that a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Path below the run directory, with `/`.
    pub name: String,
    /// Its digest.
    pub digest: DigestSet,
}

/// Digests of one file by algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestSet {
    /// Hexadecimal.
    pub sha256: String,
}

/// Why a statement does not vouch for a bundle.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementError {
    /// It is none.
    #[error("not an in-toto statement: {0}")]
    Malformed(String),
    /// It is about something else.
    #[error("its predicate {0:?} is not a drill result: another tool wrote it")]
    Foreign(String),
    /// Another version of this tool wrote it.
    #[error("its predicate is {0}, this version reads {DRILL_RESULT}")]
    Newer(String),
    /// It is about other files.
    #[error("{0}")]
    Subject(String),
    /// It states other than the report.
    #[error("what it states differs from report.json")]
    Predicate,
}

impl Statement {
    /// What is stated of a bundle with this manifest, whose file has these bytes, and this report.
    #[must_use]
    pub fn of(manifest: &Manifest, manifest_bytes: &[u8], report: &Value) -> Self {
        let subject =
            |name: &str, sha256: String| Subject { name: name.to_owned(), digest: DigestSet { sha256 } };
        let files = manifest.files.iter().map(|file| subject(&file.path, file.sha256.clone()));
        Self {
            statement_type: STATEMENT.to_owned(),
            subject: std::iter::once(subject(MANIFEST, sha256_hex(manifest_bytes))).chain(files).collect(),
            predicate_type: DRILL_RESULT.to_owned(),
            predicate: predicate(report),
        }
    }

    /// The bytes that are signed.
    ///
    /// # Panics
    /// Never: a statement is JSON.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a statement is JSON")
    }

    /// Reads a statement on a drill's result.
    ///
    /// # Errors
    /// When it is something else.
    pub fn read(bytes: &[u8]) -> Result<Self, StatementError> {
        let statement: Self =
            serde_json::from_slice(bytes).map_err(|e| StatementError::Malformed(e.to_string()))?;
        if statement.statement_type != STATEMENT {
            return Err(StatementError::Malformed(format!("its type is {:?}", statement.statement_type)));
        }
        match statement.predicate_type.as_str() {
            DRILL_RESULT => Ok(statement),
            newer if newer.starts_with(DRILL_RESULT_ANY) => {
                Err(StatementError::Newer(newer.chars().take(80).collect()))
            }
            other => Err(StatementError::Foreign(other.chars().take(80).collect())),
        }
    }

    /// Whether it is about exactly this bundle.
    ///
    /// # Errors
    /// [`StatementError::Subject`] with the first file that differs, [`StatementError::Predicate`].
    pub fn covers(
        &self,
        manifest: &Manifest,
        manifest_bytes: &[u8],
        report: &Value,
    ) -> Result<(), StatementError> {
        let present = Self::of(manifest, manifest_bytes, report);
        let digest = |of: &Self, name: &str| {
            of.subject.iter().find(|s| s.name == name).map(|s| s.digest.sha256.clone())
        };
        // The manifest last: that it differs says less than which file does.
        for subject in present.subject.iter().skip(1).chain(present.subject.first()) {
            let name = &subject.name;
            match digest(self, name) {
                Some(signed) if signed == subject.digest.sha256 => {}
                Some(signed) => {
                    let found = &subject.digest.sha256;
                    let what = format!("{name}: SHA-256 is {found}, what was signed says {signed}");
                    return Err(StatementError::Subject(what));
                }
                None => return Err(StatementError::Subject(format!("{name}: not among what was signed"))),
            }
        }
        if let Some(gone) = self.subject.iter().find(|s| digest(&present, &s.name).is_none()) {
            return Err(StatementError::Subject(format!("{}: was signed and is missing", gone.name)));
        }
        if self.subject != present.subject {
            let what = format!("{MANIFEST}: the signed files stand in another order or twice");
            return Err(StatementError::Subject(what));
        }
        if self.predicate == present.predicate { Ok(()) } else { Err(StatementError::Predicate) }
    }
}

/// What a drill came to, from `report.json` of any version; what that does not say is null.
fn predicate(report: &Value) -> Value {
    let run = &report["run"];
    let each = |list: &Value, keys: &[&str]| -> Vec<Value> {
        let picked = |item: &Value| keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
        list.as_array().map(|items| items.iter().map(picked).collect()).unwrap_or_default()
    };
    json!({
        "run": run["id"],
        "drill": run["drill"],
        "drillDigest": run["drillDigest"],
        "planDigest": run["planDigest"],
        "verdict": report["verdict"],
        "outcome": report["outcome"],
        "objectives": each(&report["objectives"], &["name", "verdict"]),
        "clusters": each(&report["clusters"], &["name", "provider", "versions"]),
        "startedAt": run["startedAt"]["at"],
        "finishedAt": run["finishedAt"]["at"],
        "operator": run["operator"],
        "tool": run["tool"],
        "judge": report["judge"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::manifest::{JournalEnd, ManifestFile};

    fn manifest(files: &[(&str, &str)]) -> Manifest {
        Manifest {
            format_version: "1.0".to_owned(),
            tool: "0".to_owned(),
            run: "r".to_owned(),
            journal: JournalEnd { head: "0".to_owned(), entries: 1 },
            files: files
                .iter()
                .map(|(path, sha256)| ManifestFile {
                    path: (*path).to_owned(),
                    size_bytes: 1,
                    sha256: (*sha256).to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_statement_is_about_one_bundle_and_names_what_differs() {
        let report = json!({"verdict": "pass", "run": {"id": "r"}});
        let signed = Statement::of(&manifest(&[("a", "1"), ("b", "2")]), b"m", &report);
        let signed = Statement::read(&signed.to_bytes()).unwrap();
        let said = |files: &[(&str, &str)], bytes: &[u8], report: &Value| {
            signed.covers(&manifest(files), bytes, report).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(said(&[("a", "1"), ("b", "2")], b"m", &report), "");
        assert_eq!(said(&[("a", "1"), ("b", "3")], b"n", &report), "b: SHA-256 is 3, what was signed says 2");
        assert_eq!(said(&[("a", "1")], b"m", &report), "b: was signed and is missing");
        assert_eq!(
            said(&[("a", "1"), ("b", "2"), ("c", "4")], b"m", &report),
            "c: not among what was signed"
        );
        assert!(said(&[("b", "2"), ("a", "1")], b"m", &report).contains("another order"));
        assert!(said(&[("a", "1"), ("b", "2")], b"n", &report).starts_with("manifest.json: "));
        let other = json!({"verdict": "fail", "run": {"id": "r"}});
        assert!(said(&[("a", "1"), ("b", "2")], b"m", &other).contains("report.json"));
    }

    #[test]
    fn what_another_tool_or_a_newer_version_states_is_told_apart() {
        let statement = Statement::of(&manifest(&[]), b"m", &json!({}));
        let text = String::from_utf8(statement.to_bytes()).unwrap();
        let read = |from: &str, to: &str| Statement::read(text.replace(from, to).as_bytes()).unwrap_err();
        assert!(matches!(read("drill-result/v1", "drill-result/v2"), StatementError::Newer(_)));
        assert!(matches!(read(DRILL_RESULT, "https://slsa.dev/provenance/v1"), StatementError::Foreign(_)));
        assert!(matches!(read("Statement/v1", "Statement/v0.1"), StatementError::Malformed(_)));
        assert!(matches!(Statement::read(b"{}"), Err(StatementError::Malformed(_))));
    }
}
