//! Which mutant is on: the one whose number is in `MUTANT`. With `MUTANT_REACH`, none is, and that file gets the
//! number of each that was asked for.

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the mutant with this number is on.
pub fn on(number: usize) -> bool {
    static CHOSEN: OnceLock<Option<usize>> = OnceLock::new();
    static REACH: OnceLock<Option<File>> = OnceLock::new();
    static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    if let Some(chosen) = CHOSEN.get_or_init(|| std::env::var("MUTANT").ok()?.parse().ok()) {
        return *chosen == number;
    }
    let reach = REACH.get_or_init(|| {
        let path = std::env::var_os("MUTANT_REACH")?;
        Some(File::options().create(true).append(true).open(path).expect("the file can be written"))
    });
    if let Some(mut file) = reach.as_ref()
        && !SEEN[number].swap(true, Ordering::Relaxed)
    {
        file.write_all(format!("{number}\n").as_bytes()).expect("the file can be written");
    }
    false
}
