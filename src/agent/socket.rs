//! Unix socket paths of any length: the kernel takes at most 107 bytes, state
//! directories are often deeper, so the directory is opened and named by descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A short path for `path`, valid while the descriptor is held.
pub(super) struct ShortPath {
    path: PathBuf,
    _directory: File,
}

impl ShortPath {
    /// # Errors
    /// When the directory can't be opened.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a socket path needs a directory and a name",
            ));
        };
        let directory =
            File::open(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _directory: directory })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
