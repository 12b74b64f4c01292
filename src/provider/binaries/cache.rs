//! Binaries kept outside any checkout: `toolchain/<name>-<version>-<key>/`.
//!
//! An entry appears by rename, so it is complete or not there. Its
//! `manifest.json` tells where the binaries came from and their digests.

use super::error::BinariesError;
use super::go;
use super::pins::{Product, Release};
use super::{Located, Origin, Scrutiny, io};
use crate::digest::{sha256_hex, sha256_of_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Directory of the binaries under the cache's root.
pub(super) const SUBDIR: &str = "toolchain";
const MANIFEST: &str = "manifest.json";
const FORMAT_VERSION: u32 = 1;

/// How binaries came into the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Source {
    /// Built with Go from a module of `toolchain/`.
    Built {
        /// SHA-256 over the module's files, packages, flags and platform.
        recipe: String,
        /// As `go1.26.8`.
        go_version: String,
    },
    /// Downloaded from the official release site.
    Released {
        /// From where.
        url: String,
    },
}

impl Source {
    /// Tells entries of one release apart: what went into them.
    fn key(&self) -> String {
        let ingredients = match self {
            Source::Built { recipe, go_version } => format!("{recipe}{go_version}"),
            Source::Released { url } => url.clone(),
        };
        sha256_hex(ingredients.as_bytes())[..16].to_owned()
    }

    /// Whether binaries of this source are what this build of quakeproof would provide.
    /// The Go version that they were built with may be another than today's, and
    /// Go may be gone: neither is worth a build of many minutes.
    fn fits(&self, release: &Release) -> bool {
        match self {
            Source::Built { recipe, .. } => go::recipe(release).is_some_and(|r| r.digest == *recipe),
            Source::Released { .. } => true,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    format_version: u32,
    product: String,
    version: String,
    os: String,
    arch: String,
    source: Source,
    binaries: BTreeMap<String, Fingerprint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fingerprint {
    sha256: String,
    size_bytes: u64,
    /// Modification time, nanoseconds since 1970. Differs in a copied cache; then the digest decides.
    modified_ns: u64,
}

impl Fingerprint {
    fn take(path: &Path) -> Result<Self, BinariesError> {
        let (_, modified_ns) = stamp(path)?;
        let (size_bytes, sha256) = sha256_of_file(path).map_err(io("read", path))?;
        Ok(Self { sha256, size_bytes, modified_ns })
    }
}

/// The cache of binaries.
pub(super) struct Cache {
    dir: PathBuf,
}

impl Cache {
    pub fn new(cache_dir: &Path) -> Self {
        Self { dir: cache_dir.join(SUBDIR) }
    }

    /// The newest entry for `release` that fits.
    ///
    /// # Errors
    /// [`BinariesError::Damaged`] when there are entries but none is whole.
    pub fn find(&self, release: &Release, scrutiny: Scrutiny) -> Result<Option<Located>, BinariesError> {
        let mut damage = None;
        for dir in self.entries(release)? {
            match Entry::open(&dir, release) {
                Ok(Some(entry)) => match entry.check(release.product, scrutiny) {
                    Ok(located) => return Ok(Some(located)),
                    Err(error @ BinariesError::Damaged { .. }) => damage = Some(error),
                    Err(error) => return Err(error),
                },
                Ok(None) => {}
                Err(error) => damage = Some(error),
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// Why [`Cache::find`] gave nothing, in words.
    pub fn absence(&self, release: &Release, rebuild: bool) -> String {
        if rebuild {
            return "not wanted (rebuild)".to_owned();
        }
        format!("{} has no usable {}", self.dir.display(), release.dir_name())
    }

    /// Directories that may hold `release`, the one written last first.
    fn entries(&self, release: &Release) -> Result<Vec<PathBuf>, BinariesError> {
        let listing = match fs::read_dir(&self.dir) {
            Ok(listing) => listing,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("read", &self.dir)(error)),
        };
        let prefix = format!("{}-", release.dir_name());
        let mut found: Vec<_> = listing
            .filter_map(Result::ok)
            .filter(|e| e.file_name().to_string_lossy().starts_with(&prefix))
            .map(|e| e.path())
            .filter(|p| p.join(MANIFEST).is_file())
            .map(|p| (stamp(&p.join(MANIFEST)).map_or(0, |(_, modified)| modified), p))
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        Ok(found.into_iter().map(|(_, p)| p).collect())
    }

    /// Waits until no other process provides `release`; calls `waiting` when that takes more than a look.
    pub fn lock(&self, release: &Release, waiting: &dyn Fn()) -> Result<File, BinariesError> {
        fs::create_dir_all(&self.dir).map_err(io("create", &self.dir))?;
        let path = self.dir.join(format!(".lock-{}", release.dir_name()));
        let file = File::create(&path).map_err(io("create", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(io("lock", &path))?;
            }
            Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
        }
        Ok(file)
    }

    /// An empty directory for a new entry, on the same file system. The caller holds the lock,
    /// so what is there is the rest of a process that died.
    pub fn stage(&self, release: &Release) -> Result<Stage, BinariesError> {
        let stage = Stage { dir: self.dir.join(format!(".stage-{}", release.dir_name())) };
        stage.clear()?;
        Ok(stage)
    }

    /// Turns a stage into an entry, replacing one with the same key.
    pub fn publish(&self, stage: Stage, release: &Release, source: Source) -> Result<PathBuf, BinariesError> {
        let mut binaries = BTreeMap::new();
        for name in release.product.binaries() {
            let path = stage.dir.join(name);
            File::open(&path).and_then(|f| f.sync_all()).map_err(io("sync", &path))?;
            binaries.insert((*name).to_owned(), Fingerprint::take(&path)?);
        }
        let entry = self.dir.join(format!("{}-{}", release.dir_name(), source.key()));
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            product: release.product.name().to_owned(),
            version: release.version.clone(),
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            source,
            binaries,
        };
        write_manifest(&stage.dir, &manifest)?;
        if entry.exists() {
            fs::remove_dir_all(&entry).map_err(io("remove", &entry))?;
        }
        fs::rename(&stage.dir, &entry).map_err(io("publish", &entry))?;
        Ok(entry)
    }
}

/// A directory that becomes an entry, or nothing.
pub(super) struct Stage {
    dir: PathBuf,
}

impl Stage {
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Throws away what is in it.
    pub fn clear(&self) -> Result<(), BinariesError> {
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir).map_err(io("remove", &self.dir))?;
        }
        fs::create_dir_all(&self.dir).map_err(io("create", &self.dir))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Gone after a publish; what a failure leaves is swept by the next stage as well.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

struct Entry {
    dir: PathBuf,
    manifest: Manifest,
}

impl Entry {
    /// `None` when the entry is for another platform, recipe or format.
    fn open(dir: &Path, release: &Release) -> Result<Option<Self>, BinariesError> {
        let path = dir.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(io("read", &path))?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| BinariesError::Damaged {
            what: format!("{MANIFEST} is unreadable ({error})"),
            path: dir.to_owned(),
        })?;
        let fits = manifest.format_version == FORMAT_VERSION
            && manifest.version == release.version
            && manifest.os == std::env::consts::OS
            && manifest.arch == std::env::consts::ARCH
            && manifest.source.fits(release);
        Ok(fits.then(|| Self { dir: dir.to_owned(), manifest }))
    }

    fn check(mut self, product: Product, scrutiny: Scrutiny) -> Result<Located, BinariesError> {
        let mut restamped = false;
        let mut size_bytes = 0;
        for name in product.binaries() {
            let path = self.dir.join(name);
            let damaged = |how: String| BinariesError::Damaged {
                what: format!("`{name}` {how}"),
                path: self.dir.clone(),
            };
            let recorded =
                self.manifest.binaries.get_mut(*name).ok_or_else(|| damaged("is not recorded".to_owned()))?;
            let (size, modified_ns) = stamp(&path).map_err(|e| damaged(format!("is not there ({e})")))?;
            if size != recorded.size_bytes {
                return Err(damaged(format!("has {size} bytes instead of {}", recorded.size_bytes)));
            }
            if scrutiny == Scrutiny::Full || modified_ns != recorded.modified_ns {
                let (_, actual) = sha256_of_file(&path).map_err(io("read", &path))?;
                if actual != recorded.sha256 {
                    return Err(damaged(format!("has SHA-256 {actual} instead of {}", recorded.sha256)));
                }
                restamped |= modified_ns != recorded.modified_ns;
                recorded.modified_ns = modified_ns;
            }
            size_bytes += size;
        }
        if restamped {
            // Saves the next digests in a copied cache; a cache that can't be written to works without.
            let _ = write_manifest(&self.dir, &self.manifest);
        }
        Ok(Located { dir: self.dir, origin: Origin::Cached(self.manifest.source), size_bytes })
    }
}

/// By rename, so that a reader never sees half of it.
fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), BinariesError> {
    let path = dir.join(MANIFEST);
    let new = dir.join(format!(".{MANIFEST}.{}", std::process::id()));
    let text = serde_json::to_string_pretty(manifest).map_err(|e| BinariesError::Io {
        what: format!("cannot write {}", path.display()),
        source: e.into(),
    })?;
    fs::write(&new, text + "\n").map_err(io("write", &new))?;
    fs::rename(&new, &path).map_err(io("write", &path))
}

/// Size in bytes and modification time in nanoseconds since 1970.
fn stamp(path: &Path) -> Result<(u64, u64), BinariesError> {
    let metadata = path.metadata().map_err(io("look at", path))?;
    let modified = metadata.modified().map_err(io("look at", path))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((metadata.len(), u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)))
}
