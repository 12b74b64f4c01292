//! One pass over every bucket, keys ascending: etcdutl's hash, counts, and whether all pages are
//! accounted for. It is what bbolt's own check looks at before `etcdutl snapshot status` answers.

use super::bucket::{Bucket, buckets};
use super::error::SnapshotError;
use super::meta::Opened;
use super::page::LeafPage;
use super::tree::{Order, PageSet, Walk};

/// What the pass found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// CRC-32C over each bucket's name, keys and values: etcdutl's hash.
    pub hash: u32,
    /// Entries of all buckets: the key count of etcdutl 3.4 and 3.5.
    pub entries: u64,
    /// Each bucket, names ascending.
    pub buckets: Vec<BucketCounts>,
}

/// Size of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketCounts {
    /// Its name.
    pub name: Vec<u8>,
    /// Its entries.
    pub entries: u64,
    /// Bytes of its keys and values.
    pub bytes: u64,
}

/// Checks the structure of the whole database and hashes its contents.
///
/// # Errors
/// The first damage.
pub fn check(opened: &Opened<'_>) -> Result<Contents, SnapshotError> {
    let mut walk = Walk::new(opened.pages);
    let mut contents = Contents { hash: 0, entries: 0, buckets: Vec::new() };
    for Bucket { name, root } in buckets(opened, &mut walk)? {
        let mut hash = crc32c::crc32c_append(contents.hash, name);
        let mut counts = BucketCounts { name: name.to_owned(), entries: 0, bytes: 0 };
        walk.tree(&root, Order::Ascending, &mut |leaf| {
            counts.entries += leaf.len() as u64;
            let (next, bytes) = hash_leaf(hash, leaf)?;
            hash = next;
            counts.bytes += bytes;
            Ok(())
        })?;
        contents.hash = hash;
        contents.entries += counts.entries;
        contents.buckets.push(counts);
    }
    free_pages(opened, walk)?;
    Ok(contents)
}

/// Goes on with the hash over a leaf page; at once when nothing lies between its elements.
fn hash_leaf(hash: u32, leaf: LeafPage<'_>) -> Result<(u32, u64), SnapshotError> {
    let mut parts = (hash, 0);
    let mut add =
        |bytes: &[u8]| parts = (crc32c::crc32c_append(parts.0, bytes), parts.1 + bytes.len() as u64);
    if let Some(bucket) = leaf.bucket() {
        return Err(bucket.wrong("a bucket within a bucket, and etcd has none"));
    }
    match leaf.solid() {
        Some(bytes) => add(bytes),
        None => leaf.entries().for_each(|entry| {
            add(entry.key);
            add(entry.value);
        }),
    }
    Ok(parts)
}

/// With a list of free pages in the file, every page is either on it or in use, not both.
fn free_pages<'a>(opened: &Opened<'a>, mut walk: Walk<'a>) -> Result<(), SnapshotError> {
    let Some(list) = opened.meta.freelist else { return Ok(()) };
    let pages = opened.pages;
    let page = pages.get(list, 0)?;
    walk.refer(&page)?;
    let used = walk.seen();
    let mut free = PageSet::new(pages.count());
    for id in page.freed()? {
        if id < 2 || id >= pages.count() {
            return Err(
                pages.damaged(list, format!("lists page {id} as free, which is none of the database"))
            );
        }
        if used.has(id) {
            return Err(pages.damaged(id, "is in use and listed as free"));
        }
        if !free.add(id) {
            return Err(pages.damaged(id, "is listed as free twice"));
        }
    }
    match (2..pages.count()).find(|&id| !used.has(id) && !free.has(id)) {
        Some(id) => Err(pages.damaged(id, "is neither in use nor listed as free")),
        None => Ok(()),
    }
}
