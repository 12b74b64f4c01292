//! The runner stands still for longer than its lease, and then goes on.

use crate::bench::{Bench, Setup, position, undisturbed};
use crate::parallel::each;
use crate::process::{self, Fate, Role};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quakeproof::agent::protocol::HeldState;
use quakeproof::journal::entry::JournalEvent;

/// Entries between which the agent holds a lease of the run.
fn under_lease(setup: Setup) -> Vec<u64> {
    let entries = undisturbed(setup);
    let injecting = position(&entries, |e| matches!(e, JournalEvent::Injecting { .. }));
    let ended = position(&entries, |e| matches!(e, JournalEvent::EndVerified { .. }));
    (injecting..=ended).collect()
}

/// Freezes a runner after `entry` until the dead-man has acted, then lets it go on to `fate`.
fn frozen(setup: Setup, entry: u64, fate: Fate) -> Bench {
    let bench = Bench::new(setup);
    let mut runner = process::start(&bench, Role::Run, Fate { freeze_at: Some(entry), ..fate });
    let lapsed = |state: &HeldState| *state == HeldState::Undone { by_lapse: true };
    bench.until("the lease to lapse", || bench.held().iter().any(lapsed));
    bench.assert_nothing_faulted();
    let pid = Pid::from_raw(runner.id().try_into().expect("a pid"));
    kill(pid, Signal::SIGCONT).expect("it is our child");
    runner.wait().expect("a child can be awaited");
    bench
}

#[test]
fn a_runner_frozen_past_its_lease_leaves_nothing_faulted_when_it_goes_on() {
    let setup = Setup { restart: true, ..Setup::STANDING };
    let entries = under_lease(setup);
    each(entries, |entry| {
        let bench = frozen(setup.short_lease(), entry, Fate::default());
        bench.assert_nothing_faulted();
        bench.assert_over();
    });
}

#[test]
fn a_runner_frozen_past_its_lease_and_killed_when_it_goes_on_is_recovered() {
    let setup = Setup::STANDING;
    let entries = under_lease(setup);
    each(entries, |entry| {
        let bench = frozen(setup.short_lease(), entry, Fate::killed(entry + 1));
        bench.recover();
        bench.assert_over();
    });
}
