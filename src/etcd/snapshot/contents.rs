//! How much is in each bucket, and etcdutl's hash over all of them.

use super::page::LeafPage;
use crc32c::{crc32c_append, crc32c_combine};

/// The buckets, names ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents(Vec<BucketCounts>);

/// Size of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketCounts {
    /// Its name.
    pub name: Vec<u8>,
    /// What is in it.
    pub tally: Tally,
}

/// How much is in a row of entries, and their hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// CRC-32C over them, each key before its value.
    hash: u32,
}

impl Contents {
    /// Adds a bucket's entries, which come before those of it that were added already. Names ascend.
    pub fn add(&mut self, bucket: &[u8], tally: Tally) {
        match self.0.last_mut().filter(|last| last.name == bucket) {
            Some(last) => last.tally = tally.followed_by(last.tally),
            None => self.0.push(BucketCounts { name: bucket.to_owned(), tally }),
        }
    }

    /// Each bucket.
    #[must_use]
    pub fn buckets(&self) -> &[BucketCounts] {
        &self.0
    }

    /// Entries of all buckets: the key count of etcdutl 3.4 and 3.5.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.0.iter().map(|bucket| bucket.tally.entries).sum()
    }

    /// CRC-32C over each bucket's name, keys and values: etcdutl's hash.
    #[must_use]
    pub fn hash(&self) -> u32 {
        self.0.iter().fold(0, |hash, BucketCounts { name, tally }| {
            combined(crc32c_append(hash, name), tally.hash, tally.bytes)
        })
    }
}

impl Tally {
    /// Of all entries on leaf pages, the last one of which comes first.
    #[must_use]
    pub fn of(leaves: &[LeafPage<'_>]) -> Self {
        let mut tally = Self::default();
        for leaf in leaves.iter().rev() {
            tally.entries += leaf.len() as u64;
            match leaf.solid() {
                Some(bytes) => tally.add(bytes),
                None => leaf.entries().for_each(|entry| {
                    tally.add(entry.key);
                    tally.add(entry.value);
                }),
            }
        }
        tally
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.hash = crc32c_append(self.hash, bytes);
        self.bytes += bytes.len() as u64;
    }

    fn followed_by(self, next: Self) -> Self {
        Self {
            entries: self.entries + next.entries,
            bytes: self.bytes + next.bytes,
            hash: combined(self.hash, next.hash, next.bytes),
        }
    }
}

/// The CRC of what has the first CRC, followed by `bytes` bytes that have the other.
fn combined(first: u32, other: u32, bytes: u64) -> u32 {
    crc32c_combine(first, other, usize::try_from(bytes).unwrap_or(usize::MAX))
}
