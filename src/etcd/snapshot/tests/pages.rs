//! Where damage of pages, elements and metas is told to be, and what is none.

use super::*;
use crate::etcd::snapshot::tree::PageSet;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn with(good: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    put(&mut bytes, at, value);
    bytes
}

/// With both metas saying something else.
fn with_metas(good: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = with(good, at, value);
    put(&mut bytes, PAGE + at, value);
    repair(&mut bytes);
    bytes
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn long(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

fn place(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).position(|window| window == text).unwrap()
}

fn is_damaged_at(bytes: &[u8], at: usize, words: &str) {
    let error = error(bytes);
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!((error.page, error.offset), ((at / PAGE) as u64, at as u64), "{error}");
}

const META: usize = 16;
const META_PAGE_SIZE: usize = META + 8;
const META_ROOT: usize = META + 16;
const META_FREELIST: usize = META + 32;
const META_COUNT: usize = META + 40;
const META_TRANSACTION: usize = META + 48;

#[test]
fn a_meta_page_is_read_when_the_file_has_the_whole_of_it() {
    for has in [0, 79] {
        let damage = Damage::Truncated { has, needs: 2 * 4096 };
        let short = vec![0; usize::try_from(has).unwrap()];
        assert_eq!(error(&short), SnapshotError { page: 0, offset: has, damage });
    }
    let damage = Damage::Foreign;
    assert_eq!(error(&[0; 80]), SnapshotError { page: 0, offset: META as u64, damage });
}

#[test]
fn what_is_wrong_with_both_metas_is_told_with_where_the_first_begins() {
    let magic = 0xED0C_DAED_u32.to_le_bytes();
    let mut bytes = vec![0; 2 * 4096];
    put(&mut bytes, META, &magic);
    put(&mut bytes, 4096 + META, &magic);
    is_damaged_at(&bytes, META, "neither meta page is valid");
    let Damage::Metas(first, second) = error(&bytes).damage else { panic!() };
    assert!(first.contains("its checksum is") && second.contains("its checksum is"), "{first}, {second}");
    let newer = with_metas(&sample().bytes(), META + 4, &3_u32.to_le_bytes());
    is_damaged_at(&newer, META + 4, "bbolt format 3");
}

#[test]
fn a_page_has_512_bytes_to_1_mib_a_power_of_two() {
    let good = sample().bytes();
    for size in [256_u32, 768, 1 << 21] {
        let bytes = with_metas(&good, META_PAGE_SIZE, &size.to_le_bytes());
        is_damaged_at(&bytes, META, &format!("its page size is {size}"));
    }
    let largest = with_metas(&good, META_PAGE_SIZE, &(1_u32 << 20).to_le_bytes());
    assert!(matches!(error(&largest).damage, Damage::Truncated { .. }));
}

#[test]
fn the_root_is_a_page_of_the_database_behind_the_metas() {
    let good = sample().bytes();
    let count = (good.len() / PAGE) as u64;
    for root in [1, count] {
        let bytes = with_metas(&good, META_ROOT, &root.to_le_bytes());
        is_damaged_at(&bytes, META, &format!("its root is page {root} of {count}"));
    }
}

#[test]
fn the_meta_of_the_later_transaction_counts_and_of_equals_the_first() {
    // The list of free pages that the second one names is none.
    let mut bytes = with(&sample().bytes(), PAGE + META_FREELIST, &[0; 8]);
    for (transaction, first_counts) in [(7_u64, true), (8, true), (9, false)] {
        put(&mut bytes, PAGE + META_TRANSACTION, &transaction.to_le_bytes());
        repair(&mut bytes);
        match inspect(&bytes) {
            Ok(inspection) => assert_eq!((inspection.transaction, first_counts), (8, true)),
            Err(error) => assert!(!first_counts && error.to_string().contains("refers to page 0"), "{error}"),
        }
    }
}

#[test]
fn metas_that_disagree_on_the_page_size_are_a_warning() {
    let mut bytes = with(&sample().bytes(), PAGE + META_PAGE_SIZE, &1024_u32.to_le_bytes());
    repair(&mut bytes);
    let warnings = inspect(&bytes).unwrap().warnings;
    let words = "page 1, offset 528: its page size is 1024, the other's 512";
    assert!(warnings.iter().any(|warning| warning.contains(words)), "{warnings:?}");
}

#[test]
fn a_reference_to_the_page_after_the_last_is_damage_of_the_page_that_has_it() {
    let good = sample().bytes();
    let (branch, count) = (page_of_kind(&good, 1), good.len() / PAGE);
    let bytes = with(&good, branch + 24, &count.to_le_bytes());
    let words = format!("refers to page {count}, and pages 2 to {} are in use", count - 1);
    is_damaged_at(&bytes, branch, &words);
}

#[test]
fn space_behind_the_database_belongs_to_no_page() {
    let mut bytes = sample().bytes();
    let last = bytes.len() - PAGE;
    bytes.resize(bytes.len() + 4 * PAGE, 0);
    assert!(inspect(&bytes).is_ok());
    put(&mut bytes, last + 12, &1_u32.to_le_bytes());
    is_damaged_at(&bytes, last, "extends over 1 further pages, beyond the database's end");
}

#[test]
fn damage_of_a_header_is_told_where_the_wrong_field_is() {
    let mut sample = sample();
    sample.free_pages = Some(3);
    let good = sample.bytes();
    let [branch, leaf, list] = [1, 2, 0x10].map(|kind| page_of_kind(&good, kind));
    for (at, value, words) in [
        (leaf + 8, &[7, 0][..], "is of kind 0x7, which is neither branch nor leaf"),
        (list + 8, &[0x20, 0], "is of kind 0x20, and the list of free pages was expected"),
        (leaf + 10, &[0xff, 0xff], "has no room for 65535 elements"),
        (branch + 10, &[0, 0], "a branch page without elements"),
    ] {
        is_damaged_at(&with(&good, at, value), at, words);
    }
    let inline = place(&good, b"alarm") + b"alarm".len() + 16;
    is_damaged_at(&with(&good, inline + 8, &[1]), inline, "an inline bucket is no leaf page");
}

#[test]
fn an_entry_of_an_inline_bucket_is_told_where_its_key_is() {
    let mut sample = Sample::etcd();
    sample.bucket("key").insert(b"no-revision".to_vec(), Vec::new());
    let bytes = sample.bytes();
    is_damaged_at(&bytes, place(&bytes, b"no-revision"), "is no revision");
}

#[test]
fn elements_of_a_branch_may_not_overlap_reach_out_or_be_unsorted() {
    let good = sample().bytes();
    let branch = page_of_kind(&good, 1);
    let (first, second) = (branch + 16, branch + 32);
    is_damaged_at(&with(&good, first, &[0xff; 4]), first, "element 0 reaches beyond its page");
    let near = u32::try_from(word(&good, second) - 1).unwrap();
    is_damaged_at(&with(&good, second, &near.to_le_bytes()), second, "element 1 overlaps");
    let key = |element: usize| element + word(&good, element);
    let twice = with(&good, key(second), &good[key(first)..key(first) + 17]);
    is_damaged_at(&twice, second, "the key of element 1 does not come after");
}

#[test]
fn a_key_is_on_a_leaf_once() {
    let good = sample().bytes();
    let leaf = page_of_kind(&good, 2);
    let key = |element: usize| element + word(&good, element + 4);
    let (first, second) = (leaf + 16, leaf + 32);
    let twice = with(&good, key(second), &good[key(first)..key(first) + 17]);
    is_damaged_at(&twice, second, "the key of element 1 does not come after");
}

#[test]
fn a_page_has_the_keys_from_its_own_to_before_the_next_in_the_branch() {
    let good = sample().bytes();
    let first_page = |branch: usize| PAGE * long(&good, branch + 24);
    for kind_below in [1, 2] {
        let branch = (2 * PAGE..good.len())
            .step_by(PAGE)
            .find(|&at| good[at + 8] == 1 && good[first_page(at) + 8] == kind_below)
            .unwrap();
        let words = format!("has keys outside of the bounds that page {} sets", branch / PAGE);
        let element = |index: usize| branch + 16 + 16 * index;
        let key = |index: usize| element(index) + word(&good, element(index));
        let last = usize::from(good[branch + 10]) - 1;
        let first_is_early = with(&good, key(last) + 16, &[1]);
        is_damaged_at(&first_is_early, PAGE * long(&good, element(last) + 8), &words);
        let below = first_page(branch);
        let last_below = below + 16 * usize::from(good[below + 10]);
        let pos = if kind_below == 1 { last_below } else { last_below + 4 };
        let last_key = last_below + word(&good, pos);
        let next_has_it = with(&good, key(1), &good[last_key..last_key + 17]);
        is_damaged_at(&next_has_it, below, &words);
    }
}

/// The reader takes what follows the elements of a branch for keys, not for one more element.
#[test]
fn a_branch_may_begin_with_a_key_of_zeros() {
    let mut sample = Sample::etcd();
    for id in 0_u64..40 {
        sample.bucket("lease").insert(id.to_be_bytes().to_vec(), b"\x10\x3c".to_vec());
    }
    assert_eq!(inspected(&sample).leases.count, 40);
}

#[test]
fn bytes_between_elements_are_no_part_of_the_hash() {
    let mut two_elements = Sample::etcd();
    for id in [b"a", b"b"] {
        two_elements.bucket("authUsers").insert(id.to_vec(), vec![b'x'; PAGE / 8]);
    }
    for good in [sample().bytes(), two_elements.bytes()] {
        let leaf = page_of_kind(&good, 2);
        let element = leaf + 16 * usize::from(good[leaf + 10]);
        let (pos, len) = (word(&good, element + 4), word(&good, element + 8) + word(&good, element + 12));
        let moved = with(&good, element + 4, &u32::try_from(pos + 8).unwrap().to_le_bytes());
        let moved = with(&moved, element + pos + 8, &good[element + pos..element + pos + len]);
        assert_eq!(inspect(&moved).unwrap(), inspect(&good).unwrap());
    }
}

#[test]
fn an_entry_beside_the_buckets_is_named() {
    let mut sample = Sample::default();
    sample.bucket("key");
    let good = sample.bytes();
    let element = PAGE * long(&good, META_ROOT) + 16;
    let bytes = with(&good, element, &[0]);
    is_damaged_at(&bytes, place(&bytes, b"key"), "an entry beside the buckets");
}

#[test]
fn the_first_bucket_within_a_bucket_is_named() {
    let good = sample().bytes();
    let leaf = page_of_kind(&good, 2);
    let second = leaf + 32;
    let bytes = with(&with(&good, second, &[1]), leaf + 48, &[1]);
    is_damaged_at(&bytes, second + word(&good, second + 4), "a bucket within a bucket");
}

#[test]
fn a_tree_of_48_branches_is_read_and_a_deeper_one_is_not() {
    let mut sample = Sample::default();
    sample.bucket("key");
    let good = sample.bytes();
    let deep = |levels: usize| {
        let (mut bytes, mut root) = (good.clone(), long(&good, META_ROOT));
        for _ in 0..levels {
            let at = bytes.len();
            bytes.resize(at + PAGE, 0);
            put(&mut bytes, at, &(at / PAGE).to_le_bytes());
            put(&mut bytes, at + 8, &[1, 0, 1, 0]);
            put(&mut bytes, at + 16, &[16, 0, 0, 0, 3, 0, 0, 0]);
            put(&mut bytes, at + 24, &root.to_le_bytes());
            put(&mut bytes, at + 32, b"key");
            root = at / PAGE;
        }
        let bytes = with_metas(&bytes, META_ROOT, &root.to_le_bytes());
        with_metas(&bytes, META_COUNT, &(bytes.len() / PAGE).to_le_bytes())
    };
    assert!(inspect(&deep(48)).is_ok());
    is_damaged_at(&deep(49), good.len(), "the tree is deeper than 48 pages");
}

#[test]
fn a_list_of_free_pages_may_fill_its_page() {
    let mut sample = sample();
    sample.free_pages = Some(62);
    assert!(inspect(&sample.bytes()).is_ok());
}

#[test]
fn a_list_of_free_pages_has_pages_of_the_database_alone() {
    let mut sample = sample();
    sample.free_pages = Some(3);
    let good = sample.bytes();
    let (list, count) = (page_of_kind(&good, 0x10), good.len() / PAGE);
    for id in [1, count] {
        let bytes = with(&good, list + 24, &id.to_le_bytes());
        is_damaged_at(&bytes, list, &format!("lists page {id} as free, which is none of the database"));
    }
    let nowhere = with_metas(&good, META_FREELIST, &count.to_le_bytes());
    is_damaged_at(&nowhere, 0, &format!("refers to page {count}"));
}

#[test]
fn the_first_page_behind_the_metas_may_not_be_forgotten_either() {
    let mut sample = Sample::default();
    sample.bucket("key");
    sample.free_pages = Some(1);
    let mut bytes = sample.bytes();
    assert!(inspect(&bytes).is_ok());
    let root = long(&bytes, META_ROOT);
    assert_eq!(root, 2);
    let moved = bytes.len() / PAGE;
    bytes.extend_from_within(root * PAGE..(root + 1) * PAGE);
    put(&mut bytes, moved * PAGE, &moved.to_le_bytes());
    let bytes = with_metas(&bytes, META_ROOT, &moved.to_le_bytes());
    let bytes = with_metas(&bytes, META_COUNT, &(moved + 1).to_le_bytes());
    is_damaged_at(&bytes, root * PAGE, "is neither in use nor listed as free");
}

#[test]
fn a_count_of_free_pages_that_fits_no_header_is_the_first_number() {
    let mut sample = sample();
    sample.free_pages = Some(3);
    let good = sample.bytes();
    let list = page_of_kind(&good, 0x10);
    let counted = |count: u64| {
        let bytes = with(&good, list + 10, &[0xff, 0xff]);
        with(&bytes, list + 16, &[&count.to_le_bytes()[..], &good[list + 16..list + 40]].concat())
    };
    assert!(inspect(&counted(3)).is_ok());
    for (count, unlisted) in [(2, list - PAGE), (1, list - 2 * PAGE)] {
        is_damaged_at(&counted(count), unlisted, "is neither in use nor listed as free");
    }
    is_damaged_at(&counted(61), list, "lists page 0 as free");
    for count in [62, u64::MAX] {
        is_damaged_at(&counted(count), list + 16, &format!("has no room for {count} free pages"));
    }
}

#[test]
fn a_set_of_pages_takes_each_of_the_database_once() {
    let mut set = PageSet::new(65);
    for page in [0, 1, 63, 64] {
        assert!(!set.has(page));
        assert!(set.add(page) && set.has(page) && !set.add(page), "{page}");
    }
    assert!(!set.has(62) && !set.add(128) && !set.has(128));
}
