//! A findings file to fill in, from what a report says.

use super::{API_VERSION, Bundle, KIND};
use serde_json::Value;
use std::fmt::Write as _;

/// A findings file for a bundle whose `report.json` is `report`: one finding for each objective that was
/// missed or could not be judged. Owners and dates are for people to fill in; until then it does not check.
#[must_use]
pub fn draft(bundle: &Bundle, report: &Value) -> String {
    let mut out = format!(
        "# What was found, for people to fill in; then `quakeproof findings attach RUN FILE`.\n\
         apiVersion: {API_VERSION}\nkind: {KIND}\nrun: {}\nmanifestDigest: {}\n\
         # reviewed: {{by: , on: }}\n# nextDue:          # when the drill is due again\n",
        quoted(&bundle.run),
        quoted(&bundle.manifest_digest)
    );
    let open: Vec<&Value> =
        report["objectives"].as_array().into_iter().flatten().filter(|o| o["verdict"] != "pass").collect();
    if open.is_empty() {
        out.push_str("findings: []\n");
        return out;
    }
    let versions = report["clusters"].as_array().into_iter().flatten().map(|c| {
        let word = |key: &str| c["versions"][key].as_str().unwrap_or("unknown").to_owned();
        format!("Kubernetes {}, etcd {}", word("kubernetes"), word("etcd"))
    });
    let scope = format!(
        "drill {} on {}",
        report["run"]["drill"].as_str().unwrap_or("unknown"),
        versions.collect::<Vec<_>>().join("; ")
    );
    out.push_str("findings:\n");
    for objective in open {
        let text = |key: &str| objective[key].as_str().unwrap_or_default();
        let _ = write!(
            out,
            "  - name: {}\n    objective: {}\n    title: {}\n    owner: \"\"         # person or team\n    \
             due: \"\"           # as 2027-01-31\n    scope: {}\n    # closedWhen: \"\"\n    \
             # acceptance: {{by: , on: , until: , reason: }}\n    # closedBy:       # id of the later run\n",
            quoted(text("name")),
            quoted(text("name")),
            quoted(text("reason")),
            quoted(&scope)
        );
    }
    out
}

/// A YAML scalar: a JSON text, which YAML reads the same.
fn quoted(text: &str) -> String {
    Value::String(crate::escape::visible(text).into_owned()).to_string()
}
