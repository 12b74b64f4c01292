//! Verifies a bundle: recomputes the chain, the digests and the findings.
//!
//! What it proves without a signature is integrity: the parts fit together and the findings
//! follow from the records. Who made the bundle is proven by a signature of a key that the caller
//! trusts, and by nothing else.

use super::EvidenceError;
use super::layout::RunDir;
use super::load;
use super::manifest::Manifest;
use super::signature::key::VerifyingKey;
use crate::agent::log;
use crate::digest::{sha256_hex, sha256_of};
use crate::findings::{self, Attached};
use crate::history::reader::check_anchors;
use crate::history::record::Record;
use crate::history::recorder::Anchor;
use crate::journal::entry::{JournalEvent, RunOutcome};
use crate::journal::reader::{self, Journal};
use crate::journal::summary::RunSummary;
use crate::plan::Plan;
use crate::regular_file;
use crate::timeline::EvidenceInput;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

mod difference;
mod origin;

pub use difference::{Difference, differences};
pub use origin::{Origin, Proof};

/// A bundle's reports, by file name. `report.json` is always among them.
pub type Reports = BTreeMap<&'static str, Vec<u8>>;

/// The reports of evidence and the hash of its last journal entry, or why there are none.
pub type Reporting<'a> = dyn Fn(&EvidenceInput, &str) -> Result<Reports, String> + 'a;

/// Whether a plan follows from the text of its drill, and why not.
pub type Following<'a> = dyn Fn(&Plan, &str) -> Result<(), String> + 'a;

/// Recomputes findings from evidence.
pub struct Judge<'a> {
    /// Version of this judge, as it stands in `judge` of `report.json`.
    pub version: &'a str,
    /// Holds the plan against the drill.
    pub follows: &'a Following<'a>,
    /// The bytes of every report for this evidence and journal head.
    pub reports: &'a Reporting<'a>,
}

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyReport {
    /// Run id, as the journal has it; empty when there is no readable journal.
    pub run: String,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
    /// The first thing that is not as it should be.
    pub first_difference: Option<String>,
    /// Who vouches for the bundle.
    pub origin: Origin,
    /// What was attached after the bundle was sealed; `null` when nothing was. No check: it is no evidence.
    pub attached: Option<Attached>,
    /// Another judge version's findings differ from this one's. Not an integrity failure.
    pub other_opinion: Option<OtherOpinion>,
    /// What the result stands for.
    pub statement: String,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Name.
    pub name: &'static str,
    /// Whether it held.
    pub ok: bool,
    /// What was checked, or what differs.
    pub detail: String,
}

/// What another judge version found and what this one finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherOpinion {
    /// Version in the report.
    pub judge: String,
    /// This version.
    pub ours: String,
    /// Where they differ, first ones first.
    pub differences: Vec<Difference>,
}

impl VerifyReport {
    /// Every check held.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.checks.iter().all(|c| c.ok)
    }
}

/// Most differences between two judges that are shown.
const MAX_DIFFERENCES: usize = 20;

/// Verifies a bundle. With a `key`, it is valid only when that key signed it.
///
/// # Errors
/// [`EvidenceError::NotARun`] and [`EvidenceError::Newer`]; everything else is a check that failed.
pub fn verify(
    path: &Path,
    judge: &Judge<'_>,
    key: Option<&VerifyingKey>,
) -> Result<VerifyReport, EvidenceError> {
    let dir = RunDir::open(path)?;
    let mut checks = Checks::default();
    let manifest = match Manifest::read(&dir) {
        Ok(Some(manifest)) => {
            checks.held("manifest", format!("format {}", manifest.format_version));
            Some(manifest)
        }
        Ok(None) => {
            let what = "there is none: the run was not finished\n  hint: `quakeproof recover` ends it";
            checks.failed("manifest", format!("manifest.json: {what}"));
            None
        }
        Err(newer @ EvidenceError::Newer { .. }) => return Err(newer),
        Err(e) => {
            checks.failed("manifest", e.to_string());
            None
        }
    };
    if let Some(manifest) = &manifest {
        checks.add("files", check_files(&dir, manifest));
    }
    let attached = findings::attached(&dir);
    let origin = origin::check(&dir, manifest.as_ref(), key, &mut checks)?;
    let journal = match reader::read(&dir.journal()) {
        Ok(journal) => journal,
        Err(crate::journal::JournalError::Newer { path, found, supported }) => {
            return Err(EvidenceError::Newer { path, found, supported });
        }
        Err(e) => {
            checks.failed("journal", e.to_string());
            return Ok(checks.report(String::new(), origin, attached, None));
        }
    };
    let summary = RunSummary::of(&journal.entries);
    checks.add("journal", check_journal(&journal, manifest.as_ref()));
    checks.add("protocol", check_protocol(&summary));
    checks.add("drill", check_drill(&dir, &summary));
    checks.add("plan", check_plan(&dir, &summary, judge));
    checks.add("binding", check_binding(&dir, &summary));
    checks.add("histories", check_histories(&dir, &journal, &summary));
    checks.add("agent", check_agent_logs(&dir, &journal, &summary));
    let opinion = check_findings(&dir, judge, &mut checks)?;
    Ok(checks.report(summary.run, origin, attached, opinion))
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn held(&mut self, name: &'static str, detail: impl Into<String>) {
        self.0.push(Check { name, ok: true, detail: detail.into() });
    }

    fn failed(&mut self, name: &'static str, detail: impl Into<String>) {
        self.0.push(Check { name, ok: false, detail: detail.into() });
    }

    fn add(&mut self, name: &'static str, result: Result<String, String>) {
        let ok = result.is_ok();
        self.0.push(Check { name, ok, detail: result.unwrap_or_else(|what| what) });
    }

    fn report(
        self,
        run: String,
        origin: Origin,
        attached: Option<Attached>,
        other_opinion: Option<OtherOpinion>,
    ) -> VerifyReport {
        let first = self.0.iter().find(|c| !c.ok);
        let statement = match first {
            None => origin.statement(),
            Some(failed) if failed.name == origin::CHECK => {
                "invalid: the origin is not what was asked for".to_owned()
            }
            Some(_) => "invalid: the parts do not fit together".to_owned(),
        };
        let first_difference = first.map(|c| c.detail.clone());
        VerifyReport { run, checks: self.0, first_difference, origin, attached, other_opinion, statement }
    }
}

fn check_files(dir: &RunDir, manifest: &Manifest) -> Result<String, String> {
    let present = dir.files().map_err(|e| e.to_string())?;
    let mut listed = BTreeSet::new();
    for file in &manifest.files {
        if !listed.insert(file.path.as_str()) {
            return Err(format!("{}: stands twice in the manifest", file.path));
        }
        if !present.contains(&file.path) {
            return Err(format!("{}: missing", file.path));
        }
        let unreadable = |e: io::Error| format!("{}: {e}", file.path);
        let open = regular_file::open(&dir.path().join(&file.path)).map_err(unreadable)?;
        // The size first: nobody waits for the digest of a file that has grown to terabytes.
        let size = open.metadata().map_err(unreadable)?.len();
        if size != file.size_bytes {
            return Err(format!("{}: {size} bytes, the manifest says {}", file.path, file.size_bytes));
        }
        let (_, sha256) = sha256_of(open).map_err(unreadable)?;
        if sha256 != file.sha256 {
            return Err(format!("{}: SHA-256 is {sha256}, the manifest says {}", file.path, file.sha256));
        }
    }
    match present.iter().find(|path| !listed.contains(path.as_str())) {
        Some(extra) => Err(format!("{extra}: not in the manifest")),
        None => Ok(format!("{} files as in the manifest", listed.len())),
    }
}

fn check_journal(journal: &Journal, manifest: Option<&Manifest>) -> Result<String, String> {
    let entries = journal.entries.len() as u64;
    if !journal.torn.is_empty() {
        return Err(format!("journal.jsonl: line {} is torn ({} bytes)", entries + 1, journal.torn.len()));
    }
    if let Some(Manifest { journal: end, run, .. }) = manifest {
        if end.entries != entries {
            return Err(format!("journal.jsonl: {entries} entries, the manifest says {}", end.entries));
        }
        if end.head != journal.head.to_string() {
            return Err(format!(
                "journal.jsonl line {entries}: its hash is {}, the manifest says {}",
                journal.head, end.head
            ));
        }
        if *run != RunSummary::of(&journal.entries).run {
            return Err(format!("manifest.json: it is of run {run:?}, the journal is of another"));
        }
    }
    Ok(format!("{entries} entries, one chain"))
}

/// No injection without a durable undo, and an orderly end.
fn check_protocol(summary: &RunSummary) -> Result<String, String> {
    if let Some(violation) = summary.violations.first() {
        return Err(format!("journal.jsonl: {violation}"));
    }
    let Some(closed) = &summary.closed else {
        return Err("journal.jsonl: the run was not closed".to_owned());
    };
    if let Some(owed) = summary.open().next().filter(|_| closed.outcome != RunOutcome::Faulted) {
        return Err(format!(
            "journal.jsonl: the run was closed, and not as faulted, though the undo of {} is owed",
            owed.injection
        ));
    }
    Ok("every injection was armed before it, the run was closed".to_owned())
}

fn read(dir: &RunDir, name: &str) -> Result<Vec<u8>, String> {
    regular_file::read(&dir.path().join(name)).map_err(|e| format!("{name}: {e}"))
}

fn check_digest(dir: &RunDir, name: &str, expected: &str, says: &str) -> Result<(), String> {
    let found = sha256_hex(&read(dir, name)?);
    if found == expected {
        Ok(())
    } else {
        Err(format!("{name}: SHA-256 is {found}, {says} says {expected}"))
    }
}

fn check_drill(dir: &RunDir, summary: &RunSummary) -> Result<String, String> {
    check_digest(dir, "drill.yaml", &summary.drill_digest, "the journal")?;
    Ok("the one that the journal opened with".to_owned())
}

fn check_plan(dir: &RunDir, summary: &RunSummary, judge: &Judge<'_>) -> Result<String, String> {
    check_digest(dir, "plan.json", &summary.plan_digest, "the journal")?;
    let plan = load::read_plan(dir).map_err(|e| e.to_string())?;
    if plan.drill_digest != summary.drill_digest {
        return Err("plan.json: drillDigest is not that of drill.yaml".to_owned());
    }
    let drill = String::from_utf8(read(dir, "drill.yaml")?).map_err(|e| format!("drill.yaml: {e}"))?;
    (judge.follows)(&plan, &drill).map_err(|what| format!("plan.json: {what}"))?;
    Ok("the one that the journal opened with, and that drill.yaml asks for".to_owned())
}

fn check_binding(dir: &RunDir, summary: &RunSummary) -> Result<String, String> {
    let bound = summary.binding.as_ref();
    if !dir.binding().exists() {
        return match bound {
            None if summary.step.is_some() => {
                Err("binding.json: missing, and the journal has none, though steps began".to_owned())
            }
            None => Ok("the run ended before it".to_owned()),
            Some(_) => Err("binding.json: missing".to_owned()),
        };
    }
    let bytes = read(dir, "binding.json")?;
    let found: Value = serde_json::from_slice(&bytes).map_err(|e| format!("binding.json: {e}"))?;
    let expected = serde_json::to_value(bound).map_err(|e| e.to_string())?;
    match differences(&expected, &found, 1).first() {
        None => Ok("equal to the journal's".to_owned()),
        Some(d) => Err(format!("binding.json {}: it is {}, the journal says {}", d.path, d.second, d.first)),
    }
}

/// What the journal anchored of the files in one folder of the bundle.
fn anchors_below<'a>(folder: &str, journal: &'a Journal) -> BTreeMap<&'a str, Vec<Anchor>> {
    let mut anchors: BTreeMap<&str, Vec<Anchor>> = BTreeMap::new();
    for entry in &journal.entries {
        if let JournalEvent::HistoryAnchored { file, bytes, records, sha256 } = &entry.event
            && file.starts_with(folder)
        {
            let anchor =
                Anchor { file: file.clone(), bytes: *bytes, records: *records, sha256: sha256.clone() };
            anchors.entry(file).or_default().push(anchor);
        }
    }
    anchors
}

/// A run that was carried out to its end has a whole history of every client.
fn is_whole(summary: &RunSummary) -> bool {
    summary.closed.as_ref().is_some_and(|closed| closed.outcome == RunOutcome::Completed)
}

fn check_histories(dir: &RunDir, journal: &Journal, summary: &RunSummary) -> Result<String, String> {
    let anchors = anchors_below("histories/", journal);
    let files = load::history_files(dir).map_err(|e| e.to_string())?;
    if let Some(missing) = anchors.keys().find(|file| !files.iter().any(|f| f == *file)) {
        return Err(format!("{missing}: missing, the journal anchored it"));
    }
    if is_whole(summary) {
        let plan = load::read_plan(dir).map_err(|e| e.to_string())?;
        let missing =
            plan.clients.iter().map(|c| format!("histories/{}.jsonl", c.name)).find(|f| !files.contains(f));
        if let Some(missing) = missing {
            return Err(format!("{missing}: missing, and the run was completed"));
        }
    }
    let mut unanchored = Vec::new();
    for file in &files {
        let path = dir.path().join(file);
        // Its lines first: they are limited in length, so that what is no history is not read to its end.
        let history = crate::history::reader::read(&path).map_err(|e| e.to_string())?;
        let rest = check_anchors(&path, anchors.get(file.as_str()).map_or(&[], Vec::as_slice))
            .map_err(|e| e.to_string())?;
        if rest.bytes > 0 {
            unanchored.push(format!("{file}: {} records, {} bytes", rest.records, rest.bytes));
        }
        check_opened(file, history.records.first())?;
    }
    let count = files.len();
    Ok(match unanchored.as_slice() {
        [first, ..] if is_whole(summary) => {
            return Err(format!("{first} behind the last anchor, and the run was completed"));
        }
        [] => format!("{count} histories, every record anchored"),
        rest => format!("{count} histories; behind the last anchor: {}", rest.join("; ")),
    })
}

/// A history under another client's name would be judged as that client's.
fn check_opened(file: &str, first: Option<&Record>) -> Result<(), String> {
    match first {
        None => Ok(()),
        Some(Record::Opened { client, .. }) if format!("histories/{client}.jsonl") == file => Ok(()),
        Some(Record::Opened { client, .. }) => {
            Err(format!("{file} line 1: it is the history of `{}`", client.escape_debug()))
        }
        Some(_) => Err(format!("{file} line 1: it does not open the history")),
    }
}

/// The agent's log is what the journal anchored, and has the journal's chain.
fn check_agent_logs(dir: &RunDir, journal: &Journal, summary: &RunSummary) -> Result<String, String> {
    let mut files = dir.files().map_err(|e| e.to_string())?;
    files.retain(|f| f.starts_with("agent/") && f.ends_with(".jsonl"));
    let anchors = anchors_below("agent/", journal);
    if let Some(missing) = anchors.keys().find(|file| !files.iter().any(|f| f == *file)) {
        return Err(format!("{missing}: missing, the journal anchored it"));
    }
    if files.is_empty() && summary.injections.iter().any(|i| i.armed.is_some()) {
        return Ok("no log of the agent: what it did is the journal's word alone".to_owned());
    }
    for (file, anchors) in &anchors {
        check_anchors(&dir.path().join(file), anchors).map_err(|e| e.to_string())?;
    }
    for file in &files {
        log::read(&read(dir, file)?).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(format!("{} logs, each one chain", files.len()))
}

fn check_findings(
    dir: &RunDir,
    judge: &Judge<'_>,
    checks: &mut Checks,
) -> Result<Option<OtherOpinion>, EvidenceError> {
    match compare_findings(dir, judge) {
        Ok(Compared::NewerJudge(found)) => {
            let path = dir.report_json();
            return Err(EvidenceError::NewerJudge { path, found, ours: judge.version.to_owned() });
        }
        Ok(Compared::Same(reports)) => {
            checks.held("findings", format!("recomputed, the same (judge {})", judge.version));
            checks.add("reports", check_reports(dir, &reports));
        }
        Ok(Compared::Differ(what)) | Err(what) => checks.failed("findings", what),
        Ok(Compared::OtherJudge(opinion)) => {
            let detail = match opinion.differences.len() {
                0 => format!("judge {} and judge {} agree", opinion.judge, opinion.ours),
                _ => {
                    format!("judge {} found other than judge {}: both are shown", opinion.judge, opinion.ours)
                }
            };
            checks.held("findings", detail);
            // Only the judge that wrote them can write them again.
            checks.held("reports", format!("not checked: judge {} wrote them", opinion.judge));
            return Ok(Some(opinion).filter(|opinion| !opinion.differences.is_empty()));
        }
    }
    Ok(None)
}

/// People read the HTML and not the JSON: it must say the same. Only the judge that wrote it can tell.
fn check_reports(dir: &RunDir, reports: &Reports) -> Result<String, String> {
    for (name, computed) in reports {
        if read(dir, name)? != *computed {
            return Err(format!("{name}: not what this judge writes for these findings"));
        }
    }
    Ok(format!("{}, written again, the same", reports.keys().copied().collect::<Vec<_>>().join(", ")))
}

enum Compared {
    /// With every report.
    Same(Reports),
    Differ(String),
    OtherJudge(OtherOpinion),
    /// Which nobody here can know anything of.
    NewerJudge(String),
}

/// What a judge's version says of it beside another one.
enum Age {
    Older,
    Newer,
    Unknown,
}

/// Versions are `<tool>/judge <number>`, and numbers grow.
fn age(by: &str, ours: &str) -> Age {
    let number = |version: &str| -> Option<u32> { version.rsplit_once("/judge ")?.1.parse().ok() };
    match (number(by), number(ours)) {
        (Some(by), Some(ours)) if by < ours => Age::Older,
        (Some(by), Some(ours)) if by > ours => Age::Newer,
        _ => Age::Unknown,
    }
}

fn compare_findings(dir: &RunDir, judge: &Judge<'_>) -> Result<Compared, String> {
    let stored = read(dir, "report.json")?;
    let loaded = load::load_with_head(dir.path()).map_err(|e| e.to_string())?;
    let reports = (judge.reports)(&loaded.input, &loaded.journal_head)?;
    let computed = reports.get("report.json").ok_or("this judge writes no report.json")?;
    if stored == *computed {
        return Ok(Compared::Same(reports));
    }
    let parse =
        |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).map_err(|e| format!("report.json: {e}"));
    let (stored, computed) = (parse(&stored)?, parse(computed)?);
    let by = stored["judge"].as_str().unwrap_or("unknown").to_owned();
    if by != judge.version {
        match age(&by, judge.version) {
            Age::Older => {}
            Age::Newer => return Ok(Compared::NewerJudge(by)),
            Age::Unknown => {
                return Ok(Compared::Differ(format!(
                    "report.json $.judge: {by:?} is no judge that is known here"
                )));
            }
        }
        let mut differences = differences(&stored, &computed, MAX_DIFFERENCES + 1);
        differences.retain(|d| d.path != "$.judge");
        differences.truncate(MAX_DIFFERENCES);
        let ours = judge.version.to_owned();
        return Ok(Compared::OtherJudge(OtherOpinion { judge: by, ours, differences }));
    }
    Ok(Compared::Differ(match differences(&stored, &computed, 1).first() {
        Some(d) => format!("report.json {}: it says {}, recomputed {}", d.path, d.first, d.second),
        None => "report.json: the same values, but not the bytes that this judge writes".to_owned(),
    }))
}
