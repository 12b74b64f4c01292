//! The reader on files made for the purpose, good and bad.

mod figures;
mod pages;

use super::sample::{Entries, PAGE, Sample, repair, revision};
use super::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A database with many pages: branches, overflow, inline buckets, deletions.
fn sample() -> Sample {
    let mut sample = Sample::etcd();
    for main in 2..120 {
        let key = format!("/registry/configmaps/shop/c-{:02}", main % 40);
        sample.change(main, &key, (main % 7 != 0).then_some(b"{}"));
    }
    sample.change(120, "/registry/pods/shop/large", Some(&[b'x'; 3 * PAGE]));
    sample.change(121, "/registry/secrets/shop/s", Some(b"k8s:enc:secretbox:v1:key2:opaque"));
    sample
}

/// Few small pages with something of everything, from which mutations reach far.
fn seed() -> Vec<u8> {
    let mut sample = Sample::etcd();
    for main in 2..20 {
        let value: &[u8] = if main % 2 == 0 { b"{}" } else { b"k8s\0" };
        sample.change(main, &format!("/registry/pods/a/{}", main % 7), (main % 5 != 0).then_some(value));
    }
    sample.change(20, "/registry/secrets/a/s", Some(b"k8s:enc:kms:v2:name:x"));
    sample.change(21, "/registry/x.io/y/large", Some(&[b'x'; PAGE]));
    sample.bucket("key").insert(revision(30, 0), Vec::new());
    sample.bucket("meta").insert(b"scheduledCompactRev".to_vec(), revision(30, 0));
    sample.bucket("lease").insert(7_u64.to_be_bytes().to_vec(), b"\x08\x07\x10\x3c".to_vec());
    sample.bucket("members").insert(b"1".to_vec(), br#"{"name":"m","peerURLs":["http://p"]}"#.to_vec());
    sample.free_pages = Some(1);
    sample.bytes()
}

#[test]
fn the_kept_seed_of_the_fuzz_target_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/snapshot/small-pages.db");
    if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
        std::fs::write(path, seed()).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == seed(), "QUAKEPROOF_BLESS=1 rewrites it");
    assert_eq!(inspect(&seed()).unwrap().bump.map(|bump| bump.revision), Some(30));
}

/// More leaf pages than are handed on at once, several times over, in two buckets.
#[test]
fn the_hash_of_many_pages_is_that_of_their_bytes_in_a_row() {
    let mut sample = Sample::etcd();
    for main in 2..2600 {
        sample.change(main, &format!("/registry/pods/a/{}", main % 1000), Some(&[b'x'; PAGE / 2]));
        sample.bucket("lease").insert(main.to_be_bytes().to_vec(), vec![b'y'; PAGE / 2]);
    }
    let mut hash = 0;
    for (name, entries) in &sample.buckets {
        hash = crc32c::crc32c_append(hash, name);
        for (key, value) in entries {
            hash = crc32c::crc32c_append(crc32c::crc32c_append(hash, key), value);
        }
    }
    let inspection = inspected(&sample);
    assert_eq!((inspection.status.hash, inspection.live_keys), (hash, 1000));
    let bytes = |bucket: &Entries| bucket.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    for bucket in &inspection.buckets {
        let written = &sample.buckets[bucket.name.as_bytes()];
        assert_eq!((bucket.entries, bucket.bytes), (written.len() as u64, bytes(written) as u64));
    }
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    [bytes, &Sha256::digest(bytes)[..]].concat()
}

fn inspected(sample: &Sample) -> Inspection {
    let bytes = sample.bytes();
    let inspection = inspect(&bytes).unwrap();
    assert_eq!(inspect_here(&bytes).unwrap(), inspection, "one thread or two");
    inspection
}

fn error(bytes: &[u8]) -> SnapshotError {
    let error = inspect(bytes).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("page {}, offset {}: ", error.page, error.offset)),
        "{error}"
    );
    assert!(error.to_string().contains("\n  hint: "), "{error}");
    error
}

fn latest(bytes: &[u8]) -> Listing {
    keys(bytes, &Selection::default()).unwrap()
}

/// Offset of the first page of this kind, from page 2 on.
fn page_of_kind(bytes: &[u8], kind: u8) -> usize {
    (2 * PAGE..bytes.len()).step_by(PAGE).find(|&at| bytes[at + 8] == kind && bytes[at + 9] == 0).unwrap()
}

#[test]
fn a_large_tree_is_read_whole() {
    let inspection = inspected(&sample());
    assert_eq!((inspection.status.revision, inspection.changes), (121, 120));
    assert_eq!(inspection.tombstones, (2..120).filter(|main| main % 7 == 0).count() as u64);
    let view = &inspection.kubernetes;
    assert_eq!(view.objects, inspection.live_keys);
    assert_eq!(view.largest[0].value_bytes, 3 * PAGE as u64);
    assert_eq!(
        (view.encryption[0].provider.as_str(), view.encryption[0].key.as_str()),
        ("secretbox", "key2")
    );
    assert_eq!(view.encryption[0].resources, BTreeMap::from([("secrets".to_owned(), 1)]));
}

#[test]
fn an_etcd_that_was_never_written_to_has_no_keys() {
    let inspection = inspected(&Sample::etcd());
    assert_eq!((inspection.status.revision, inspection.status.total_key, inspection.live_keys), (0, 0, 0));
    assert_eq!(inspection.first_revision, None);
}

#[test]
fn versions_are_told_by_what_they_store() {
    let mut sample = Sample::etcd();
    let schema = |sample: &Sample| inspected(sample).schema;
    assert_eq!(schema(&sample), "3.4 or earlier");
    sample.bucket("meta").insert(b"term".to_vec(), 3_u64.to_be_bytes().to_vec());
    assert_eq!(schema(&sample), "3.5");
    sample.bucket("meta").insert(b"storageVersion".to_vec(), b"3.6.0".to_vec());
    assert_eq!(schema(&sample), "3.6 or later");
    let inspection = inspected(&sample);
    assert_eq!(inspection.status.version.as_deref(), Some("3.6.0"));
    assert!(!inspection.warnings.iter().any(|w| w.contains("newer")), "{:?}", inspection.warnings);
    sample.bucket("meta").insert(b"storageVersion".to_vec(), b"3.10.0".to_vec());
    let warnings = inspected(&sample).warnings;
    assert!(warnings.iter().any(|w| w.contains("storage version 3.10.0 is newer than 3.7")), "{warnings:?}");
}

#[test]
fn a_bump_counts_as_a_key_for_etcdutl_and_raises_the_revision() {
    let mut sample = sample();
    let before = inspected(&sample);
    sample.bucket("key").insert(revision(5121, 0), Vec::new());
    sample.bucket("meta").insert(b"scheduledCompactRev".to_vec(), revision(5121, 0));
    let after = inspected(&sample);
    assert_eq!(after.status.total_key, before.status.total_key + 1);
    assert_eq!((after.live_keys, after.current_revision), (before.live_keys, 5121));
    let bump = after.bump.unwrap();
    assert_eq!((bump.revision, bump.from_revision, bump.marked_compacted), (5121, Some(121), true));
    sample.bucket("meta").remove(&b"scheduledCompactRev"[..]);
    assert!(!inspected(&sample).bump.unwrap().marked_compacted);
    let asked =
        |revision| keys(&sample.bytes(), &Selection { revision: Some(revision), ..Selection::default() });
    assert_eq!(asked(121).unwrap().matching, before.live_keys);
}

#[test]
fn a_compaction_outlives_the_last_key() {
    let mut sample = sample();
    sample.bucket("meta").insert(b"finishedCompactRev".to_vec(), revision(300, 0));
    let inspection = inspected(&sample);
    assert_eq!((inspection.status.revision, inspection.current_revision), (121, 300));
    let asked = |sample: &Sample, revision| {
        keys(&sample.bytes(), &Selection { revision: Some(revision), ..Selection::default() })
    };
    assert!(matches!(asked(&sample, 299), Err(ListingError::Compacted { oldest: 300, .. })));
    assert!(matches!(asked(&sample, 301), Err(ListingError::Future { current: 300, .. })));
    assert!(asked(&sample, 300).is_ok());
    sample.bucket("meta").insert(b"finishedCompactRev".to_vec(), revision(50, 0));
    sample.bucket("meta").insert(b"scheduledCompactRev".to_vec(), revision(60, 0));
    assert!(
        matches!(asked(&sample, 59), Err(ListingError::Compacted { oldest: 60, .. })),
        "it was under way"
    );
}

#[test]
fn members_leases_and_alarms_are_read() {
    let mut sample = Sample::etcd();
    let member = br#"{"id":1,"peerURLs":["http://p"],"name":"a\u001b","clientURLs":null,"isLearner":true}"#;
    sample.bucket("members").insert(b"1".to_vec(), member.to_vec());
    sample.bucket("members").insert(b"2".to_vec(), b"{".to_vec());
    sample.bucket("lease").insert(7_u64.to_be_bytes().to_vec(), b"\x08\x07\x10\x3c\x18\x05".to_vec());
    sample.bucket("alarm").insert(b"\x08\x0f\x10\x01".to_vec(), Vec::new());
    sample.bucket("auth").insert(b"authEnabled".to_vec(), vec![1]);
    sample.bucket("surprise");
    let seen = inspected(&sample);
    assert_eq!((seen.members.len(), seen.members[0].is_learner, seen.members[0].id.as_str()), (1, true, "1"));
    assert_eq!((seen.leases.count, seen.leases.listed[0].remaining_ttl_seconds), (1, Some(5)));
    assert_eq!((seen.alarms[0].member.as_str(), seen.alarms[0].kind.as_str()), ("f", "noSpace"));
    assert!(seen.auth_enabled);
    for words in ["a member can't be read", "the bucket `surprise`"] {
        assert!(seen.warnings.iter().any(|w| w.contains(words)), "{:?}", seen.warnings);
    }
}

#[test]
fn the_digest_decides_and_a_raw_database_needs_consent() {
    let raw = sample().bytes();
    let mut bytes = sealed(&raw);
    assert!(verify(&bytes, Raw::Refused).valid);
    assert_eq!(inspect(&bytes).unwrap().kind, Kind::Snapshot);
    let value = raw.len() - 40;
    bytes[value] ^= 1;
    let verification = verify(&bytes, Raw::Accepted);
    assert!(!verification.valid && verification.checks[0].detail.contains(&format!("offset {}", raw.len())));
    assert!(!verify(&raw, Raw::Refused).valid);
    assert!(verify(&raw, Raw::Accepted).valid);
    let odd = [&raw[..], b"tail"].concat();
    assert!(!verify(&odd, Raw::Accepted).valid);
    assert_eq!(inspect(&odd).unwrap().kind, Kind::Odd);
}

#[test]
fn what_is_no_snapshot_says_so() {
    assert!(matches!(error(b"").damage, Damage::Truncated { .. }));
    assert!(matches!(error(&[0; 100]).damage, Damage::Foreign));
    assert!(matches!(error(&[b'x'; 100_000]).damage, Damage::Foreign));
    let mut newer = sample().bytes();
    for page in [0, PAGE] {
        newer[page + 20] = 3;
    }
    repair(&mut newer);
    assert_eq!(error(&newer).damage, Damage::Format(3));
    let mut other = Sample::default();
    other.bucket("widgets");
    assert!(error(&other.bytes()).to_string().contains("not etcd's"));
}

#[test]
fn a_truncated_file_names_the_first_missing_page() {
    let bytes = sealed(&sample().bytes());
    for cut in [1, 32, 33, 40, PAGE, 3 * PAGE, bytes.len() - 2 * PAGE - 1] {
        let len = bytes.len() - cut;
        if cut <= 32 {
            assert!(!verify(&bytes[..len], Raw::Refused).valid, "{cut}");
            continue;
        }
        let error = error(&bytes[..len]);
        assert!(matches!(error.damage, Damage::Truncated { .. }), "{error}");
        assert_eq!((error.page, error.offset), ((len / PAGE) as u64, len as u64));
    }
}

#[test]
fn one_bad_meta_page_is_survived_and_two_are_not() {
    let good = sample().bytes();
    for page in [0, 1] {
        let mut bytes = good.clone();
        bytes[page * PAGE + 40] ^= 1;
        let warnings = inspect(&bytes).unwrap().warnings;
        let place = format!("page {page}, offset {}", page * PAGE + 16);
        assert!(warnings.iter().any(|w| w.contains(&place) && w.contains("checksum")), "{warnings:?}");
        bytes[(1 - page) * PAGE + 40] ^= 1;
        assert!(matches!(error(&bytes).damage, Damage::Metas(..)));
    }
}

#[test]
fn the_list_of_free_pages_must_fit() {
    let mut sample = sample();
    sample.free_pages = Some(3);
    let good = sample.bytes();
    assert!(inspect(&good).is_ok());
    let list = page_of_kind(&good, 0x10);
    let broken = |at: usize, value: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        error(&bytes).to_string()
    };
    let first = (list / PAGE) as u64 - 3;
    assert!(broken(list + 16, 2).contains("page 2, offset 1024: is in use and listed as free"));
    assert!(broken(list + 24, first).contains("listed as free twice"));
    assert!(broken(list + 24, 1 << 40).contains("none of the database"));
    let mut bytes = good.clone();
    bytes[list + 10] = 2;
    assert!(error(&bytes).to_string().contains("neither in use nor listed as free"));
    bytes[list + 10] = 0xff;
    assert!(error(&bytes).to_string().contains("has no room for 255 free pages"));
}

#[test]
fn a_cycle_or_a_shared_page_ends_the_walk() {
    let good = sample().bytes();
    let branch = page_of_kind(&good, 1);
    let id = (branch / PAGE) as u64;
    let second = u64::from_le_bytes(good[branch + 16 + 24..branch + 16 + 32].try_into().unwrap());
    for (child, words) in
        [(id, "more than once"), (second, ""), (0, "refers to page 0"), (1 << 50, "refers to page")]
    {
        let mut bytes = good.clone();
        bytes[branch + 24..branch + 32].copy_from_slice(&child.to_le_bytes());
        let text = error(&bytes).to_string();
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn elements_may_not_overlap_reach_out_or_be_unsorted() {
    let good = sample().bytes();
    let leaf = page_of_kind(&good, 2);
    let with = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[leaf + at..leaf + at + 4].copy_from_slice(&value.to_le_bytes());
        let error = error(&bytes);
        assert_eq!(error.page, (leaf / PAGE) as u64);
        error.to_string()
    };
    assert!(with(16 + 12, u32::MAX).contains("element 0 reaches beyond"));
    assert!(with(16 + 4, u32::MAX).contains("element 0 reaches beyond"));
    assert!(with(16 + 4, 16).contains("element 0 overlaps"));
    assert!(with(32 + 4, 64).contains("element 1"));
    let mut bytes = good.clone();
    bytes[leaf] ^= 0x40;
    assert!(error(&bytes).to_string().contains("its header says that it is page"));
    bytes = good;
    bytes[leaf + 12..leaf + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(error(&bytes).to_string().contains("beyond the database's end"));
}

#[test]
fn entries_that_etcd_never_wrote_are_named() {
    for (key, value, words) in [
        (b"short".to_vec(), Vec::new(), "is no revision"),
        ([&revision(9, 0)[..], b"x"].concat(), Vec::new(), "is no revision"),
        (vec![0xff; 8].into_iter().chain(*b"_________").collect(), Vec::new(), "beyond 63 bits"),
        (revision(9, 0), b"\x0a\xff".to_vec(), "is no key-value"),
    ] {
        let mut sample = Sample::etcd();
        sample.bucket("key").insert(key, value);
        let text = error(&sample.bytes()).to_string();
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_diff_tells_changes_from_forks() {
    let (mut before, mut after) = (Sample::etcd(), Sample::etcd());
    before.change(2, "same", Some(b"1")).change(3, "gone", Some(b"1")).change(4, "forked", Some(b"1"));
    before.change(5, "changed", Some(b"1"));
    after.change(2, "same", Some(b"1")).change(4, "forked", Some(b"2")).change(6, "changed", Some(b"1"));
    after.change(7, "new", Some(b"1"));
    let found = diff(&before.bytes(), &after.bytes(), 10).unwrap();
    assert_eq!((found.added, found.removed, found.changed, found.forked, found.same), (1, 1, 1, 1, 1));
    let rows: Vec<(String, Change)> =
        found.keys.iter().map(|row| (row.key.to_string(), row.change)).collect();
    let expected = [
        ("changed", Change::Changed),
        ("forked", Change::Forked),
        ("gone", Change::Removed),
        ("new", Change::Added),
    ];
    assert_eq!(rows, expected.map(|(key, change)| (key.to_owned(), change)));
    let short = diff(&before.bytes(), &after.bytes(), 1).unwrap();
    assert_eq!((short.keys.len(), short.beyond), (1, 3));
    assert!(matches!(diff(b"", &after.bytes(), 1), Err(Which::Before(_))));
    assert!(matches!(diff(&before.bytes(), b"", 1), Err(Which::After(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The state at every revision is that of a map to which the changes were made in order.
    #[test]
    fn keys_at_a_revision_are_what_a_map_would_hold(
        changes in prop::collection::vec(("[a-c]{1,2}", prop::option::of("[a-z]{0,300}")), 1..60),
        at in 0_usize..60,
    ) {
        let mut sample = Sample::etcd();
        for (main, (key, value)) in (2..).zip(&changes) {
            sample.change(main, key, value.as_ref().map(String::as_bytes));
        }
        let at = at.min(changes.len() - 1);
        let mut model = BTreeMap::new();
        for (main, (key, value)) in (2..).zip(&changes[..=at]) {
            match value {
                Some(value) => model.insert(key.clone(), (main, value.len() as u64)),
                None => model.remove(key),
            };
        }
        let asked = Selection { revision: Some(i64::try_from(at).unwrap() + 2), ..Selection::default() };
        let listing = keys(&sample.bytes(), &asked).unwrap();
        let listed: BTreeMap<_, _> =
            listing.keys.iter().map(|row| (row.key.to_string(), (row.mod_revision, row.value_bytes))).collect();
        prop_assert_eq!(listed, model);
        let limited = keys(&sample.bytes(), &Selection { limit: Some(2), ..asked }).unwrap();
        prop_assert_eq!(&limited.keys[..], &listing.keys[..limited.keys.len()]);
        prop_assert_eq!(limited.matching, listing.matching);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever is changed, the reader ends with an answer or an error that names the place.
    #[test]
    fn a_damaged_file_is_an_answer_or_an_error_with_its_place(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..9), 1..12),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut bytes = seed();
        for (at, value, len) in changes {
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + len);
            bytes[at..end].fill(value);
        }
        repair(&mut bytes);
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        match inspect_here(&bytes) {
            Ok(inspection) => prop_assert_eq!(latest(&bytes).matching, inspection.live_keys),
            Err(error) => {
                let place = format!("page {}, offset {}: ", error.page, error.offset);
                prop_assert!(error.to_string().starts_with(&place), "{}", error);
            }
        }
    }
}
