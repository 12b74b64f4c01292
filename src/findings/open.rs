//! Findings of past runs that are still open, for whoever is about to run the same versions again.

use super::{Bundle, Finding, read};
use crate::evidence::layout::{FINDINGS, RunDir};
use crate::evidence::load::read_plan;
use crate::plan::Versions;
use crate::regular_file;
use serde::Serialize;
use std::path::PathBuf;

/// A finding of a past run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Past {
    /// Id of the run.
    pub run: String,
    /// Name of its drill.
    pub drill: String,
    /// Versions that it ran on: two runs with the same are alike as far as findings go.
    pub versions: Versions,
    /// What was found.
    pub finding: Finding,
}

/// Every finding that is attached to one of these runs, and, by path, what is attached and can't be used.
#[must_use]
pub fn past(dirs: impl IntoIterator<Item = PathBuf>) -> (Vec<Past>, Vec<(PathBuf, String)>) {
    let (mut all, mut unusable) = (Vec::new(), Vec::new());
    for path in dirs {
        let Ok(dir) = RunDir::open(&path) else { continue };
        if !dir.findings().exists() {
            continue;
        }
        match of_run(&dir) {
            Ok(findings) => all.extend(findings),
            Err(what) => unusable.push((dir.findings(), what)),
        }
    }
    (all, unusable)
}

fn of_run(dir: &RunDir) -> Result<Vec<Past>, String> {
    let bytes = regular_file::read(&dir.findings()).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let bundle = Bundle::of(dir).map_err(|e| e.to_string())?;
    let plan = read_plan(dir).map_err(|e| e.to_string())?;
    let findings = read(FINDINGS, &text, Some(&bundle)).map_err(|errors| {
        errors
            .problems()
            .first()
            .map_or_else(|| "it is not valid".to_owned(), |problem| problem.title.clone())
    })?;
    let past = |finding| Past {
        run: bundle.run.clone(),
        drill: plan.drill.metadata.name.clone(),
        versions: plan.cluster.versions.clone(),
        finding,
    };
    Ok(findings.findings.into_iter().map(past).collect())
}

/// The open ones of runs on exactly these versions, the one that is due first at the top.
#[must_use]
pub fn open_for(all: &[Past], versions: &Versions) -> Vec<Past> {
    let mut open: Vec<Past> =
        all.iter().filter(|past| past.finding.is_open() && past.versions == *versions).cloned().collect();
    open.sort_by(|a, b| {
        (a.finding.due, &a.run, &a.finding.name).cmp(&(b.finding.due, &b.run, &b.finding.name))
    });
    open
}
