//! `quakeproof snapshot` on files that real etcds of every pinned version made, beside etcdutl of
//! every pinned version, and on files that nobody should rely on.

#[path = "support/kept_snapshot.rs"]
mod kept_snapshot;
#[path = "snapshot/store.rs"]
mod store;

use assert_cmd::Command;
use kept_snapshot::unpacked;
use proptest::prelude::*;
use quakeproof::etcd::snapshot::{Raw, Selection, inspect, inspect_here, keys, verify};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::LazyLock;
use std::time::Duration;
use store::{Store, pinned_etcds, restored_with_bump, status};

const SECRET: &str = "c2VjcmV0LWNhbmFyeS0x";

struct Called {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Called {
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

fn snapshot(args: &[&str], files: &[&Path]) -> Called {
    let mut command = Command::cargo_bin("quakeproof").unwrap();
    command.arg("snapshot").args(args).args(files).timeout(Duration::from_secs(120));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let called = Called { code: status.code(), out: text(stdout), err: text(stderr) };
    assert!(!called.err.contains("panicked"), "{args:?}: {}", called.err);
    assert!(!called.out.contains(SECRET) && !called.err.contains(SECRET), "{args:?} shows a value");
    called
}

/// Asserts that every etcdutl says of the file what quakeproof says.
fn agrees_with_every_etcdutl(file: &Path) {
    let inspection = inspect(&fs::read(file).unwrap()).unwrap();
    let said = &inspection.status;
    for (version, tools) in pinned_etcds() {
        let theirs = status(&tools, file);
        assert_eq!((said.hash, said.revision), (theirs.hash, theirs.revision), "{version}");
        assert_eq!(said.total_size_bytes, theirs.total_size, "{version}");
        let old = version.starts_with("v3.4.") || version.starts_with("v3.5.");
        let keys = if old { said.total_key_before36 } else { said.total_key };
        assert_eq!(keys, theirs.total_key, "{version}");
        if !old {
            assert_eq!(said.version.clone().unwrap_or_default(), theirs.version, "{version}");
        }
    }
}

/// Keys as etcd itself lists them.
fn listed_by_etcd(store: &Store, revision: i64) -> Vec<String> {
    let text = store.ctl(&["get", "", "--from-key", "--keys-only", "--rev", &revision.to_string()]);
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn written(store: &Store) {
    for n in 0..120 {
        store.ctl(&["put", &format!("/registry/configmaps/shop/c-{:02}", n % 45), &format!("{{\"n\":{n}}}")]);
    }
    for n in 0..10 {
        store.ctl(&["del", &format!("/registry/configmaps/shop/c-{n:02}")]);
    }
    store.ctl(&["put", "/registry/configmaps/shop/c-03", "back again"]);
    store.ctl(&["put", "/registry/secrets/shop/plain", &format!("{{\"data\":\"{SECRET}\"}}")]);
    store.ctl(&["put", "/registry/secrets/shop/sealed", &format!("k8s:enc:aescbc:v1:key-7:{SECRET}")]);
    store.ctl(&["put", "/registry/pods/shop/large", &"x".repeat(40_000)]);
    store.ctl(&["put", "a key\u{1b}[2J", "hostile"]);
    let lease = store.ctl(&["lease", "grant", "600"]);
    let lease = lease.split_whitespace().nth(1).unwrap();
    store.ctl(&["put", "--lease", lease, "/registry/events/shop/e", "{}"]);
}

#[test]
fn real_snapshots_of_every_version_read_as_etcdutl_reads_them() {
    for (version, tools) in pinned_etcds() {
        let store = Store::start(&tools);
        agrees_with_every_etcdutl(&store.snapshot("empty.db"));
        written(&store);
        let first = store.snapshot("first.db");
        agrees_with_every_etcdutl(&first);
        store.ctl(&["compact", "60"]);
        store.ctl(&["put", "/registry/configmaps/shop/c-20", "later"]);
        store.ctl(&["del", "/registry/configmaps/shop/c-21"]);
        store.ctl(&["put", "/registry/configmaps/shop/new", "{}"]);
        let second = store.snapshot("second.db");
        agrees_with_every_etcdutl(&second);

        let bytes = fs::read(&second).unwrap();
        let inspection = inspect(&bytes).unwrap();
        assert_eq!(inspection.current_revision, inspection.status.revision, "{version}");
        for revision in [60, 100, 125, inspection.current_revision] {
            let asked = Selection { revision: Some(revision), ..Selection::default() };
            let ours = keys(&bytes, &asked).unwrap().keys;
            let ours: Vec<String> = ours.iter().map(|row| row.key.to_string()).collect();
            assert_eq!(ours, listed_by_etcd(&store, revision), "{version} at revision {revision}");
        }
        assert!(keys(&bytes, &Selection { revision: Some(59), ..Selection::default() }).is_err());
        assert_eq!((inspection.leases.count, inspection.leases.listed[0].keys), (1, 1), "{version}");
        let ttl = inspection.leases.listed[0].ttl_seconds;
        assert_eq!((ttl, inspection.members[0].name.as_str()), (600, "m"), "{version}");
        assert!(verify(&bytes, Raw::Refused).valid, "{version}");

        let difference = snapshot(&["diff", "--json"], &[&first, &second]).json();
        let counts = ["added", "removed", "changed", "forked"].map(|name| difference[name].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 1, 0], "{version}");
        every_command_keeps_values_to_itself(&second);
        a_restored_database_has_its_bump(&store, &tools, &second);
        let open = snapshot(&["inspect"], &[&store.database()]);
        assert_eq!(open.code, Some(5), "{}", open.err);
        assert!(open.err.contains("etcdctl snapshot save"), "{}", open.err);
    }
}

fn every_command_keeps_values_to_itself(file: &Path) {
    for args in [&["inspect"][..], &["verify"], &["keys"], &["inspect", "--json"], &["verify", "--json"]] {
        let called = snapshot(args, &[file]);
        assert_eq!(called.code, Some(0), "{}", called.err);
        assert!(!called.out.contains('\u{1b}') && !called.err.contains('\u{1b}'), "{args:?}: {}", called.out);
    }
    let secrets = snapshot(&["keys", "--json", "--prefix", "/registry/secrets/"], &[file]).json();
    let forms: Vec<&str> =
        secrets["keys"].as_array().unwrap().iter().map(|row| row["form"].as_str().unwrap()).collect();
    assert_eq!(forms, ["json", "encrypted:aescbc:key-7"]);
    let shown = snapshot(&["inspect"], &[file]).out;
    assert!(shown.contains("aescbc key `key-7`: 1 secrets"), "{shown}");
}

fn a_restored_database_has_its_bump(
    store: &Store,
    tools: &quakeproof::provider::binaries::BinarySet,
    file: &Path,
) {
    let before = snapshot(&["inspect", "--json"], &[file]).json();
    let restored = restored_with_bump(tools, file, &store.dir().join("restored"), 1_000_000);
    agrees_with_every_etcdutl(&restored);
    let called = snapshot(&["inspect", "--json"], &[&restored]);
    assert!(called.err.contains("raw database"), "{}", called.err);
    let after = called.json();
    let revision = before["currentRevision"].as_i64().unwrap();
    assert_eq!(after["bump"]["fromRevision"].as_i64(), Some(revision));
    assert_eq!(after["currentRevision"].as_i64(), Some(revision + 1_000_000));
    assert_eq!(after["liveKeys"], before["liveKeys"]);
    assert_eq!(after["bump"]["markedCompacted"], Value::Bool(true));
    assert_eq!(snapshot(&["verify"], &[&restored]).code, Some(6));
    assert_eq!(snapshot(&["verify", "--raw"], &[&restored]).code, Some(0));
}

fn kept(dir: &Path, name: &str, as_name: &str) -> PathBuf {
    let path = dir.join(as_name);
    fs::write(&path, unpacked(name)).unwrap();
    path
}

static REAL: LazyLock<Vec<u8>> = LazyLock::new(|| unpacked("etcd-3.7.3.db"));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_real_snapshot_that_was_damaged_is_an_answer_or_an_error_with_its_place(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<[u8; 4]>()), 1..30),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut bytes = REAL.clone();
        for (at, value) in changes {
            // Most of the file is empty: the beginnings of pages are hit more often than by chance.
            let at = at.index(2 * bytes.len());
            let beginning = at % bytes.len() / 4096 * 4096 + at % 96;
            let at = if at < bytes.len() { at } else { beginning.min(bytes.len() - 1) };
            let end = bytes.len().min(at + 4);
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        if let Err(error) = inspect_here(&bytes) {
            let place = format!("page {}, offset {}: ", error.page, error.offset);
            prop_assert!(error.to_string().starts_with(&place), "{}", error);
        }
    }
}

#[test]
fn kept_snapshots_give_what_etcdutl_said_of_them() {
    let dir = tempfile::tempdir().unwrap();
    // File, then hash, revision, totalKey of etcdutl 3.7.3 and of 3.5.21.
    for (name, hash, revision, keys, keys_before) in [
        ("etcd-3.5.21.db", 3_747_365_975_u64, 12, 8, 20),
        ("etcd-3.5.21-bumped.raw", 3_827_393_944, 1012, 9, 21),
        ("etcd-3.7.3.db", 3_176_715_683, 12, 8, 21),
        ("etcd-3.7.3-bumped.raw", 1_662_125_301, 1012, 9, 22),
    ] {
        let status = &snapshot(&["inspect", "--json"], &[&kept(dir.path(), name, name)]).json()["status"];
        assert_eq!(status["hash"], hash, "{name}");
        assert_eq!(status["revision"], revision, "{name}");
        assert_eq!(status["totalKey"], keys, "{name}");
        assert_eq!(status["totalKeyBefore36"], keys_before, "{name}");
    }
}

#[test]
fn a_name_that_claims_another_revision_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    for (name, warned) in [("snap-rev-1234.db", true), ("snap-rev-12.db", false), ("snap.db", false)] {
        let called = snapshot(&["inspect"], &[&kept(dir.path(), "etcd-3.7.3.db", name)]);
        assert_eq!(called.code, Some(0));
        assert_eq!(
            called.err.contains("claims revision 1234, and the snapshot's is 12"),
            warned,
            "{}",
            called.err
        );
    }
}

#[test]
fn bad_files_have_their_exit_codes_and_places() {
    let dir = tempfile::tempdir().unwrap();
    let good = kept(dir.path(), "etcd-3.7.3.db", "good.db");
    let bytes = fs::read(&good).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let mut corrupt = bytes.clone();
    let root = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
    let offset = usize::try_from(root).unwrap() * 4096;
    corrupt[offset..offset + 8].fill(0xaa);
    let place = format!("page {root}, offset {offset}");
    for (path, words) in [
        (file("corrupt.db", &corrupt), place.as_str()),
        (file("truncated.db", &bytes[..30_000]), "page 7, offset 30000: the file is truncated"),
        (file("foreign.db", &[b'z'; 70_000]), "no etcd database begins here"),
        (file("empty.db", b""), "truncated"),
    ] {
        for command in ["inspect", "keys"] {
            let called = snapshot(&[command], &[&path]);
            assert_eq!(called.code, Some(3), "{}", called.err);
            assert!(called.err.contains(words) && called.out.is_empty(), "{command}: {}", called.err);
        }
        assert_eq!(snapshot(&["diff"], &[&good, &path]).code, Some(3));
        let called = snapshot(&["verify", "--json"], &[&path]);
        assert_eq!(called.code, Some(6), "{}", called.err);
        let verification: Value = serde_json::from_str(&called.out).unwrap();
        assert_eq!(verification["valid"], Value::Bool(false));
        assert!(verification["checks"][1]["detail"].as_str().unwrap().contains(words), "{}", called.out);
    }
    let mut changed = bytes.clone();
    let value = changed.windows(9).rposition(|window| window == b"xxxxxxxxx").unwrap();
    changed[value] = b'y';
    let changed = file("changed.db", &changed);
    assert_eq!(snapshot(&["inspect"], &[&changed]).code, Some(0), "only the digest tells");
    assert_eq!(snapshot(&["verify"], &[&changed]).code, Some(6));
    for (args, path) in [
        (&["verify"][..], dir.path().join("none.db")),
        (&["verify"], dir.path().to_owned()),
        (&["keys", "--revision", "4"], good.clone()),
        (&["keys", "--revision", "99"], good.clone()),
        (&["keys", "--revision", "0"], good.clone()),
        (&["keys", "--limit", "x"], good.clone()),
    ] {
        assert_eq!(snapshot(args, &[&path]).code, Some(3), "{args:?}");
    }
}
