//! `quakeproof show`: one run, from its journal and its report.

use super::output::{print, say};
use super::runs::word;
use crate::clock::Stamp;
use crate::escape::terminal;
use crate::exit::ExitCode;
use crate::journal::entry::{Phase, RunOutcome};
use crate::journal::reader;
use crate::journal::summary::{InjectionState, RunSummary, Settled};
use crate::regular_file;
use crate::state::StateDir;
use crate::state::runs::{RunState, row};
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Show one run, finished or not
///
/// Exit codes: 0 shown, 3 no such run, or its journal can't be read.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Run id, the beginning of one, or a run directory
    pub run: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows one run, finished or not.
#[must_use]
pub fn run(args: &ShowArgs, state: &StateDir) -> ExitCode {
    let shown = state.resolve_run(&args.run).map_err(|e| e.to_string()).and_then(|dir| Shown::of(&dir));
    let shown = match shown {
        Ok(shown) => shown,
        Err(what) => {
            say(&format!("error: {what}"));
            return ExitCode::Usage;
        }
    };
    print(if args.json {
        serde_json::to_string_pretty(&shown).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(shown.render())
    })
}

/// What is shown of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    drill: String,
    dir: PathBuf,
    operator: String,
    state: RunState,
    started: Option<Stamp>,
    finished: Option<Stamp>,
    phase: Option<Phase>,
    step: Option<String>,
    outcome: Option<RunOutcome>,
    reason: Option<String>,
    verdict: Option<String>,
    objectives: Vec<ShownObjective>,
    injections: Vec<ShownInjection>,
    clusters_owed: Vec<String>,
    interrupted_by: Option<String>,
    adopted_by: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownObjective {
    name: String,
    verdict: String,
    reason: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownInjection {
    injection: String,
    targets: Vec<String>,
    open: bool,
    state: String,
}

impl Shown {
    fn of(dir: &Path) -> Result<Self, String> {
        let journal = reader::read(&dir.join("journal.jsonl")).map_err(|e| e.to_string())?;
        let summary = RunSummary::of(&journal.entries);
        let row = row(summary.run.clone(), dir.to_owned());
        let step = summary.step.as_ref().map(|s| match (&s.failed, s.finished) {
            (Some(reason), _) => format!("{} {}: failed: {reason}", s.index, s.kind),
            (None, true) => format!("{} {}: finished", s.index, s.kind),
            (None, false) => format!("{} {}: begun", s.index, s.kind),
        });
        let closed = summary.closed.as_ref();
        Ok(Self {
            state: row.state,
            verdict: row.verdict,
            dir: row.dir,
            step,
            finished: closed.map(|c| c.at.clone()),
            outcome: closed.map(|c| c.outcome),
            reason: closed.and_then(|c| c.reason.clone()),
            objectives: objectives(dir),
            injections: summary.injections.iter().map(ShownInjection::of).collect(),
            id: summary.run,
            drill: summary.drill,
            operator: summary.operator,
            started: summary.started,
            phase: summary.phase,
            clusters_owed: summary.clusters_owed,
            interrupted_by: summary.interrupted_by,
            adopted_by: summary.adopted_by,
        })
    }

    fn render(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: &str| {
            let _ = writeln!(out, "{name:<12} {}", terminal(text));
        };
        line("run", &self.id);
        line("drill", &self.drill);
        line("operator", &self.operator);
        line("directory", &self.dir.to_string_lossy());
        line("started", self.started.as_ref().map_or("unknown", |s| &s.at.0));
        line("state", self.state.word());
        if self.finished.is_none() {
            line("phase", &word(self.phase));
            line("step", self.step.as_deref().unwrap_or("none begun"));
        }
        for (name, value) in [("interrupted", &self.interrupted_by), ("verdict", &self.verdict)] {
            if let Some(value) = value {
                line(name, value);
            }
        }
        if let Some(outcome) = self.outcome {
            let reason = self.reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
            line("outcome", &format!("{}{reason}", word(outcome)));
        }
        for by in &self.adopted_by {
            line("taken over", &format!("by `quakeproof {by}`"));
        }
        for objective in &self.objectives {
            line("objective", &format!("{}: {} — {}", objective.name, objective.verdict, objective.reason));
        }
        for injection in &self.injections {
            let targets = injection.targets.join(", ");
            line("injection", &format!("{} on {targets}: {}", injection.injection, injection.state));
        }
        for cluster in &self.clusters_owed {
            let how = if self.state == RunState::Closed { "was kept" } else { "is to be taken down" };
            line("cluster", &format!("{cluster} {how}; `quakeproof cluster down {cluster}` removes it"));
        }
        if self.state == RunState::Unfinished {
            line("next", &format!("quakeproof recover {}", self.id));
        }
        out
    }
}

impl ShownInjection {
    fn of(injection: &InjectionState) -> Self {
        let state = match (&injection.settled, &injection.undo_failed) {
            (Some((_, Settled::Undone)), _) => "undone and verified".to_owned(),
            (Some((_, Settled::Discharged(reason))), _) => format!("nothing owed: {reason}"),
            (Some((_, Settled::ClusterRemoved)), _) => "its cluster was taken down".to_owned(),
            (None, Some(reason)) => format!("UNDO FAILED: {reason}"),
            (None, None) if injection.undo_started.is_some() => "being undone".to_owned(),
            (None, None) if injection.ended.is_some() => "ended by a step, undo still armed".to_owned(),
            (None, None) if injection.may_have_begun() => "may be in effect, undo owed".to_owned(),
            (None, None) => "armed, not injected".to_owned(),
        };
        Self {
            injection: injection.injection.0.clone(),
            targets: injection.targets.iter().map(|t| t.0.clone()).collect(),
            open: injection.is_open(),
            state,
        }
    }
}

/// Findings as the stored report has them; none when there is no report yet.
fn objectives(dir: &Path) -> Vec<ShownObjective> {
    let report = regular_file::read(&dir.join("report.json")).ok();
    let report: Value = report.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let objectives = report["objectives"].as_array().into_iter().flatten();
    objectives
        .map(|o| ShownObjective {
            name: text(&o["name"]),
            verdict: text(&o["verdict"]),
            reason: text(&o["reason"]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::journal::samples;
    use crate::journal::writer::JournalWriter;
    use std::sync::Arc;

    fn shown(entries: usize) -> Shown {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let mut writer = JournalWriter::create(&path, Arc::new(FakeClock::new())).unwrap();
        for event in &samples::events()[..entries] {
            writer.append(event.clone()).unwrap();
        }
        drop(writer);
        Shown::of(dir.path()).unwrap()
    }

    #[test]
    fn an_unfinished_run_says_what_is_owed_and_what_to_do() {
        let text = shown(16).render();
        assert!(text.contains("2-loseEtcd on etcd-1: may be in effect, undo owed"), "{text}");
        assert!(text.contains("quakeproof recover 01990000"), "{text}");
    }

    #[test]
    fn a_closed_run_says_how_it_ended() {
        let text = shown(samples::events().len()).render();
        assert!(text.contains("outcome      completed"), "{text}");
        assert!(!text.contains("recover"), "{text}");
    }
}
