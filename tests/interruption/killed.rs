//! The runner is killed with SIGKILL at every boundary of its steps.

use crate::drills::{LONG, Run, STANDING, Site, name};
use crate::lab::eventually;
use crate::truth::{assert_healthy, missing};
use quakeproof::agent::protocol::HeldState;
use quakeproof::agent::undo::OnLapse::{self, Revert, RollForward};
use quakeproof::journal::entry::Entry;
use std::collections::BTreeMap;
use std::time::Duration;

/// Events around which a runner's death differs.
const BOUNDARIES: [&str; 9] = [
    "stepStarted",
    "undoArmed",
    "injecting",
    "injected",
    "injectionVerified",
    "undoAmended",
    "ended",
    "endVerified",
    "stepFinished",
];

#[test]
fn a_runner_killed_at_any_boundary_leaves_nothing_faulted_once_recovered() {
    let site = Site::standing();
    let mut whole = site.start("whole", &[]);
    whole.ended_with(0);
    let points = boundaries(&whole.journal());
    assert_eq!(points.len(), 6 + 7 + 1, "every kind of boundary, and each step: {points:?}");
    assert_healthy(&site);
    site.lap("undisturbed");
    for (event, nth) in points {
        let run = killed_after(&site, &event, nth, &[]);
        site.recover(&run, 2);
        assert_eq!(run.report()["outcome"], "recovered");
        assert_eq!(run.report()["verdict"], "inconclusive");
        assert_eq!(modes(&run), way_back(&run).into_iter().collect::<Vec<_>>(), "after {event}:{nth}");
        assert_eq!(lost_for_good(&run), !missing(&site, &run).is_empty());
        assert_healthy(&site);
        site.lap(&format!("killed after {event}:{nth}, recovered"));
    }
    missed_stays_missed(&site);
}

/// What was proven before the death of the runner is not lost with it: the writes between the
/// snapshot and the loss are gone, which is half a second of them and cannot be a millisecond.
fn missed_stays_missed(site: &Site) {
    let run = killed_after(site, "stepFinished", 6, &["--set", "lostWithin=1ms"]);
    site.recover(&run, 1);
    assert_eq!(run.report()["outcome"], "recovered");
    assert_eq!(run.report()["verdict"], "fail");
    site.lap("an objective that was missed before the death stays missed");
}

#[test]
fn without_anybody_the_dead_man_puts_the_cluster_in_order() {
    let site = Site::standing();
    for (event, mode) in [("injected", Revert), ("undoAmended", Revert), ("ended", RollForward)] {
        let run = killed_after(&site, event, 1, &[]);
        let lapsed = HeldState::Undone { by_lapse: true };
        eventually("the dead-man has acted", Duration::from_secs(60), || {
            site.held_by_agent(&run.id()).is_some_and(|held| held.state == lapsed)
        });
        site.lap(&format!("killed after {event}, ended by the dead-man"));
        assert_eq!(site.held_by_agent(&run.id()).unwrap().on_lapse, mode);
        assert_healthy(&site);
        assert_eq!(missing(&site, &run).is_empty(), mode == Revert);
        site.recover(&run, 2);
        assert_eq!(run.undos(), [(mode, "deadMan".to_owned())]);
        assert_eq!(run.report()["outcome"], "recovered");
        assert_healthy(&site);
    }
}

/// A run whose runner has died right after that entry, with the cluster still locked.
fn killed_after(site: &Site, event: &str, nth: usize, args: &[&str]) -> Run {
    let mut run =
        site.start_killed(&format!("{event}-{nth}-{}", args.len()), args, &format!("{event}:{nth}"));
    let end = run.ended(LONG);
    assert_eq!(end.code, None, "it was not killed: {}", end.stderr);
    let journal = run.journal();
    assert_eq!(journal.iter().filter(|e| name(e) == event).count(), nth);
    assert_eq!(journal.last().map(name).as_deref(), Some(event));
    assert!(site.lock_record(STANDING).exists(), "a dead runner does not free the cluster");
    run
}

/// How the undo has to go, by what the runner had done: none before the agent was told, back
/// to the old data until the restored etcd was about to start, forward from there.
fn way_back(run: &Run) -> Option<OnLapse> {
    let mut way = None;
    for event in run.journal().iter().map(name) {
        match event.as_str() {
            // The agent is told after the entry: it knows once the next one is there.
            "injecting" => way = Some(Revert),
            "ended" => way = Some(RollForward),
            "runAdopted" => break,
            _ => {}
        }
    }
    way
}

fn lost_for_good(run: &Run) -> bool {
    way_back(run) == Some(RollForward)
}

fn modes(run: &Run) -> Vec<OnLapse> {
    run.undos().into_iter().map(|(mode, _)| mode).collect()
}

/// Every boundary of a run, as event and number. The end of a step is the boundary at which the
/// next one begins, so that of the last step alone counts.
fn boundaries(journal: &[Entry]) -> Vec<(String, usize)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut points = Vec::new();
    for event in journal.iter().map(name).filter(|event| BOUNDARIES.contains(&event.as_str())) {
        let nth = seen.entry(event.clone()).or_default();
        *nth += 1;
        points.push((event, *nth));
    }
    let last = points.iter().rposition(|(event, _)| event == "stepFinished");
    let mut at = 0..points.len();
    points.retain(|(event, _)| {
        let here = at.next();
        event != "stepFinished" || here == last
    });
    points
}
