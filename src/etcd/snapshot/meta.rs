//! The two meta pages, which say where everything begins.
//!
//! A meta follows the header of pages 0 and 1: magic, version, page size, flags (u32 each), root
//! page and its sequence, page of the list of free pages, count of pages, transaction, checksum
//! (u64 each). bbolt writes them in turns; the valid one of the later transaction counts.

use super::error::{Damage, SnapshotError};
use super::page::{HEADER, Pages, u32_at, u64_at};

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Bytes that the checksum covers.
const COVERED: usize = 56;
/// The list of free pages is not in the file, etcd's normal case.
const NO_FREELIST: u64 = u64::MAX;
/// Largest file that is read.
pub const MAX_BYTES: u64 = 64 << 30;

/// What the valid meta page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Bytes of a page: the operating system's where the file was made.
    pub page_size: usize,
    /// Root page of the bucket of buckets.
    pub root: u64,
    /// Page of the list of free pages, when it is in the file.
    pub freelist: Option<u64>,
    /// Pages in use or free, those of the metas included.
    pub pages: u64,
    /// Number of the transaction that wrote it.
    pub transaction: u64,
}

/// A database whose meta pages were read.
#[derive(Debug, Clone)]
pub struct Opened<'a> {
    /// Its pages.
    pub pages: Pages<'a>,
    /// What the meta page says.
    pub meta: Meta,
    /// What is wrong with the other meta page; bbolt puts up with it.
    pub other_meta: Option<SnapshotError>,
}

impl Opened<'_> {
    /// Bytes of the database, without a trailer or preallocated space: etcdutl's total size.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.meta.pages * self.meta.page_size as u64
    }
}

/// Reads both meta pages and makes sure that the file holds all pages.
///
/// # Errors
/// When it is no bbolt file of format 2, neither meta page is valid, or it is truncated.
pub fn open(bytes: &[u8]) -> Result<Opened<'_>, SnapshotError> {
    let has = bytes.len() as u64;
    if has > MAX_BYTES {
        return Err(SnapshotError { page: 0, offset: 0, damage: Damage::TooLarge });
    }
    let first = read(bytes, 0);
    let second = match &first {
        Ok(meta) => read(bytes, meta.page_size),
        // Where the second one is depends on the page size, which only a meta page tells.
        Err(_) => (9..=20)
            .map(|power| 1_usize << power)
            .find_map(|size| read(bytes, size).ok().filter(|meta| meta.page_size == size).map(Ok))
            .unwrap_or_else(|| read(bytes, 4096)),
    };
    let (meta, other_meta) = match (first, second) {
        (Ok(a), Ok(b)) if b.page_size != a.page_size => (
            a,
            Some(fault(
                1,
                a.page_size,
                format!("its page size is {}, the other's {}", b.page_size, a.page_size),
            )),
        ),
        (Ok(a), Ok(b)) => (if b.transaction > a.transaction { b } else { a }, None),
        (Ok(a), Err(b)) => (a, Some(fault(1, a.page_size, b.words()))),
        (Err(a), Ok(b)) => (b, Some(fault(0, 0, a.words()))),
        (Err(Flaw::Format(version)), Err(_)) => {
            return Err(SnapshotError {
                page: 0,
                offset: HEADER as u64 + 4,
                damage: Damage::Format(version),
            });
        }
        (Err(Flaw::Short), Err(_)) => {
            let damage = Damage::Truncated { has, needs: 2 * 4096 };
            return Err(SnapshotError { page: 0, offset: has, damage });
        }
        (Err(Flaw::Magic), Err(Flaw::Magic | Flaw::Short)) => {
            return Err(SnapshotError { page: 0, offset: HEADER as u64, damage: Damage::Foreign });
        }
        (Err(a), Err(b)) => {
            return Err(SnapshotError {
                page: 0,
                offset: HEADER as u64,
                damage: Damage::Metas(a.words(), b.words()),
            });
        }
    };
    let needs = meta.pages.saturating_mul(meta.page_size as u64);
    if needs > has {
        let page = has / meta.page_size as u64;
        return Err(SnapshotError { page, offset: has, damage: Damage::Truncated { has, needs } });
    }
    Ok(Opened { pages: Pages::new(bytes, meta.page_size, meta.pages), meta, other_meta })
}

fn fault(page: u64, at: usize, what: String) -> SnapshotError {
    SnapshotError { page, offset: (at + HEADER) as u64, damage: Damage::Structure(what) }
}

/// Why a meta page is none.
enum Flaw {
    Short,
    Magic,
    Format(u32),
    Other(String),
}

impl Flaw {
    fn words(self) -> String {
        match self {
            Self::Short => "it lies beyond the end of the file".to_owned(),
            Self::Magic => "bbolt's magic number is not there".to_owned(),
            Self::Format(version) => format!("it is of format {version}, and only 2 is known"),
            Self::Other(what) => what,
        }
    }
}

fn read(bytes: &[u8], page_at: usize) -> Result<Meta, Flaw> {
    let meta = page_at.checked_add(HEADER).and_then(|at| bytes.get(at..)).unwrap_or_default();
    if meta.len() < COVERED + 8 {
        return Err(Flaw::Short);
    }
    let word = |at| u32_at(meta, at).unwrap_or_default();
    let long = |at| u64_at(meta, at).unwrap_or_default();
    if word(0) != MAGIC {
        return Err(Flaw::Magic);
    }
    let (said, is) = (long(COVERED), checksum(&meta[..COVERED]));
    if said != is {
        return Err(Flaw::Other(format!("its checksum is {said:016x} and should be {is:016x}")));
    }
    if word(4) != VERSION {
        return Err(Flaw::Format(word(4)));
    }
    let page_size = word(8) as usize;
    if !page_size.is_power_of_two() || !(1 << 9..=1 << 20).contains(&page_size) {
        return Err(Flaw::Other(format!("its page size is {page_size}")));
    }
    let (root, freelist, pages) = (long(16), long(32), long(40));
    if root >= pages || root < 2 {
        return Err(Flaw::Other(format!("its root is page {root} of {pages}")));
    }
    let freelist = Some(freelist).filter(|&page| page != NO_FREELIST);
    Ok(Meta { page_size, root, freelist, pages, transaction: long(48) })
}

/// FNV-1a, 64 bits.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
