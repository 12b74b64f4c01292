//! Opens files of a directory that somebody else may have made.
//!
//! A path in a bundle can be a pipe that blocks its reader for ever, a device that never
//! ends, or a link to something that is none of its business.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Longest document that is read into memory as a whole, bytes.
pub const MAX_DOCUMENT: u64 = 64 << 20;

/// Opens a regular file for reading.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a link, a pipe or anything else that is no regular
/// file, and what the kernel says.
pub fn open(path: &Path) -> io::Result<File> {
    let is_none = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if path.symlink_metadata()?.is_symlink() {
        return Err(is_none());
    }
    // Between the look and the opening the file may change: then these flags refuse it.
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    // A socket can't be opened at all, which says less than that it is one.
    let file = opened.map_err(|e| if e.raw_os_error() == Some(nix::libc::ENXIO) { is_none() } else { e })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(is_none()) }
}

/// Reads a document of at most [`MAX_DOCUMENT`] bytes.
///
/// # Errors
/// As [`open`], and [`io::ErrorKind::InvalidData`] when it is longer.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_DOCUMENT {
        let what = format!("it is longer than {MAX_DOCUMENT} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        assert_eq!(read(&at("file")).unwrap(), b"text");
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for name in ["pipe", "link", "device", "socket", "."] {
            let error = read(&at(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(read(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_document_without_end_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
