//! Buckets: etcd keeps each kind of data in one of its own, and no bucket within another.

use super::error::SnapshotError;
use super::meta::Opened;
use super::page::{Entry, Page, u64_at};
use super::tree::{Order, Walk};

/// etcd has ten.
const MAX_BUCKETS: usize = 1000;
/// Root page and sequence at the beginning of a bucket's value.
const BUCKET_HEADER: usize = 16;

/// Where a bucket's tree begins.
#[derive(Debug, Clone, Copy)]
pub enum Root<'a> {
    /// On a page of its own, which page `from` refers to.
    Page {
        /// The root page.
        id: u64,
        /// The page that refers to it.
        from: u64,
    },
    /// Within the bucket's own entry: a leaf page without overflow.
    Inline(Page<'a>),
}

/// A bucket at the top.
#[derive(Debug, Clone, Copy)]
pub struct Bucket<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its tree.
    pub root: Root<'a>,
}

/// All buckets, names ascending. `walk` has seen the pages of the bucket of buckets afterwards.
///
/// # Errors
/// Damage of those pages, and entries that are no buckets.
pub fn buckets<'a>(opened: &Opened<'a>, walk: &mut Walk<'a>) -> Result<Vec<Bucket<'a>>, SnapshotError> {
    let mut found = Vec::new();
    let root = Root::Page { id: opened.meta.root, from: 0 };
    walk.tree(&root, Order::Ascending, &mut |leaf| {
        for entry in leaf.entries() {
            if found.len() == MAX_BUCKETS {
                return Err(entry.wrong(format!("more than {MAX_BUCKETS} buckets, and etcd has ten")));
            }
            found.push(bucket(&entry)?);
        }
        Ok(())
    })?;
    Ok(found)
}

fn bucket<'a>(entry: &Entry<'a>) -> Result<Bucket<'a>, SnapshotError> {
    if !entry.is_bucket {
        return Err(entry.wrong("an entry beside the buckets, where etcd has none"));
    }
    let short = || entry.wrong("a bucket's value is shorter than its header");
    let root = match u64_at(entry.value, 0).ok_or_else(short)? {
        0 => {
            let at = entry.at + entry.key.len() + BUCKET_HEADER;
            let page = entry.value.get(BUCKET_HEADER..).ok_or_else(short)?;
            Root::Inline(Page::inline(entry.page, at, page)?)
        }
        id => Root::Page { id, from: entry.page },
    };
    Ok(Bucket { name: entry.key, root })
}
