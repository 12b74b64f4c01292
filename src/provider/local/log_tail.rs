//! The end of a component's log, fit to be shown.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const LINES: usize = 5;
const BYTES: u64 = 4096;

/// The last five lines of the log at `path`, each on a line of its own after a
/// leading line break; empty when there are none. Control characters are gone.
#[must_use]
pub fn of(path: &Path) -> String {
    let text = read_end(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].iter();
    shown.map(|line| format!("\n  | {}", line.replace(char::is_control, " "))).collect()
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_lines_are_shown_without_control_characters() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        let text: String = (0..500).map(|n| format!("line {n} \u{1b}[31m\n")).collect();
        std::fs::write(&path, text).unwrap();
        let tail = super::of(&path);
        assert_eq!(tail.lines().count(), 6);
        assert!(tail.ends_with("\n  | line 499  [31m"), "{tail:?}");
        assert_eq!(super::of(&temp.path().join("none")), "");
    }
}
