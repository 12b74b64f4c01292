//! What etcd keeps beside the keys: compaction, raft position, members, leases, alarms, versions.

use super::bucket::Bucket;
use super::error::SnapshotError;
use super::keyspace::compaction;
use super::meta::Opened;
use super::page::Entry;
use super::proto::{Alarm, Lease};
use super::tree::{Order, Walk};
use serde::Serialize;

/// Most entries that are kept of a list; more are counted.
pub const MAX_LISTED: usize = 100_000;

/// What the buckets other than `key` say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Revision up to which a compaction was begun.
    pub scheduled_compaction: Option<i64>,
    /// Revision up to which a compaction was completed.
    pub finished_compaction: Option<i64>,
    /// Raft index of the last applied entry.
    pub consistent_index: Option<u64>,
    /// Raft term of that entry; since etcd 3.5.
    pub term: Option<u64>,
    /// Version of the storage schema; since etcd 3.6.
    pub storage_version: Option<String>,
    /// Version that all members had agreed on.
    pub cluster_version: Option<String>,
    /// Members, ids ascending.
    pub members: Vec<Member>,
    /// Ids of removed members.
    pub removed_members: Vec<String>,
    /// Leases, ids ascending; at most [`MAX_LISTED`].
    pub leases: Vec<Lease>,
    /// How many leases there are.
    pub lease_count: u64,
    /// Alarms that were raised.
    pub alarms: Vec<RaisedAlarm>,
    /// Whether authentication is on.
    pub auth_enabled: bool,
    /// What can't be read, or is not known.
    pub warnings: Vec<String>,
}

/// A member of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Id, hexadecimal.
    pub id: String,
    /// Name; empty when it never started.
    pub name: String,
    /// Addresses for other members.
    pub peer_urls: Vec<String>,
    /// Addresses for clients.
    pub client_urls: Vec<String>,
    /// Whether it has no vote. A restore makes a voter of it.
    pub is_learner: bool,
}

/// An alarm, which a restore keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RaisedAlarm {
    /// Id of the member, hexadecimal.
    pub member: String,
    /// `noSpace`, `corrupt`, or a number that is not known.
    pub kind: String,
}

/// What is in a member's entry, as far as it is used here.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct StoredMember {
    name: Option<String>,
    #[serde(rename = "peerURLs")]
    peer_urls: Option<Vec<String>>,
    #[serde(rename = "clientURLs")]
    client_urls: Option<Vec<String>>,
    is_learner: Option<bool>,
}

/// Reads the buckets other than `key`.
///
/// # Errors
/// The first damage of their pages.
pub fn read<'a>(
    opened: &Opened<'a>,
    walk: &mut Walk<'a>,
    buckets: &[Bucket<'a>],
) -> Result<Facts, SnapshotError> {
    let mut facts = Facts::default();
    for bucket in buckets {
        let take: fn(&mut Facts, &Entry<'_>) = match bucket.name {
            b"meta" => Facts::meta,
            b"cluster" => Facts::cluster,
            b"members" => Facts::member,
            b"members_removed" => Facts::removed,
            b"lease" => Facts::lease,
            b"alarm" => Facts::alarm,
            b"auth" => Facts::auth,
            b"key" | b"authUsers" | b"authRoles" => continue,
            other => {
                let name = String::from_utf8_lossy(other);
                facts.warn(format!("the bucket `{name}` is not one of etcd's up to {}", super::NEWEST_KNOWN));
                continue;
            }
        };
        walk.tree(&bucket.root, Order::Ascending, &mut |leaf| {
            leaf.entries().for_each(|entry| take(&mut facts, &entry));
            Ok(())
        })?;
    }
    if !buckets.iter().any(|bucket| bucket.name == super::keyspace::KEY) {
        let root = opened
            .pages
            .damaged(opened.meta.root, "there is no bucket `key`: a bbolt database, but not etcd's");
        return Err(root);
    }
    Ok(facts)
}

impl Facts {
    fn warn(&mut self, what: String) {
        if self.warnings.len() < 100 {
            self.warnings.push(what);
        }
    }

    fn unreadable(&mut self, entry: &Entry<'_>, what: &str) {
        self.warn(format!("page {}, offset {}: {what} can't be read", entry.page, entry.at));
    }

    fn meta(&mut self, entry: &Entry<'_>) {
        let number = || entry.value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        match entry.key {
            b"scheduledCompactRev" => self.scheduled_compaction = compaction(entry.value),
            b"finishedCompactRev" => self.finished_compaction = compaction(entry.value),
            b"consistent_index" => self.consistent_index = number(),
            b"term" => self.term = number(),
            b"storageVersion" => self.storage_version = Some(text(entry.value)),
            _ => {}
        }
    }

    fn cluster(&mut self, entry: &Entry<'_>) {
        if entry.key == b"clusterVersion" {
            self.cluster_version = Some(text(entry.value));
        }
    }

    fn member(&mut self, entry: &Entry<'_>) {
        if self.members.len() == 100 {
            return self.warn("more than 100 members; the rest is not shown".to_owned());
        }
        let Ok(stored) = serde_json::from_slice::<StoredMember>(entry.value) else {
            return self.unreadable(entry, "a member");
        };
        self.members.push(Member {
            id: text(entry.key),
            name: stored.name.unwrap_or_default(),
            peer_urls: stored.peer_urls.unwrap_or_default(),
            client_urls: stored.client_urls.unwrap_or_default(),
            is_learner: stored.is_learner.unwrap_or_default(),
        });
    }

    fn removed(&mut self, entry: &Entry<'_>) {
        if self.removed_members.len() < 100 {
            self.removed_members.push(text(entry.key));
        }
    }

    fn lease(&mut self, entry: &Entry<'_>) {
        self.lease_count += 1;
        match Lease::decode(entry.value) {
            Ok(lease) if self.leases.len() < MAX_LISTED => self.leases.push(lease),
            Ok(_) => {}
            Err(_) => self.unreadable(entry, "a lease"),
        }
    }

    fn alarm(&mut self, entry: &Entry<'_>) {
        let Ok(alarm) = Alarm::decode(entry.key) else { return self.unreadable(entry, "an alarm") };
        let kind = match alarm.kind {
            1 => "noSpace".to_owned(),
            2 => "corrupt".to_owned(),
            other => other.to_string(),
        };
        if self.alarms.len() < 100 {
            self.alarms.push(RaisedAlarm { member: format!("{:x}", alarm.member), kind });
        }
    }

    fn auth(&mut self, entry: &Entry<'_>) {
        if entry.key == b"authEnabled" {
            self.auth_enabled = entry.value == [1];
        }
    }
}

/// A short text, whatever the bytes are.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).into_owned()
}
