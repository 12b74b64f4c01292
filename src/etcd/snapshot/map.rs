//! Maps a snapshot file into memory: the one reason for `unsafe` here is that the compiler can't
//! know that nobody changes the file meanwhile.

use memmap2::{Advice, Mmap};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file's bytes. While it lives it holds bbolt's shared lock on the file.
#[derive(Debug)]
pub struct MappedFile {
    // Dropped in this order: first the bytes, then the lock.
    map: Mmap,
    _lock: Option<Flock<File>>,
}

/// Maps a regular file.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when another process has the database open for writing, and what
/// the kernel says.
pub fn map(file: File) -> io::Result<MappedFile> {
    let (file, lock) = match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(lock) => (lock.try_clone()?, Some(lock)),
        Err((_, Errno::EWOULDBLOCK)) => return Err(io::ErrorKind::WouldBlock.into()),
        // Some file systems have no locks.
        Err((file, _)) => (file, None),
    };
    // SAFETY: the mapping is read-only and private, and is never handed out for longer than
    // `MappedFile` lives. What could still change the bytes is a process that writes to the file:
    // bbolt takes an exclusive lock before it does, and ours keeps it from that. Somebody who
    // writes without a lock can make us read nonsense, which the reader treats as damage: it never
    // relies on two reads of a byte being equal for staying within bounds. A file that is cut
    // while it is read ends the process with SIGBUS, as it ends etcdutl, which maps it too.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) }?;
    // A hint: the walk over the tree jumps, the file is read as a whole all the same.
    let _ = map.advise(Advice::WillNeed);
    Ok(MappedFile { map, _lock: lock })
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_somebody_writes_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        std::fs::write(&path, "bytes").unwrap();
        assert_eq!(&*map(File::open(&path).unwrap()).unwrap(), b"bytes");
        let open = Flock::lock(File::open(&path).unwrap(), FlockArg::LockExclusiveNonblock).unwrap();
        assert_eq!(map(File::open(&path).unwrap()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(open);
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(map(File::open(&empty).unwrap()).unwrap().is_empty());
    }
}
