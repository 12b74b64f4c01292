//! SHA-256 in hexadecimal, by which evidence names documents, files and binaries.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// SHA-256 of some bytes, hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Length in bytes and SHA-256 (hexadecimal) of a file, read in pieces.
///
/// # Errors
/// When it can't be read.
pub fn sha256_of_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0u8; 1 << 16];
    let mut size = 0u64;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((size, hex::encode(hash.finalize()))),
            n => {
                hash.update(&buffer[..n]);
                size += n as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_digest_of_its_bytes_whatever_its_size() {
        // printf abc | sha256sum
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for size in [0, 1, 1 << 16, (1 << 16) + 1] {
            let bytes = vec![7; size];
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(sha256_of_file(&path).unwrap(), (size as u64, sha256_hex(&bytes)));
        }
    }
}
