//! Everything that is told about a snapshot, from its bytes.

use super::bucket::{Bucket, buckets};
use super::contents::{BucketCounts, Contents, Tally};
use super::error::SnapshotError;
use super::facts::{self, Facts, Member, RaisedAlarm};
use super::keyspace::{Counts, KEY, Live, Scan};
use super::kubernetes::Objects;
use super::meta::{Opened, open};
use super::structure::{self, Batch};
use super::trailer::{Ending, ending};
use super::tree::{Order, Walk};
use super::view::KubernetesView;
use serde::Serialize;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread;

/// The newest etcd whose format is known, as `major.minor`.
pub const NEWEST_KNOWN: &str = "3.7";

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A snapshot as etcd streams it, with a digest at its end.
    Snapshot,
    /// The database of a data directory, without a digest.
    RawDatabase,
    /// A database with something cut off or appended behind it.
    Odd,
}

/// What a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// What kind of file it is.
    pub kind: Kind,
    /// Bytes of the file.
    pub size_bytes: u64,
    /// Bytes of a page.
    pub page_size_bytes: u64,
    /// bbolt's last transaction.
    pub transaction: u64,
    /// What `etcdutl snapshot status` says.
    pub status: Status,
    /// The revision that an etcd started on it has: no less than a compaction's.
    pub current_revision: i64,
    /// Keys that exist, without the mark of a bump.
    pub live_keys: u64,
    /// Changes that are kept, deletions included.
    pub changes: u64,
    /// Of these, deletions.
    pub tombstones: u64,
    /// Lowest revision of which something is kept; `null` when nothing is.
    pub first_revision: Option<i64>,
    /// Where compaction stands.
    pub compaction: Compaction,
    /// The mark of a restore with a bumped revision; `null` when there is none.
    pub bump: Option<BumpMark>,
    /// Raft's position.
    pub raft: Raft,
    /// Version that all members had agreed on.
    pub cluster_version: Option<String>,
    /// Version of the storage schema, by what is stored.
    pub schema: &'static str,
    /// Members of the cluster; a restore replaces them.
    pub members: Vec<Member>,
    /// Ids of removed members, hexadecimal.
    pub removed_members: Vec<String>,
    /// Leases.
    pub leases: Leases,
    /// Alarms, which a restore keeps.
    pub alarms: Vec<RaisedAlarm>,
    /// Whether authentication is on, which a restore keeps.
    pub auth_enabled: bool,
    /// Buckets, names ascending.
    pub buckets: Vec<BucketSize>,
    /// What Kubernetes keeps in it.
    pub kubernetes: KubernetesView,
    /// What a person should know before relying on it.
    pub warnings: Vec<String>,
}

/// The figures of `etcdutl snapshot status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// CRC-32C of all buckets.
    pub hash: u32,
    /// Revision of the last entry.
    pub revision: i64,
    /// Keys as etcdutl 3.6 and later count them: those that exist, a bump's mark included.
    pub total_key: u64,
    /// Keys as etcdutl 3.4 and 3.5 count them: entries of all buckets.
    pub total_key_before36: u64,
    /// Bytes of the database.
    pub total_size_bytes: u64,
    /// Version of the storage; `null` before etcd 3.6.
    pub version: Option<String>,
    /// Why the version is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_reason: Option<&'static str>,
}

/// Compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Revision up to which one was begun; `null` for none.
    pub scheduled_revision: Option<i64>,
    /// Revision up to which one was completed; `null` for none.
    pub finished_revision: Option<i64>,
}

/// The mark of a restore with a bumped revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BumpMark {
    /// The revision that it set.
    pub revision: i64,
    /// The revision before it; `null` when nothing older is kept.
    pub from_revision: Option<i64>,
    /// Whether compaction is marked up to it.
    pub marked_compacted: bool,
}

/// Raft's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Raft {
    /// Index of the last applied entry.
    pub consistent_index: Option<u64>,
    /// Term of it; `null` before etcd 3.5.
    pub term: Option<u64>,
}

/// Leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leases {
    /// How many.
    pub count: u64,
    /// Those that are kept of them, ids ascending.
    pub listed: Vec<LeaseView>,
    /// Keys attached to leases that are not listed.
    pub keys_of_unlisted: u64,
}

/// A lease. A restore gives it its full time again unless it was checkpointed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseView {
    /// Id, hexadecimal.
    pub id: String,
    /// Seconds granted.
    pub ttl_seconds: i64,
    /// Seconds left at the last checkpoint; `null` without one.
    pub remaining_ttl_seconds: Option<i64>,
    /// Existing keys that are attached to it.
    pub keys: u64,
}

/// A bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketSize {
    /// Its name.
    pub name: String,
    /// Its entries.
    pub entries: u64,
    /// Bytes of its keys and values.
    pub bytes: u64,
}

/// Batches of leaf pages on their way from the thread that walks to the one that reads.
const PENDING: usize = 2;

/// What is on the leaf pages.
struct Reading<'a> {
    contents: Contents,
    scan: Scan<'a>,
    found: Found<'a>,
}

/// What the keys that exist tell.
struct Found<'a> {
    objects: Objects<'a>,
    keys_of_lease: HashMap<i64, u64>,
    keys_of_unlisted: u64,
}

/// A reading that came to its end.
struct Read<'a> {
    contents: Contents,
    counts: Counts,
    found: Found<'a>,
}

/// A database with its buckets found and the small ones read.
pub(super) struct Snapshot<'a> {
    pub(super) opened: Opened<'a>,
    pub(super) buckets: Vec<Bucket<'a>>,
    pub(super) facts: Facts,
}

impl<'a> Snapshot<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let opened = open(bytes)?;
        let mut walk = Walk::new(opened.pages);
        let buckets = buckets(&opened, &mut walk)?;
        let facts = facts::read(&opened, &mut walk, &buckets)?;
        Ok(Self { opened, buckets, facts })
    }

    /// Scans the keys, see [`Scan`].
    pub(super) fn scan(&self, until: i64, each: &mut dyn FnMut(Live<'a>)) -> Result<Counts, SnapshotError> {
        let pages = self.opened.pages;
        let mut scan = Scan::new(pages, until);
        if let Some(bucket) = self.buckets.iter().find(|bucket| bucket.name == KEY) {
            Walk::new(pages).tree(&bucket.root, Order::Descending, &mut |leaf| scan.leaf(leaf, each))?;
        }
        Ok(scan.finish(each))
    }

    /// The revision that an etcd started on it has.
    pub(super) fn current_revision(&self, last: i64) -> i64 {
        let Facts { finished_compaction: finished, scheduled_compaction: scheduled, .. } = &self.facts;
        last.max(finished.unwrap_or(0)).max(scheduled.unwrap_or(0))
    }
}

impl<'a> Reading<'a> {
    fn of(snapshot: &Snapshot<'a>) -> Self {
        let keys_of_lease = snapshot.facts.leases.iter().map(|lease| (lease.id, 0)).collect();
        Self {
            contents: Contents::default(),
            scan: Scan::new(snapshot.opened.pages, i64::MAX),
            found: Found { objects: Objects::default(), keys_of_lease, keys_of_unlisted: 0 },
        }
    }

    fn take(&mut self, batch: &Batch<'a>, tally: Option<Tally>) -> Result<(), SnapshotError> {
        self.contents.add(batch.bucket, tally.unwrap_or_else(|| Tally::of(&batch.leaves)));
        let Self { scan, found, .. } = self;
        let leaves = batch.leaves.iter().filter(|_| batch.bucket == KEY);
        leaves.copied().try_for_each(|leaf| scan.leaf(leaf, &mut |live| found.add(&live)))
    }

    fn finish(mut self) -> Read<'a> {
        let counts = self.scan.finish(&mut |live| self.found.add(&live));
        Read { contents: self.contents, counts, found: self.found }
    }
}

impl<'a> Found<'a> {
    fn add(&mut self, live: &Live<'a>) {
        if live.kv.lease != 0 {
            *self.keys_of_lease.get_mut(&live.kv.lease).unwrap_or(&mut self.keys_of_unlisted) += 1;
        }
        self.objects.add(live);
    }
}

/// Reads and checks a whole snapshot on two threads: one walks, the other one reads what the walk
/// comes to.
///
/// # Errors
/// The first damage; of structure before that of entries.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, SnapshotError> {
    let snapshot = Snapshot::read(bytes)?;
    let (walked, read) = thread::scope(|scope| {
        let (send, handed_on) = sync_channel::<(Batch<'_>, Option<Tally>)>(PENDING);
        let mut reading = Reading::of(&snapshot);
        let reader = scope.spawn(move || {
            let read = handed_on.iter().try_for_each(|(batch, tally)| reading.take(&batch, tally));
            read.map(|()| reading.finish())
        });
        // A reader that found damage takes no more. The walk goes on: its damage is told first.
        let walked = structure::check(&snapshot.opened, &mut |batch| {
            if let Err(TrySendError::Full((batch, _))) = send.try_send((batch, None)) {
                // The reader has enough to do, so the hash is made here.
                let tally = Tally::of(&batch.leaves);
                drop(send.send((batch, Some(tally))));
            }
        });
        drop(send);
        (walked, reader.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    walked.and(read).map(|read| Inspection::of(&snapshot, read))
}

/// As [`inspect`], on the calling thread alone.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_here(bytes: &[u8]) -> Result<Inspection, SnapshotError> {
    let snapshot = Snapshot::read(bytes)?;
    let (mut reading, mut read) = (Reading::of(&snapshot), Ok(()));
    structure::check(&snapshot.opened, &mut |batch| {
        if read.is_ok() {
            read = reading.take(&batch, None);
        }
    })?;
    read.map(|()| Inspection::of(&snapshot, reading.finish()))
}

impl Inspection {
    fn of(snapshot: &Snapshot<'_>, read: Read<'_>) -> Self {
        let (opened, facts) = (&snapshot.opened, &snapshot.facts);
        let Read { contents, counts, found } = read;
        let size_bytes = opened.pages.bytes().len() as u64;
        let version = facts.storage_version.clone();
        let version_reason = version.is_none().then_some("etcd records it since 3.6");
        let compaction = Compaction {
            scheduled_revision: facts.scheduled_compaction,
            finished_revision: facts.finished_compaction,
        };
        let kind = match ending(opened.pages.bytes()) {
            Ending::Digest { .. } => Kind::Snapshot,
            Ending::Raw => Kind::RawDatabase,
            Ending::Odd => Kind::Odd,
        };
        Self {
            kind,
            size_bytes,
            page_size_bytes: opened.meta.page_size as u64,
            transaction: opened.meta.transaction,
            status: Status {
                hash: contents.hash(),
                revision: counts.last_revision,
                total_key: counts.live_with_marker,
                total_key_before36: contents.entries(),
                total_size_bytes: opened.size(),
                version,
                version_reason,
            },
            current_revision: snapshot.current_revision(counts.last_revision),
            live_keys: counts.live,
            changes: counts.entries,
            tombstones: counts.tombstones,
            first_revision: (counts.entries > 0).then_some(counts.first_revision),
            compaction,
            bump: counts.bump.map(|bump| BumpMark {
                revision: bump.revision,
                from_revision: bump.from,
                marked_compacted: facts.scheduled_compaction.max(facts.finished_compaction)
                    >= Some(bump.revision),
            }),
            raft: Raft { consistent_index: facts.consistent_index, term: facts.term },
            cluster_version: facts.cluster_version.clone(),
            schema: schema(facts),
            members: facts.members.clone(),
            removed_members: facts.removed_members.clone(),
            leases: leases(facts, &found),
            alarms: facts.alarms.clone(),
            auth_enabled: facts.auth_enabled,
            buckets: contents.buckets().iter().map(BucketSize::of).collect(),
            kubernetes: KubernetesView::of(&found.objects),
            warnings: warnings(opened, facts, kind),
        }
    }
}

impl BucketSize {
    fn of(counts: &BucketCounts) -> Self {
        let name = String::from_utf8_lossy(&counts.name).into_owned();
        Self { name, entries: counts.tally.entries, bytes: counts.tally.bytes }
    }
}

fn leases(facts: &Facts, found: &Found<'_>) -> Leases {
    let listed = facts.leases.iter().map(|lease| LeaseView {
        id: format!("{:x}", lease.id),
        ttl_seconds: lease.ttl,
        remaining_ttl_seconds: Some(lease.remaining_ttl).filter(|&ttl| ttl > 0),
        keys: found.keys_of_lease.get(&lease.id).copied().unwrap_or(0),
    });
    Leases { count: facts.lease_count, listed: listed.collect(), keys_of_unlisted: found.keys_of_unlisted }
}

/// As etcd tells it: the storage's version since 3.6, a term since 3.5.
fn schema(facts: &Facts) -> &'static str {
    match (&facts.storage_version, facts.term) {
        (Some(_), _) => "3.6 or later",
        (None, Some(_)) => "3.5",
        (None, None) => "3.4 or earlier",
    }
}

fn warnings(opened: &Opened<'_>, facts: &Facts, kind: Kind) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(fault) = &opened.other_meta {
        let what = fault.to_string();
        let what = what.lines().next().unwrap_or_default();
        warnings.push(format!("one of the two meta pages is damaged, the other is used: {what}"));
    }
    match kind {
        Kind::Snapshot if opened.size() + 32 != opened.pages.bytes().len() as u64 => {
            warnings.push("the database does not end where the digest begins".to_owned());
        }
        Kind::Snapshot => {}
        Kind::RawDatabase => warnings.push(
            "no SHA-256 digest at the end: a raw database, whose integrity can't be verified; a restore of it \
             needs an explicit `--skip-hash-check`"
                .to_owned(),
        ),
        Kind::Odd => warnings.push(
            "the file's size is neither a database's nor a snapshot's: something was cut off or appended".to_owned(),
        ),
    }
    for (what, version) in [("storage", &facts.storage_version), ("cluster", &facts.cluster_version)] {
        if let Some(version) = version.as_ref().filter(|version| is_newer(version, NEWEST_KNOWN)) {
            warnings.push(format!(
                "its {what} version {version} is newer than {NEWEST_KNOWN}, the newest that is known here: restore \
                 it with that version's etcdutl, and look for a newer quakeproof"
            ));
        }
    }
    warnings.extend(facts.warnings.iter().cloned());
    warnings
}

/// Whether a version is of a newer minor release than another; patches keep the format.
#[must_use]
pub fn is_newer(version: &str, than: &str) -> bool {
    let parts = |text: &str| {
        let mut numbers = text.trim_start_matches('v').split('.').map(|part| part.parse::<u64>().ok());
        numbers.next().flatten().zip(numbers.next().flatten())
    };
    parts(version) > parts(than)
}
