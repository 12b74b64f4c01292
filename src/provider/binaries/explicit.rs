//! Binaries that a person has put in a directory of their own.

use super::error::BinariesError;
use super::pins::Release;
use super::{Located, Origin};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The binaries of `release` under `root`; `None` when `root` has no directory for it.
///
/// # Errors
/// When `root` is not a directory, or has the release only in part: silently
/// going on to a download or a build of many minutes is not what was asked for.
pub(super) fn find(root: &Path, release: &Release) -> Result<Option<Located>, BinariesError> {
    if !root.is_dir() {
        return Err(BinariesError::Explicit {
            path: root.to_owned(),
            what: "the explicit directory for binaries is not a directory".to_owned(),
            hint: format!("it must hold {}; or unset QUAKEPROOF_BIN_DIR", release.layout()),
        });
    }
    let dir = root.join(release.dir_name());
    if !dir.is_dir() {
        return Ok(None);
    }
    let mut size_bytes = 0;
    for name in release.product.binaries() {
        let path = dir.join(name);
        let executable = |m: &std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
        match path.metadata() {
            Ok(metadata) if executable(&metadata) => size_bytes += metadata.len(),
            found => {
                let what = match found {
                    Ok(_) => format!("`{name}` is not an executable file"),
                    Err(error) => format!("`{name}`: {error}"),
                };
                let hint = format!("it must hold {}", release.product.binaries().join(", "));
                return Err(BinariesError::Explicit { path: dir, what, hint });
            }
        }
    }
    Ok(Some(Located { dir, origin: Origin::Explicit, size_bytes }))
}
