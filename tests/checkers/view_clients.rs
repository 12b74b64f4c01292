//! Clients that hold a view or a state by other means than lists and plain watches: a reflector, a
//! watch that begins with the state and keeps bookmarks, and compare-and-swap updates.

use super::world::{Book, LOOK_EVERY, MS, World, acked};
use super::{answer_of, finding, history, lost_timeline, op_at};
use quakeproof::check::restore_facts::ClientFacts;
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Judgement, Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::component::ComponentId;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, Op, Outcome, Record};
use quakeproof::plan::{MinimumOperations, PlannedClient, PredictedView, Prediction};
use quakeproof::timeline::EvidenceInput;
use std::collections::{BTreeMap, BTreeSet};

/// Objects of the client that compares and swaps, and the time between two of its updates.
const OBJECTS: u64 = 2;
const SWAP_EVERY: u64 = 50;

/// The world's own clients and these three.
fn input(world: &World, frozen: bool) -> EvidenceInput {
    let mut input = world.input();
    for (name, kind, every, records) in [
        ("mirror", ClientKind::Reflector, None, mirror(world, frozen)),
        ("marks", ClientKind::Watcher, None, marks(world, frozen)),
        ("swapper", ClientKind::CasUpdater, Some(SWAP_EVERY), swapper(world)),
    ] {
        input.histories.insert(name.to_owned(), records);
        input.plan.clients.push(PlannedClient {
            name: name.to_owned(),
            kind,
            target: ComponentId("kube-apiserver-1".to_owned()),
            identity: "client".to_owned(),
            spec: None,
            every_ns: every.map(|ms| ms * MS),
            minimum: MinimumOperations { before: 3, during: 0, after: 3 },
        });
    }
    input
}

fn ids(ids: &BTreeSet<u64>) -> quakeproof::history::ids::IdSet {
    ids.iter().copied().collect()
}

/// What the restored timeline delivers to a watch that goes on from `since`, or that nobody told.
fn delivered(world: &World, since: Option<u64>) -> Vec<(u64, u64, u64)> {
    let due = |(at, _, revision): &(u64, u64, u64)| {
        *at > 0 && at + 2 < world.end() && since.map_or(*revision > world.old_head(), |since| *at > since)
    };
    world.restored().into_iter().filter(due).collect()
}

fn mirror(world: &World, frozen: bool) -> Vec<Record> {
    let mut book = Book::open("mirror", ClientKind::Reflector);
    let mut number = 0;
    let mut fill = |book: &mut Book, at: u64, (revision, all): &(u64, BTreeSet<u64>)| {
        let op = Op::List { list: number, page: 0, resource_version: None, limit: Some(500) };
        let answer = Answer { revision: Some(*revision), ids: Some(ids(all)), ..Answer::default() };
        book.op(at, at + 1, op, Outcome::Ok(answer));
        book.event(at + 1, Event::Store { ids: ids(all), revision: Some(*revision) });
        book.stream += 1;
        let watch = Op::Watch { stream: book.stream, from: *revision };
        book.op(at + 1, at + 1, watch, Outcome::Ok(Answer::default()));
        number += 1;
    };
    fill(&mut book, super::world::START + 1, &world.old_now(super::world::START + 2));
    for (at, id, revision) in world.lost() {
        book.event(at + 2, Event::Put { id, revision });
    }
    let since = (!frozen).then(|| {
        let at = world.serving_at() + 60;
        book.event(at - 20, Event::Error { code: 410, message: "too old resource version".to_owned() });
        fill(&mut book, at, &world.now(at + 1));
        at + 1
    });
    for (at, id, revision) in delivered(world, since) {
        book.event(at + 2, Event::Put { id, revision });
    }
    book.close(world.end())
}

fn marks(world: &World, frozen: bool) -> Vec<Record> {
    let mut book = Book::open("marks", ClientKind::Watcher);
    let begin =
        |book: &mut Book, at: u64, timeline: &[(u64, u64, u64)], (revision, _): (u64, BTreeSet<u64>)| {
            book.stream += 1;
            book.op(at, at + 1, Op::WatchList { stream: book.stream }, Outcome::Ok(Answer::default()));
            // Initial events come in the order of names, not of revisions.
            for (_, id, revision) in timeline.iter().rev() {
                book.event(at + 1, Event::Put { id: *id, revision: *revision });
            }
            book.event(at + 2, Event::Bookmark { revision, initial_events_end: true });
        };
    let start = super::world::START + 1;
    begin(&mut book, start, &[], world.old_now(start));
    for (n, (at, id, revision)) in world.lost().into_iter().enumerate() {
        book.event(at + 2, Event::Put { id, revision });
        if n % 10 == 9 {
            book.event(at + 3, Event::Bookmark { revision, initial_events_end: false });
        }
    }
    let since = (!frozen).then(|| {
        let at = world.serving_at() + 50;
        book.event(at - 1, Event::Error { code: 410, message: "too old resource version".to_owned() });
        let there: Vec<_> = world.restored().into_iter().filter(|(when, ..)| *when <= at).collect();
        begin(&mut book, at, &there, world.now(at));
        at
    });
    for (at, id, revision) in delivered(world, since) {
        if at + 2 > since.unwrap_or(0) + 2 {
            book.event(at + 2, Event::Put { id, revision });
        }
    }
    book.close(world.end())
}

/// One writer of its own objects: refused once per object after the restore, then right again.
fn swapper(world: &World) -> Vec<Record> {
    let mut book = Book::open("swapper", ClientKind::CasUpdater);
    let mut held: Vec<Option<u64>> = vec![None; OBJECTS as usize];
    let (mut value, mut at, mut turn) = (0, super::world::START + 1, 0);
    let kept: u64 = world.snapshot_revision() - 1;
    while at < world.collect_at() {
        let object = turn % OBJECTS;
        let slot = &mut held[object as usize];
        value += 1;
        let op = match *slot {
            None => Op::CasCreate { object, value },
            Some(held) => Op::CasUpdate { object, held, value },
        };
        if at < world.lost_at() {
            let revision = world.old_now(at).0;
            book.op(at, at + 2, op, acked(revision));
            *slot = Some(revision);
        } else if at < world.serving_at() {
            book.op(at, at + 2, op, Outcome::Unknown { reason: "timeout".to_owned() });
        } else if slot.is_some_and(|held| held > world.snapshot_revision() && held <= world.old_head()) {
            let conflict = Outcome::Failed { status: Some(409), reason: "conflict".to_owned() };
            book.op(at, at + 2, op, conflict);
            let read = Answer { revision: Some(kept), value: Some(1), ..Answer::default() };
            book.op(at + 2, at + 4, Op::CasRead { object }, Outcome::Ok(read));
            *slot = Some(kept);
        } else {
            let revision = world.now(at).0;
            book.op(at, at + 2, op, acked(revision));
            *slot = Some(revision);
        }
        (at, turn) = (at + SWAP_EVERY, turn + 1);
    }
    book.close(world.end())
}

pub fn client<'a>(judgement: &'a Judgement, name: &str) -> &'a ClientFacts {
    judgement.etcd_restore[0].clients.iter().find(|c| c.name == name).unwrap()
}

/// The first conflict of the swapper.
fn first_conflict(input: &mut EvidenceInput) -> &mut quakeproof::history::record::OpRecord {
    history(input, "swapper")
        .iter_mut()
        .find_map(|r| match r {
            Record::Op(op) if matches!(op.outcome, Outcome::Failed { status: Some(409), .. }) => Some(op),
            _ => None,
        })
        .unwrap()
}

#[test]
fn honest_clients_of_every_kind_pass() {
    let judgement = judge(&input(&World::honest(), false));
    assert_eq!(judgement.verdict, Some(Verdict::Pass), "{:#?}", judgement.findings);
    assert_eq!(judgement.etcd_restore[0].revisions_reused, Some(0));
    let mirror = client(&judgement, "mirror");
    assert_eq!((mirror.gone410, mirror.relists, mirror.rv_regressions), (1, 1, Some(0)));
    assert_eq!((mirror.phantom_objects, mirror.absent_objects), (Some(0), Some(0)));
    let marks = client(&judgement, "marks");
    assert_eq!((marks.gone410, marks.relists, marks.rv_regressions), (1, 0, Some(0)));
    let swapper = client(&judgement, "swapper");
    assert_eq!((swapper.cas_on_lost_state, swapper.phantom_objects), (Some(0), None));
    // What it reads after a refusal is older than what it held.
    assert_eq!(swapper.rv_regressions, Some(OBJECTS));
    assert_eq!(swapper.errors["conflict"], OBJECTS);
    for other in ["reader", "lister", "watch"] {
        let other = client(&judgement, other);
        assert_eq!(other.cas_on_lost_state, None);
        assert!(other.reason.as_ref().unwrap().contains("it does not compare and swap"));
    }
    assert_eq!(client(&judgement, "reader").rv_regressions, None);
}

#[test]
fn whoever_keeps_a_watch_at_the_old_revision_is_on_the_lost_timeline() {
    let world = World { bump: None, ..World::honest() };
    let judgement = judge(&input(&world, true));
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(2)), "{}", found.reason);
    for name in ["mirror", "marks"] {
        let client = client(&judgement, name);
        assert!(client.phases.iter().all(|p| p.observed == ObservedView::LostTimeline), "{client:#?}");
        assert_eq!((client.phantom_objects, client.absent_objects), (Some(40), Some(40)), "{name}");
    }
    assert_eq!(client(&judgement, "swapper").view(), ObservedView::True, "a conflict is the right answer");
    // Every write after the snapshot had a revision that one after the restore got as well.
    assert_eq!(judgement.etcd_restore[0].revisions_reused, Some(40));
    assert_eq!(client(&judgement, "orders").rv_regressions, Some(1));
}

#[test]
fn one_refused_update_that_was_accepted_after_all_is_found() {
    let mut input = input(&World::honest(), false);
    let conflict = first_conflict(&mut input);
    conflict.outcome = acked(1_000_200);
    let judgement = judge(&input);
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)));
    assert!(found.reason.contains("swapper (1 update accepted that rested on"), "{}", found.reason);
    assert_eq!(found.evidence.len(), 1);
    let swapper = client(&judgement, "swapper");
    assert_eq!(swapper.cas_on_lost_state, Some(1));
    assert_eq!(swapper.view(), ObservedView::LostTimeline, "though it fell into neither phase");
}

#[test]
fn an_update_whose_base_is_not_recorded_is_not_taken_for_right() {
    let mut input = input(&World::honest(), false);
    if let Op::CasUpdate { held, .. } = &mut first_conflict(&mut input).op {
        *held -= 1;
    }
    first_conflict(&mut input).outcome = acked(1_000_200);
    let judgement = judge(&input);
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!(found.verdict, Verdict::Inconclusive, "{}", found.reason);
    let swapper = client(&judgement, "swapper");
    assert_eq!(swapper.cas_on_lost_state, None);
    assert!(swapper.reason.as_ref().unwrap().contains("came to hold"), "{:?}", swapper.reason);
}

#[test]
fn a_client_that_swaps_has_converged_with_the_first_update_that_is_accepted_and_rightly_so() {
    // Told at 2810 that the store is restored; refused as it should be at 3151 and 3201, accepted at 3251.
    let judgement = judge(&input(&World::honest(), false));
    assert_eq!(client(&judgement, "swapper").converged_after_ns, Some((3_253 - 2_810) * MS));
    let mut input = input(&World::honest(), false);
    first_conflict(&mut input).outcome = acked(1_000_200);
    first_conflict(&mut input).outcome = acked(1_000_201);
    assert_eq!(client(&judge(&input), "swapper").converged_after_ns, Some((3_253 - 2_810) * MS));
}

#[test]
fn an_update_that_is_proven_wrong_counts_whatever_another_one_rested_on() {
    let mut input = input(&World::honest(), false);
    first_conflict(&mut input).outcome = acked(1_000_200);
    if let Op::CasUpdate { held, .. } = &mut first_conflict(&mut input).op {
        *held -= 1;
    }
    first_conflict(&mut input).outcome = acked(1_000_201);
    let judgement = judge(&input);
    assert_eq!(finding(&judgement, "no-client-on-lost-timeline").verdict, Verdict::Fail);
    assert_eq!(client(&judgement, "swapper").cas_on_lost_state, Some(1));
}

#[test]
fn an_update_that_was_out_during_the_restore_can_have_been_accepted_on_either_side() {
    let world = World::honest();
    let mut input = input(&world, false);
    let conflict = first_conflict(&mut input);
    conflict.call_ns = MonoNs((world.restored_at() - 1) * MS);
    conflict.outcome = acked(1_000_200);
    assert_eq!(lost_timeline(&input).verdict, Verdict::Inconclusive);
}

#[test]
fn one_id_missing_from_a_store_is_found() {
    let world = World::honest();
    let mut input = input(&world, false);
    let stores = history(&mut input, "mirror").iter_mut().filter_map(|r| match r {
        Record::Event(event) => match &mut event.event {
            Event::Store { ids, .. } => Some(ids),
            _ => None,
        },
        _ => None,
    });
    stores.last().unwrap().0.pop_first();
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    assert!(found.reason.contains("mirror"), "{}", found.reason);
}

#[test]
fn a_list_alone_is_not_yet_what_a_reflector_holds() {
    let mut input = input(&World::honest(), false);
    let records = history(&mut input, "mirror");
    let last = records
        .iter()
        .rposition(|r| matches!(r, Record::Event(e) if matches!(e.event, Event::Store { .. })))
        .unwrap();
    records.remove(last);
    let found = lost_timeline(&input);
    assert_eq!(found.verdict, Verdict::Fail, "its store is still the old one: {}", found.reason);
}

#[test]
fn initial_events_are_no_state_until_a_bookmark_says_so() {
    let mut input = input(&World::honest(), false);
    let records = history(&mut input, "marks");
    let last = records
        .iter()
        .rposition(|r| {
            matches!(r, Record::Event(e) if matches!(e.event, Event::Bookmark { initial_events_end: true, .. }))
        })
        .unwrap();
    records.remove(last);
    let found = lost_timeline(&input);
    assert_eq!(found.verdict, Verdict::Fail, "{}", found.reason);
    assert!(found.reason.contains("marks"), "{}", found.reason);
}

#[test]
fn one_initial_event_left_out_is_found() {
    let mut input = input(&World::honest(), false);
    let records = history(&mut input, "marks");
    let begin = records
        .iter()
        .rposition(|r| matches!(r, Record::Op(op) if matches!(op.op, Op::WatchList { .. })))
        .unwrap();
    records.remove(begin + 1);
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
}

#[test]
fn a_bookmark_past_an_event_that_never_came_does_not_hide_it() {
    let world = World::honest();
    let mut input = input(&world, false);
    let records = history(&mut input, "marks");
    let from = world.judged_from() + 2 * LOOK_EVERY;
    let at = records.iter().position(|r| super::instant(r) > from).unwrap();
    if let Record::Event(event) = &mut records[at]
        && let Event::Put { revision, .. } = event.event
    {
        event.event = Event::Bookmark { revision, initial_events_end: false };
    } else {
        panic!("not a put: {:?}", records[at]);
    }
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
}

#[test]
fn one_list_of_a_lower_revision_is_counted_as_a_step_back() {
    let world = World::honest();
    let mut input = input(&world, false);
    assert_eq!(client(&judge(&input), "lister").rv_regressions, Some(0));
    let op = op_at(&mut input, "lister", world.snapshot_at());
    let answer = answer_of(op);
    answer.revision = answer.revision.map(|revision| revision - 20);
    assert_eq!(client(&judge(&input), "lister").rv_regressions, Some(1));
}

#[test]
fn a_refusal_is_held_against_what_the_plan_says_of_it() {
    let mut input = input(&World::honest(), false);
    for (class, met) in [("conflict", true), ("invalid", true), ("gone", false)] {
        input.plan.predictions.push(Prediction {
            client: "swapper".to_owned(),
            before_passing: PredictedView::NotApplicable,
            after_passing: PredictedView::True,
            gone_410: false,
            refusals: BTreeMap::from([(class.to_owned(), met)]),
            source: "tests".to_owned(),
        });
    }
    let of = |input: &EvidenceInput, class: &str| {
        let what = format!("refused as `{class}`");
        let row = judge(input).predictions.into_iter().find(|p| p.what == what).unwrap();
        (row.agrees, row.predicted, row.observed)
    };
    let row = |agrees, predicted: &str, observed: &str| (agrees, predicted.to_owned(), observed.to_owned());
    assert_eq!(of(&input, "conflict"), row(Some(true), "at least once", "2 times"));
    assert_eq!(of(&input, "invalid"), row(Some(false), "at least once", "never"));
    assert_eq!(of(&input, "gone"), row(Some(true), "never", "never"));
    let conflict = history(&mut input, "swapper").iter_mut().find_map(|record| match record {
        Record::Op(op) => {
            let refused = matches!(&op.outcome, Outcome::Failed { reason, .. } if reason == "conflict");
            refused.then_some(op)
        }
        _ => None,
    });
    conflict.unwrap().outcome = Outcome::Failed { status: Some(409), reason: "invalid".to_owned() };
    assert_eq!(of(&input, "conflict"), row(Some(true), "at least once", "once"));
    assert_eq!(of(&input, "invalid"), row(Some(true), "at least once", "once"));
    // What a history does not show may have come after it.
    history(&mut input, "swapper").pop();
    assert_eq!(of(&input, "conflict").0, Some(true));
    let (agrees, _, observed) = of(&input, "gone");
    assert_eq!(agrees, None);
    assert!(observed.starts_with("unknown: "), "{observed}");
}

#[test]
fn what_arrived_in_the_instant_of_the_restore_is_a_change_of_the_lost_timeline() {
    let world = World { bump: None, ..World::honest() };
    let restored = world.restored_at() * MS;
    let reused = |arrived: u64| {
        let mut input = world.input();
        for records in input.histories.values_mut() {
            for record in records {
                match record {
                    Record::Op(op) if op.op == (Op::Create { id: 50 }) => {
                        op.outcome = Outcome::Unknown { reason: "timeout".to_owned() };
                    }
                    Record::Op(op) => {
                        if let Outcome::Ok(Answer { objects: Some(objects), .. }) = &mut op.outcome {
                            objects.retain(|(id, _)| *id != 50);
                        }
                    }
                    Record::Event(event) if matches!(event.event, Event::Put { id: 50, .. }) => {
                        event.at_ns = MonoNs(arrived);
                    }
                    _ => {}
                }
            }
        }
        judge(&input).etcd_restore[0].revisions_reused
    };
    assert_eq!((reused(restored), reused(restored + 1)), (Some(40), Some(39)));
}
