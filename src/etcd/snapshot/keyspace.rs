//! The bucket `key`: what etcd's users wrote, one entry per revision.
//!
//! An entry's key is the revision: main (u64, big-endian), `_`, sub, and `t` after it when the
//! key was deleted. The value is an `mvccpb.KeyValue`. A restore with a revision bump adds an
//! entry at the bumped revision whose value is empty.
//!
//! The scan goes from the last revision to the first, so that the first entry seen of a key is
//! its state, and nothing has to be remembered of a key but that it was seen.

use super::bucket::Root;
use super::error::SnapshotError;
use super::keyset::KeySet;
use super::page::{Entry, Pages};
use super::proto::KeyValue;
use super::tree::{Order, Walk};

/// Name of the bucket.
pub const KEY: &[u8] = b"key";

/// An instant in etcd's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    /// The transaction.
    pub main: i64,
    /// The change within it.
    pub sub: i64,
}

/// A key that exists, in its latest state.
#[derive(Debug, Clone, Copy)]
pub struct Live<'a> {
    /// Where it is.
    pub entry: Entry<'a>,
    /// Key, revisions, value.
    pub kv: KeyValue<'a>,
}

/// What a scan counted; entries and keys up to its revision, the rest in the whole bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Main of the last entry, 0 for an empty bucket: etcdutl's revision.
    pub last_revision: i64,
    /// Main of the first entry, 0 when there is none.
    pub first_revision: i64,
    /// Entries.
    pub entries: u64,
    /// Of these, deletions.
    pub tombstones: u64,
    /// Keys that exist, without the empty one of a bump marker.
    pub live: u64,
    /// Keys that exist as etcdutl 3.6 and later count them: a bump marker is one.
    pub live_with_marker: u64,
    /// The latest bump marker.
    pub bump: Option<Bump>,
}

/// Where a restore with a revision bump left its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bump {
    /// The revision that it went on from.
    pub revision: i64,
    /// The revision before; `None` when nothing is older.
    pub from: Option<i64>,
}

/// Scans the bucket as it was at the end of revision `until`; every existing key is handed out
/// once, in descending order of modification.
///
/// # Errors
/// The first damage, and what `each` returns.
pub fn scan<'a>(
    pages: Pages<'a>,
    root: &Root<'a>,
    until: i64,
    each: &mut dyn FnMut(Live<'a>) -> Result<(), SnapshotError>,
) -> Result<Counts, SnapshotError> {
    let mut keys = KeySet::new(pages.bytes());
    let mut counts = Counts::default();
    let (mut empty_key_seen, mut before_marker) = (false, false);
    Walk::new(pages).tree(root, Order::Descending, &mut |leaf| {
        for entry in leaf.entries().rev() {
            let (revision, deleted) = revision(&entry)?;
            counts.last_revision = counts.last_revision.max(revision.main);
            if std::mem::take(&mut before_marker) {
                counts.bump = counts.bump.map(|bump| Bump { from: Some(revision.main), ..bump });
            }
            if entry.value.is_empty() && !deleted && counts.bump.is_none() {
                counts.bump = Some(Bump { revision: revision.main, from: None });
                before_marker = true;
            }
            if revision.main > until {
                continue;
            }
            counts.entries += 1;
            counts.tombstones += u64::from(deleted);
            counts.first_revision = revision.main;
            let kv = KeyValue::decode(entry.value).map_err(|what| {
                entry.wrong(format!("the value at revision {} is no key-value: {what}", revision.main))
            })?;
            if kv.key.is_empty() {
                counts.live_with_marker += u64::from(!empty_key_seen && !deleted);
                empty_key_seen = true;
                continue;
            }
            let at = entry.at + entry.key.len() + kv.key_at;
            if keys.add(kv.key, at) && !deleted {
                counts.live += 1;
                counts.live_with_marker += 1;
                each(Live { entry, kv })?;
            }
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Revision of an entry, and whether it is a deletion.
fn revision(entry: &Entry<'_>) -> Result<(Revision, bool), SnapshotError> {
    let (parts, mark) = entry.key.split_at_checked(17).unwrap_or_default();
    let deleted = mark == b"t";
    if entry.is_bucket || parts.get(8) != Some(&b'_') || !(mark.is_empty() || deleted) {
        return Err(entry.wrong("the key of an entry is no revision"));
    }
    let number = |at: usize| Some(i64::from_be_bytes(*parts.get(at..)?.first_chunk()?)).filter(|&n| n >= 0);
    let revision = number(0).zip(number(9)).map(|(main, sub)| Revision { main, sub });
    Ok((revision.ok_or_else(|| entry.wrong("a revision beyond 63 bits"))?, deleted))
}

/// The revision of a compaction in the bucket `meta`: its main.
pub(super) fn compaction(bytes: &[u8]) -> Option<i64> {
    (bytes.len() >= 17).then(|| bytes.first_chunk().map(|main| i64::from_be_bytes(*main))).flatten()
}
