//! The runner, and the one that recovers its run, killed with SIGKILL after every entry.

use crate::bench::{Bench, Setup, position, undisturbed};
use crate::fake_provider::state::{ORIGINAL, RESTORED};
use crate::parallel::each;
use crate::process::{Fate, Role};
use quakeproof::journal::entry::{JournalEvent, RunOutcome};
use quakeproof::journal::summary::RunSummary;
use std::collections::BTreeSet;

/// A run that was killed after `entry`.
fn killed(setup: Setup, entry: u64) -> Bench {
    let bench = Bench::new(setup);
    bench.run_killed(Role::Run, Fate::killed(entry));
    assert_eq!(bench.entries().len() as u64, entry + 1, "{}", bench.told());
    bench
}

fn kind(timeline: &str) -> &'static str {
    [ORIGINAL, RESTORED].into_iter().find(|kind| timeline.starts_with(kind)).expect("one of the two")
}

fn recover_puts_in_order(setup: Setup) {
    let entries = undisturbed(setup).len() as u64;
    let timelines = each(0..entries, |entry| {
        let bench = killed(setup, entry);
        let closed = entry + 1 == entries;
        let outcome = bench.recover().outcome;
        assert_eq!(outcome, if closed { RunOutcome::Completed } else { RunOutcome::Recovered });
        assert_eq!(bench.assert_over(), outcome);
        bench.assert_recover_does_nothing();
        bench.assert_nothing_faulted_unless_removed()
    });
    let seen: BTreeSet<_> = timelines.iter().flatten().map(|timeline| kind(timeline)).collect();
    assert_eq!(seen, BTreeSet::from([ORIGINAL, RESTORED]), "the point of no return was passed in some");
}

#[test]
fn recover_puts_a_standing_cluster_in_order_after_a_kill_at_every_entry() {
    recover_puts_in_order(Setup::STANDING);
}

#[test]
fn recover_puts_a_standing_cluster_with_restarted_api_servers_in_order_after_a_kill_at_every_entry() {
    recover_puts_in_order(Setup { restart: true, ..Setup::STANDING });
}

#[test]
fn recover_ends_and_removes_a_fresh_cluster_after_a_kill_at_every_entry() {
    recover_puts_in_order(Setup::FRESH);
}

/// Kills at every entry and asks nobody for anything: the agent's lease lapses.
fn dead_man_puts_in_order(setup: Setup, also_the_agent: bool) {
    let entries = undisturbed(setup).len() as u64;
    let setup = setup.short_lease();
    // All leases run out side by side.
    let benches = each(0..entries, |entry| {
        let bench = killed(setup, entry);
        if also_the_agent && bench.state().is_some_and(|state| !state.down) {
            bench.replace_agent();
        }
        bench
    });
    let timelines = each(benches, |bench| {
        bench.await_dead_man();
        let armed = RunSummary::of(&bench.entries()).open().any(|injection| injection.may_have_begun());
        let timeline = bench.assert_nothing_faulted_unless_removed();
        bench.recover();
        bench.assert_over();
        timeline.filter(|_| armed)
    });
    let seen: BTreeSet<_> = timelines.iter().flatten().map(|timeline| kind(timeline)).collect();
    assert_eq!(seen, BTreeSet::from([ORIGINAL, RESTORED]), "the point of no return was passed in some");
}

#[test]
fn the_dead_man_alone_leaves_nothing_faulted_after_a_kill_at_every_entry() {
    dead_man_puts_in_order(Setup { restart: true, ..Setup::STANDING }, false);
}

#[test]
fn the_dead_man_alone_leaves_nothing_faulted_on_a_fresh_cluster_after_a_kill_at_every_entry() {
    dead_man_puts_in_order(Setup::FRESH, false);
}

#[test]
fn an_agent_killed_together_with_the_runner_is_followed_by_one_that_leaves_nothing_faulted() {
    dead_man_puts_in_order(Setup::STANDING, true);
}

#[test]
fn recover_may_be_killed_at_each_of_its_entries_and_be_called_again() {
    let setup = Setup::STANDING;
    let whole = undisturbed(setup);
    let at = [
        position(&whole, |e| matches!(e, JournalEvent::UndoArmed { .. })),
        position(&whole, |e| matches!(e, JournalEvent::Injected { .. })),
        position(&whole, |e| matches!(e, JournalEvent::UndoAmended { .. })),
        position(&whole, |e| matches!(e, JournalEvent::Ended { .. })),
    ];
    let lengths = each(at, |entry| {
        let bench = killed(setup, entry);
        bench.recover();
        bench.assert_over();
        (entry, bench.entries().len() as u64)
    });
    let kills =
        lengths.into_iter().flat_map(|(entry, length)| (entry + 1..length).map(move |at| (entry, at)));
    each(kills.collect::<Vec<_>>(), |(entry, at)| {
        let bench = killed(setup, entry);
        bench.run_killed(Role::Recover, Fate::killed(at));
        bench.recover();
        bench.assert_over();
    });
}

#[test]
fn another_run_is_refused_on_a_cluster_whose_run_was_killed_until_that_is_recovered() {
    let entries = undisturbed(Setup::STANDING);
    let bench = killed(Setup::STANDING, position(&entries, |e| matches!(e, JournalEvent::Injected { .. })));
    let refused = bench.lock_for_next().expect_err("an undo is owed").to_string();
    assert!(refused.contains("quakeproof recover"), "{refused}");
    bench.recover();
    bench.assert_over();
}
