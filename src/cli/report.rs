//! `quakeproof report`: the report of a run, in the format asked for.

use crate::report::input::Judgement;
use crate::report::{Report, html, json, junit, markdown};
use crate::timeline::EvidenceInput;
use clap::{Args, ValueEnum};
use std::io::Write as _;
use std::path::PathBuf;

/// Formats that a report is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained file for people.
    Html,
    /// For pull requests and wikis.
    Markdown,
    /// For CI systems.
    Junit,
    /// For programs: `report.json`.
    Json,
}

/// Writes the report of a run from its evidence; opens no connection.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the run.
    pub dir: PathBuf,
    /// What to write.
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
    /// Where to write it; standard output by default.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The report in one format.
#[must_use]
pub fn render(format: Format, report: &Report, input: &EvidenceInput, judgement: &Judgement) -> String {
    match format {
        Format::Html => html::render(report, input, judgement),
        Format::Markdown => markdown::render(report),
        Format::Junit => junit::render(report),
        Format::Json => json::render(report),
    }
}

/// Writes `text` where the arguments say.
///
/// # Errors
/// When the file or standard output can't be written.
pub fn write(args: &ReportArgs, text: &str) -> std::io::Result<()> {
    match &args.out {
        Some(file) => std::fs::write(file, text),
        None => std::io::stdout().lock().write_all(text.as_bytes()),
    }
}
