//! `quakeproof snapshot keys`: the keys of a snapshot, never their values.

use super::{Failure, Page, damaged, mapped, refused, show};
use crate::etcd::snapshot::{Listing, ListingError, Selection, keys};
use crate::exit::ExitCode;
use clap::Args;
use std::path::PathBuf;

/// List the keys of a snapshot, never their values
///
/// Exit codes: 0 listed, 3 no such file, damaged, or a revision that is not in it, 5 another
/// process has it open.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The snapshot, or the `db` file of a data directory
    pub file: PathBuf,
    /// Only keys that begin with this, such as `/registry/pods/`
    #[arg(long, default_value = "")]
    pub prefix: String,
    /// As of this revision
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..))]
    pub revision: Option<i64>,
    /// At most so many
    #[arg(long)]
    pub limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(args: &KeysArgs) -> Result<ExitCode, Failure> {
    let file = mapped(&args.file)?;
    let prefix = args.prefix.clone().into_bytes();
    let selection = Selection { prefix, revision: args.revision, limit: args.limit };
    let listing = keys(&file, &selection).map_err(|error| match error {
        ListingError::Damaged(error) => damaged(&args.file, &error),
        other => refused(ExitCode::Usage, &args.file, &other),
    })?;
    Ok(show(args.json, &listing, || render(&listing)))
}

fn render(listing: &Listing) -> String {
    let mut page = Page::default();
    let rows: Vec<Vec<String>> = listing
        .keys
        .iter()
        .map(|row| {
            vec![
                row.key.to_string(),
                row.create_revision.to_string(),
                row.mod_revision.to_string(),
                row.version.to_string(),
                row.value_bytes.to_string(),
                row.form.clone(),
                row.lease.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let shown =
        if rows.len() as u64 == listing.matching { String::new() } else { format!(", {} shown", rows.len()) };
    page.line("revision", &listing.revision.to_string());
    page.line("keys", &format!("{}{shown}", listing.matching));
    page.table(
        &["KEY", "CREATED", "MODIFIED", "VERSION", "BYTES", "STORED AS", "LEASE"],
        &[1, 2, 3, 4],
        &rows,
    );
    page.0
}
