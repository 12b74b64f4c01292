//! `quakeproof snapshot`: what is in an etcd snapshot file, without an etcd.

mod diff;
mod inspect;
mod keys;
mod verify;

use super::Failure;
use super::output::{print, say};
use crate::escape::terminal;
use crate::etcd::snapshot::SnapshotError;
use crate::etcd::snapshot::map::{MappedFile, map};
use crate::etcd::snapshot::name::claimed_revision;
use crate::exit::ExitCode;
use crate::regular_file;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Look into etcd snapshot files
///
/// Reads the file alone: no etcd, no connection. Values are never shown. Exit codes of all:
/// 0 done, 3 no such file or one that can't be read as a snapshot (6 for `verify`), 5 another
/// process has the database open.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    Inspect(inspect::InspectArgs),
    Verify(verify::VerifyArgs),
    Keys(keys::KeysArgs),
    Diff(diff::DiffArgs),
}

/// Runs one of the commands.
///
/// # Errors
/// See the exit codes of [`SnapshotArgs`].
pub fn run(args: &SnapshotArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        SnapshotCommand::Inspect(args) => inspect::run(args),
        SnapshotCommand::Verify(args) => verify::run(args),
        SnapshotCommand::Keys(args) => keys::run(args),
        SnapshotCommand::Diff(args) => diff::run(args),
    }
}

/// Maps the file, or says why not.
fn mapped(path: &Path) -> Result<MappedFile, Failure> {
    regular_file::open(path).and_then(map).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => refused(
            ExitCode::Refused,
            path,
            &"another process has it open, likely a running etcd\n  hint: take a snapshot of that etcd with \
              `etcdctl snapshot save`",
        ),
        _ => refused(ExitCode::Usage, path, &error),
    })
}

/// A failure that names the file.
fn refused(exit: ExitCode, path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::laid_out(exit, format!("error: {}: {what}", terminal(&path.to_string_lossy())))
}

fn damaged(path: &Path, error: &SnapshotError) -> Failure {
    refused(ExitCode::Usage, path, error)
}

/// Prints JSON, or the text for people.
fn show<T: Serialize>(json: bool, data: &T, text: impl FnOnce() -> String) -> ExitCode {
    print(if json {
        serde_json::to_string_pretty(data).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(text())
    })
}

/// What is wrong with the file's name: it claims a revision that is not the snapshot's.
fn misnamed(path: &Path, revisions: &[i64]) -> Option<String> {
    let claimed = claimed_revision(&path.file_name()?.to_string_lossy())?;
    let is = revisions.first().filter(|_| !revisions.contains(&claimed))?;
    Some(format!(
        "the file's name claims revision {claimed}, and the snapshot's is {is}: is it the file that was meant?"
    ))
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
}

/// Lines of a name and a text, and tables of aligned columns; all text escaped.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn line(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.0, "{name:<15} {}", terminal(text));
    }

    /// A table after an empty line; the columns that `right` names by index are figures.
    fn table(&mut self, header: &[&str], right: &[usize], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let clean: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| terminal(cell).into_owned()).collect()).collect();
        let width = |column: usize| {
            let cells = clean.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([header[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..header.len()).map(width).collect();
        let mut row = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = String::new();
            for (column, cell) in cells.enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let (before, after) =
                    if right.contains(&column) { (pad.as_str(), "") } else { ("", pad.as_str()) };
                let _ = write!(line, "{before}{cell}{after}  ");
            }
            let _ = writeln!(self.0, "{}", line.trim_end());
        };
        row(&mut [""].into_iter());
        row(&mut header.iter().copied());
        for cells in &clean {
            row(&mut cells.iter().map(String::as_str));
        }
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB"];
    let mut figure = bytes as f64;
    let mut unit = 0;
    while figure >= 1024.0 && unit + 1 < units.len() {
        figure /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{figure:.1} {}", units[unit]) }
}
