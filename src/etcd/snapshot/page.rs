//! Pages of a bbolt file and the elements on them, every access within bounds.
//!
//! A page begins with 16 bytes: its number (u64), kind (u16), count of elements (u16) and how
//! many further pages it extends over (u32). All integers are little-endian.

use super::error::{Damage, SnapshotError};

/// Bytes of a page's header, and of an element of either kind.
pub(super) const HEADER: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const FREELIST: u16 = 0x10;
/// An element whose value is a bucket.
const BUCKET_FLAG: u32 = 0x01;

/// A database within bytes: where its pages are.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    bytes: &'a [u8],
    page_size: usize,
    count: u64,
}

/// One page, with the pages that it extends over.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Its number; that of the page around it when it is an inline bucket's.
    pub id: u64,
    /// Offset of its header in the file.
    pub at: usize,
    kind: u16,
    elements: u16,
    /// How many further pages it extends over.
    pub overflow: u32,
    bytes: &'a [u8],
}

/// What a page holds.
#[derive(Debug)]
pub enum Content<'a> {
    /// References to pages below.
    Branch(BranchPage<'a>),
    /// Keys and values.
    Leaf(LeafPage<'a>),
}

/// A branch page whose elements lie within it, keys ascending.
#[derive(Debug, Clone, Copy)]
pub struct BranchPage<'a>(Page<'a>);

/// A leaf page whose elements lie within it, one after the other, keys ascending.
#[derive(Debug, Clone, Copy)]
pub struct LeafPage<'a> {
    page: Page<'a>,
    /// First byte of the first key and end of the last value, when nothing lies between the elements.
    solid: Option<(usize, usize)>,
    /// First and last key.
    ends: Option<(&'a [u8], &'a [u8])>,
    /// First element whose value is a bucket.
    bucket: Option<Entry<'a>>,
}

/// A key with its value.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Page that it is on.
    pub page: u64,
    /// Offset of the key in the file; the value follows it immediately.
    pub at: usize,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Whether the value is a bucket.
    pub is_bucket: bool,
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<'a> Pages<'a> {
    /// `count` pages of `page_size` bytes at the beginning of `bytes`, which must hold them all.
    pub(super) fn new(bytes: &'a [u8], page_size: usize, count: u64) -> Self {
        Self { bytes, page_size, count }
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many pages the database has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Damage on page `id`, at its beginning.
    pub(super) fn damaged(&self, id: u64, what: impl Into<String>) -> SnapshotError {
        let offset = id.saturating_mul(self.page_size as u64);
        SnapshotError { page: id, offset, damage: Damage::Structure(what.into()) }
    }

    /// The page `id`, which `from` refers to.
    ///
    /// # Errors
    /// When it is a meta page or lies outside of the database, and when it is not what its header says.
    pub fn get(&self, id: u64, from: u64) -> Result<Page<'a>, SnapshotError> {
        if id < 2 || id >= self.count {
            let what =
                format!("refers to page {id}, and pages 2 to {} are in use", self.count.saturating_sub(1));
            return Err(self.damaged(from, what));
        }
        let at = usize::try_from(id).ok().and_then(|id| id.checked_mul(self.page_size));
        let at = at.ok_or_else(|| self.damaged(id, "lies outside of the file"))?;
        let page = self.bytes.get(at..).and_then(|bytes| Page::read(id, at, bytes));
        let mut page = page.ok_or_else(|| self.damaged(id, "lies outside of the file"))?;
        let named = u64_at(page.bytes, 0).unwrap_or_default();
        if named != id {
            return Err(self.damaged(id, format!("its header says that it is page {named}")));
        }
        let pages = u64::from(page.overflow) + 1;
        let end = usize::try_from(pages).ok().and_then(|n| n.checked_mul(self.page_size));
        page.bytes = match end.and_then(|end| page.bytes.get(..end)) {
            Some(bytes) if pages <= self.count - id => bytes,
            _ => {
                let what = format!("extends over {} further pages, beyond the database's end", page.overflow);
                return Err(self.damaged(id, what));
            }
        };
        Ok(page)
    }
}

impl<'a> Page<'a> {
    fn read(id: u64, at: usize, bytes: &'a [u8]) -> Option<Self> {
        let (kind, elements) = (u16_at(bytes, 8)?, u16_at(bytes, 10)?);
        Some(Self { id, at, kind, elements, overflow: u32_at(bytes, 12)?, bytes })
    }

    /// The page of an inline bucket: `bytes` at `at` of the file, on page `id`.
    pub(super) fn inline(id: u64, at: usize, bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        let page = Self::read(id, at, bytes)
            .ok_or_else(|| damage_at(id, at, "an inline bucket is shorter than the header of a page"))?;
        if page.kind == LEAF { Ok(page) } else { Err(page.damaged(0, "an inline bucket is no leaf page")) }
    }

    /// Damage on this page, `at` bytes from its beginning.
    pub(super) fn damaged(&self, at: usize, what: impl Into<String>) -> SnapshotError {
        damage_at(self.id, self.at + at, what)
    }

    /// What is on a page of a tree.
    ///
    /// # Errors
    /// When it is a page of another kind, or an element breaks a rule.
    pub fn content(self) -> Result<Content<'a>, SnapshotError> {
        match self.kind {
            BRANCH => BranchPage::check(self).map(Content::Branch),
            LEAF => LeafPage::check(self).map(Content::Leaf),
            kind => Err(self.damaged(8, format!("is of kind {kind:#x}, which is neither branch nor leaf"))),
        }
    }

    /// The numbers on a page of free pages.
    ///
    /// # Errors
    /// When it is a page of another kind, or shorter than its count of numbers.
    pub fn freed(self) -> Result<impl Iterator<Item = u64> + use<'a>, SnapshotError> {
        if self.kind != FREELIST {
            return Err(self.damaged(
                8,
                format!("is of kind {:#x}, and the list of free pages was expected", self.kind),
            ));
        }
        // A count that does not fit the header is the first number.
        let (first, count) = match self.elements {
            u16::MAX => (HEADER + 8, u64_at(self.bytes, HEADER).unwrap_or(u64::MAX)),
            count => (HEADER, u64::from(count)),
        };
        let len = usize::try_from(count).ok().and_then(|n| n.checked_mul(8));
        let end = len.and_then(|len| first.checked_add(len));
        let numbers = end.and_then(|end| self.bytes.get(first..end));
        let numbers =
            numbers.ok_or_else(|| self.damaged(HEADER, format!("has no room for {count} free pages")))?;
        Ok(numbers.chunks_exact(8).filter_map(|number| u64_at(number, 0)))
    }

    fn element(&self, index: usize) -> usize {
        HEADER + index * HEADER
    }

    /// Where the first key can be: elements come first.
    fn data(&self) -> Result<usize, SnapshotError> {
        let data = self.element(usize::from(self.elements));
        if data > self.bytes.len() {
            return Err(self.damaged(10, format!("has no room for {} elements", self.elements)));
        }
        Ok(data)
    }

    /// The bytes of `len` that lie `pos` from the element at `at`, and where they begin.
    fn slice(&self, at: usize, pos: u32, len: usize) -> Option<(usize, &'a [u8])> {
        let start = at.checked_add(usize::try_from(pos).ok()?)?;
        Some((start, self.bytes.get(start..start.checked_add(len)?)?))
    }
}

impl<'a> BranchPage<'a> {
    fn check(page: Page<'a>) -> Result<Self, SnapshotError> {
        let data = page.data()?;
        if page.elements == 0 {
            return Err(page.damaged(10, "a branch page without elements"));
        }
        let branch = Self(page);
        let (mut end, mut last): (usize, Option<&[u8]>) = (data, None);
        for index in 0..branch.len() {
            let at = page.element(index);
            let (start, key) = branch.key_at(index).ok_or_else(|| page.damaged(at, outside(index)))?;
            if start < end {
                return Err(page.damaged(at, overlaps(index)));
            }
            if last.is_some_and(|last| last >= key) {
                return Err(page.damaged(at, unsorted(index)));
            }
            (end, last) = (start + key.len(), Some(key));
        }
        Ok(branch)
    }

    fn key_at(&self, index: usize) -> Option<(usize, &'a [u8])> {
        let at = self.0.element(index);
        let (pos, len) = (u32_at(self.0.bytes, at)?, u32_at(self.0.bytes, at + 4)?);
        self.0.slice(at, pos, usize::try_from(len).ok()?)
    }

    /// How many pages are below, at least 1.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.0.elements)
    }

    /// First key that may be on the page below; `None` behind the last one.
    #[must_use]
    pub fn key(&self, index: usize) -> Option<&'a [u8]> {
        if index < self.len() { self.key_at(index).map(|(_, key)| key) } else { None }
    }

    /// Number of the page below.
    #[must_use]
    pub fn child(&self, index: usize) -> u64 {
        u64_at(self.0.bytes, self.0.element(index) + 8).unwrap_or_default()
    }

    /// The page itself.
    #[must_use]
    pub fn page(&self) -> &Page<'a> {
        &self.0
    }
}

impl<'a> LeafPage<'a> {
    /// Checks every element. That they don't overlap bounds the work on a page by its size.
    pub(super) fn check(page: Page<'a>) -> Result<Self, SnapshotError> {
        let data = page.data()?;
        let mut leaf = Self { page, solid: None, ends: None, bucket: None };
        let (mut end, mut solid) = (data, true);
        let mut first: Option<(usize, &[u8])> = None;
        let mut last: Option<&[u8]> = None;
        for index in 0..leaf.len() {
            let at = page.element(index);
            let (start, entry) = leaf.read(index).ok_or_else(|| page.damaged(at, outside(index)))?;
            if start < end {
                return Err(page.damaged(at, overlaps(index)));
            }
            if last.is_some_and(|last| last >= entry.key) {
                return Err(page.damaged(at, unsorted(index)));
            }
            if entry.is_bucket && leaf.bucket.is_none() {
                leaf.bucket = Some(entry);
            }
            solid &= first.is_none() || start == end;
            first = first.or(Some((start, entry.key)));
            (end, last) = (start + entry.key.len() + entry.value.len(), Some(entry.key));
        }
        leaf.solid = first.filter(|_| solid).map(|(start, _)| (start, end));
        leaf.ends = first.map(|(_, key)| key).zip(last);
        Ok(leaf)
    }

    #[inline]
    fn read(&self, index: usize) -> Option<(usize, Entry<'a>)> {
        let at = self.page.element(index);
        let element: &[u8; HEADER] = self.page.bytes.get(at..)?.first_chunk()?;
        let word = |i: usize| u32_at(element, i).unwrap_or_default();
        let (key_len, value_len) = (word(8) as usize, word(12) as usize);
        let (start, both) = self.page.slice(at, word(4), key_len.checked_add(value_len)?)?;
        let (key, value) = both.split_at_checked(key_len)?;
        let is_bucket = word(0) & BUCKET_FLAG != 0;
        Some((start, Entry { page: self.page.id, at: self.page.at + start, key, value, is_bucket }))
    }

    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.page.elements)
    }

    /// Its elements, keys ascending.
    pub fn entries(self) -> impl DoubleEndedIterator<Item = Entry<'a>> {
        (0..self.len()).filter_map(move |index| self.read(index).map(|(_, entry)| entry))
    }

    /// Its first and its last key; `None` for a page without elements.
    #[must_use]
    pub fn ends(&self) -> Option<(&'a [u8], &'a [u8])> {
        self.ends
    }

    /// Its first element whose value is a bucket.
    #[must_use]
    pub fn bucket(&self) -> Option<Entry<'a>> {
        self.bucket
    }

    /// All keys and values, each key before its value, when nothing lies between them.
    #[must_use]
    pub fn solid(&self) -> Option<&'a [u8]> {
        let (start, end) = self.solid?;
        self.page.bytes.get(start..end)
    }

    /// The page itself.
    #[must_use]
    pub fn page(&self) -> &Page<'a> {
        &self.page
    }
}

impl Entry<'_> {
    /// Damage of this entry: it breaks a rule of etcd.
    #[must_use]
    pub fn wrong(&self, what: impl Into<String>) -> SnapshotError {
        SnapshotError { page: self.page, offset: self.at as u64, damage: Damage::Entry(what.into()) }
    }
}

fn damage_at(page: u64, at: usize, what: impl Into<String>) -> SnapshotError {
    SnapshotError { page, offset: at as u64, damage: Damage::Structure(what.into()) }
}

fn outside(index: usize) -> String {
    format!("element {index} reaches beyond its page")
}

fn overlaps(index: usize) -> String {
    format!("element {index} overlaps what comes before it")
}

fn unsorted(index: usize) -> String {
    format!("the key of element {index} does not come after the one before it")
}
