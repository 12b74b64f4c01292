//! `quakeproof schema`: prints the JSON Schema of a format.

use crate::exit::ExitCode;
use crate::schema::{Format, schema_text};
use std::io::{self, Write};

/// Print the JSON Schema (draft-07) of a format
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which format.
    pub format: Which,
}

/// Formats on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// A drill file.
    Drill,
    /// One line of journal.jsonl.
    Journal,
    /// report.json.
    Report,
    /// findings.yaml.
    Findings,
}

/// Prints the schema to `out`.
///
/// # Errors
/// When `out` can't be written to.
pub fn run(args: &Args, out: &mut dyn Write) -> io::Result<ExitCode> {
    let format = match args.format {
        Which::Drill => Format::Drill,
        Which::Journal => Format::Journal,
        Which::Report => Format::Report,
        Which::Findings => Format::Findings,
    };
    out.write_all(schema_text(format).as_bytes())?;
    Ok(ExitCode::Ok)
}
