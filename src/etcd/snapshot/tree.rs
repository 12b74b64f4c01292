//! Walks over a bucket's B+ tree, leaf page by leaf page, in either direction.
//!
//! Every page is checked on the way: within the database, referred to once, keys within the
//! bounds that the pages above set. A walk ends: it sees each page at most once.

use super::bucket::Root;
use super::error::SnapshotError;
use super::page::{BranchPage, Content, LeafPage, Page, Pages};

/// More levels than any tree has: with 2 pages below each, it would have 2^48 leaves.
const MAX_DEPTH: usize = 48;

/// Which way a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Keys ascending.
    Ascending,
    /// Keys descending; the entries of a page are still handed out as the page has them.
    Descending,
}

/// What is done with a leaf page.
pub type Visit<'v, 'a> = dyn FnMut(LeafPage<'a>) -> Result<(), SnapshotError> + 'v;

/// Walks over trees of one database, which have no page in common.
#[derive(Debug)]
pub struct Walk<'a> {
    pages: Pages<'a>,
    seen: PageSet,
}

/// A set of pages, one bit each.
#[derive(Debug)]
pub struct PageSet(Vec<u64>);

impl PageSet {
    /// An empty set of pages below `count`.
    #[must_use]
    pub fn new(count: u64) -> Self {
        Self(vec![0; usize::try_from(count.div_ceil(64)).unwrap_or(0)])
    }

    /// Adds a page; false when it was there already, or is none of the database.
    pub fn add(&mut self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|index| self.0.get_mut(index));
        let bit = 1 << (page % 64);
        word.is_some_and(|word| {
            let new = *word & bit == 0;
            *word |= bit;
            new
        })
    }

    /// Whether the page is in the set.
    #[must_use]
    pub fn has(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|index| self.0.get(index));
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }
}

impl<'a> Walk<'a> {
    /// Walks that have seen nothing yet.
    #[must_use]
    pub fn new(pages: Pages<'a>) -> Self {
        Self { pages, seen: PageSet::new(pages.count()) }
    }

    /// The pages that walks came to.
    #[must_use]
    pub fn seen(self) -> PageSet {
        self.seen
    }

    /// Marks a page, and those that it extends over, as referred to.
    ///
    /// # Errors
    /// When one of them is referred to a second time.
    pub fn refer(&mut self, page: &Page<'_>) -> Result<(), SnapshotError> {
        for id in page.id..=page.id + u64::from(page.overflow) {
            if !self.seen.add(id) {
                return Err(self.pages.damaged(id, "is referred to more than once"));
            }
        }
        Ok(())
    }

    /// Visits every leaf page of the tree.
    ///
    /// # Errors
    /// The first damage, and what `visit` returns.
    pub fn tree(
        &mut self,
        root: &Root<'a>,
        order: Order,
        visit: &mut Visit<'_, 'a>,
    ) -> Result<(), SnapshotError> {
        match *root {
            Root::Inline(page) => visit(LeafPage::check(page)?),
            Root::Page { id, from } => {
                self.below(Step { id, from, depth: 0, first: None, end: None }, order, visit)
            }
        }
    }

    fn below(
        &mut self,
        step: Step<'a>,
        order: Order,
        visit: &mut Visit<'_, 'a>,
    ) -> Result<(), SnapshotError> {
        let page = self.pages.get(step.id, step.from)?;
        self.refer(&page)?;
        match page.content()? {
            Content::Leaf(leaf) => {
                let (first, last) = leaf.ends().unzip();
                step.keeps(&page, first, last)?;
                visit(leaf)
            }
            Content::Branch(branch) => {
                if step.depth >= MAX_DEPTH {
                    return Err(page.damaged(0, format!("the tree is deeper than {MAX_DEPTH} pages")));
                }
                step.keeps(&page, branch.key(0), branch.key(branch.len() - 1))?;
                for index in 0..branch.len() {
                    let index = if order == Order::Ascending { index } else { branch.len() - 1 - index };
                    self.below(step.down(&branch, index), order, visit)?;
                }
                Ok(())
            }
        }
    }
}

/// A reference to a page, and the keys that may be on it: from `first` to before `end`.
struct Step<'a> {
    id: u64,
    from: u64,
    depth: usize,
    first: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
}

impl<'a> Step<'a> {
    fn down(&self, branch: &BranchPage<'a>, index: usize) -> Step<'a> {
        Step {
            id: branch.child(index),
            from: branch.page().id,
            depth: self.depth + 1,
            first: branch.key(index),
            end: branch.key(index + 1).or(self.end),
        }
    }

    fn keeps(&self, page: &Page<'_>, first: Option<&[u8]>, last: Option<&[u8]>) -> Result<(), SnapshotError> {
        let early = first.zip(self.first).is_some_and(|(key, bound)| key < bound);
        let late = last.zip(self.end).is_some_and(|(key, bound)| key >= bound);
        if early || late {
            return Err(
                page.damaged(0, format!("has keys outside of the bounds that page {} sets", self.from))
            );
        }
        Ok(())
    }
}
