//! `quakeproof runs`: which runs there are and how they stand.

use super::output::{print, say};
use crate::clock::WallTime;
use crate::escape::terminal;
use crate::exit::ExitCode;
use crate::state::StateDir;
use crate::state::runs::{RunRow, RunState, unique_prefix_lengths};
use clap::Args;
use serde::Serialize;
use std::io;
use tabled::builder::Builder;
use tabled::settings::Style;

/// List runs
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Lists the runs of this user, oldest first.
#[must_use]
pub fn run(args: &RunsArgs, state: &StateDir) -> ExitCode {
    let rows = match state.list_runs() {
        Ok(rows) => rows,
        Err(e) => {
            say(&format!("error: {e}"));
            return ExitCode::Usage;
        }
    };
    if rows.is_empty() && !args.json {
        say("no runs yet");
        return ExitCode::Ok;
    }
    if let Some(open) = rows.iter().find(|row| row.state == RunState::Unfinished) {
        say(&format!("run {} is unfinished; `quakeproof recover {}` ends it", open.id, open.id));
    }
    let text = if args.json {
        serde_json::to_string_pretty(&rows).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(table(&rows))
    };
    print(text)
}

/// A value that serializes to a word, as that word; `-` for anything else.
pub(super) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "-".to_owned(),
    }
}

fn table(rows: &[RunRow]) -> String {
    let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut builder = Builder::default();
    builder.push_record(["RUN", "DRILL", "STARTED (UTC)", "STATE", "OUTCOME", "VERDICT"]);
    for (row, length) in rows.iter().zip(unique_prefix_lengths(&ids)) {
        builder.push_record([
            terminal(&row.id.chars().take(length).collect::<String>()).into_owned(),
            terminal(&row.drill).into_owned(),
            row.started_at.as_ref().map_or("-".to_owned(), seconds),
            row.state.word().to_owned(),
            word(row.outcome),
            terminal(row.verdict.as_deref().unwrap_or("-")).into_owned(),
        ]);
    }
    format!("{}\n", builder.build().with(Style::blank()))
}

/// An instant to the second.
fn seconds(at: &WallTime) -> String {
    terminal(&at.to_second().unwrap_or_else(|| at.0.clone())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WallTime;
    use crate::journal::entry::RunOutcome;

    #[test]
    fn a_run_is_one_line_and_its_hostile_name_stays_text() {
        let row = RunRow {
            id: "0199aaaa-bbbb".to_owned(),
            drill: "evil\u{1b}[31m".to_owned(),
            started_at: Some(WallTime("2026-01-01T00:00:00Z".to_owned())),
            state: RunState::Closed,
            outcome: Some(RunOutcome::Completed),
            verdict: None,
            dir: "/tmp".into(),
        };
        let text = table(&[row]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.contains("completed") && text.contains("0199aaaa ") && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
