use super::super::small::{answered, event, failed, list, log, op, put, range, restored};
use super::*;
use crate::history::record::{EventRecord, Record};

const OBJECTS: [(u64, u64); 3] = [(1, 9), (2, 11), (3, 12)];

/// Etcd got its second object before 110 and its third before 150; a look is taken at each range.
fn timeline() -> Restored {
    restored(vec![range(110, 111, 11, &OBJECTS[..2]), range(150, 151, 12, &OBJECTS)])
}

/// A look: when, at which revision, how many objects are missing and too many.
type Look = (u64, u64, Option<(u64, u64)>);

fn seen(records: Vec<Record>) -> Vec<Look> {
    let watch = log(ClientKind::Watcher, records);
    let found = views(&watch, &timeline());
    let looks = found.iter().map(|view| {
        let difference = view.difference().map(|d| (d.absent, d.phantom));
        (view.ret.0, view.revision.unwrap(), difference)
    });
    looks.collect()
}

#[test]
fn a_watcher_without_a_first_list_has_no_view_and_its_first_record_is_cited() {
    let watch = log(ClientKind::Watcher, vec![put(120, 2, 11), list(130, 131, 11, &[1, 2])]);
    let found = &views(&watch, &timeline())[0];
    assert_eq!(found.judged, Judged::Unjudged("the watcher never had a first list".to_owned()));
    assert_eq!((found.call, found.line.as_str()), (MonoNs(110), "histories/Watcher.jsonl#1"));
}

#[test]
fn a_look_in_the_instant_of_an_event_shows_the_event() {
    let with = |at| seen(vec![list(60, 61, 9, &[1]), put(at, 2, 11), put(140, 3, 12), put(160, 3, 12)]);
    assert_eq!(with(110), [(110, 11, Some((0, 0))), (150, 12, Some((0, 0)))]);
    assert_eq!(with(111), [(110, 9, Some((0, 0))), (150, 12, Some((0, 0)))], "right for what it claims");
}

#[test]
fn looks_are_taken_up_to_the_last_instant_of_a_history() {
    let until = |end| seen(vec![list(60, 61, 9, &[1]), put(105, 2, 11), put(end, 3, 12)]).len();
    assert_eq!(until(149), 1);
    assert_eq!(until(150), 2);
    assert_eq!(until(151), 2);
}

#[test]
fn a_new_list_is_looked_at_and_what_was_believed_just_before_it() {
    let relisted =
        |call, ret| seen(vec![list(60, 61, 9, &[1, 7]), list(call, ret, 11, &[1, 2]), put(140, 3, 12)]);
    let believed = |at| (at, 9, Some((0, 1)));
    let at_ranges = || vec![(110, 11, Some((0, 0)))];
    assert_eq!(relisted(98, 99), at_ranges(), "before the restore");
    assert_eq!(relisted(98, 100), [vec![believed(100)], at_ranges()].concat(), "asked for before it");
    let asked_since = |ret| [vec![believed(ret - 1), (ret, 11, Some((0, 0)))], at_ranges()].concat();
    assert_eq!(relisted(100, 105), asked_since(105), "in its instant");
    assert_eq!(relisted(99, 105), [vec![believed(104)], at_ranges()].concat());
}

#[test]
fn before_its_first_list_a_watcher_believed_nothing() {
    assert_eq!(seen(vec![list(102, 103, 11, &[1, 2]), put(140, 3, 12)])[0], (103, 11, Some((0, 0))));
}

#[test]
fn a_list_that_was_refused_is_told_from_one_that_was_not_answered() {
    let judged = |outcome| {
        let page = Op::List { list: 1, page: 0, resource_version: None, limit: None };
        let reader = log(ClientKind::ListReader, vec![op(120, 121, page, outcome)]);
        views(&reader, &timeline()).remove(0).judged
    };
    let silent = |refused, reason: &str| Judged::NoAnswer { refused, reason: reason.to_owned() };
    assert_eq!(judged(failed(500)), silent(true, "status 500"));
    assert_eq!(judged(Outcome::Unknown { reason: "timeout".to_owned() }), silent(false, "timeout"));
}

#[test]
fn the_state_that_a_watch_begins_with_is_made_up_of_its_own_events_alone() {
    let of_stream = |stream, record| match record {
        Record::Event(event) => Record::Event(EventRecord { stream, ..event }),
        other => other,
    };
    let whole = event(106, Event::Bookmark { revision: 11, initial_events_end: true });
    let found = seen(vec![
        list(60, 61, 9, &[1]),
        op(101, 102, Op::WatchList { stream: 2 }, answered(11)),
        of_stream(2, put(103, 1, 9)),
        put(104, 7, 10),
        of_stream(2, put(105, 2, 11)),
        of_stream(2, whole),
        put(120, 2, 11),
    ]);
    let at_once = [(105, 10, Some((0, 1))), (106, 11, Some((0, 0))), (110, 11, Some((0, 0)))];
    assert_eq!(found, at_once, "the one before it had delivered object 7");
}
