//! The SHA-256 digest that the server appends when it streams a snapshot.

use sha2::{Digest, Sha256};

/// Bytes of a digest.
const DIGEST: usize = 32;
/// Pages are multiples of this, so a remainder of [`DIGEST`] means that there is a digest.
const SECTOR: usize = 512;

/// What follows the database in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// A digest: the file is a snapshot as etcd streams it.
    Digest {
        /// What it is the digest of.
        image: &'a [u8],
        /// The digest.
        stored: &'a [u8],
    },
    /// No digest: the database as it is in a data directory, which may have space preallocated.
    Raw,
    /// A size that neither has: something was cut off or appended.
    Odd,
}

/// Tells the ending by the file's size, as etcdutl does.
#[must_use]
pub fn ending(bytes: &[u8]) -> Ending<'_> {
    match bytes.len() % SECTOR {
        DIGEST => match bytes.split_at_checked(bytes.len() - DIGEST) {
            Some((image, stored)) => Ending::Digest { image, stored },
            None => Ending::Odd,
        },
        0 => Ending::Raw,
        _ => Ending::Odd,
    }
}

/// SHA-256 in hexadecimal.
#[must_use]
pub fn digest(image: &[u8]) -> String {
    hex::encode(Sha256::digest(image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_tells_the_ending() {
        assert!(
            matches!(ending(&[0; 544]), Ending::Digest { image, stored } if image.len() == 512 && stored.len() == 32)
        );
        assert_eq!(ending(&[0; 1024]), Ending::Raw);
        for odd in [256, 288, 545] {
            assert_eq!(ending(&vec![0; odd]), Ending::Odd, "{odd}");
        }
        assert!(matches!(ending(&[0; 32]), Ending::Digest { image: [], .. }));
    }
}
