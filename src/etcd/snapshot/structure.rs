//! One walk over every bucket: whether all pages are accounted for, which is what bbolt's own check
//! looks at before `etcdutl snapshot status` answers. What is on the leaf pages is for others.

use super::bucket::{Bucket, buckets};
use super::error::SnapshotError;
use super::meta::Opened;
use super::page::LeafPage;
use super::tree::{Order, PageSet, Walk};
use std::mem;

/// Leaf pages handed on together: enough that handing on, and putting hashes together, costs little;
/// few enough that they are still in the cache when somebody reads them.
const BATCH: usize = 1024;

/// Leaf pages of one bucket that are next to each other, the last one first.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The bucket's name.
    pub bucket: &'a [u8],
    /// The pages, at least one.
    pub leaves: Vec<LeafPage<'a>>,
}

/// Checks the structure of the whole database. Every leaf page is handed on once: bucket by bucket,
/// names ascending, the pages of each from the last one to the first.
///
/// # Errors
/// The first damage.
pub fn check<'a>(opened: &Opened<'a>, hand_on: &mut dyn FnMut(Batch<'a>)) -> Result<(), SnapshotError> {
    let mut walk = Walk::new(opened.pages);
    for Bucket { name, root } in buckets(opened, &mut walk)? {
        let mut leaves = Vec::with_capacity(BATCH);
        walk.tree(&root, Order::Descending, &mut |leaf| {
            if let Some(bucket) = leaf.bucket() {
                return Err(bucket.wrong("a bucket within a bucket, and etcd has none"));
            }
            leaves.push(leaf);
            if leaves.len() == BATCH {
                let leaves = mem::replace(&mut leaves, Vec::with_capacity(BATCH));
                hand_on(Batch { bucket: name, leaves });
            }
            Ok(())
        })?;
        if !leaves.is_empty() {
            hand_on(Batch { bucket: name, leaves });
        }
    }
    free_pages(opened, walk)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::snapshot::meta::open;
    use crate::etcd::snapshot::sample::{PAGE, Sample};

    #[test]
    fn pages_are_handed_on_in_full_batches_and_no_batch_is_empty() {
        let mut sample = Sample::etcd();
        for id in 0..2 * BATCH {
            sample.bucket("lease").insert(id.to_be_bytes().to_vec(), vec![b'x'; PAGE / 2]);
        }
        let bytes = sample.bytes();
        let mut sizes = Vec::new();
        let mut hand_on = |batch: Batch<'_>| {
            if batch.bucket == b"lease" {
                sizes.push(batch.leaves.len());
            }
        };
        check(&open(&bytes).unwrap(), &mut hand_on).unwrap();
        assert_eq!(sizes, [BATCH, BATCH]);
    }
}
