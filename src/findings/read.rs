//! Reads a findings file and says what is wrong with it, as for a drill.

use super::{API_VERSION, Finding, Findings, KIND};
use crate::digest::sha256_hex;
use crate::drill::lint::is_kebab;
use crate::drill::parse;
use crate::drill::problem::{DrillErrors, Problem};
use crate::drill::source::SourceMap;
use crate::evidence::EvidenceError;
use crate::evidence::layout::RunDir;
use crate::evidence::manifest::Manifest;
use crate::regular_file;
use std::collections::BTreeSet;

/// Longest text of a field, characters.
const LONGEST: usize = 2000;

/// What a findings file must be about: a sealed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Id of the run.
    pub run: String,
    /// SHA-256 of `manifest.json`, hexadecimal.
    pub manifest_digest: String,
    /// Names of the run's objectives, as its report has them.
    pub objectives: Vec<String>,
}

impl Bundle {
    /// The bundle in a run directory.
    ///
    /// # Errors
    /// When it was not sealed, or its manifest or report can't be read.
    pub fn of(dir: &RunDir) -> Result<Self, EvidenceError> {
        let manifest = Manifest::read(dir)?.ok_or_else(|| EvidenceError::Malformed {
            path: dir.path().to_owned(),
            what: "the run was not finished, so there is nothing to attach findings to\n  \
                   hint: `quakeproof recover` ends it"
                .to_owned(),
        })?;
        let read = |path: std::path::PathBuf| regular_file::read(&path).map_err(EvidenceError::io(path));
        let report: serde_json::Value = serde_json::from_slice(&read(dir.report_json())?).map_err(|e| {
            EvidenceError::Malformed { path: dir.report_json(), what: format!("not a report: {e}") }
        })?;
        let objectives = report["objectives"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Self {
            run: manifest.run,
            manifest_digest: sha256_hex(&read(dir.manifest())?),
            objectives: objectives.iter().filter_map(|o| o["name"].as_str().map(str::to_owned)).collect(),
        })
    }
}

/// Reads the findings in the file `name` with contents `text`. With a `bundle`, they must be about that.
///
/// # Errors
/// Everything that is wrong, with positions, in the order of the file.
pub fn read(name: &str, text: &str, bundle: Option<&Bundle>) -> Result<Findings, DrillErrors> {
    let begin = "`quakeproof findings draft RUN` writes one to fill in";
    let (findings, source) = parse::document::<Findings>(name, text, begin)?;
    let mut lint = Lint { source: &source, problems: Vec::new() };
    lint.head(&findings, bundle);
    let mut names = BTreeSet::new();
    for (index, finding) in findings.findings.iter().enumerate() {
        let path = |key: &str| format!("findings[{index}].{key}");
        if !is_kebab(&finding.name) {
            let what = format!("`{}` is not a name", finding.name);
            lint.error(&path("name"), what, "use lower case, digits and single dashes, as `lost-writes`");
        } else if !names.insert(finding.name.as_str()) {
            let what = format!("finding `{}` stands here twice", finding.name);
            lint.error(&path("name"), what, "give each its own name");
        }
        lint.finding(finding, path, &findings.run, bundle);
    }
    if lint.problems.is_empty() { Ok(findings) } else { Err(DrillErrors::new(name, text, lint.problems)) }
}

struct Lint<'a> {
    source: &'a SourceMap,
    problems: Vec<Problem>,
}

impl Lint<'_> {
    fn error(&mut self, path: &str, title: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(title, self.source.at(path)).help(help));
    }

    fn head(&mut self, findings: &Findings, bundle: Option<&Bundle>) {
        if findings.api_version != API_VERSION {
            let what = format!("`{}` is no version that this quakeproof reads", findings.api_version);
            self.error("apiVersion", what, format!("write `{API_VERSION}`"));
        }
        if findings.kind != KIND {
            self.error("kind", format!("`{}` is not {KIND}", findings.kind), format!("write `{KIND}`"));
        }
        if let Some(bundle) = bundle {
            if findings.run != bundle.run {
                let what = format!("these findings are of run {}", findings.run);
                self.error("run", what, format!("this bundle is run {}", bundle.run));
            } else if findings.manifest_digest != bundle.manifest_digest {
                let what = "these findings are of another bundle of this run";
                let help =
                    format!("the SHA-256 of this bundle's manifest.json is {}", bundle.manifest_digest);
                self.error("manifestDigest", what, help);
            }
        }
        if let Some(review) = &findings.reviewed {
            self.text("reviewed.by", &review.by, "name who went through the report");
        }
    }

    fn finding(
        &mut self,
        finding: &Finding,
        path: impl Fn(&str) -> String,
        run: &str,
        bundle: Option<&Bundle>,
    ) {
        self.text(&path("title"), &finding.title, "say in a sentence what was found");
        self.text(&path("owner"), &finding.owner, "name the person or team that answers for it");
        self.text(
            &path("scope"),
            &finding.scope,
            "name the clusters, versions or procedures that it concerns",
        );
        if let Some(when) = &finding.closed_when {
            self.text(&path("closedWhen"), when, "say what a later run has to show, or leave the key out");
        }
        if let Some(acceptance) = &finding.acceptance {
            self.text(&path("acceptance.by"), &acceptance.by, "name who took the risk");
            self.text(&path("acceptance.reason"), &acceptance.reason, "say why one can live with it");
            if acceptance.until.is_some_and(|until| until < acceptance.on) {
                let what = "the acceptance ends before it begins";
                self.error(&path("acceptance.until"), what, format!("it is of {}", acceptance.on));
            }
        }
        if let Some(by) = &finding.closed_by {
            if same_run(by, run) {
                let what = "a run can't close what it found itself";
                self.error(&path("closedBy"), what, "name the later run that showed that it is gone");
            } else if uuid::Uuid::try_parse(by).is_err() {
                let what = format!("`{by}` is not the id of a run");
                self.error(&path("closedBy"), what, "write the whole id, as `quakeproof runs --json` has it");
            }
        }
        if let (Some(objective), Some(bundle)) = (&finding.objective, bundle)
            && !bundle.objectives.contains(objective)
        {
            let what = format!("the run has no objective `{objective}`");
            let known = bundle.objectives.join(", ");
            let help =
                if known.is_empty() { "leave the key out".to_owned() } else { format!("there are {known}") };
            self.error(&path("objective"), what, help);
        }
    }

    fn text(&mut self, path: &str, text: &str, help: &str) {
        if text.trim().is_empty() {
            self.error(path, "this is still to be filled in", help);
        } else if text.chars().count() > LONGEST {
            self.error(path, format!("longer than {LONGEST} characters"), "shorten it");
        }
    }
}

/// An id has several spellings.
fn same_run(a: &str, b: &str) -> bool {
    let id = |text: &str| uuid::Uuid::try_parse(text).ok();
    a == b || id(a).is_some_and(|a| Some(a) == id(b))
}
