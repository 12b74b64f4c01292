//! Whole lines of a chained file, such as a journal or an agent's log.

use crate::chained::chain::{ChainCheck, Head};
use std::io::{self, BufRead, Read};

/// Longest line accepted, bytes; a forged file must not exhaust memory.
pub const MAX_LINE: u64 = 16 << 20;

/// Reads line by line and follows the chain. What stands after the last newline is a
/// write that was cut short, never durable, and kept apart.
#[derive(Debug)]
pub struct ChainedLines<R> {
    input: R,
    chain: ChainCheck,
    bytes: u64,
    torn: Vec<u8>,
}

impl<R: BufRead> ChainedLines<R> {
    /// Reads from the start of a file.
    pub fn new(input: R) -> Self {
        Self { input, chain: ChainCheck::default(), bytes: 0, torn: Vec::new() }
    }

    /// The next whole line without its newline; `None` at the end, or before a torn line.
    /// The caller makes it the chain's with [`ChainedLines::follow`].
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a line longer than [`MAX_LINE`], and what the input fails with.
    pub fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            return Ok(Some(line));
        }
        if line.len() as u64 >= MAX_LINE {
            let what = format!("longer than {MAX_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.torn = line;
        Ok(None)
    }

    /// Takes a line that says of itself that it is number `seq` and follows one with hash `prev`.
    ///
    /// # Errors
    /// In words, when it does not.
    pub fn follow(&mut self, line: &[u8], seq: u64, prev: &str) -> Result<(), String> {
        if seq != self.chain.lines() {
            return Err(format!("`seq` is {seq}, expected {}", self.chain.lines()));
        }
        self.chain.follow(line, prev)?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }

    /// Hash of the last line followed.
    #[must_use]
    pub fn head(&self) -> Head {
        self.chain.head()
    }

    /// Number of lines followed.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.chain.lines()
    }

    /// Bytes of the lines followed, newlines included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What follows the last newline, once the lines are exhausted.
    #[must_use]
    pub fn torn(&self) -> &[u8] {
        &self.torn
    }
}
