//! The upstream Kubernetes and etcd binaries of a cluster, from wherever they can be had.
//!
//! In this order: an explicit directory, the cache, the official release with
//! its checksum, `go build` from the modules that this binary carries along.

mod cache;
mod download;
mod error;
mod explicit;
mod go;
mod pins;

pub use cache::Source;
pub use error::{Attempt, BinariesError, DeadEnd};
pub use go::required_go;
pub(crate) use go::{at_least, installed_go};
pub use pins::{Product, Release, etcd_for, known_kubernetes, newest_pair, pinned_pairs};

use crate::plan::Versions;
use cache::Cache;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the binaries of one cluster lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinarySet {
    /// Holds `kube-apiserver`, `kube-controller-manager`, `kube-scheduler` and `kubectl`.
    pub dir_kubernetes: PathBuf,
    /// Holds `etcd`, `etcdctl` and `etcdutl`.
    pub dir_etcd: PathBuf,
}

impl BinarySet {
    /// Path of the binary `name`, such as `kube-apiserver` or `etcdutl`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        let dir =
            if Product::Etcd.binaries().contains(&name) { &self.dir_etcd } else { &self.dir_kubernetes };
        dir.join(name)
    }
}

/// Where official releases are downloaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSites {
    /// `<this>/<version>/bin/linux/<arch>/<binary>`, with `.sha256` beside it.
    pub kubernetes: String,
    /// `<this>/<version>/etcd-<version>-linux-<arch>.tar.gz`, with `SHA256SUMS` beside it.
    pub etcd: String,
}

impl Default for ReleaseSites {
    fn default() -> Self {
        Self {
            kubernetes: "https://dl.k8s.io".to_owned(),
            etcd: "https://github.com/etcd-io/etcd/releases/download".to_owned(),
        }
    }
}

/// Which ways to binaries are open.
#[derive(Debug, Clone)]
pub struct ProvideOptions {
    /// Holds `kubernetes-<version>/<binary>` and `etcd-<version>/<binary>`; goes before everything else.
    pub explicit_dir: Option<PathBuf>,
    /// The cache's root; binaries are kept under `toolchain/`.
    pub cache_dir: PathBuf,
    /// Nothing is downloaded from the release sites.
    pub offline: bool,
    /// What is in the cache is not used, and replaced.
    pub rebuild: bool,
    /// Where official releases are.
    pub sites: ReleaseSites,
    /// A release site that can't be connected to within this time is given up
    /// (name resolution, connection and TLS together).
    pub connect_timeout: Duration,
    /// The Go command.
    pub go: OsString,
}

impl ProvideOptions {
    /// Everything allowed, the official sites, `go` from PATH, 5 s to connect.
    #[must_use]
    pub fn new(cache_dir: PathBuf) -> Self {
        Self {
            explicit_dir: None,
            cache_dir,
            offline: false,
            rebuild: false,
            sites: ReleaseSites::default(),
            connect_timeout: Duration::from_secs(5),
            go: "go".into(),
        }
    }
}

/// Where the binaries of a release lie, and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The directory that holds them.
    pub dir: PathBuf,
    /// Where they came from.
    pub origin: Origin,
    /// Size of all of them.
    pub size_bytes: u64,
}

/// Where binaries came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Laid down by a person in the explicit directory.
    Explicit,
    /// From the cache, which knows how they got there.
    Cached(Source),
}

/// How carefully cached binaries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scrutiny {
    /// Size and modification time as recorded; the digest only where they differ.
    Quick,
    /// Every binary's digest is recomputed.
    Full,
}

/// Finds the binaries of `release` in the explicit directory or the cache.
/// Builds and downloads nothing.
///
/// # Errors
/// When the explicit directory is incomplete, or the cache's copy is damaged.
pub fn locate(
    release: &Release,
    options: &ProvideOptions,
    scrutiny: Scrutiny,
) -> Result<Option<Located>, BinariesError> {
    if let Some(root) = &options.explicit_dir
        && let Some(found) = explicit::find(root, release)?
    {
        return Ok(Some(found));
    }
    Cache::new(&options.cache_dir).find(release, scrutiny)
}

/// Makes the binaries of `versions` available and says where they are.
/// Blocks: for milliseconds when cached, for many minutes when built.
///
/// # Errors
/// [`BinariesError`]; its text lists every way that was tried and the ways out.
pub fn provide(
    versions: &Versions,
    options: &ProvideOptions,
    progress: &dyn Fn(&str),
) -> Result<BinarySet, BinariesError> {
    let kubernetes = Release::new(Product::Kubernetes, &versions.kubernetes);
    let etcd = Release::new(Product::Etcd, &versions.etcd);
    if etcd_for(&versions.kubernetes) != Some(versions.etcd.as_str()) {
        return unpinned(&kubernetes, &etcd, options);
    }
    Ok(BinarySet {
        dir_kubernetes: provide_release(&kubernetes, options, progress)?,
        dir_etcd: provide_release(&etcd, options, progress)?,
    })
}

/// Versions that no pair pins are only used from the explicit directory, where
/// a person has put them on purpose.
fn unpinned(
    kubernetes: &Release,
    etcd: &Release,
    options: &ProvideOptions,
) -> Result<BinarySet, BinariesError> {
    let find = |release| match &options.explicit_dir {
        Some(root) => explicit::find(root, release),
        None => Ok(None),
    };
    match (find(kubernetes)?, find(etcd)?) {
        (Some(k), Some(e)) => Ok(BinarySet { dir_kubernetes: k.dir, dir_etcd: e.dir }),
        _ => Err(BinariesError::UnknownPair {
            kubernetes: kubernetes.version.clone(),
            etcd: etcd.version.clone(),
        }),
    }
}

fn provide_release(
    release: &Release,
    options: &ProvideOptions,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, BinariesError> {
    let mut tried = Vec::new();
    match &options.explicit_dir {
        Some(root) => match explicit::find(root, release)? {
            Some(found) => return Ok(found.dir),
            None => {
                let why = format!("{} has no {}", root.display(), release.dir_name());
                progress(&format!("{release}: {why}; looking further"));
                tried.push(Attempt::new("explicit directory", why));
            }
        },
        None => tried.push(Attempt::new("explicit directory", "none given")),
    }
    let cache = Cache::new(&options.cache_dir);
    if let Some(found) = usable(&cache, release, options, progress)? {
        return Ok(found);
    }
    let _lock = cache.lock(release, &|| {
        progress(&format!("{release}: another process is providing it; waiting for that one"));
    })?;
    // The one that held the lock has most likely done the work.
    if let Some(found) = usable(&cache, release, options, progress)? {
        return Ok(found);
    }
    tried.push(Attempt::new("cache", cache.absence(release, options.rebuild)));
    fetch_or_build(&cache, release, options, progress, tried)
}

fn usable(
    cache: &Cache,
    release: &Release,
    options: &ProvideOptions,
    progress: &dyn Fn(&str),
) -> Result<Option<PathBuf>, BinariesError> {
    if options.rebuild {
        return Ok(None);
    }
    match cache.find(release, Scrutiny::Quick) {
        Ok(found) => Ok(found.map(|f| f.dir)),
        Err(BinariesError::Damaged { what, path }) => {
            progress(&format!("{release}: {what} in {}; providing it anew", path.display()));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

fn fetch_or_build(
    cache: &Cache,
    release: &Release,
    options: &ProvideOptions,
    progress: &dyn Fn(&str),
    mut tried: Vec<Attempt>,
) -> Result<PathBuf, BinariesError> {
    let stage = cache.stage(release)?;
    if options.offline {
        tried.push(Attempt::new("official release", "not allowed (offline)"));
    } else {
        match download::fetch(release, options, stage.path(), progress)? {
            Ok(source) => return cache.publish(stage, release, source),
            Err(why) => {
                progress(&format!("{release}: official release not usable: {why}; building it instead"));
                tried.push(Attempt::new("official release", why));
                stage.clear()?;
            }
        }
    }
    match go::build(release, options, stage.path(), progress) {
        Ok(source) => cache.publish(stage, release, source),
        Err(go::Unbuildable::Unavailable(why)) => {
            tried.push(Attempt::new("go build", why));
            Err(BinariesError::NothingLeft(Box::new(DeadEnd {
                release: release.to_string(),
                tried,
                layout: release.layout(),
                go: required_go(release).unwrap_or("the newest version").to_owned(),
                cache: options.cache_dir.join(cache::SUBDIR),
                offline: options.offline,
            })))
        }
        Err(go::Unbuildable::Failed(error)) => Err(error),
    }
}

/// Wraps an I/O error with what was tried.
fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> BinariesError {
    let what = format!("cannot {what} {}", path.display());
    move |source| BinariesError::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_looked_for_where_its_product_lies() {
        let set = BinarySet { dir_kubernetes: "/k".into(), dir_etcd: "/e".into() };
        assert_eq!(set.path("kube-apiserver"), Path::new("/k/kube-apiserver"));
        assert_eq!(set.path("kubectl"), Path::new("/k/kubectl"));
        assert_eq!(set.path("etcd"), Path::new("/e/etcd"));
        assert_eq!(set.path("etcdutl"), Path::new("/e/etcdutl"));
    }
}
