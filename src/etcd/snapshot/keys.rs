//! The keys of a snapshot, now or as of an earlier revision. Never their values.

use super::error::SnapshotError;
use super::facts::Facts;
use super::inspect::Snapshot;
use super::keyspace::Counts;
use super::kubernetes::Form;
use super::text::Bytes;
use serde::Serialize;
use std::collections::BinaryHeap;

/// Which keys are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Keys that begin with this.
    pub prefix: Vec<u8>,
    /// As of this revision, 1 or more; `None` for the latest state.
    pub revision: Option<i64>,
    /// The first so many, in the order of keys; `None` for all.
    pub limit: Option<usize>,
}

/// The keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The revision as of which they are listed.
    pub revision: i64,
    /// How many keys match, those beyond the limit included.
    pub matching: u64,
    /// Keys in ascending order.
    pub keys: Vec<KeyRow>,
}

/// A key and everything about it but its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRow {
    /// The key.
    #[serde(flatten)]
    pub key: Bytes,
    /// Revision of its creation.
    pub create_revision: i64,
    /// Revision of its latest change.
    pub mod_revision: i64,
    /// Changes since its creation.
    pub version: i64,
    /// Bytes of its value as stored.
    pub value_bytes: u64,
    /// Id of its lease, hexadecimal; `null` for none.
    pub lease: Option<String>,
    /// `protobuf`, `json`, `encrypted:<provider>:<key name>` or `other`.
    pub form: String,
}

/// Why there is no listing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListingError {
    /// The file is damaged.
    #[error(transparent)]
    Damaged(#[from] SnapshotError),
    /// The revision is beyond the snapshot's.
    #[error("revision {asked} is in the future: the snapshot ends at revision {current}")]
    Future {
        /// What was asked for.
        asked: i64,
        /// Revision of the snapshot.
        current: i64,
    },
    /// What the keys were at the revision is lost.
    #[error("revision {asked} has been compacted\n  hint: the oldest that can be listed is {oldest}")]
    Compacted {
        /// What was asked for.
        asked: i64,
        /// The oldest that can be told.
        oldest: i64,
    },
}

/// What is kept of a key until the listing is complete: where it is, and its figures.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row<'a> {
    key: &'a [u8],
    create: i64,
    modified: i64,
    version: i64,
    lease: i64,
    value: &'a [u8],
}

/// Lists keys.
///
/// # Errors
/// When the file is damaged, and when the revision is not in it.
pub fn keys(bytes: &[u8], selection: &Selection) -> Result<Listing, ListingError> {
    let snapshot = Snapshot::read(bytes)?;
    let until = selection.revision.unwrap_or(i64::MAX);
    let limit = selection.limit.unwrap_or(usize::MAX);
    let mut rows: BinaryHeap<Row<'_>> = BinaryHeap::new();
    let mut matching = 0;
    let counts = snapshot.scan(until, &mut |live| {
        if live.kv.key.starts_with(&selection.prefix) {
            matching += 1;
            let kv = live.kv;
            let row = Row {
                key: kv.key,
                create: kv.create_revision,
                modified: kv.mod_revision,
                version: kv.version,
                lease: kv.lease,
                value: kv.value,
            };
            // The largest is on top: it makes room when there are too many.
            if rows.len() < limit {
                rows.push(row);
            } else if rows.peek().is_some_and(|largest| row < *largest) {
                rows.pop();
                rows.push(row);
            }
        }
    })?;
    let current = snapshot.current_revision(counts.last_revision);
    let revision = match selection.revision {
        None => current,
        Some(asked) if asked > current => return Err(ListingError::Future { asked, current }),
        Some(asked) => {
            let oldest = oldest_told(&snapshot.facts, &counts);
            if asked < oldest {
                return Err(ListingError::Compacted { asked, oldest });
            }
            asked
        }
    };
    Ok(Listing { revision, matching, keys: rows.into_sorted_vec().iter().map(KeyRow::of).collect() })
}

/// The oldest revision as of which the keys can be told. A compaction that was begun may have
/// removed something already, unless a restore only marked it for the etcd that starts on the data.
fn oldest_told(facts: &Facts, counts: &Counts) -> i64 {
    let finished = facts.finished_compaction.unwrap_or(0);
    let begun = facts.scheduled_compaction.unwrap_or(0);
    let only_marked = counts.bump.is_some_and(|bump| bump.revision == begun);
    if only_marked { finished } else { finished.max(begun) }
}

impl KeyRow {
    fn of(row: &Row<'_>) -> Self {
        Self {
            key: Bytes::of(row.key),
            create_revision: row.create,
            mod_revision: row.modified,
            version: row.version,
            value_bytes: row.value.len() as u64,
            lease: (row.lease != 0).then(|| format!("{:x}", row.lease)),
            form: form(row.value),
        }
    }
}

fn form(value: &[u8]) -> String {
    match Form::of(value) {
        Form::Protobuf => "protobuf".to_owned(),
        Form::Json => "json".to_owned(),
        Form::Encrypted { provider, key } => {
            format!("encrypted:{}:{}", String::from_utf8_lossy(provider), String::from_utf8_lossy(key))
        }
        Form::Other => "other".to_owned(),
    }
}
