//! Runs that somebody ends early, and a second run beside one.

use crate::drills::{Site, name};
use crate::truth::{assert_healthy, missing};
use nix::sys::signal::Signal::SIGINT;
use quakeproof::clock::{Clock, SystemClock};
use quakeproof::journal::entry::Entry;
use std::time::{Duration, Instant};

/// Holds the fault for longer than the test takes.
const HELD: [&str; 2] = ["--set", "faulted=90s"];
const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn whoever_ends_a_run_early_gets_the_original_data_back() {
    let site = Site::standing();
    interrupted_once(&site);
    interrupted_twice(&site);
    aborted_from_another_process(&site);
}

/// And while it ran, a second run was refused.
fn interrupted_once(site: &Site) {
    let mut run = site.start("once", &HELD);
    run.reached("stepStarted", 4);
    let mut second = site.start("second", &HELD);
    let refused = second.ended_with(5);
    assert!(refused.stderr.contains(&run.id()), "{}", refused.stderr);
    assert!(!second.dir.exists(), "a run that never began leaves no evidence");

    let asked_ns = SystemClock::new().mono().0;
    run.signal(SIGINT);
    run.ended_with(130);
    assert_heard_within_a_second(&run.journal(), asked_ns);
    assert_eq!(run.report()["outcome"], "aborted");
    assert_ne!(run.report()["verdict"], "pass");
    assert_eq!(missing(site, &run), [].into());
    site.verify(&run);
    assert_healthy(site);
    site.lap("interrupted once");
}

fn interrupted_twice(site: &Site) {
    let mut run = site.start("twice", &HELD);
    run.reached("stepStarted", 4);
    run.signal(SIGINT);
    run.reached("interrupted", 1);
    let asked = Instant::now();
    run.signal(SIGINT);
    let left = run.ended_with(4);
    assert!(asked.elapsed() < Duration::from_secs(1), "it took {:?} to leave", asked.elapsed());
    assert!(left.stderr.contains(&format!("quakeproof recover {}", run.id())), "{}", left.stderr);

    site.recover(&run, 2);
    assert_eq!(run.report()["outcome"], "recovered");
    assert_eq!(missing(site, &run), [].into());
    assert_healthy(site);
    site.lap("interrupted twice");
}

fn aborted_from_another_process(site: &Site) {
    let mut run = site.start("aborted", &HELD);
    run.reached("stepStarted", 4);
    let asked_ns = SystemClock::new().mono().0;
    site.quakeproof(["abort", &run.id()]).succeeded();
    // `abort` returns once the run is over, evidence and all.
    site.verify(&run);
    run.ended_with(130);
    assert_heard_within_a_second(&run.journal(), asked_ns);
    assert_eq!(run.report()["outcome"], "aborted");
    assert_eq!(missing(site, &run), [].into());
    assert_healthy(site);
    site.lap("aborted");
}

/// The step was left, and that was written down, within a second; the undo came after.
fn assert_heard_within_a_second(journal: &[Entry], asked_ns: u64) {
    let at = |event: &str| journal.iter().position(|e| name(e) == event).expect(event);
    let heard = &journal[at("interrupted")];
    let took_ns = heard.mono_ns.0 - asked_ns;
    assert!(took_ns < SECOND_NS, "heard after {took_ns} ns");
    let order = [at("stepFailed"), at("interrupted"), at("undoStarted"), at("undoFinished"), at("runClosed")];
    assert!(order.is_sorted(), "{order:?}");
}
