//! Which writes a watch has to deliver until when, and what ends it.

use super::{finding_by, in_force, other};
use quakeproof::check::apf::watch::WatchDelivers;
use quakeproof::check::{Finding, Verdict};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Event, EventRecord, Op, Record};
use quakeproof::journal::entry::JournalEvent;
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use std::time::Duration;

fn good() -> EvidenceInput {
    other("jailed-watch")
}

fn judged(input: &EvidenceInput, within_ns: u64) -> Finding {
    let objective = WatchDelivers {
        name: "another".to_owned(),
        client: "open-watch".to_owned(),
        within: Span(Duration::from_nanos(within_ns)),
    };
    finding_by(&mut input.clone(), Objective::WatchDelivers(objective))
}

const WITHIN: u64 = 2_000_000_000;

fn ended(input: &EvidenceInput) -> MonoNs {
    Boundaries::of(input).faults.remove(0).ended.unwrap().mono_ns
}

/// When the level was in force: call and return of each write that was sent meanwhile, by return.
fn writes(input: &EvidenceInput) -> Vec<(MonoNs, MonoNs)> {
    let from = in_force(input);
    let ops = input.histories["orders"].iter().filter_map(|record| match record {
        Record::Op(op) if op.call_ns >= from => Some((op.call_ns, op.return_ns)),
        _ => None,
    });
    let mut writes: Vec<_> = ops.collect();
    writes.sort_by_key(|(_, ret)| *ret);
    writes
}

#[test]
fn a_write_that_was_sent_in_the_instant_at_which_the_level_was_seen_is_due() {
    let input = good();
    let (sent, _) = writes(&input)[10];
    let arrived = |seen: MonoNs| {
        let mut input = input.clone();
        let verified = |event: &JournalEvent| matches!(event, JournalEvent::InjectionVerified { .. });
        input.journal.iter_mut().find(|entry| verified(&entry.event)).unwrap().mono_ns = seen;
        judged(&input, WITHIN).reason
    };
    assert!(arrived(sent).starts_with("269 of 269 writes"), "{}", arrived(sent));
    assert!(arrived(sent.plus(1)).starts_with("268 of 268 writes"), "{}", arrived(sent.plus(1)));
}

/// Twenty writes show something, nineteen nothing.
#[test]
fn a_write_whose_time_is_over_when_the_level_is_ended_is_due() {
    let input = good();
    let (_, answered) = writes(&input)[19];
    let all_of_it = ended(&input).since(answered);
    let twenty = judged(&input, all_of_it);
    assert_eq!(twenty.verdict, Verdict::Pass, "{}", twenty.reason);
    assert!(twenty.reason.starts_with("20 of 20 writes"), "{}", twenty.reason);
    let nineteen = judged(&input, all_of_it + 1);
    assert_eq!(nineteen.verdict, Verdict::Inconclusive);
    assert!(nineteen.reason.contains("19 writes are too few to tell"), "{}", nineteen.reason);
}

#[test]
fn a_write_that_arrives_in_the_last_instant_of_its_time_is_not_late() {
    let mut input = good();
    let Some(Record::Op(op)) = input.histories["orders"]
        .iter()
        .find(|record| matches!(record, Record::Op(op) if op.call_ns >= in_force(&input)))
        .cloned()
    else {
        panic!("nothing was written")
    };
    let Op::Create { id: written } = op.op else { panic!("{:?}", op.op) };
    let mut arriving = |at: MonoNs| {
        for record in input.histories.get_mut("open-watch").unwrap() {
            if let Record::Event(EventRecord { at_ns, event: Event::Put { id, .. }, .. }) = record
                && *id == written
            {
                *at_ns = at;
            }
        }
        judged(&input, WITHIN)
    };
    assert_eq!(arriving(op.return_ns.plus(WITHIN)).verdict, Verdict::Pass);
    let late = arriving(op.return_ns.plus(WITHIN + 1));
    assert_eq!((late.verdict, late.observed), (Verdict::Fail, Some(1)));
}

#[test]
fn a_watch_that_ends_in_the_first_or_the_last_instant_of_the_level_is_interrupted() {
    let input = good();
    let (from, to) = (in_force(&input), ended(&input));
    let ending = |at: MonoNs| {
        let mut input = input.clone();
        let history = input.histories.get_mut("open-watch").unwrap();
        let is_event = |record: &Record| matches!(record, Record::Event(_));
        let later = |record: &Record| matches!(record, Record::Event(event) if event.at_ns > at);
        let index = history.iter().position(later).unwrap();
        let Some(Record::Event(mut event)) = history[..index].iter().rfind(|r| is_event(r)).cloned() else {
            panic!("nothing arrived before")
        };
        (event.at_ns, event.event) = (at, Event::Ended { reason: "eof".to_owned() });
        history.insert(index, Record::Event(event));
        let finding = judged(&input, WITHIN);
        (finding.verdict, finding.observed)
    };
    assert_eq!(ending(MonoNs(from.0 - 1)), (Verdict::Pass, Some(0)));
    assert_eq!(ending(from), (Verdict::Fail, Some(1)));
    assert_eq!(ending(to), (Verdict::Fail, Some(1)));
    assert_eq!(ending(to.plus(1)), (Verdict::Pass, Some(0)));
}

/// Numbers the operations of a history in their order, and closes it with as many.
fn count_anew(history: &mut [Record]) {
    let mut count = 0;
    for record in history {
        match record {
            Record::Op(op) => {
                op.seq = count;
                count += 1;
            }
            Record::Closed { scheduled, recorded, .. } => (*scheduled, *recorded) = (count, count),
            Record::Opened { .. } | Record::Event(_) => {}
        }
    }
}

#[test]
fn a_watch_that_is_opened_again_while_the_level_is_in_force_was_interrupted() {
    let mut input = good();
    let from = in_force(&input);
    let history = input.histories.get_mut("open-watch").unwrap();
    let opened = |record: &Record| matches!(record, Record::Op(op) if matches!(op.op, Op::Watch { .. }));
    let Some(Record::Op(mut again)) = history.iter().find(|record| opened(record)).cloned() else {
        panic!("no watch was opened")
    };
    (again.call_ns, again.return_ns) = (from.plus(1), from.plus(2));
    let later = |record: &Record| matches!(record, Record::Event(event) if event.at_ns > from.plus(2));
    let index = history.iter().position(later).unwrap();
    history.insert(index, Record::Op(again.clone()));
    count_anew(history);
    let found = judged(&input, WITHIN);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    // A list is no watch.
    again.op = Op::List { list: 1, page: 0, resource_version: None, limit: None };
    let history = input.histories.get_mut("open-watch").unwrap();
    history[index] = Record::Op(again);
    count_anew(history);
    let found = judged(&input, WITHIN);
    assert_eq!((found.verdict, found.observed), (Verdict::Pass, Some(0)), "{}", found.reason);
}
