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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_its_newline_may_be_as_long_as_the_limit_and_no_longer() {
        let limit = usize::try_from(MAX_LINE).unwrap();
        let mut text = vec![b'x'; limit + 1];
        text[limit] = b'\n';
        let longest = ChainedLines::new(&text[1..]).next_line().unwrap().unwrap();
        assert_eq!(longest.len(), limit - 1);
        let mut torn = ChainedLines::new(&text[1..limit]);
        assert_eq!(torn.next_line().unwrap(), None);
        assert_eq!(torn.torn().len(), limit - 1);
        for longer in [&text[..], &text[..limit]] {
            let error = ChainedLines::new(longer).next_line().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_line_has_the_number_of_its_place() {
        let mut lines = ChainedLines::new(&b""[..]);
        for wrong in [1, u64::MAX] {
            let error = lines.follow(b"first", wrong, &lines.head().to_string()).unwrap_err();
            assert_eq!(error, format!("`seq` is {wrong}, expected 0"));
        }
        assert_eq!((lines.lines(), lines.bytes()), (0, 0));
        lines.follow(b"first", 0, &lines.head().to_string()).unwrap();
        assert!(lines.follow(b"second", 0, &lines.head().to_string()).is_err());
        lines.follow(b"second", 1, &lines.head().to_string()).unwrap();
    }
}
