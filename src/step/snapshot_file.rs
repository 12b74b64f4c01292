//! Whether a snapshot file is fit to be restored: read when it is taken, and seen to be the same when it is needed.

use super::restore_spec::RestoreSnapshot;
use crate::digest::sha256_of_file;
use crate::etcd::snapshot::map::map;
use crate::etcd::snapshot::{Kind, Raw, is_newer, verify};
use crate::regular_file;
use std::path::Path;

/// What is in a file that passed every check that it can be put to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnapshotFile {
    /// Revision of the last entry.
    pub revision: u64,
    /// Keys that exist.
    pub keys: u64,
    /// It ends with a digest, which is right; a raw database has none.
    pub has_digest: bool,
    /// Version of the storage; none before etcd 3.6.
    storage_version: Option<String>,
    /// Size of the file.
    pub size_bytes: u64,
    /// SHA-256 of the whole file.
    pub sha256: String,
}

impl SnapshotFile {
    /// Reads all of it.
    ///
    /// # Errors
    /// When it can't be read, its digest is wrong, or its structure is damaged: with page and offset.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let unreadable = |error: std::io::Error| format!("the snapshot file can't be read: {error}");
        let (size_bytes, sha256) = sha256_of_file(path).map_err(unreadable)?;
        let bytes = regular_file::open(path).and_then(map).map_err(unreadable)?;
        let verification = verify(&bytes, Raw::Accepted);
        let failed = verification.checks.iter().filter(|check| !check.ok).map(|check| check.detail.clone());
        let failed: Vec<String> = failed.collect();
        match verification.inspection {
            Some(found) if failed.is_empty() => Ok(Self {
                revision: u64::try_from(found.status.revision).unwrap_or_default(),
                keys: found.live_keys,
                has_digest: found.kind == Kind::Snapshot,
                storage_version: found.status.version,
                size_bytes,
                sha256,
            }),
            _ => Err(format!("the snapshot is damaged: {}", failed.join("; "))),
        }
    }

    /// Whether the file called `name` is still the one that this was read from: then everything that was checked
    /// holds, and nobody who waits for a restore waits for it to be checked again.
    ///
    /// # Errors
    /// How it differs: what is damaged, or else that it is another one.
    pub(super) fn is_still(&self, path: &Path, name: &str) -> Result<(), String> {
        if sha256_of_file(path).is_ok_and(|(_, sha256)| sha256 == self.sha256) {
            return Ok(());
        }
        let other = Self::read(path)?;
        Err(format!(
            "the file is not the snapshot `{name}` that was taken: its SHA-256 is {}, that of the snapshot {}, its \
             revision {}, that of the snapshot {}\n  hint: something else wrote to the run's private files",
            other.sha256, self.sha256, other.revision, self.revision
        ))
    }

    /// Whether a restore may use it: it has a digest or need not have one, and is made for a tool no newer than this.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn fit(&self, step: &RestoreSnapshot, etcdutl: &str) -> Result<(), String> {
        if !self.has_digest && !step.skip_hash_check {
            return Err(format!(
                "the snapshot `{}` has no digest, so nothing shows that its values are what etcd wrote\n  hint: take it \
                 with `method: save`, or accept it with `skipHashCheck: true`",
                step.from
            ));
        }
        match &self.storage_version {
            Some(version) if is_newer(version, etcdutl) => Err(format!(
                "the snapshot's storage version is {version}, newer than etcdutl {etcdutl}, which would have to restore \
                 it\n  hint: restore it with the etcdutl of the version that it comes from"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/support/kept_snapshot.rs"]
mod kept_snapshot;

#[cfg(test)]
mod tests {
    use super::kept_snapshot::unpacked;
    use super::*;
    use std::fs;

    /// Does something with a file of these bytes.
    fn with<T>(bytes: &[u8], use_it: impl FnOnce(&Path) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("snapshot.db");
        fs::write(&path, bytes).unwrap();
        use_it(&path)
    }

    fn read(bytes: &[u8]) -> Result<SnapshotFile, String> {
        with(bytes, SnapshotFile::read)
    }

    fn step(skip_hash_check: bool) -> RestoreSnapshot {
        serde_json::from_value(serde_json::json!({"from": "backup", "skipHashCheck": skip_hash_check}))
            .unwrap()
    }

    #[test]
    fn a_snapshot_is_fit_for_the_tool_of_its_own_version() {
        for (name, version) in [("etcd-3.7.3.db", "v3.7.3"), ("etcd-3.5.21.db", "v3.5.21")] {
            let file = read(&unpacked(name)).unwrap();
            assert_eq!((file.revision, file.keys, file.has_digest), (12, 8, true), "{name}");
            file.fit(&step(false), version).unwrap();
            with(&unpacked(name), |path| file.is_still(path, "backup")).unwrap();
        }
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_place() {
        let good = unpacked("etcd-3.7.3.db");
        let mut value = good.clone();
        let last = good.len() - 40;
        value[last] ^= 1;
        let mut corrupt = good.clone();
        let root = u64::from_le_bytes(good[32..40].try_into().unwrap()) as usize * 4096;
        corrupt[root..root + 8].fill(0xaa);
        for (bytes, words) in [
            (&value[..], "the file was changed or damaged"),
            (&corrupt[..], &format!("page {}, offset {root}", root / 4096)),
            (&good[..30_000], "truncated"),
            (&[b'z'; 70_000], "no etcd database begins here"),
            (b"", "truncated"),
        ] {
            let taken = read(&good).unwrap();
            for refused in
                [read(bytes).unwrap_err(), with(bytes, |path| taken.is_still(path, "backup")).unwrap_err()]
            {
                assert!(refused.contains(words), "{words}: {refused}");
            }
        }
    }

    #[test]
    fn another_file_is_not_the_snapshot_that_was_taken() {
        let taken = read(&unpacked("etcd-3.5.21.db")).unwrap();
        let refused = with(&unpacked("etcd-3.7.3.db"), |path| taken.is_still(path, "backup")).unwrap_err();
        assert!(refused.contains("is not the snapshot `backup` that was taken"), "{refused}");
    }

    #[test]
    fn a_raw_database_is_restored_only_when_the_drill_says_so() {
        let snapshot = unpacked("etcd-3.7.3.db");
        let raw = read(&snapshot[..snapshot.len() - 32]).unwrap();
        assert!(!raw.has_digest);
        let refused = raw.fit(&step(false), "v3.7.3").unwrap_err();
        assert!(refused.contains("`skipHashCheck: true`"), "{refused}");
        raw.fit(&step(true), "v3.7.3").unwrap();
    }

    #[test]
    fn a_snapshot_newer_than_the_tool_is_refused() {
        let file = read(&unpacked("etcd-3.7.3.db")).unwrap();
        let refused = file.fit(&step(false), "v3.5.21").unwrap_err();
        assert!(refused.contains("storage version is 3.7.0, newer than etcdutl v3.5.21"), "{refused}");
    }
}
