//! What the binaries are: their digests, and the versions they report of themselves.

use super::layout::ClusterSpec;
use crate::digest::sha256_of_file;
use futures::future::try_join_all;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::task::spawn_blocking;

/// The binaries of a cluster.
pub struct Binaries {
    /// SHA-256 by name, tools included.
    pub digests: BTreeMap<String, String>,
    /// First line of `--version` that names one, by path; components only.
    pub versions: BTreeMap<PathBuf, String>,
}

/// Reads every binary that the cluster may run.
///
/// # Errors
/// When one can't be read or executed.
pub async fn of_binaries(spec: &ClusterSpec) -> io::Result<Binaries> {
    let mut programs: Vec<PathBuf> = spec.components.iter().map(|c| c.program.clone()).collect();
    programs.sort();
    programs.dedup();
    let tools = ["etcdctl", "etcdutl"].map(|name| spec.dir_etcd.join(name));
    let all = programs.iter().chain(&tools).cloned();
    let digests = try_join_all(
        all.map(|path| spawn_blocking(move || Ok::<_, io::Error>((name(&path), sha256_of_file(&path)?.1)))),
    );
    let versions = try_join_all(
        programs
            .iter()
            .cloned()
            .map(|path| spawn_blocking(move || Ok::<_, io::Error>((path.clone(), version(&path)?)))),
    );
    let (digests, versions) = tokio::try_join!(digests, versions)?;
    Ok(Binaries {
        digests: digests.into_iter().collect::<io::Result<_>>()?,
        versions: versions.into_iter().collect::<io::Result<_>>()?,
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `etcd Version: 3.7.3` and `Kubernetes v1.37.2` both end in the version.
fn version(path: &Path) -> io::Result<String> {
    let output = Command::new(path).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.lines().next().and_then(|line| line.split_whitespace().next_back()).unwrap_or_default();
    Ok(if word.starts_with('v') { word.to_owned() } else { format!("v{word}") })
}
