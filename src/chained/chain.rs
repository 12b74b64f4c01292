//! The hash chain of a journal or an agent's log.
//!
//! The rule: the hash of a line is `SHA-256(P ‖ L ‖ line)`, where `P` is the hash of the
//! previous line as it stands in `prev` (64 lower-case hexadecimal digits, all `0` in the
//! first line), `L` the length of the line in bytes as an unsigned 64-bit big-endian integer,
//! and `line` the line as written, without its newline.

use sha2::{Digest, Sha256};
use std::fmt;

/// The hash of a line, or of the nothing before the first one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head([u8; 32]);

impl Head {
    /// What stands in `prev` of the first line: 64 zeros.
    pub const START: Head = Head([0; 32]);

    /// The head after appending `line` (without newline).
    #[must_use]
    pub fn then(self, line: &[u8]) -> Head {
        let mut hash = Sha256::new();
        hash.update(hex::encode(self.0));
        hash.update((line.len() as u64).to_be_bytes());
        hash.update(line);
        Head(hash.finalize().into())
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({self})")
    }
}

/// Follows a chain line by line and names the first line that does not belong to it.
#[derive(Debug, Clone)]
pub struct ChainCheck {
    head: Head,
    lines: u64,
}

impl Default for ChainCheck {
    fn default() -> Self {
        Self { head: Head::START, lines: 0 }
    }
}

impl ChainCheck {
    /// Takes the next line; `prev` is what it claims of the previous line.
    ///
    /// # Errors
    /// In words, when `prev` is not the hash of the line before.
    pub fn follow(&mut self, line: &[u8], prev: &str) -> Result<(), String> {
        let expected = self.head.to_string();
        if prev != expected {
            let before = match self.lines {
                0 => "it should be the first line".to_owned(),
                n => format!("line {n} was changed, or lines are missing, added or out of order"),
            };
            let prev: String = prev.chars().take(64).collect();
            return Err(format!("`prev` is {prev:?}, expected {expected}: {before}"));
        }
        self.head = self.head.then(line);
        self.lines += 1;
        Ok(())
    }

    /// Hash of the last line followed.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Number of lines followed.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_documented_one() {
        // { printf '0%.0s' {1..64}; printf '\0\0\0\0\0\0\0\3abc'; } | sha256sum
        let expected = "7821d21fc1fec74653dc4f0721edbd3fa3ba1bafb6d6e0b5698bca22f2195c85";
        assert_eq!(Head::START.then(b"abc").to_string(), expected);
        assert_eq!(Head::START.to_string(), "0".repeat(64));
    }

    #[test]
    fn moving_bytes_between_lines_changes_the_head() {
        assert_ne!(Head::START.then(b"ab").then(b"c"), Head::START.then(b"a").then(b"bc"));
    }

    #[test]
    fn of_a_wrong_claim_as_much_is_told_as_a_hash_is_long() {
        let claim = "f".repeat(65);
        let error = ChainCheck::default().follow(b"line", &claim).unwrap_err();
        assert!(error.contains(&format!("`prev` is {:?},", &claim[..64])), "{error}");
    }
}
