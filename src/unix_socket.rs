//! Unix sockets at paths of any length: the kernel takes at most 107 bytes, state
//! directories are often deeper, so the directory is opened and named by descriptor.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A short path for a socket, valid while it is held.
#[derive(Debug)]
pub struct ShortPath {
    path: PathBuf,
    _directory: File,
}

impl ShortPath {
    /// Stands in for `path`, whose directory must exist.
    ///
    /// # Errors
    /// When the directory can't be opened, or `path` names no file.
    pub fn of(path: &Path) -> io::Result<Self> {
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

    /// The short path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Connects to the socket at `path`. Blocks while the listener's queue is full.
///
/// # Errors
/// As `connect(2)`.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(ShortPath::of(path)?.path())
}

/// Listens at `path`. A socket that lies there is replaced: the caller must know that
/// whoever listened is dead.
///
/// # Errors
/// As `bind(2)`.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let short = ShortPath::of(path)?;
    match std::fs::remove_file(short.path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(short.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn sockets_work_in_directories_with_long_paths_and_replace_a_dead_one() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("test.sock");
        drop(listen(&path).unwrap());
        assert!(connect(&path).is_err(), "nobody listens any more");
        let listener = listen(&path).unwrap();
        let mut near = connect(&path).unwrap();
        near.write_all(b"!").unwrap();
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"!");
    }
}
