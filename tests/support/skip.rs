//! How a test says that it can't run here.
//!
//! Such a test calls [`skip`] and returns. CI fails on a skip that
//! `ci/allowed-skips.txt` does not list.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that the test `name` does not run because of `reason`: appends
/// `name<TAB>reason` to the file that `QUAKEPROOF_SKIPS` names, and prints it.
pub fn skip(name: &str, reason: &str) {
    println!("SKIPPED {name}: {reason}");
    if let Some(path) = std::env::var_os("QUAKEPROOF_SKIPS") {
        let line = format!("{name}\t{}\n", reason.replace('\n', " "));
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("QUAKEPROOF_SKIPS names a file that can be written to");
    }
}
