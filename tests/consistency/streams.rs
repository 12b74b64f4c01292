//! What watches deliver and clients are shown, told in a few records.

use crate::objective::linearizable;
use crate::told::{Told, create, range, silent, told, unknown, without};
use crate::world::{Book, MS, World, acked};
use quakeproof::check::consistency::Consistency;
use quakeproof::check::consistency::epochs::Run;
use quakeproof::check::consistency::sessions;
use quakeproof::check::consistency::violation::{Rule, Violation};
use quakeproof::check::consistency::watches::{self, Watches};
use quakeproof::check::{Judge, Verdict};
use quakeproof::history::record::{Answer, Event, Op, Outcome};
use quakeproof::journal::entry::Fact;
use quakeproof::timeline::EvidenceInput;

/// Objects 1 to 5 were written at revisions 110 to 150, and an own one of the reader at 125.
fn whole(clients: &[Told]) -> EvidenceInput {
    let ledger = |book: &mut Book| {
        (1..=5).for_each(|id| create(book, (1_000 + 10 * id, 1_005 + 10 * id), id, acked(100 + 10 * id)));
    };
    let own = |book: &mut Book| book.op(1_022, 1_024, Op::CasCreate { object: 0, value: 1 }, acked(125));
    let all: Vec<Told> = [("orders", &ledger as &dyn Fn(&mut Book)), ("reader", &own)]
        .into_iter()
        .chain(clients.iter().copied())
        .collect();
    without(told(&World::honest(), &all), |fact| matches!(fact, Fact::Restored { .. }))
}

/// The snapshot holds objects 39 and 40; object 50 was lost at revision 150, and 1000 and 1001 were
/// written after the restore at 141 and 142.
fn restored(clients: &[Told]) -> EvidenceInput {
    let world = world();
    let late = world.serving_at();
    let ledger = |book: &mut Book| {
        create(book, (1_000, 1_001), 39, acked(139));
        create(book, (1_002, 1_003), 40, acked(140));
        create(book, (1_900, 1_901), 50, acked(150));
    };
    let again = |book: &mut Book| {
        create(book, (late, late + 1), 1_000, acked(141));
        create(book, (late + 2, late + 3), 1_001, acked(142));
    };
    let all: Vec<Told> = [("orders", &ledger as &dyn Fn(&mut Book)), ("reader", &again)]
        .into_iter()
        .chain(clients.iter().copied())
        .collect();
    told(&world, &all)
}

fn world() -> World {
    World { bump: None, ..World::honest() }
}

fn list(book: &mut Book, (call, ret): (u64, u64), revision: u64) {
    let op = Op::List { list: call, page: 0, resource_version: None, limit: None };
    let answer =
        Answer { revision: Some(revision), ids: Some([].into_iter().collect()), ..Answer::default() };
    book.op(call, ret, op, Outcome::Ok(answer));
}

fn watch(book: &mut Book, at: u64, from: u64) {
    book.stream += 1;
    book.op(at, at, Op::Watch { stream: book.stream, from }, silent());
}

fn put(book: &mut Book, at: u64, id: u64, revision: u64) {
    book.event(at, Event::Put { id, revision });
}

fn bookmark(book: &mut Book, at: u64, revision: u64) {
    book.event(at, Event::Bookmark { revision, initial_events_end: false });
}

fn watched(input: &EvidenceInput) -> Watches {
    let judge = Judge::new(input);
    watches::check(&Run::of(&judge).unwrap(), &judge.logs)
}

/// Events that were checked, and those that were not, of watches that broke no promise.
fn kept(input: &EvidenceInput) -> (u64, u64) {
    let Watches { violations, events, unjudged } = watched(input);
    assert_eq!(violations, []);
    (events, unjudged)
}

fn line(client: &str, number: usize) -> String {
    format!("histories/{client}.jsonl#{number}")
}

#[test]
fn a_watch_owes_every_change_above_its_start_once_and_in_order() {
    let deliver = |book: &mut Book| {
        put(book, 1_100, 3, 130);
        bookmark(book, 1_101, 130);
        bookmark(book, 1_102, 130);
        put(book, 1_103, 4, 140);
        put(book, 1_104, 5, 150);
    };
    let by_list = |book: &mut Book| {
        list(book, (1_050, 1_051), 120);
        watch(book, 1_052, 120);
        deliver(book);
    };
    assert_eq!(kept(&whole(&[("watch", &by_list)])), (5, 0));
    // etcd's start is the first revision that is wanted.
    let by_range = |book: &mut Book| {
        range(book, 1_050, 120, &[(1, 110), (2, 120)]);
        watch(book, 1_052, 121);
        deliver(book);
    };
    assert_eq!(kept(&whole(&[("raw", &by_range)])), (5, 0));
}

#[test]
fn a_change_left_out_is_missed_between_the_records_around_it() {
    let input = whole(&[("watch", &|book| {
        list(book, (1_050, 1_051), 120);
        watch(book, 1_052, 120);
        put(book, 1_100, 3, 130);
        put(book, 1_104, 5, 150);
    })]);
    let missed = Violation {
        rule: Rule::WatchMissed,
        epoch: 1,
        key: Some(4),
        at: 1_104 * MS,
        what: "watch got no event for 1 changes between revisions 130 and 150, the first of object 4 at 140"
            .to_owned(),
        records: vec![line("watch", 4), line("orders", 5), line("watch", 5)],
    };
    assert_eq!(watched(&input), Watches { violations: vec![missed], events: 2, unjudged: 0 });
}

#[test]
fn an_event_at_or_below_what_was_delivered_is_out_of_order_and_a_bookmark_below_it() {
    for (below, is_out) in
        [(Event::Put { id: 3, revision: 130 }, true), (Event::Put { id: 2, revision: 120 }, true)]
            .into_iter()
            .chain(
                [129, 130].map(|revision| {
                    (Event::Bookmark { revision, initial_events_end: false }, revision < 130)
                }),
            )
            .chain([129, 130].map(|revision| (Event::Other { revision }, revision < 130)))
    {
        let input = whole(&[("watch", &|book| {
            list(book, (1_050, 1_051), 120);
            watch(book, 1_052, 120);
            put(book, 1_100, 3, 130);
            book.event(1_101, below.clone());
            put(book, 1_102, 4, 140);
        })]);
        let Watches { violations, events, .. } = watched(&input);
        let out: Vec<_> = violations.into_iter().map(|v| (v.rule, v.epoch, v.at, v.records)).collect();
        let expected = (Rule::WatchOrder, 1, 1_101 * MS, vec![line("watch", 4), line("watch", 5)]);
        assert_eq!((out, events), (is_out.then_some(expected).into_iter().collect(), 3), "{below:?}");
    }
}

#[test]
fn a_watch_is_held_to_nothing_where_it_is_not_known_from_which_state_it_goes_on() {
    let after = |begin: &dyn Fn(&mut Book)| {
        kept(&whole(&[("watch", &|book| {
            begin(book);
            put(book, 1_100, 3, 130);
        })]))
    };
    assert_eq!(after(&|_| {}), (0, 1));
    let listed = |book: &mut Book| list(book, (1_050, 1_051), 120);
    let page = |book: &mut Book, page, more| {
        let op = Op::List { list: 7, page, resource_version: None, limit: Some(1) };
        let ids = Some([u64::from(page) + 1].into_iter().collect());
        let answer = Answer { revision: Some(120), ids, more, ..Answer::default() };
        book.op(1_060, 1_061, op, Outcome::Ok(answer));
    };
    let store = |revision| Event::Store { ids: [1, 2].into_iter().collect(), revision };
    assert_eq!(after(&listed), (1, 0));
    assert_eq!(after(&|book| page(book, 0, true)), (0, 1));
    assert_eq!(
        after(&|book| {
            page(book, 0, true);
            page(book, 1, false);
        }),
        (1, 0)
    );
    // From 0 on it begins with the objects that there are.
    for (from, judged) in [(0, (0, 1)), (120, (1, 0))] {
        assert_eq!(
            after(&|book| {
                listed(book);
                watch(book, 1_070, from);
            }),
            judged
        );
    }
    for (revision, judged) in [(None, (0, 1)), (Some(119), (0, 1)), (Some(120), (1, 0)), (Some(121), (0, 1))]
    {
        assert_eq!(
            after(&|book| {
                listed(book);
                book.event(1_070, store(revision));
            }),
            judged
        );
    }
}

#[test]
fn a_watch_from_the_first_revision_owes_everything() {
    let from = |client: &str, from: u64| {
        kept(&whole(&[(client, &|book| {
            range(book, 1_050, 120, &[]);
            watch(book, 1_070, from);
            (1..=5).for_each(|id| put(book, 1_100 + id, id, 100 + 10 * id));
        })]))
    };
    assert_eq!(from("watch", 1), (5, 0));
    assert_eq!(from("raw", 2), (5, 0));
    assert_eq!(from("raw", 1), (0, 5));
}

#[test]
fn the_state_that_a_watch_begins_with_comes_in_any_order_up_to_its_bookmark() {
    let input = whole(&[("watch", &|book| {
        list(book, (1_050, 1_051), 150);
        book.stream += 1;
        book.op(1_060, 1_060, Op::WatchList { stream: book.stream }, silent());
        put(book, 1_061, 2, 120);
        put(book, 1_062, 1, 110);
        book.event(1_063, Event::Bookmark { revision: 120, initial_events_end: true });
        put(book, 1_064, 3, 130);
    })]);
    assert_eq!(kept(&input), (1, 2));
}

#[test]
fn a_watch_that_lives_through_a_restore_owes_all_of_the_restored_timeline() {
    let late = world().serving_at();
    let through = |again: &[(u64, u64)]| {
        watched(&restored(&[("watch", &|book| {
            list(book, (1_050, 1_051), 140);
            watch(book, 1_052, 140);
            put(book, 1_950, 50, 150);
            again.iter().for_each(|(id, revision)| put(book, late + 10, *id, *revision));
        })]))
    };
    assert_eq!(through(&[(1_000, 141), (1_001, 142)]), Watches { events: 3, ..Watches::default() });
    let missed = Violation {
        rule: Rule::WatchMissed,
        epoch: 2,
        key: Some(1_000),
        at: (late + 10) * MS,
        what:
            "watch got no event for 1 changes between revisions 140 and 142, the first of object 1000 at 141"
                .to_owned(),
        records: vec![line("watch", 4), line("reader", 2), line("watch", 5)],
    };
    assert_eq!(through(&[(1_001, 142)]), Watches { violations: vec![missed], events: 2, unjudged: 0 });
}

#[test]
fn what_comes_late_of_the_lost_timeline_is_not_held_against_a_list_of_the_restored_one() {
    let (since, late) = (world().restored_at(), world().serving_at());
    let after = |times, id, revision| {
        watched(&restored(&[("watch", &|book| {
            list(book, times, 140);
            put(book, late + 10, id, revision);
        })]))
    };
    let unjudged = Watches { unjudged: 1, ..Watches::default() };
    let judged = Watches { events: 1, ..Watches::default() };
    assert_eq!(after((since, since + 1), 50, 150), unjudged);
    assert_eq!(after((since, since + 1), 1_000, 141), judged);
    // Answered when no restored store can have run.
    assert_eq!(after((since - 1, since), 50, 150), judged);
    // Sent before and answered after: it may be of either.
    assert_eq!(after((since - 1, since + 1), 50, 150), unjudged);
    assert_eq!(after((since - 1, since + 1), 1_000, 141), unjudged);
}

#[test]
fn what_a_restored_store_began_with_is_owed_to_a_watch_from_before_it() {
    let late = world().serving_at();
    let input = restored(&[("watch", &|book| {
        list(book, (late, late + 1), 140);
        watch(book, late + 2, 138);
        put(book, late + 10, 1_000, 141);
    })]);
    let Watches { violations, .. } = watched(&input);
    let [missed] = violations.as_slice() else { panic!("{violations:?}") };
    assert_eq!((missed.rule, missed.epoch, missed.key), (Rule::WatchMissed, 2, Some(39)));
    // No record of this epoch shows the object.
    assert_eq!(missed.records, [line("watch", 2), line("watch", 4)]);
}

fn shown(input: &EvidenceInput) -> Vec<Violation> {
    let judge = Judge::new(input);
    sessions::check(&Run::of(&judge).unwrap(), &judge.logs)
}

#[test]
fn a_client_whose_lists_went_back_is_named_once_with_the_first_time() {
    let lists = |revisions: &[u64]| {
        shown(&whole(&[("lister", &|book| {
            (1_100..)
                .step_by(10)
                .zip(revisions)
                .for_each(|(at, revision)| list(book, (at, at + 5), *revision));
        })]))
    };
    let went_back = |what: &str| Violation {
        rule: Rule::WentBack,
        epoch: 1,
        key: None,
        at: 1_115 * MS,
        what: what.to_owned(),
        records: vec![line("lister", 2), line("lister", 3)],
    };
    assert_eq!(lists(&[110, 120, 120]), []);
    assert_eq!(lists(&[120, 110]), [went_back("lister was shown revision 110 after 120")]);
    assert_eq!(
        lists(&[120, 110, 130, 110, 140, 130]),
        [went_back("lister was shown revision 110 after 120, and went back 3 times in all")]
    );
}

#[test]
fn only_what_no_other_rule_orders_is_held_together_for_one_client() {
    let back = |first: &dyn Fn(&mut Book), second: &dyn Fn(&mut Book)| {
        let input = whole(&[("watch", &|book| {
            first(book);
            second(book);
        })]);
        let found = shown(&input);
        assert!(found.iter().all(|v| v.records == [line("watch", 2), line("watch", 3)]), "{found:?}");
        found.len()
    };
    let listed = |book: &mut Book, at, revision| list(book, (at, at + 5), revision);
    let read = |book: &mut Book, at, revision| range(book, at, revision, &[]);
    let event = |book: &mut Book, at, revision| put(book, at, 3, revision);
    type Show<'a> = &'a dyn Fn(&mut Book, u64, u64);
    let ways: [Show; 3] = [&listed, &read, &event];
    let found = ways.map(|first| {
        ways.map(|second| back(&|book| first(book, 1_100, 140), &|book| second(book, 1_110, 130)))
    });
    // Quorum reads are ordered for all clients together, and events for their watch.
    assert_eq!(found, [[1, 1, 1], [1, 0, 1], [1, 1, 0]]);
    // The revision of an object says nothing about the store's.
    let get = |book: &mut Book| book.op(1_110, 1_111, Op::Get { id: 1 }, acked(110));
    assert_eq!(back(&|book| listed(book, 1_100, 140), &get), 0);
}

#[test]
fn a_revision_that_went_back_with_the_restore_is_of_the_epoch_that_gave_it() {
    let since = world().restored_at();
    let back = |client: &str, ret: u64| {
        let input = restored(&[(client, &|book| {
            range(book, 1_950, 150, &[]);
            book.op(1_960, ret, Op::EtcdRange { revision: None }, acked(141));
        })]);
        shown(&input).into_iter().map(|v| (v.epoch, v.at, v.records)).collect::<Vec<_>>()
    };
    let records = vec![line("raw", 2), line("raw", 3)];
    assert_eq!(back("raw", since + 1), [(2, (since + 1) * MS, records)]);
    // In this very instant no restored store has answered, and quorum reads of one epoch are ordered elsewhere.
    assert_eq!(back("raw", since), []);
    // What etcd itself tells is the measure.
    assert_eq!(back("truth", since + 1), []);
}

fn consistency(input: &EvidenceInput) -> Consistency {
    Consistency::of(&Judge::new(input), 100).unwrap()
}

#[test]
fn what_was_checked_and_searched_is_counted() {
    let input = whole(&[
        ("orders", &|book| create(book, (1_100, 1_105), 9, silent())),
        ("lister", &|book| book.op(1_110, 1_115, Op::Get { id: 9 }, silent())),
    ]);
    let all = consistency(&input);
    assert!(all.violations.is_empty() && all.undecided.is_empty(), "{all:?}");
    assert_eq!((all.operations, all.events, all.searched, all.states), (8, 0, 1, 2));
}

#[test]
fn what_nobody_wrote_is_dated_by_the_record_that_shows_it() {
    let late = world().serving_at();
    let strays = |input: &EvidenceInput| {
        let mut all = consistency(input).violations;
        all.retain(|v| [Rule::Unwritten, Rule::LostValue].contains(&v.rule));
        all.into_iter().map(|v| (v.rule, v.epoch, v.key, v.at, v.records)).collect::<Vec<_>>()
    };
    let by_event = whole(&[("watch", &|book| put(book, 1_100, 9, 125))]);
    assert_eq!(strays(&by_event), [(Rule::Unwritten, 1, Some(9), 1_100 * MS, vec![line("watch", 2)])]);
    let by_get = whole(&[("lister", &|book| book.op(1_100, 1_105, Op::Get { id: 9 }, acked(125)))]);
    assert_eq!(strays(&by_get), [(Rule::Unwritten, 1, Some(9), 1_105 * MS, vec![line("lister", 2)])]);
    let lost = restored(&[("lister", &|book| book.op(late, late + 5, Op::Get { id: 50 }, acked(150)))]);
    let records = vec![line("orders", 4), line("lister", 2)];
    assert_eq!(strays(&lost), [(Rule::LostValue, 2, Some(50), (late + 5) * MS, records)]);
}

#[test]
fn the_first_violation_is_the_earliest_whatever_kind_it_is() {
    let input = whole(&[
        ("lister", &|book| {
            list(book, (1_100, 1_101), 0);
            list(book, (1_102, 1_103), 150);
            list(book, (1_104, 1_105), 0);
        }),
        ("watch", &|book| put(book, 1_200, 9, 155)),
    ]);
    let rules: Vec<Rule> = consistency(&input).violations.into_iter().map(|v| v.rule).collect();
    let at = |rule| rules.iter().position(|r| *r == rule);
    assert!(at(Rule::WentBack).unwrap() < at(Rule::Unwritten).unwrap(), "{rules:?}");
}

#[test]
fn a_wrong_value_is_of_the_epoch_whose_store_answered() {
    let since = world().restored_at();
    let wrong = |call: u64, ret: u64| {
        let answer = Answer { wrong_value: true, ..Answer::default() };
        let input = restored(&[("lister", &|book| {
            book.op(call, ret, Op::Get { id: 40 }, Outcome::Ok(answer.clone()));
        })]);
        let mut all = consistency(&input).violations;
        all.retain(|v| v.rule == Rule::WrongValue);
        all.into_iter().map(|v| (v.epoch, v.key, v.at, v.records)).collect::<Vec<_>>()
    };
    let of = |epoch, ret: u64| [(epoch, Some(40), ret * MS, vec![line("lister", 2)])];
    assert_eq!(wrong(1_200, 1_201), of(1, 1_201));
    assert_eq!(wrong(since - 1, since), of(1, since));
    assert_eq!(wrong(since - 1, since + 1), of(2, since + 1));
    assert_eq!(wrong(since + 1, since + 2), of(2, since + 2));
}

fn rules(input: &EvidenceInput) -> Vec<(Rule, String)> {
    consistency(input).violations.into_iter().map(|v| (v.rule, v.what)).collect()
}

#[test]
fn a_deletion_by_nobody_is_told_as_one() {
    let input = whole(&[("watch", &|book| {
        watch(book, 1_100, 150);
        book.event(1_110, Event::Delete { id: 3, revision: 160 });
    })]);
    let told = "object 3 was deleted at revision 160 by nobody on record".to_owned();
    assert_eq!(rules(&input), [(Rule::Unwritten, told)]);
}

#[test]
fn an_object_that_only_a_range_shows_was_written_by_nobody() {
    let mut objects: Vec<(u64, u64)> = (1..=5).map(|id| (id, 100 + 10 * id)).collect();
    let good = whole(&[("truth", &|book| range(book, 1_100, 150, &objects))]);
    assert_eq!(rules(&good), []);
    objects.push((9, 145));
    let input = whole(&[("truth", &|book| range(book, 1_100, 150, &objects))]);
    let told = "object 9 of revision 145 was written by nobody on record".to_owned();
    assert_eq!(rules(&input), [(Rule::Unwritten, told)]);
}

#[test]
fn a_range_that_was_cut_short_says_nothing_of_what_it_lacks() {
    let cut = |more: bool| {
        let answer = Answer { revision: Some(150), objects: Some(vec![(1, 110)]), more, ..Answer::default() };
        whole(&[("truth", &|book| {
            book.op(1_100, 1_101, Op::EtcdRange { revision: None }, Outcome::Ok(answer.clone()));
        })])
    };
    let lacking: Vec<Rule> = rules(&cut(false)).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(lacking, [Rule::Range]);
    assert_eq!(rules(&cut(true)), []);
}

#[test]
fn a_range_must_not_be_older_than_what_had_been_acknowledged() {
    let input = whole(&[("truth", &|book| range(book, 1_100, 120, &[(1, 110), (2, 120)]))]);
    let rules: Vec<Rule> = rules(&input).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, [Rule::RevisionOrder]);
}

#[test]
fn a_write_without_an_answer_may_take_effect_after_its_time() {
    let objects: Vec<(u64, u64)> = (1..=5).map(|id| (id, 100 + 10 * id)).collect();
    let input = whole(&[
        ("orders", &|book| create(book, (1_100, 1_105), 6, unknown())),
        ("truth", &|book| range(book, 1_200, 150, &objects)),
        ("watch", &|book| {
            watch(book, 1_210, 150);
            put(book, 1_300, 6, 160);
        }),
    ]);
    assert_eq!(rules(&input), []);
}

#[test]
fn only_a_writer_s_history_that_broke_off_excuses_what_nobody_wrote() {
    let mut input = whole(&[("watch", &|book| put(book, 1_100, 9, 125))]);
    input.histories.get_mut("lister").unwrap().pop();
    assert_eq!(consistency(&input).violations.len(), 1);
    input.histories.get_mut("orders").unwrap().pop();
    let all = consistency(&input);
    assert_eq!(all.violations, []);
    assert!(all.undecided[0].starts_with("object 9 of revision 125: "), "{:?}", all.undecided);
}

#[test]
fn a_pass_says_what_was_searched_and_what_was_not_judged() {
    let searched = whole(&[
        ("orders", &|book| create(book, (1_100, 1_105), 9, silent())),
        ("lister", &|book| book.op(1_110, 1_115, Op::Get { id: 9 }, silent())),
    ]);
    let found = linearizable(&searched);
    assert!(found.reason.contains("; 1 objects were searched, 2 states explored"), "{}", found.reason);
    let (from, to) = (world().lost_at() - 1, world().serving_at());
    let hung = restored(&[("lister", &|book| book.op(from, to, Op::Get { id: 40 }, acked(140)))]);
    let found = linearizable(&hung);
    assert!(
        found.reason.contains("; 1 reads under way during the restore are not judged"),
        "{}",
        found.reason
    );
}

#[test]
fn a_drill_in_which_nobody_wrote_or_read_with_a_quorum_proves_nothing() {
    let restores = |fact: &Fact| matches!(fact, Fact::Restored { .. });
    let none = linearizable(&without(told(&World::honest(), &[]), restores));
    assert_eq!(none.verdict, Verdict::Inconclusive);
    assert_eq!(none.reason, "no client of the drill wrote or read with a quorum");
    let write = |book: &mut Book| create(book, (1_100, 1_105), 1, acked(110));
    let one = linearizable(&without(told(&World::honest(), &[("orders", &write)]), restores));
    assert!(one.reason.starts_with("1 operations and 0 watch events fit"), "{}", one.reason);
}
