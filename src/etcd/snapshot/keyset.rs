//! A set of keys that doesn't hold them: it says where each is in the file.
//!
//! Eight bytes per slot, so that a million keys take 16 MiB: 28 bits of a hash, which also place
//! the slot, and the 36 bits of an offset. A key's length stands before it in the file. Two keys
//! whose bits agree are compared.

use super::meta::MAX_BYTES;
use super::proto::sized_at;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

const OFFSET_BITS: u32 = MAX_BYTES.trailing_zeros();
const OFFSET: u64 = (1 << OFFSET_BITS) - 1;
const FREE: u64 = 0;

/// A set of keys of one file.
#[derive(Debug)]
pub struct KeySet<'a> {
    bytes: &'a [u8],
    slots: Vec<u64>,
    used: usize,
    // Keyed at random: nobody can make a file whose keys collide.
    hasher: RandomState,
}

/// The bits of a key's hash that a slot keeps.
#[derive(Debug, Clone, Copy)]
pub struct Tag(u64);

impl<'a> KeySet<'a> {
    /// An empty set of keys in `bytes`, at most [`MAX_BYTES`] long.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, slots: vec![FREE; 1 << 10], used: 0, hasher: RandomState::new() }
    }

    /// What is kept of a key's hash.
    #[inline]
    #[must_use]
    pub fn tag(&self, key: &[u8]) -> Tag {
        Tag(self.hasher.hash_one(key) >> OFFSET_BITS)
    }

    /// Brings the slots of some tags into the cache: all at once, while one [`KeySet::add`] after
    /// the other would wait for each.
    pub fn fetch(&self, tags: impl Iterator<Item = Tag>) {
        black_box(tags.fold(0, |all, tag| all | self.slots[self.place(tag)]));
    }

    /// Adds a key with its tag, whose length stands at `at`, which is not 0; false when it was there
    /// already.
    #[inline]
    pub fn add(&mut self, key: &[u8], tag: Tag, at: usize) -> bool {
        let mut index = self.place(tag);
        while self.slots[index] != FREE {
            let slot = self.slots[index];
            if slot >> OFFSET_BITS == tag.0 && self.key(slot) == Some(key) {
                return false;
            }
            index = (index + 1) & (self.slots.len() - 1);
        }
        self.slots[index] = tag.0 << OFFSET_BITS | at as u64 & OFFSET;
        self.used += 1;
        if self.used > self.slots.len() / 4 * 3 {
            self.grow();
        }
        true
    }

    fn key(&self, slot: u64) -> Option<&'a [u8]> {
        sized_at(self.bytes, usize::try_from(slot & OFFSET).ok()?)
    }

    /// By the tag's upper bits, as many as number the slots.
    fn place(&self, Tag(tag): Tag) -> usize {
        let bits = self.slots.len().trailing_zeros();
        usize::try_from(tag << OFFSET_BITS >> (u64::BITS - bits)).unwrap_or(0)
    }

    fn grow(&mut self) {
        let larger = vec![FREE; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        for slot in old.into_iter().filter(|&slot| slot != FREE) {
            let mut index = self.place(Tag(slot >> OFFSET_BITS));
            while self.slots[index] != FREE {
                index = (index + 1) & (self.slots.len() - 1);
            }
            self.slots[index] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Keys in a row, each with its length before it, and where each is.
    fn written(count: u16) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = vec![0];
        let places = (0..count).map(|n| {
            bytes.extend([2, (n >> 8) as u8, (n & 0xff) as u8]);
            bytes.len() - 3
        });
        let places = places.collect();
        (bytes, places)
    }

    #[test]
    fn a_quarter_of_the_slots_stays_free_and_no_more_are_added_than_that_takes() {
        let (bytes, places) = written(5000);
        let mut set = KeySet::new(&bytes);
        for (before, &at) in places.iter().enumerate() {
            let key = &bytes[at + 1..at + 3];
            assert!(set.add(key, set.tag(key), at));
            let (used, slots) = (before + 1, set.slots.len());
            assert!(used * 4 <= slots * 3, "{used} of {slots}");
            assert!(slots == 1 << 10 || used * 4 > slots / 2 * 3, "{used} of {slots}");
        }
        assert!(places.iter().all(|&at| {
            let key = &bytes[at + 1..at + 3];
            !set.add(key, set.tag(key), at)
        }));
    }

    #[test]
    fn keys_whose_hashes_agree_are_told_apart() {
        let (bytes, places) = written(1000);
        let mut set = KeySet::new(&bytes);
        for new in [true, false] {
            for &at in &places {
                assert_eq!(set.add(&bytes[at + 1..at + 3], Tag(5), at), new);
            }
        }
    }

    #[test]
    fn a_tag_s_upper_bits_say_its_place() {
        let set = KeySet::new(b"");
        let (len, half) = (set.slots.len(), 1 << (u64::BITS - OFFSET_BITS - 1));
        for (tag, place) in [(0, 0), (half - 1, len / 2 - 1), (half, len / 2), (2 * half - 1, len - 1)] {
            assert_eq!(set.place(Tag(tag)), place);
        }
        assert!((0_u16..64).all(|n| set.tag(&n.to_be_bytes()).0 < 2 * half));
        assert!((0_u16..64).any(|n| set.tag(&n.to_be_bytes()).0 >= half));
    }

    proptest! {
        // Each case grows the table several times over, which takes its time without optimisation.
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn it_is_a_set(keys in prop::collection::vec("[ab]{0,9}", 0..3000)) {
            let mut bytes = vec![0];
            let at: Vec<usize> = keys.iter().map(|key| {
                let at = bytes.len();
                bytes.push(u8::try_from(key.len()).unwrap());
                bytes.extend_from_slice(key.as_bytes());
                at
            }).collect();
            let (mut set, mut model) = (KeySet::new(&bytes), BTreeSet::new());
            for (key, at) in keys.iter().zip(at) {
                let tag = set.tag(key.as_bytes());
                prop_assert_eq!(set.add(key.as_bytes(), tag, at), model.insert(key));
            }
        }
    }
}
