//! `quakeproof snapshot diff`: what differs between two snapshots.

use super::{Failure, Page, damaged, mapped, show};
use crate::etcd::snapshot::{Change, Difference, Which, diff};
use crate::exit::ExitCode;
use clap::Args;
use std::path::PathBuf;

/// Compare two snapshots key by key: added, removed, changed; never their values
///
/// A key that was modified at the same revision with different values is `forked`: the snapshots
/// are of different timelines. Exit codes: 0 compared, 3 no such file or damaged, 5 another
/// process has one open.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The snapshot to compare from
    pub before: PathBuf,
    /// The snapshot to compare to
    pub after: PathBuf,
    /// List at most so many keys; all are counted
    #[arg(long, default_value_t = 1000)]
    pub limit: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let (before, after) = (mapped(&args.before)?, mapped(&args.after)?);
    let difference = diff(&before, &after, args.limit).map_err(|which| match which {
        Which::Before(error) => damaged(&args.before, &error),
        Which::After(error) => damaged(&args.after, &error),
    })?;
    Ok(show(args.json, &difference, || render(&difference)))
}

fn render(of: &Difference) -> String {
    let mut page = Page::default();
    page.line("revisions", &format!("{} and {}", of.before_revision, of.after_revision));
    for (name, count) in [
        ("added", of.added),
        ("removed", of.removed),
        ("changed", of.changed),
        ("forked", of.forked),
        ("same", of.same),
    ] {
        page.line(name, &count.to_string());
    }
    let revision =
        |revision: Option<i64>| revision.map_or("none".to_owned(), |revision| revision.to_string());
    let mut rows: Vec<Vec<String>> = of
        .keys
        .iter()
        .map(|row| {
            let change = match row.change {
                Change::Added => "added",
                Change::Removed => "removed",
                Change::Changed => "changed",
                Change::Forked => "FORKED",
            };
            let revisions = [row.before_mod_revision, row.after_mod_revision].map(revision);
            [change.to_owned(), row.key.to_string()].into_iter().chain(revisions).collect()
        })
        .collect();
    if of.beyond > 0 {
        rows.push(vec!["…".to_owned(), format!("{} more, see --limit", of.beyond)]);
    }
    page.table(&["CHANGE", "KEY", "MODIFIED BEFORE", "AFTER"], &[2, 3], &rows);
    page.0
}
