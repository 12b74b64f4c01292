//! `quakeproof snapshot inspect`: what a snapshot holds.

use super::{Failure, Page, damaged, mapped, misnamed, show, size, warn};
use crate::etcd::snapshot::{Inspection, Kind, KubernetesView, inspect};
use crate::exit::ExitCode;
use clap::Args;
use std::path::PathBuf;

/// Rows of a table for people; JSON has all.
const ROWS: usize = 40;

/// Show what a snapshot holds: the figures of `etcdutl snapshot status`, and the view of Kubernetes
///
/// Checks the database's structure on the way, not the digest at its end. Exit codes: 0 shown,
/// 3 no such file or damaged, 5 another process has it open.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The snapshot, or the `db` file of a data directory
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(args: &InspectArgs) -> Result<ExitCode, Failure> {
    let file = mapped(&args.file)?;
    let mut inspection = inspect(&file).map_err(|error| damaged(&args.file, &error))?;
    let revisions = [inspection.status.revision, inspection.current_revision];
    inspection.warnings.extend(misnamed(&args.file, &revisions));
    warn(&inspection.warnings);
    Ok(show(args.json, &inspection, || render(&inspection)))
}

/// The inspection for people.
pub(super) fn render(of: &Inspection) -> String {
    let mut page = Page::default();
    let status = &of.status;
    let kind = match of.kind {
        Kind::Snapshot => "snapshot with a SHA-256 digest",
        Kind::RawDatabase => "raw database",
        Kind::Odd => "database with an odd ending",
    };
    page.line("kind", &format!("{kind}, {}", size(of.size_bytes)));
    page.line("hash", &format!("{:x} ({})", status.hash, status.hash));
    page.line("revision", &status.revision.to_string());
    if of.current_revision != status.revision {
        page.line("starts at", &format!("revision {}", of.current_revision));
    }
    page.line("keys", &format!("{} (etcdutl 3.5: {})", status.total_key, status.total_key_before36));
    page.line("database", &format!("{} ({} bytes)", size(status.total_size_bytes), status.total_size_bytes));
    let version = status.version.as_deref().unwrap_or("not recorded");
    page.line("version", &format!("{version} (schema of {})", of.schema));
    let changes = format!("{} kept, {} of them deletions", of.changes, of.tombstones);
    page.line(
        "changes",
        &of.first_revision.map_or(changes.clone(), |first| format!("{changes}, from revision {first}")),
    );
    let rev = |revision: Option<i64>| revision.map_or("never".to_owned(), |revision| revision.to_string());
    let (finished, begun) = (of.compaction.finished_revision, of.compaction.scheduled_revision);
    page.line(
        "compacted",
        &format!(
            "{}{}",
            rev(finished),
            if begun > finished { format!(", begun up to {}", rev(begun)) } else { String::new() }
        ),
    );
    if let Some(bump) = of.bump {
        let from = bump
            .from_revision
            .map_or(String::new(), |from| format!(", {} more than {from}", bump.revision - from));
        let marked = if bump.marked_compacted { "" } else { ", NOT marked compacted" };
        page.line("bumped", &format!("to revision {}{from}{marked}", bump.revision));
    }
    for member in &of.members {
        let learner = if member.is_learner { ", learner" } else { "" };
        page.line(
            "member",
            &format!("{} {} {}{learner}", member.id, member.name, member.peer_urls.join(",")),
        );
    }
    let attached: u64 = of.leases.listed.iter().map(|lease| lease.keys).sum();
    page.line("leases", &format!("{}, with {attached} keys", of.leases.count));
    for alarm in &of.alarms {
        page.line("alarm", &format!("{} of member {}, which a restore keeps", alarm.kind, alarm.member));
    }
    if of.auth_enabled {
        page.line("authentication", "on, which a restore keeps");
    }
    kubernetes(&mut page, &of.kubernetes);
    page.0
}

fn kubernetes(page: &mut Page, view: &KubernetesView) {
    let objects = format!("{} objects, {}; {} other keys", view.objects, size(view.bytes), view.other_keys);
    page.line("Kubernetes", &objects);
    for key in &view.encryption {
        let of: Vec<String> = key.resources.iter().map(|(name, count)| format!("{count} {name}")).collect();
        page.line("encrypted with", &format!("{} key `{}`: {}", key.provider, key.key, of.join(", ")));
    }
    let mut resources: Vec<_> = view.resources.iter().collect();
    resources.sort_by_key(|resource| std::cmp::Reverse(resource.bytes));
    let rows: Vec<Vec<String>> = resources
        .iter()
        .map(|r| {
            let stored =
                [(r.protobuf, "protobuf"), (r.json, "json"), (r.encrypted, "encrypted"), (r.other, "other")];
            let stored: Vec<&str> =
                stored.iter().filter(|(count, _)| *count > 0).map(|(_, name)| *name).collect();
            vec![r.resource.clone(), r.objects.to_string(), size(r.bytes), stored.join(" and ")]
        })
        .collect();
    section(page, &["RESOURCE", "OBJECTS", "SIZE", "STORED AS"], &[1, 2], rows);
    let mut namespaces: Vec<_> = view.namespaces.iter().collect();
    namespaces.sort_by_key(|namespace| std::cmp::Reverse(namespace.bytes));
    let rows = namespaces.iter().map(|n| vec![n.namespace.clone(), n.objects.to_string(), size(n.bytes)]);
    section(page, &["NAMESPACE", "OBJECTS", "SIZE"], &[1, 2], rows.collect());
    let rows = view.largest.iter().map(|o| vec![o.key.to_string(), size(o.value_bytes)]);
    section(page, &["LARGEST", "SIZE"], &[1], rows.collect());
    let rows = view.oldest.iter().map(|o| vec![o.key.to_string(), o.create_revision.to_string()]);
    section(page, &["OLDEST", "CREATED AT REVISION"], &[1], rows.collect());
}

fn section(page: &mut Page, header: &[&str], right: &[usize], mut rows: Vec<Vec<String>>) {
    let beyond = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    if beyond > 0 {
        rows.push(vec![format!("… {beyond} more, see --json")]);
    }
    page.table(header, right, &rows);
}
