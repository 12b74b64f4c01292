//! The bucket `key`: what etcd's users wrote, one entry per revision.
//!
//! An entry's key is the revision: main (u64, big-endian), `_`, sub, and `t` after it when the
//! key was deleted. The value is an `mvccpb.KeyValue`. A restore with a revision bump adds an
//! entry at the bumped revision whose value is empty.
//!
//! The scan goes from the last revision to the first, so that the first entry seen of a key is
//! its state, and nothing has to be remembered of a key but that it was seen.

use super::error::SnapshotError;
use super::keyset::{KeySet, Tag};
use super::page::{Entry, LeafPage, Pages};
use super::proto::KeyValue;

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

/// Entries whose keys are looked up together: enough misses of the cache to overlap, few enough to
/// be all there when their turn comes.
const BATCH: usize = 64;

/// An entry with a key, before it is known whether a later one of the same key was there.
#[derive(Debug)]
struct Candidate<'a> {
    live: Live<'a>,
    tag: Tag,
    /// Where the key's length is in the file.
    at: usize,
    deleted: bool,
}

/// A scan of the bucket as it was at the end of a revision. Every existing key is handed out once,
/// in descending order of modification.
#[derive(Debug)]
pub struct Scan<'a> {
    until: i64,
    keys: KeySet<'a>,
    counts: Counts,
    candidates: Vec<Candidate<'a>>,
    empty_key_seen: bool,
}

impl<'a> Scan<'a> {
    /// A scan of a database's bucket as it was at the end of revision `until`.
    #[must_use]
    pub fn new(pages: Pages<'a>, until: i64) -> Self {
        Self {
            until,
            keys: KeySet::new(pages.bytes()),
            counts: Counts::default(),
            candidates: Vec::with_capacity(BATCH),
            empty_key_seen: false,
        }
    }

    /// The next leaf page towards the first.
    ///
    /// # Errors
    /// The first entry, from the page's end, that is not as etcd writes it.
    pub fn leaf(&mut self, leaf: LeafPage<'a>, each: &mut dyn FnMut(Live<'a>)) -> Result<(), SnapshotError> {
        for entry in leaf.entries().rev() {
            let (revision, deleted) = revision(&entry)?;
            let counts = &mut self.counts;
            counts.last_revision = counts.last_revision.max(revision.main);
            if let Some(bump) = &mut counts.bump {
                bump.from.get_or_insert(revision.main);
            } else if entry.value.is_empty() && !deleted {
                counts.bump = Some(Bump { revision: revision.main, from: None });
            }
            if revision.main > self.until {
                continue;
            }
            counts.entries += 1;
            counts.tombstones += u64::from(deleted);
            counts.first_revision = revision.main;
            let kv = KeyValue::decode(entry.value).map_err(|what| {
                entry.wrong(format!("the value at revision {} is no key-value: {what}", revision.main))
            })?;
            if kv.key.is_empty() {
                counts.live_with_marker += u64::from(!self.empty_key_seen && !deleted);
                self.empty_key_seen = true;
                continue;
            }
            let at = entry.at + entry.key.len() + kv.key_at;
            let tag = self.keys.tag(kv.key);
            self.candidates.push(Candidate { live: Live { entry, kv }, tag, at, deleted });
            if self.candidates.len() == BATCH {
                self.settle(each);
            }
        }
        Ok(())
    }

    /// What was counted, after the first leaf page.
    #[must_use]
    pub fn finish(mut self, each: &mut dyn FnMut(Live<'a>)) -> Counts {
        self.settle(each);
        self.counts
    }

    /// Hands out those of the candidates that exist, in their order.
    fn settle(&mut self, each: &mut dyn FnMut(Live<'a>)) {
        self.keys.fetch(self.candidates.iter().map(|candidate| candidate.tag));
        for Candidate { live, tag, at, deleted } in self.candidates.drain(..) {
            if self.keys.add(live.kv.key, tag, at) && !deleted {
                self.counts.live += 1;
                self.counts.live_with_marker += 1;
                each(live);
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::snapshot::inspect::Snapshot;
    use crate::etcd::snapshot::sample::Sample;
    use crate::etcd::snapshot::tree::{Order, Walk};

    #[test]
    fn keys_are_handed_out_a_batch_at_a_time_and_not_held_until_the_end() {
        let mut sample = Sample::etcd();
        for main in 1..=200 {
            sample.change(main, &main.to_string(), Some(b"v"));
        }
        let bytes = sample.bytes();
        let Snapshot { opened, buckets, .. } = Snapshot::read(&bytes).unwrap();
        let bucket = buckets.iter().find(|bucket| bucket.name == KEY).unwrap();
        let (mut scan, mut seen, mut handed_out) = (Scan::new(opened.pages, i64::MAX), 0, 0);
        let walked = Walk::new(opened.pages).tree(&bucket.root, Order::Descending, &mut |leaf| {
            scan.leaf(leaf, &mut |_| handed_out += 1)?;
            seen += leaf.len();
            assert_eq!(handed_out, seen / BATCH * BATCH);
            Ok(())
        });
        assert_eq!(walked, Ok(()));
        assert_eq!((scan.finish(&mut |_| handed_out += 1).live, handed_out), (200, 200));
    }
}
