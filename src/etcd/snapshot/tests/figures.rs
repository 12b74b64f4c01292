//! What is told of a snapshot: figures, limits, warnings.

use super::*;
use crate::etcd::snapshot::facts::MAX_LISTED;

/// A key's change, attached to a lease.
fn leased(lease: u8) -> Vec<u8> {
    [b"\x0a\x02k", &[b'0' + lease][..], b"\x10\x02\x18\x02\x20\x01\x30", &[lease]].concat()
}

fn warned(inspection: &Inspection, words: &str) -> bool {
    inspection.warnings.iter().any(|warning| warning.contains(words))
}

#[test]
fn a_thousand_buckets_are_read_and_a_hundred_warnings_kept() {
    let mut sample = Sample::etcd();
    for n in sample.buckets.len()..1000 {
        sample.bucket(&format!("x{n}"));
    }
    let inspection = inspected(&sample);
    assert_eq!(inspection.buckets.len(), 1000);
    let unknown = inspection.warnings.iter().filter(|warning| warning.contains("the bucket `x"));
    assert_eq!(unknown.count(), 100);
    sample.bucket("x1000");
    assert!(error(&sample.bytes()).to_string().contains("more than 1000 buckets"));
}

#[test]
fn a_hundred_members_removed_members_and_alarms_are_listed() {
    let mut sample = Sample::etcd();
    for n in 0..100_u8 {
        sample.bucket("members").insert(vec![n], b"{}".to_vec());
        sample.bucket("members_removed").insert(vec![n], b"removed".to_vec());
        sample.bucket("alarm").insert(vec![0x08, n, 0x10, 0x02], Vec::new());
    }
    let counts = |sample: &Sample| {
        let seen = inspected(sample);
        let more = warned(&seen, "more than 100 members");
        (seen.members.len(), seen.removed_members.len(), seen.alarms.len(), more)
    };
    assert_eq!(counts(&sample), (100, 100, 100, false));
    sample.bucket("members").insert(vec![100], b"{}".to_vec());
    sample.bucket("members_removed").insert(vec![100], b"removed".to_vec());
    sample.bucket("alarm").insert(vec![0x08, 100, 0x10, 0x02], Vec::new());
    assert_eq!(counts(&sample), (100, 100, 100, true));
}

#[test]
fn the_cluster_version_is_read_among_other_entries_and_a_newer_one_is_a_warning() {
    let mut sample = Sample::etcd();
    sample.bucket("cluster").insert(b"aaa".to_vec(), b"1".to_vec());
    sample.bucket("cluster").insert(b"zzz".to_vec(), b"2".to_vec());
    assert_eq!(inspected(&sample).cluster_version, None);
    for (version, newer) in [("3.7.9", false), ("3.8.0", true)] {
        sample.bucket("cluster").insert(b"clusterVersion".to_vec(), version.as_bytes().to_vec());
        let inspection = inspected(&sample);
        assert_eq!(inspection.cluster_version.as_deref(), Some(version));
        assert_eq!(warned(&inspection, "its cluster version 3.8.0 is newer than 3.7"), newer, "{version}");
    }
}

#[test]
fn a_text_is_cut_at_256_bytes() {
    let mut sample = Sample::etcd();
    for (has, kept) in [(255, 255), (256, 256), (257, 256)] {
        sample.bucket("cluster").insert(b"clusterVersion".to_vec(), vec![b'3'; has]);
        assert_eq!(inspected(&sample).cluster_version.unwrap().len(), kept);
    }
}

#[test]
fn a_version_that_is_not_stored_has_a_reason_and_one_that_is_has_none() {
    let mut sample = Sample::etcd();
    assert!(inspected(&sample).status.version_reason.is_some());
    sample.bucket("meta").insert(b"storageVersion".to_vec(), b"3.6.0".to_vec());
    assert_eq!(inspected(&sample).status.version_reason, None);
}

#[test]
fn the_first_change_of_all_is_the_first_revision() {
    let mut sample = Sample::etcd();
    assert_eq!(inspected(&sample).current_revision, 0, "nothing was written");
    sample.change(2, "k", Some(b"v"));
    let inspection = inspected(&sample);
    assert_eq!((inspection.first_revision, inspection.current_revision), (Some(2), 2));
}

#[test]
fn what_lies_between_database_and_digest_is_a_warning() {
    let raw = sample().bytes();
    let words = "the database does not end where the digest begins";
    assert!(!warned(&inspect(&sealed(&raw)).unwrap(), words));
    assert!(!warned(&inspect(&raw).unwrap(), words));
    let longer = [&raw[..], &[0; PAGE]].concat();
    assert!(warned(&inspect(&sealed(&longer)).unwrap(), words));
}

#[test]
fn keys_are_counted_with_their_lease() {
    let mut sample = Sample::etcd();
    for (main, lease) in [(2, 0), (3, 1), (4, 2), (5, 9)] {
        sample.bucket("key").insert(revision(main, 0), leased(lease));
    }
    for (id, message) in [
        (1_u64, &b"\x08\x01\x10\x3c\x18\x01"[..]),
        (2, b"\x08\x02\x10\x3c"),
        (3, b"\x08\x03\x10\x3c\x18\x00"),
    ] {
        sample.bucket("lease").insert(id.to_be_bytes().to_vec(), message.to_vec());
    }
    let leases = inspected(&sample).leases;
    let rows: Vec<_> =
        leases.listed.iter().map(|row| (row.id.as_str(), row.remaining_ttl_seconds, row.keys)).collect();
    assert_eq!(rows, [("1", Some(1), 1), ("2", None, 1), ("3", None, 0)]);
    assert_eq!((leases.count, leases.keys_of_unlisted), (3, 1));
    let listed: Vec<_> = latest(&sample.bytes()).keys.into_iter().map(|row| row.lease).collect();
    assert_eq!(listed, [None, Some("1".to_owned()), Some("2".to_owned()), Some("9".to_owned())]);
}

#[test]
fn leases_beyond_those_listed_are_counted() {
    let mut sample = Sample::etcd();
    for id in 1..=MAX_LISTED as u64 + 1 {
        sample.bucket("lease").insert(id.to_be_bytes().to_vec(), b"\x10\x3c".to_vec());
    }
    let leases = inspect(&sample.bytes()).unwrap().leases;
    assert_eq!((leases.count, leases.listed.len()), (MAX_LISTED as u64 + 1, MAX_LISTED));
}

#[test]
fn a_limit_is_kept_and_all_that_match_are_counted() {
    let mut sample = Sample::etcd();
    for (main, key) in [(2, "c"), (3, "a"), (4, "e"), (5, "b"), (6, "d")] {
        sample.change(main, key, Some(b"v"));
    }
    let listed = |limit| {
        let listing =
            keys(&sample.bytes(), &Selection { limit: Some(limit), ..Selection::default() }).unwrap();
        assert_eq!(listing.matching, 5);
        listing.keys.iter().map(|row| row.key.to_string()).collect::<String>()
    };
    for (limit, expected) in [(0, ""), (1, "a"), (2, "ab"), (4, "abcd"), (5, "abcde"), (6, "abcde")] {
        assert_eq!(listed(limit), expected);
    }
}

#[test]
fn a_compaction_that_a_restore_only_marked_hides_nothing() {
    let mut sample = sample();
    sample.bucket("key").insert(revision(5121, 0), Vec::new());
    let asked = |sample: &Sample| {
        keys(&sample.bytes(), &Selection { revision: Some(121), ..Selection::default() }).map(|_| ())
    };
    for (scheduled, finished, expected) in [
        (5121, None, Ok(())),
        (5121, Some(121), Ok(())),
        (5121, Some(122), Err(ListingError::Compacted { asked: 121, oldest: 122 })),
        (121, None, Ok(())),
        (122, None, Err(ListingError::Compacted { asked: 121, oldest: 122 })),
        (5120, None, Err(ListingError::Compacted { asked: 121, oldest: 5120 })),
    ] {
        sample.bucket("meta").insert(b"scheduledCompactRev".to_vec(), revision(scheduled, 0));
        sample.bucket("meta").remove(&b"finishedCompactRev"[..]);
        if let Some(finished) = finished {
            sample.bucket("meta").insert(b"finishedCompactRev".to_vec(), revision(finished, 0));
        }
        assert_eq!(asked(&sample), expected, "begun {scheduled}, completed {finished:?}");
    }
}

#[test]
fn the_latest_empty_value_that_is_no_deletion_is_the_bump() {
    let mut sample = Sample::etcd();
    sample.change(2, "k", Some(b"v")).change(3, "gone", Some(b"v")).change(4, "gone", None);
    let deleted = [revision(5, 0), b"t".to_vec()].concat();
    sample.bucket("key").insert(deleted, Vec::new());
    let without = inspected(&sample);
    assert_eq!((without.bump, without.status.total_key, without.live_keys), (None, 1, 1));
    sample.bucket("key").insert(revision(20, 0), Vec::new());
    sample.change(25, "k", Some(b"w"));
    sample.bucket("key").insert(revision(30, 0), Vec::new());
    let seen = inspected(&sample);
    let bump = seen.bump.unwrap();
    assert_eq!((bump.revision, bump.from_revision), (30, Some(25)));
    assert_eq!((seen.status.total_key, seen.live_keys), (2, 1), "one mark counts as one key");
}

#[test]
fn objects_are_told_by_resource_namespace_and_form() {
    let mut sample = Sample::etcd();
    for (main, (key, value)) in (2..).zip([
        ("compact_rev_key", &b"12"[..]),
        ("/registry/pods/a/1", b"k8s\0x"),
        ("/registry/pods/a/2", b"{}"),
        ("/registry/pods/b/3", b"?"),
        ("/registry/secrets/a/4", b"k8s:enc:aescbc:v1:k1:y"),
        ("/registry/secrets/b/5", b"k8s:enc:aescbc:v1:k1:yy"),
        ("/registry/namespaces/a", b"k8s\0"),
    ]) {
        sample.change(main, key, Some(value));
    }
    let view = inspected(&sample).kubernetes;
    assert_eq!((view.objects, view.bytes, view.other_keys, view.beyond), (6, 57, 1, 0));
    let resources: Vec<_> = view
        .resources
        .iter()
        .map(|r| {
            let forms = [r.protobuf, r.json, r.encrypted, r.other];
            let namespaces: Vec<_> = r.namespaces.iter().map(|(name, n)| (name.as_str(), *n)).collect();
            (r.resource.as_str(), r.objects, r.bytes, forms, namespaces)
        })
        .collect();
    assert_eq!(
        resources,
        [
            ("namespaces", 1, 4, [1, 0, 0, 0], vec![("", 1)]),
            ("pods", 3, 8, [1, 1, 0, 1], vec![("a", 2), ("b", 1)]),
            ("secrets", 2, 45, [0, 0, 2, 0], vec![("a", 1), ("b", 1)]),
        ]
    );
    let namespaces: Vec<_> =
        view.namespaces.iter().map(|n| (n.namespace.as_str(), n.objects, n.bytes)).collect();
    assert_eq!(namespaces, [("a", 3, 29), ("b", 2, 24)]);
    let largest: Vec<_> = view.largest.iter().map(|row| row.value_bytes).collect();
    assert_eq!((largest, view.oldest.len()), (vec![23, 22, 5, 4, 2, 1], 6));
    let [of_key] = &view.encryption[..] else { panic!("{:?}", view.encryption) };
    assert_eq!((of_key.provider.as_str(), of_key.key.as_str()), ("aescbc", "k1"));
    assert_eq!(of_key.resources, BTreeMap::from([("secrets".to_owned(), 2)]));
}

#[test]
fn a_verification_says_how_much_it_looked_at() {
    let sample = sample();
    let raw = sample.bytes();
    let entries: usize = sample.buckets.values().map(BTreeMap::len).sum();
    let detail = format!("{entries} entries in 9 buckets on {} pages", raw.len() / PAGE);
    let checks = verify(&sealed(&raw), Raw::Refused).checks;
    assert_eq!(checks.iter().map(|check| check.name).collect::<Vec<_>>(), ["digest", "structure"]);
    assert_eq!(checks[1].detail, detail);
}

#[test]
fn authentication_is_on_when_its_own_entry_says_so() {
    let mut sample = Sample::etcd();
    sample.bucket("auth").insert(b"authRevision".to_vec(), vec![1]);
    assert!(!inspected(&sample).auth_enabled);
    for (value, on) in [(1, true), (0, false)] {
        sample.bucket("auth").insert(b"authEnabled".to_vec(), vec![value]);
        sample.bucket("auth").insert(b"authRevision".to_vec(), vec![1 - value]);
        assert_eq!(inspected(&sample).auth_enabled, on);
    }
}

#[test]
fn a_revision_may_have_63_bits() {
    let mut sample = Sample::etcd();
    let empty = sample.bytes();
    sample.change(i64::MAX, "k", Some(b"v"));
    let bytes = sample.bytes();
    assert_eq!((inspected(&sample).live_keys, latest(&bytes).matching), (1, 1));
    assert_eq!(diff(&empty, &bytes, 1).unwrap().added, 1);
}

#[test]
fn keys_are_listed_by_their_beginning_and_with_the_form_of_their_value() {
    let mut sample = Sample::etcd();
    for (main, key, value) in [
        (2, "/a/json", &b"{}"[..]),
        (3, "/a/protobuf", b"k8s\0x"),
        (4, "/a/sealed", b"k8s:enc:aescbc:v1:k1:x"),
        (5, "/a/text", b"x"),
        (6, "/b/json", b"{}"),
        (7, "b", b"/a"),
    ] {
        sample.change(main, key, Some(value));
    }
    let asked = Selection { prefix: b"/a".to_vec(), ..Selection::default() };
    let listing = keys(&sample.bytes(), &asked).unwrap();
    let rows: Vec<_> = listing.keys.iter().map(|row| (row.key.to_string(), row.form.as_str())).collect();
    let expected = [
        ("/a/json", "json"),
        ("/a/protobuf", "protobuf"),
        ("/a/sealed", "encrypted:aescbc:k1"),
        ("/a/text", "other"),
    ];
    assert_eq!((rows, listing.matching), (expected.map(|(key, form)| (key.to_owned(), form)).to_vec(), 4));
}
