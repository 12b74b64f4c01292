//! What a display writes, kept for tests to look at.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A writer whose clones share what was written.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
