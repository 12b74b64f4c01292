//! An undo that can't be carried out: said, owed, and done once it can be.

use crate::bench::{Bench, Setup, position, undisturbed};
use crate::parallel::each;
use crate::process::{Fate, Role};
use quakeproof::journal::entry::{JournalEvent, RunOutcome};
use quakeproof::journal::summary::RunSummary;

/// A run that is asked to end while etcd is lost and can't be started.
fn stuck(fate: Fate) -> (Bench, Fate) {
    let entries = undisturbed(Setup::STANDING);
    let seen = position(&entries, |e| matches!(e, JournalEvent::InjectionVerified { .. }));
    let bench = Bench::new(Setup::STANDING);
    bench.refuse(&["start etcd-1"]);
    (bench, Fate { interrupt_at: Some(seen), ..fate })
}

#[test]
fn a_failed_undo_ends_the_run_as_faulted_and_recover_tries_it_again() {
    let (bench, fate) = stuck(Fate::default());
    bench.run_to_end(fate);
    for _ in 0..2 {
        let summary = RunSummary::of(&bench.entries());
        assert_eq!(summary.open().count(), 1, "{}", bench.told());
        assert_eq!(summary.closed.expect("it says so").outcome, RunOutcome::Faulted);
        let refused = bench.lock_for_next().expect_err("etcd is lost").to_string();
        assert!(refused.contains("an undo is owed"), "{refused}");
        assert_eq!(bench.recover().outcome, RunOutcome::Faulted);
    }
    bench.refuse(&[]);
    assert_eq!(bench.recover().outcome, RunOutcome::Recovered);
    assert_eq!(bench.assert_over(), RunOutcome::Recovered);
    bench.assert_recover_does_nothing();
}

#[test]
fn killed_at_every_entry_of_a_failing_undo_a_run_is_recovered_once_it_can_be_undone() {
    let (bench, fate) = stuck(Fate::default());
    bench.run_to_end(fate);
    let entries = bench.entries();
    let failed = position(&entries, |e| matches!(e, JournalEvent::UndoFailed { .. }));
    let first = position(&entries, |e| matches!(e, JournalEvent::StepFailed { .. }));
    assert!(first < failed);
    each(first..entries.len() as u64, |entry| {
        let (bench, fate) = stuck(Fate::killed(entry));
        bench.run_killed(Role::Run, fate);
        bench.refuse(&[]);
        bench.recover();
        bench.assert_over();
        bench.assert_recover_does_nothing();
    });
}
