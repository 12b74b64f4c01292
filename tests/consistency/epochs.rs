//! A run told in a few records, and the side of the restore that each of them is put on.

use crate::objective::{linearizable, within};
use crate::told::{create, is_fact, range, refused, silent, told, unknown, without};
use crate::world::{Book, MS, World, acked};
use quakeproof::check::consistency::epochs::{Epoch, Run};
use quakeproof::check::consistency::model::{Action, Operation, PENDING, WriteResult, own_key};
use quakeproof::check::{Judge, Verdict};
use quakeproof::drill::spec::Step;
use quakeproof::history::record::{Event, Op, Outcome};
use quakeproof::journal::entry::{Entry, Fact, JournalEvent};
use quakeproof::step::restore_spec::RestoreSnapshot;
use quakeproof::timeline::EvidenceInput;
use std::collections::{BTreeMap, BTreeSet};

/// Place of the reader in the plan.
const READER: usize = 1;

/// Revisions of the lost timeline go up to 180, of which the snapshot holds those up to 140.
fn world() -> World {
    World { bump: None, ..World::honest() }
}

fn run(input: &EvidenceInput) -> Run {
    Run::of(&Judge::new(input)).unwrap()
}

fn seen(epoch: &Epoch) -> BTreeSet<(u64, u64)> {
    epoch.sightings.iter().map(|s| (s.key, s.revision)).collect()
}

fn written(epoch: &Epoch) -> Vec<(u64, u64)> {
    let key = |o: &Operation| o.key().expect("a write");
    epoch.operations.iter().map(|o| (key(o), o.ret)).collect()
}

/// Events that came when the restored timeline had begun, one of them in that very instant.
fn late_events(world: &World) -> EvidenceInput {
    let since = world.restored_at();
    told(
        world,
        &[
            ("orders", &|book| {
                create(book, (1_100, 1_101), 40, acked(140));
                create(book, (since + 20, since + 21), 1_000, acked(141));
            }),
            ("truth", &|book| range(book, since + 30, 141, &[(40, 140), (1_000, 141)])),
            ("watch", &|book| {
                book.event(since, Event::Put { id: 40, revision: 140 });
                book.event(since + 40, Event::Put { id: 50, revision: 150 });
                book.event(since + 41, Event::Put { id: 1_000, revision: 141 });
                book.event(since + 42, Event::Put { id: 60, revision: 180 });
                book.event(since + 43, Event::Put { id: 1_001, revision: 181 });
                book.event(since + 44, Event::Delete { id: 1_000, revision: 182 });
            }),
        ],
    )
}

#[test]
fn a_late_event_is_of_the_lost_timeline_unless_the_restored_one_has_its_version() {
    let run = run(&late_events(&world()));
    let [first, second] = run.epochs.as_slice() else { panic!("two epochs") };
    assert_eq!(((first.number, first.base), (second.number, second.base)), ((1, 0), (2, 140)));
    assert_eq!(seen(first), BTreeSet::from([(40, 140), (50, 150), (60, 180)]));
    assert_eq!(seen(second), BTreeSet::from([(1_000, 141), (1_000, 182), (1_001, 181)]));
}

#[test]
fn the_epoch_of_an_event_is_told_by_its_instant_its_revision_and_what_the_restored_timeline_wrote() {
    let world = world();
    let run = run(&late_events(&world));
    let since = world.restored_at() * MS;
    assert_eq!(run.restored, Some((since, 180)));
    assert_eq!(run.epoch_of(since, None, 1_000_000), 0, "none can be of a store that does not run yet");
    let of = |key, revision| run.epoch_of(since + 1, key, revision);
    assert_eq!([of(None, 141), of(None, 180), of(None, 181)], [0, 0, 1]);
    assert_eq!([of(Some(50), 150), of(Some(50), 181)], [0, 1]);
    assert_eq!([of(Some(1_000), 140), of(Some(1_000), 141), of(Some(1_000), 142)], [0, 1, 0]);
    assert_eq!(of(Some(40), 140), 0, "the snapshot's own version was written before the restore");
    let whole = Run::single(&Judge::new(&late_events(&world)).logs);
    assert_eq!(whole.epoch_of(since + 1, None, 1_000_000), 0);
}

#[test]
fn the_lost_timeline_reached_at_least_the_snapshot() {
    let world = world();
    let head = |told_of: Option<u64>| {
        let orders = |book: &mut Book| {
            if let Some(revision) = told_of {
                create(book, (1_100, 1_101), 30, acked(revision));
            }
        };
        let input = told(&world, &[("orders", &orders)]);
        let input = without(input, |fact| matches!(fact, Fact::RevisionBefore { .. }));
        run(&input).restored.unwrap().1
    };
    assert_eq!([head(None), head(Some(130)), head(Some(150))], [140, 140, 150]);
}

#[test]
fn what_is_found_after_the_restore_at_a_revision_of_the_snapshot_was_written_before_it() {
    let world = world();
    let late = world.serving_at();
    let by_range = |book: &mut Book, revision| range(book, late, 200, &[(30, revision)]);
    let by_get = |book: &mut Book, revision| book.op(late, late + 1, Op::Get { id: 30 }, acked(revision));
    let by_update = |book: &mut Book, held| {
        book.op(late, late + 1, Op::CasUpdate { object: 3, held, value: 2 }, acked(200));
    };
    let own = own_key(READER, 3);
    type Look<'a> = &'a dyn Fn(&mut Book, u64);
    let ways: [(u64, Look); 3] = [(30, &by_range), (30, &by_get), (own, &by_update)];
    for (key, look) in ways {
        for revision in [139, 140, 141] {
            let orders = |book: &mut Book| create(book, (1_100, 1_101), 30, unknown());
            let reader = |book: &mut Book| {
                book.op(1_100, 1_101, Op::CasCreate { object: 3, value: 1 }, unknown());
                look(book, revision);
            };
            let run = run(&told(&world, &[("orders", &orders), ("reader", &reader)]));
            let kept: BTreeSet<(u64, u64)> =
                [(key, revision)].into_iter().filter(|_| revision <= 140).collect();
            assert_eq!(seen(&run.epochs[0]), kept);
            assert_eq!(run.epochs[1].initial, kept.into_iter().collect());
        }
    }
}

#[test]
fn a_write_that_the_snapshot_may_hold_leaves_its_object_open_after_the_restore() {
    let world = world();
    let taken = world.snapshot_at() + 2;
    let late = world.serving_at();
    let input = told(
        &world,
        &[
            ("orders", &|book| {
                create(book, (taken - 1, taken + 1), 5, silent());
                // Sent when the snapshot was complete.
                create(book, (taken, taken + 2), 6, silent());
                create(book, (taken - 9, taken + 3), 7, acked(107));
                // That it never took effect explains everything.
                create(book, (taken - 9, taken + 4), 8, unknown());
            }),
            ("reader", &|book| {
                let absent = Outcome::Failed { status: Some(404), reason: "not-found".to_owned() };
                book.op(late + 2, late + 3, Op::Get { id: 5 }, absent.clone());
                book.op(late + 4, late + 5, Op::Get { id: 6 }, absent);
            }),
        ],
    );
    assert_eq!(run(&input).epochs[1].unsure, BTreeSet::from([5]));
    let found = linearizable(&input);
    assert_eq!((found.verdict, found.observed, found.lower), (Verdict::Inconclusive, None, Some(0)));
    assert!(found.reason.contains("1 objects can't be decided"), "{}", found.reason);
    assert!(
        found
            .reason
            .contains("object 5 of epoch 2: how it was when the restored timeline began is not known"),
        "{}",
        found.reason
    );
    assert_eq!(within(&input, 10).upper, None);
}

#[test]
fn a_revision_is_used_again_only_above_the_snapshot_and_what_it_held_is_not_lost() {
    let world = world();
    let late = world.serving_at();
    let input = told(
        &world,
        &[
            ("orders", &|book| {
                create(book, (1_100, 1_101), 40, acked(140));
                create(book, (1_900, 1_901), 41, acked(141));
                create(book, (1_902, 1_903), 42, acked(142));
            }),
            ("reader", &|book| {
                create(book, (late, late + 1), 1_000, acked(141));
                create(book, (late + 2, late + 3), 1_001, acked(143));
            }),
        ],
    );
    let split = run(&input);
    assert_eq!((split.lost_writes(), split.revisions_reused()), (2, BTreeSet::from([141])));
    let found = linearizable(&input);
    let words = "2 acknowledged writes were lost, as a restore may; 1 revisions were used again";
    assert!(found.reason.contains(words), "{}", found.reason);
    let whole = Run::single(&Judge::new(&input).logs);
    assert_eq!((whole.lost_writes(), whole.revisions_reused()), (0, BTreeSet::new()));
}

/// A client's write that was sent before the restore and answered after it.
fn hung(client: &str, op: Op, outcome: Outcome, state: &[(u64, u64)]) -> Run {
    let world = world();
    let (call, ret) = (world.lost_at() - 1, world.serving_at());
    let write = |book: &mut Book| book.op(call, ret, op.clone(), outcome.clone());
    run(&told(&world, &[(client, &write), ("truth", &|book| range(book, ret + 1, 150, state))]))
}

#[test]
fn a_write_that_hung_through_the_restore_is_of_the_store_that_holds_it() {
    let ret = world().serving_at() * MS;
    let of = |revision, state: &[(u64, u64)]| {
        let mut run = hung("orders", Op::Create { id: 50 }, acked(revision), state);
        run.epochs[1].operations.retain(|o| matches!(o.action, Action::Write { .. }));
        let [first, second] = run.epochs.as_slice() else { panic!("two epochs") };
        (written(first), written(second), run.spanning)
    };
    assert_eq!(of(150, &[(50, 150)]), (vec![], vec![(50, ret)], 0));
    // Of the lost store nothing says when it took effect.
    assert_eq!(of(150, &[]), (vec![(50, PENDING)], vec![], 0));
    assert_eq!(of(149, &[(50, 150)]), (vec![(50, PENDING)], vec![], 0));
}

#[test]
fn a_refusal_that_hung_through_the_restore_may_be_of_either_store() {
    for (client, op, reason) in [
        ("orders", Op::Create { id: 50 }, "already-exists"),
        ("reader", Op::CasUpdate { object: 3, held: 140, value: 2 }, "conflict"),
    ] {
        let run = hung(client, op, refused(reason), &[]);
        let writes = |epoch: &Epoch| {
            epoch.operations.iter().filter(|o| matches!(o.action, Action::Write { .. })).count()
        };
        assert_eq!((writes(&run.epochs[0]), writes(&run.epochs[1]), run.spanning), (0, 0, 1), "{client}");
    }
}

#[test]
fn an_own_object_was_changed_in_the_store_that_answered() {
    let update = || Op::CasUpdate { object: 3, held: 140, value: 2 };
    let writes = |run: &Run| -> Vec<Vec<WriteResult>> {
        let result = |o: &Operation| match o.action {
            Action::Write { result, .. } => Some(result),
            _ => None,
        };
        run.epochs.iter().map(|epoch| epoch.operations.iter().filter_map(result).collect()).collect()
    };
    let done = WriteResult::Done(Some(150));
    assert_eq!(writes(&hung("reader", update(), acked(150), &[])), [vec![], vec![done]]);
    // Without an answer it may be in either.
    let unanswered = hung("reader", update(), unknown(), &[]);
    assert_eq!(writes(&unanswered), [vec![WriteResult::Unknown], vec![WriteResult::Unknown]]);
}

#[test]
fn of_two_snapshots_of_a_name_the_later_one_was_restored() {
    let world = world();
    let orders = |book: &mut Book| create(book, (1_100, 1_101), 40, acked(140));
    let mut input = told(&world, &[("orders", &orders)]);
    let taken = |entry: &Entry| is_fact(entry, |fact| matches!(fact, Fact::SnapshotTaken { .. }));
    let at = input.journal.iter().position(taken).unwrap();
    let mut earlier = input.journal[at].clone();
    if let JournalEvent::Fact { fact: Fact::SnapshotTaken { revision, .. } } = &mut earlier.event {
        *revision = 120;
    }
    input.journal.insert(at, earlier);
    assert_eq!(run(&input).epochs[1].initial, BTreeMap::from([(40, 140)]));
}

#[test]
fn a_run_is_one_epoch_only_if_no_restore_was_planned_or_done() {
    let input = told(&world(), &[("orders", &|book| create(book, (1_100, 1_101), 40, acked(140)))]);
    let restored = |fact: &Fact| matches!(fact, Fact::Restored { .. });
    let whole = without(input.clone(), restored);
    let one = run(&whole);
    assert_eq!(one.epochs.iter().map(|e| (e.number, e.base)).collect::<Vec<_>>(), [(1, 0)]);
    assert_eq!(one.epochs[0].operations.len(), 1);
    let mut planned = whole;
    let mut step = planned.plan.steps[0].clone();
    let spec: RestoreSnapshot = serde_json::from_value(serde_json::json!({"from": "backup"})).unwrap();
    step.step = Step::RestoreSnapshot(spec);
    planned.plan.steps.push(step);
    let reason = Run::of(&Judge::new(&planned)).unwrap_err();
    assert!(reason.contains("no completed restore"), "{reason}");
    let mut twice = input;
    let again = twice.journal.iter().find(|entry| is_fact(entry, restored)).unwrap().clone();
    twice.journal.push(again);
    let reason = Run::of(&Judge::new(&twice)).unwrap_err();
    assert!(reason.contains("2 restores"), "{reason}");
}
