//! Reads a drill's file, whatever a path leads to.

use super::parse::MAX_BYTES;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use thiserror::Error;

/// Why a drill's file can't be read; the file is for the caller to name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// What the kernel said.
    #[error("can't be read: {0}")]
    Io(#[from] io::Error),
    /// It is not text.
    #[error("line {line} is not UTF-8 text\n  hint: save the file as UTF-8")]
    NotUtf8 {
        /// First line that is not, counted from 1.
        line: usize,
    },
}

/// Reads the text of a drill's file, at most a byte more than a drill may have: a path can
/// lead to a device that never ends. That it is too large is for the parser to say.
///
/// # Errors
/// When it can't be read or is not UTF-8.
pub fn read(path: &Path) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        // The cut may go through a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        FileError::NotUtf8 { line: valid.iter().filter(|b| **b == b'\n').count() + 1 }
    })
}
