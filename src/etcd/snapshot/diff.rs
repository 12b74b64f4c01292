//! What differs between two snapshots, key by key. Values are compared, never shown.

use super::error::SnapshotError;
use super::inspect::Snapshot;
use super::text::Bytes;
use serde::Serialize;
use std::cmp::Ordering;

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Revision of the first snapshot.
    pub before_revision: i64,
    /// Revision of the second snapshot.
    pub after_revision: i64,
    /// Keys in the second one only.
    pub added: u64,
    /// Keys in the first one only.
    pub removed: u64,
    /// Keys that were modified at different revisions.
    pub changed: u64,
    /// Keys that were modified at the same revision and have different values: the two snapshots
    /// are of different timelines.
    pub forked: u64,
    /// Keys in the same state in both.
    pub same: u64,
    /// The keys that differ, in ascending order, up to the limit.
    pub keys: Vec<DifferentKey>,
    /// Keys that differ and are beyond the limit.
    pub beyond: u64,
}

/// A key that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferentKey {
    /// The key.
    #[serde(flatten)]
    pub key: Bytes,
    /// How.
    pub change: Change,
    /// Revision of its latest change in the first snapshot; `null` when it is not there.
    pub before_mod_revision: Option<i64>,
    /// Revision of its latest change in the second snapshot; `null` when it is not there.
    pub after_mod_revision: Option<i64>,
}

/// How a key differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// In the second snapshot only.
    Added,
    /// In the first snapshot only.
    Removed,
    /// Modified at different revisions.
    Changed,
    /// Modified at the same revision, with different values.
    Forked,
}

/// Which of the two snapshots is damaged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The first.
    Before(SnapshotError),
    /// The second.
    After(SnapshotError),
}

type Row<'a> = (&'a [u8], i64, &'a [u8]);

/// Compares the latest states of two snapshots. At most `limit` keys are listed.
///
/// # Errors
/// When one of them is damaged.
pub fn diff(before: &[u8], after: &[u8], limit: usize) -> Result<Difference, Which> {
    let (before_revision, before) = state(before).map_err(Which::Before)?;
    let (after_revision, after) = state(after).map_err(Which::After)?;
    let mut found = Difference {
        before_revision,
        after_revision,
        added: 0,
        removed: 0,
        changed: 0,
        forked: 0,
        same: 0,
        keys: Vec::new(),
        beyond: 0,
    };
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return Ok(found),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.0.cmp(b.0),
        };
        let a = before.next_if(|_| order.is_le());
        let b = after.next_if(|_| order.is_ge());
        found.count(a, b, limit);
    }
}

impl Difference {
    fn count(&mut self, before: Option<&Row<'_>>, after: Option<&Row<'_>>, limit: usize) {
        let (change, counter) = match (before, after) {
            (Some(a), Some(b)) if a.1 != b.1 => (Change::Changed, &mut self.changed),
            (Some(a), Some(b)) if a.2 != b.2 => (Change::Forked, &mut self.forked),
            (Some(_), None) => (Change::Removed, &mut self.removed),
            (None, Some(_)) => (Change::Added, &mut self.added),
            _ => {
                self.same += 1;
                return;
            }
        };
        *counter += 1;
        if self.keys.len() >= limit {
            self.beyond += 1;
            return;
        }
        self.keys.push(DifferentKey {
            key: Bytes::of(before.or(after).map_or(b"", |row| row.0)),
            change,
            before_mod_revision: before.map(|row| row.1),
            after_mod_revision: after.map(|row| row.1),
        });
    }
}

/// The existing keys in ascending order, each with revision and value.
fn state(bytes: &[u8]) -> Result<(i64, Vec<Row<'_>>), SnapshotError> {
    let snapshot = Snapshot::read(bytes)?;
    let mut rows = Vec::new();
    let counts = snapshot.scan(i64::MAX, &mut |live| {
        rows.push((live.kv.key, live.kv.mod_revision, live.kv.value));
    })?;
    rows.sort_unstable_by_key(|row| row.0);
    Ok((snapshot.current_revision(counts.last_revision), rows))
}
