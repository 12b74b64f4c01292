//! The run is asked to end, and its runner is killed while it takes back what it did.

use crate::bench::{Bench, Setup, undisturbed};
use crate::parallel::each;
use crate::process::{Fate, Role};
use quakeproof::journal::entry::{Entry, JournalEvent, Phase, RunOutcome};
use quakeproof::journal::summary::RunSummary;

fn at(entry: u64) -> Fate {
    Fate { interrupt_at: Some(entry), ..Fate::default() }
}

/// Entries from the first step on that are followed by a look at whether somebody asked.
fn during_steps(entries: &[Entry]) -> Vec<u64> {
    let steps = |e: &&Entry| matches!(e.event, JournalEvent::Phase { phase: Phase::Steps });
    let recovery = |e: &&Entry| matches!(e.event, JournalEvent::Phase { phase: Phase::Recovery });
    let first = entries.iter().find(steps).expect("it has steps").seq;
    let last = entries.iter().rev().find(|e| matches!(e.event, JournalEvent::StepStarted { .. }));
    assert!(entries.iter().any(|e| recovery(&e)));
    (first..=last.expect("it has steps").seq).collect()
}

fn ends_in_order(setup: Setup) {
    let entries = undisturbed(setup);
    let steps = during_steps(&entries);
    each(0..entries.len() as u64, |entry| {
        let bench = Bench::new(setup);
        bench.run_to_end(at(entry));
        let outcome = bench.assert_over();
        if steps.contains(&entry) {
            assert_eq!(outcome, RunOutcome::Aborted, "entry {entry}\n{}", bench.told());
            let summary = RunSummary::of(&bench.entries());
            assert_eq!(summary.interrupted_by.as_deref(), Some("abort"), "{}", bench.told());
            bench.assert_nothing_faulted();
        }
        bench.assert_recover_does_nothing();
    });
}

#[test]
fn asked_to_end_at_every_entry_a_run_leaves_a_standing_cluster_in_order() {
    ends_in_order(Setup::STANDING);
}

#[test]
fn asked_to_end_at_every_entry_a_run_puts_a_fresh_cluster_in_order_and_removes_it() {
    ends_in_order(Setup { restart: true, ..Setup::FRESH });
}

#[test]
fn killed_at_every_entry_of_its_undo_an_interrupted_run_is_recovered() {
    let setup = Setup::STANDING;
    let entries = undisturbed(setup);
    let steps = during_steps(&entries).into_iter().filter(|n| {
        matches!(
            entries[*n as usize].event,
            JournalEvent::StepStarted { .. }
                | JournalEvent::UndoArmed { .. }
                | JournalEvent::InjectionVerified { .. }
                | JournalEvent::UndoAmended { .. }
                | JournalEvent::Ended { .. }
        )
    });
    let lengths = each(steps.collect::<Vec<_>>(), |entry| {
        let bench = Bench::new(setup);
        bench.run_to_end(at(entry));
        (entry, bench.entries().len() as u64)
    });
    let kills = lengths.into_iter().flat_map(|(entry, length)| (entry + 1..length).map(move |n| (entry, n)));
    each(kills.collect::<Vec<_>>(), |(entry, killed)| {
        let bench = Bench::new(setup);
        bench.run_killed(Role::Run, Fate { crash_after: Some(killed), ..at(entry) });
        bench.recover();
        bench.assert_over();
        bench.assert_recover_does_nothing();
    });
}
