//! File operations that hold after a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file so that a reader, or a crash, sees the old contents or the new ones.
/// What a crash leaves of the new ones (`.<name>.new` beside it) the next call replaces,
/// so one file may have only one writer at a time.
///
/// # Errors
/// When the disk is full or the directory can't be written; the old contents stay.
pub fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.new"));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The failure itself is what the caller needs to hear of, not that of tidying up.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_parent(path)
}

/// Makes durable that a file was created, renamed or removed at `path`.
///
/// # Errors
/// When its directory can't be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_are_the_old_ones_or_the_new_ones_and_nothing_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(dir.path().join(".file.new"), "left by a crash").unwrap();
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a-directory");
        fs::create_dir(&path).unwrap();
        assert!(write_atomically(&path, b"new").is_err(), "a directory is not replaced by a file");
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
