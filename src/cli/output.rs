//! Standard output and standard error as every command uses them.
//!
//! A reader that has seen enough, such as `head`, is no error, and must not end a
//! command before it knows its exit code. Where talk can't be written there is
//! nobody to tell; a run with a fault in effect must never end because of it.

use crate::escape;
use crate::exit::ExitCode;
use std::io::{self, Write};

/// Data, for programs and pipes. A closed pipe swallows it; other failures are errors.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data;

/// Talk, for the person at the terminal. Never fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct Talk;

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        seen_enough(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        seen_enough(io::stdout().flush(), ())
    }
}

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(io::stderr().write(bytes).unwrap_or(bytes.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn seen_enough<T>(result: io::Result<T>, swallowed: T) -> io::Result<T> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(swallowed),
        other => other,
    }
}

/// Prints data as a command's only result.
pub fn print(text: io::Result<String>) -> ExitCode {
    match text.and_then(|text| Data.write_all(text.as_bytes()).and_then(|()| Data.flush())) {
        Ok(()) => ExitCode::Ok,
        Err(e) => {
            say(&format!("error: standard output: {e}"));
            ExitCode::Usage
        }
    }
}

/// Says something to the person at the terminal. It may quote hostile text: of control
/// characters only line breaks are kept.
pub fn say(text: &str) {
    let lines = text.lines().map(escape::terminal).collect::<Vec<_>>().join("\n");
    let _ = writeln!(Talk, "{lines}");
}
