//! Torn lines, full disks, directories that can't be written, journals of other versions.

use crate::bench::{Bench, Setup, position, undisturbed};
use crate::parallel::each;
use crate::process::{Fate, Role};
use quakeproof::chained::chain::Head;
use quakeproof::journal::JournalError;
use quakeproof::journal::entry::{Entry, JournalEvent};
use quakeproof::journal::summary::RunSummary;
use quakeproof::runner::lifecycle::RunError;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;

fn injected(entries: &[Entry]) -> u64 {
    position(entries, |e| matches!(e, JournalEvent::InjectionVerified { .. }))
}

/// A run on a standing cluster that was killed while etcd is lost.
fn killed_under_fault(setup: Setup) -> Bench {
    let entry = injected(&undisturbed(Setup::STANDING));
    let bench = Bench::new(setup);
    bench.run_killed(Role::Run, Fate::killed(entry));
    assert!(!bench.state().expect("it stands").is_whole());
    bench
}

#[test]
fn a_torn_last_line_is_put_aside_and_the_run_recovered() {
    let bench = killed_under_fault(Setup::STANDING);
    let torn = br#"{"prev":"00"#;
    let journal = bench.run_dir().journal();
    let mut file = fs::File::options().append(true).open(&journal).unwrap();
    file.write_all(torn).unwrap();
    bench.recover();
    bench.assert_over();
    let aside = fs::read(journal.with_extension("torn")).unwrap();
    assert_eq!(aside, [&torn[..], b"\n"].concat());
    let adopted = bench.entries().into_iter().find_map(|entry| match entry.event {
        JournalEvent::RunAdopted { torn_bytes, .. } => Some(torn_bytes),
        _ => None,
    });
    assert_eq!(adopted, Some(torn.len() as u64));
}

#[test]
fn a_journal_without_a_whole_entry_owes_nothing_and_keeps_no_run_out() {
    let bench = Bench::new(Setup::STANDING);
    let (dir, _) = bench.make_run_dir();
    drop(bench.lock());
    fs::write(dir.journal(), br#"{"prev":"0"#).unwrap();
    match bench.try_recover() {
        Err(RunError::Journal(JournalError::Empty { .. })) => {}
        other => panic!("{other:?}"),
    }
    bench.lock_for_next().expect("nothing was done").release().unwrap();
}

/// Runs with room for `bytes` of journal; says whether the runner gave up.
fn with_room(setup: Setup, bytes: u64) -> bool {
    let bench = Bench::new(setup);
    bench.run_to_end(Fate { bytes: Some(bytes), ..Fate::default() });
    let error = fs::read_to_string(bench.error_file()).ok();
    if let Some(error) = &error {
        assert!(error.contains("no space left"), "{error}");
        assert!(error.contains("quakeproof recover"), "{error}");
    }
    // Before anybody recovers: the runner itself has taken back what it did.
    bench.assert_nothing_faulted_unless_removed();
    bench.recover();
    bench.assert_over();
    error.is_some()
}

/// Sizes at which one of the entries after the first that `is` does not fit any more.
fn sizes(setup: Setup, is: impl Fn(&JournalEvent) -> bool) -> Vec<u64> {
    let entries = undisturbed(setup);
    let from = position(&entries, is) as usize;
    let mut size = 0;
    let ends: Vec<u64> = entries
        .iter()
        .map(|entry| {
            size += serde_json::to_vec(entry).expect("it was JSON").len() as u64 + 1;
            size
        })
        .collect();
    // In the middle of each line that follows.
    ends[from..].windows(2).map(|pair| pair[0].midpoint(pair[1])).collect()
}

#[test]
fn a_disk_that_fills_up_under_a_fault_makes_the_runner_take_it_back_unrecorded() {
    let sizes = sizes(Setup::STANDING, |e| matches!(e, JournalEvent::Injecting { .. }));
    assert!(sizes.len() > 5, "{sizes:?}");
    let gave_up = each(sizes, |bytes| with_room(Setup::STANDING, bytes));
    assert!(gave_up.contains(&true));
}

#[test]
fn a_disk_that_fills_up_makes_the_runner_remove_a_cluster_made_for_the_run() {
    let sizes = sizes(Setup::FRESH, |e| matches!(e, JournalEvent::Injecting { .. }));
    let some = sizes.into_iter().step_by(4).collect::<Vec<_>>();
    let gave_up = each(some, |bytes| with_room(Setup::FRESH, bytes));
    assert!(gave_up.contains(&true));
}

#[test]
fn a_run_directory_that_can_t_be_written_stops_the_run_before_it_touches_anything() {
    let bench = Bench::new(Setup::STANDING);
    let before = bench.state();
    bench.run_to_end(Fate { read_only: true, ..Fate::default() });
    let error = fs::read_to_string(bench.error_file()).expect("it could not begin");
    assert!(error.contains("can't be written") && error.contains("--out"), "{error}");
    assert_eq!(bench.state(), before);
    bench.lock_for_next().expect("nothing was done").release().unwrap();
}

/// Rewrites the journal as one of another format version, with its chain made good.
fn rewrite(bench: &Bench, version: &str, extra: Option<Value>) {
    let path = bench.run_dir().journal();
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[0]["event"]["runOpened"]["formatVersion"] = json!(version);
    if let Some(event) = extra {
        let mut line = lines[0].clone();
        line["event"] = event;
        lines.push(line);
    }
    let (mut head, mut out) = (Head::START, String::new());
    for (seq, mut line) in lines.into_iter().enumerate() {
        line["prev"] = json!(head.to_string());
        line["seq"] = json!(seq);
        let line = line.to_string();
        head = head.then(line.as_bytes());
        out.push_str(&line);
        out.push('\n');
    }
    fs::write(path, out).unwrap();
}

#[test]
fn a_journal_of_a_newer_major_format_is_left_alone_and_the_dead_man_still_acts() {
    let bench = killed_under_fault(Setup::STANDING.short_lease());
    rewrite(&bench, "2.0", None);
    let path = bench.run_dir().journal();
    let before = fs::read(&path).unwrap();
    match bench.try_recover() {
        Err(error @ RunError::Journal(JournalError::Newer { .. })) => {
            assert!(error.to_string().contains("hint: use the quakeproof version"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    let refused = bench.lock_for_next().expect_err("nobody can tell what is owed").to_string();
    assert!(refused.contains("format 2.0"), "{refused}");
    bench.await_dead_man();
    bench.assert_nothing_faulted();
}

#[test]
fn a_journal_of_a_newer_minor_format_is_recovered_with_its_unknown_events_kept() {
    let bench = killed_under_fault(Setup::STANDING);
    rewrite(&bench, "1.9", Some(json!({"moonPhase": {"full": true}})));
    bench.recover();
    let summary = RunSummary::of(&bench.entries());
    assert!(summary.is_settled(), "{}", bench.told());
    assert_eq!(summary.unknown_events, ["moonPhase"]);
    bench.assert_nothing_faulted();
}
