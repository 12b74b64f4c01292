//! Writes small bbolt files as etcd would, and as it never would, for tests.

use super::meta::checksum;
use std::collections::BTreeMap;

/// Bytes of a page: smaller than any that etcd has, so that small files have many.
pub(super) const PAGE: usize = 512;

/// Entries of one bucket.
pub(super) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Buckets of a database to be written.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) buckets: BTreeMap<Vec<u8>, Entries>,
    /// Write the list of free pages, with so many free ones before it.
    pub(super) free_pages: Option<u64>,
}

const LEAF: u16 = 2;
const BRANCH: u16 = 1;

impl Sample {
    /// A database with the buckets that every etcd has.
    pub(super) fn etcd() -> Self {
        let mut sample = Self::default();
        for name in ["key", "meta", "lease", "alarm", "auth", "authRoles", "authUsers", "cluster", "members"]
        {
            sample.bucket(name);
        }
        sample.bucket("meta").insert(b"consistent_index".to_vec(), 9_u64.to_be_bytes().to_vec());
        sample
    }

    pub(super) fn bucket(&mut self, name: &str) -> &mut Entries {
        self.buckets.entry(name.as_bytes().to_vec()).or_default()
    }

    /// Adds a change of a key; a value of `None` is a deletion.
    pub(super) fn change(&mut self, main: i64, key: &str, value: Option<&[u8]>) -> &mut Self {
        let mut at = revision(main, 0);
        let mut message = field(1, key.as_bytes());
        match value {
            None => at.push(b't'),
            Some(value) => {
                message.extend([0x10, 1, 0x18]);
                varint(&mut message, main.cast_unsigned());
                message.extend([0x20, 1]);
                message.extend(field(5, value));
            }
        }
        self.bucket("key").insert(at, message);
        self
    }

    /// The file's bytes, without a digest.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut file = File { pages: vec![0; 2 * PAGE] };
        let top: Entries =
            self.buckets.iter().map(|(name, entries)| (name.clone(), file.bucket(entries))).collect();
        let root = file.tree(&top, true);
        let list = self.free_pages.map(|free| {
            let first = file.next();
            file.pages.resize(file.pages.len() + usize::try_from(free).unwrap() * PAGE, 0xEE);
            let numbers: Vec<u8> = (first..first + free).flat_map(u64::to_le_bytes).collect();
            file.page(0x10, u16::try_from(free).unwrap(), &numbers)
        });
        file.metas(root, list.unwrap_or(u64::MAX));
        file.pages
    }
}

/// A revision as the key bucket has it.
pub(super) fn revision(main: i64, sub: i64) -> Vec<u8> {
    [&main.to_be_bytes()[..], b"_", &sub.to_be_bytes()].concat()
}

/// Makes the checksums of both metas right again.
pub(super) fn repair(bytes: &mut [u8]) {
    for page in [0, PAGE] {
        let meta = &mut bytes[page + 16..page + 80];
        let sum = checksum(&meta[..56]);
        meta[56..].copy_from_slice(&sum.to_le_bytes());
    }
}

struct File {
    pages: Vec<u8>,
}

impl File {
    fn next(&self) -> u64 {
        (self.pages.len() / PAGE) as u64
    }

    fn page(&mut self, kind: u16, count: u16, body: &[u8]) -> u64 {
        let id = self.next();
        let overflow = u32::try_from((body.len() + 16).div_ceil(PAGE) - 1).unwrap();
        self.pages.extend(header(id, kind, count, overflow));
        self.pages.extend(body);
        self.pages.resize(self.pages.len().next_multiple_of(PAGE), 0);
        id
    }

    /// A bucket's value: inline when it is small, as bbolt does it.
    fn bucket(&mut self, entries: &Entries) -> Vec<u8> {
        let size: usize = entries.iter().map(|(k, v)| 16 + k.len() + v.len()).sum();
        if size < PAGE / 4 {
            let inline =
                [header(0, LEAF, u16::try_from(entries.len()).unwrap(), 0), leaf(entries.iter(), false)];
            return [vec![0; 16], inline.concat()].concat();
        }
        let root = self.tree(entries, false);
        [root.to_le_bytes(), [0; 8]].concat()
    }

    fn tree(&mut self, entries: &Entries, buckets: bool) -> u64 {
        let (mut leaves, mut group, mut size) = (Vec::new(), Vec::new(), 0);
        for entry in entries {
            size += 16 + entry.0.len() + entry.1.len();
            group.push(entry);
            if size > PAGE / 2 {
                leaves.push(self.leaf_page(&std::mem::take(&mut group), buckets));
                size = 0;
            }
        }
        if !group.is_empty() || leaves.is_empty() {
            leaves.push(self.leaf_page(&group, buckets));
        }
        while leaves.len() > 1 {
            leaves = leaves.chunks(4).map(|below| self.branch_page(below)).collect();
        }
        leaves[0].1
    }

    fn leaf_page(&mut self, group: &[(&Vec<u8>, &Vec<u8>)], buckets: bool) -> (Vec<u8>, u64) {
        let body = leaf(group.iter().copied(), buckets);
        let first = group.first().map(|(key, _)| (*key).clone()).unwrap_or_default();
        (first, self.page(LEAF, u16::try_from(group.len()).unwrap(), &body))
    }

    fn branch_page(&mut self, below: &[(Vec<u8>, u64)]) -> (Vec<u8>, u64) {
        let (mut elements, mut data) = (Vec::new(), Vec::new());
        for (index, (key, id)) in below.iter().enumerate() {
            let pos = (below.len() - index) * 16 + data.len();
            elements.extend(u32::try_from(pos).unwrap().to_le_bytes());
            elements.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
            elements.extend(id.to_le_bytes());
            data.extend(key);
        }
        let id = self.page(BRANCH, u16::try_from(below.len()).unwrap(), &[elements, data].concat());
        (below[0].0.clone(), id)
    }

    fn metas(&mut self, root: u64, freelist: u64) {
        let count = self.next();
        for (page, transaction) in [(0, 8_u64), (1, 7)] {
            let mut meta = Vec::new();
            meta.extend(0xED0C_DAED_u32.to_le_bytes());
            meta.extend(2_u32.to_le_bytes());
            meta.extend(u32::try_from(PAGE).unwrap().to_le_bytes());
            meta.extend([0; 4]);
            for number in [root, 0, freelist, count, transaction] {
                meta.extend(number.to_le_bytes());
            }
            meta.extend(checksum(&meta).to_le_bytes());
            let at = page * PAGE;
            self.pages[at..at + 16].copy_from_slice(&header(page as u64, 4, 0, 0));
            self.pages[at + 16..at + 16 + meta.len()].copy_from_slice(&meta);
        }
    }
}

fn header(id: u64, kind: u16, count: u16, overflow: u32) -> Vec<u8> {
    [&id.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes(), &overflow.to_le_bytes()].concat()
}

fn leaf<'a>(entries: impl ExactSizeIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>, buckets: bool) -> Vec<u8> {
    let (mut elements, mut data) = (Vec::new(), Vec::new());
    let count = entries.len();
    for (index, (key, value)) in entries.enumerate() {
        let pos = (count - index) * 16 + data.len();
        for number in [usize::from(buckets), pos, key.len(), value.len()] {
            elements.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        data.extend(key);
        data.extend(value);
    }
    [elements, data].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(&mut out, bytes.len() as u64);
    out.extend(bytes);
    out
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
