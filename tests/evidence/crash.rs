//! Processes that die while they write a journal, or find the disk full.
//!
//! The process that dies is this test binary, started anew with only `writes_a_journal`.

use crate::bundle::{events, opened};
use quakeproof::clock::SystemClock;
use quakeproof::journal::JournalError;
use quakeproof::journal::entry::JournalEvent;
use quakeproof::journal::reader;
use quakeproof::journal::summary::RunSummary;
use quakeproof::journal::writer::{JournalWriter, Resumed};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHILD_JOURNAL: &str = "QUAKEPROOF_TEST_JOURNAL";
const CHILD_TEST: [&str; 3] = ["crash::writes_a_journal", "--exact", "--nocapture"];

/// The child's part: does nothing unless a parent below names the journal.
#[test]
fn writes_a_journal() {
    let Some(path) = std::env::var_os(CHILD_JOURNAL) else { return };
    let mut writer = JournalWriter::create(Path::new(&path), Arc::new(SystemClock::new())).unwrap();
    let (before, after) = events();
    for event in before.into_iter().chain(after) {
        writer.append(event).unwrap();
    }
    // Only a child whose file size is limited gets further than this with an error.
    for n in 0.. {
        let event = JournalEvent::Interrupted { by: format!("{n}: {}", "x".repeat(700)) };
        if let Err(error) = writer.append(event) {
            assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
            println!("NOSPACE after {} entries", writer.entries());
            writer.append(JournalEvent::Interrupted { by: "full".to_owned() }).unwrap();
            return;
        }
        assert!(n < 100, "no limit was hit");
    }
}

#[test]
fn a_process_killed_after_any_entry_leaves_that_entry_and_a_journal_that_goes_on() {
    let (before, after) = events();
    for seq in 0..before.len() + after.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let status = Command::new(std::env::current_exe().unwrap())
            .args(CHILD_TEST)
            .env(CHILD_JOURNAL, &path)
            .env("QUAKEPROOF_CRASH_AFTER_ENTRY", seq.to_string())
            .output()
            .unwrap()
            .status;
        assert_eq!(status.signal(), Some(9), "after entry {seq}");
        let Resumed { mut writer, entries, torn_bytes } = resume(&path);
        assert_eq!((entries.len(), torn_bytes), (seq + 1, 0));
        let summary = RunSummary::of(&entries);
        // Armed by entry 4, undone by entry 8.
        assert_eq!(summary.open().count(), usize::from((4..8).contains(&seq)), "after entry {seq}");
        writer.append(JournalEvent::RunAdopted { by: "recover".to_owned(), torn_bytes }).unwrap();
        assert_eq!(reader::read(&path).unwrap().entries.len(), seq + 2);
    }
}

#[test]
fn a_write_cut_short_by_a_full_disk_is_taken_back_and_the_journal_stays_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    // A limit on the file's size cuts a write short just as a full disk does, and needs no
    // privileges. POSIX counts it in 512-byte blocks.
    let output = Command::new("sh")
        .args(["-c", r#"trap '' XFSZ; ulimit -f 20; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(CHILD_TEST)
        .env(CHILD_JOURNAL, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("NOSPACE"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let journal = reader::read(&path).unwrap();
    assert!(journal.torn.is_empty());
    let last = &journal.entries.last().unwrap().event;
    assert_eq!(*last, JournalEvent::Interrupted { by: "full".to_owned() });
}

/// A child that another test is just starting shares every lock of this process until it
/// runs its own program; a journal that is busy for that reason is tried again.
fn resume(path: &Path) -> Resumed {
    let since = Instant::now();
    loop {
        match JournalWriter::resume(path, Arc::new(SystemClock::new())) {
            Err(JournalError::Busy { .. }) if since.elapsed() < Duration::from_secs(10) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result.unwrap(),
        }
    }
}

#[test]
fn a_torn_last_line_is_put_aside_and_never_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let clock = Arc::new(SystemClock::new());
    let mut writer = JournalWriter::create(&path, clock.clone()).unwrap();
    writer.append(opened()).unwrap();
    drop(writer);
    let whole = std::fs::read(&path).unwrap();
    for torn in ["{\"prev\":\"a", "{\"prev\":\"b"] {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(torn.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let resumed = resume(&path);
        assert_eq!(resumed.torn_bytes, 10);
    }
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    let aside = std::fs::read_to_string(dir.path().join("journal.torn")).unwrap();
    assert_eq!(aside, "{\"prev\":\"a\n{\"prev\":\"b\n");
}
