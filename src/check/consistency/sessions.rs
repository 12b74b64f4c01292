//! What one client may expect of the revisions that it is shown: they never go back.
//!
//! Within an epoch the order of writes and quorum reads is checked for all clients
//! together, and that of a watch's events by itself; this is about the rest: lists
//! from a cache, and the way from one epoch to the next.

use super::epochs::Run;
use super::violation::{Rule, Violation};
use crate::check::revisions::delivered;
use crate::history::kind::ClientKind;
use crate::history::record::{Op, Outcome, Record, RevisionOf};
use crate::timeline::clients::ClientLog;

/// A revision that the store had reached, as a client was shown it.
struct Shown {
    call: u64,
    ret: u64,
    revision: u64,
    index: usize,
    is_event: bool,
}

/// One violation for each client that saw its revision go back, with the first time
/// that it did and how often.
#[must_use]
pub fn check(run: &Run, logs: &[ClientLog]) -> Vec<Violation> {
    logs.iter()
        .filter(|log| log.kind() != ClientKind::EtcdTruth)
        .filter_map(|log| of_client(run, log))
        .collect()
}

fn of_client(run: &Run, log: &ClientLog) -> Option<Violation> {
    let shown = shown(log);
    // What was under way during the restore was answered after it.
    let epoch = |s: &Shown| run.answered_in(s.ret);
    let back: Vec<(&Shown, &Shown)> = steps_back(&shown)
        .into_iter()
        .map(|(before, after)| (&shown[before], &shown[after]))
        .filter(|(before, after)| epoch(before) != epoch(after) || !checked_elsewhere(log, before, after))
        .collect();
    let (before, after) = back.first()?;
    Some(Violation {
        rule: Rule::WentBack,
        epoch: epoch(after),
        key: None,
        at: after.ret,
        what: format!(
            "{} was shown revision {} after {}{}",
            log.name(),
            after.revision,
            before.revision,
            match back.len() {
                1 => String::new(),
                times => format!(", and went back {times} times in all"),
            }
        ),
        records: vec![log.line(before.index), log.line(after.index)],
    })
}

/// The order of two events of a watch, or of two operations that promise to be linearizable.
fn checked_elsewhere(log: &ClientLog, before: &Shown, after: &Shown) -> bool {
    let linearizable = |s: &Shown| match log.records.get(s.index) {
        Some(Record::Op(op)) => !matches!(op.op, Op::List { .. }),
        _ => false,
    };
    before.is_event && after.is_event || linearizable(before) && linearizable(after)
}

fn shown(log: &ClientLog) -> Vec<Shown> {
    let answers = log.ops().filter_map(|(index, op)| {
        let Outcome::Ok(answer) = &op.outcome else { return None };
        // The revision of an object that was read says nothing about the store's.
        let of_the_store = matches!(op.op.revision_of(), RevisionOf::Store | RevisionOf::Write(_));
        let revision = answer.revision.filter(|_| of_the_store)?;
        Some(Shown { call: op.call_ns.0, ret: op.return_ns.0, revision, index, is_event: false })
    });
    let events = delivered(log).map(|(index, event, revision)| {
        let at = event.at_ns.0;
        Shown { call: at, ret: at, revision, index, is_event: true }
    });
    let mut shown: Vec<Shown> = answers.chain(events).collect();
    shown.sort_by_key(|s| (s.call, s.ret, s.index));
    shown
}

/// Pairs of places of which the second was shown a lower revision although it was asked for later.
fn steps_back(shown: &[Shown]) -> Vec<(usize, usize)> {
    let mut by_return: Vec<usize> = (0..shown.len()).collect();
    by_return.sort_by_key(|at| (shown[*at].ret, *at));
    let mut returned = by_return.into_iter().peekable();
    let mut back = Vec::new();
    let mut highest: Option<usize> = None;
    // Once the revision went back, what was answered before is another count.
    let mut since = 0;
    for (at, now) in shown.iter().enumerate() {
        while let Some(done) = returned.next_if(|done| {
            let before = &shown[*done];
            before.ret < now.call || before.is_event && now.is_event && *done < at
        }) {
            if shown[done].ret >= since && highest.is_none_or(|h| shown[done].revision > shown[h].revision) {
                highest = Some(done);
            }
        }
        if let Some(before) = highest.filter(|h| shown[*h].revision > now.revision) {
            back.push((before, at));
            (highest, since) = (None, now.ret);
        }
    }
    back
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(answers: &[(u64, u64, u64)]) -> Vec<(usize, usize)> {
        let answer = |(call, ret, revision): &(u64, u64, u64)| (*call, *ret, *revision, false);
        back_among(&answers.iter().map(answer).collect::<Vec<_>>())
    }

    fn back_among(shown: &[(u64, u64, u64, bool)]) -> Vec<(usize, usize)> {
        let one = |(index, (call, ret, revision, is_event)): (usize, &(u64, u64, u64, bool))| Shown {
            call: *call,
            ret: *ret,
            revision: *revision,
            index,
            is_event: *is_event,
        };
        steps_back(&shown.iter().enumerate().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_was_answered_before_can_be_gone_back_from() {
        assert_eq!(back(&[(1, 2, 10), (3, 4, 9), (5, 6, 9), (7, 8, 10)]), [(0, 1)]);
        assert!(back(&[(1, 9, 10), (2, 8, 9), (3, 7, 8)]).is_empty(), "out at the same time");
        assert_eq!(back(&[(1, 2, 10), (3, 4, 5), (5, 6, 7), (7, 8, 6)]), [(0, 1), (2, 3)]);
    }

    #[test]
    fn equal_instants_prove_no_order() {
        assert_eq!(back(&[(0, 0, 10), (1, 2, 9)]), [(0, 1)]);
        assert!(back(&[(1, 3, 10), (3, 4, 9)]).is_empty());
        assert!(back(&[(1, 5, 10), (2, 6, 9)]).is_empty());
    }

    #[test]
    fn events_of_one_instant_are_in_the_order_of_their_records_and_answers_are_not() {
        assert_eq!(back_among(&[(5, 5, 10, true), (5, 5, 9, true)]), [(0, 1)]);
        assert!(back_among(&[(5, 5, 10, true), (5, 6, 9, false)]).is_empty());
        assert_eq!(back_among(&[(5, 5, 10, true), (6, 6, 9, false)]), [(0, 1)]);
        assert!(back_among(&[(3, 5, 10, false), (5, 5, 9, true)]).is_empty());
    }

    #[test]
    fn a_step_back_is_from_the_first_that_was_shown_the_highest_and_begins_a_new_count() {
        assert!(back(&[(1, 2, 10), (3, 4, 10)]).is_empty());
        assert_eq!(back(&[(1, 2, 10), (3, 4, 10), (5, 6, 9)]), [(0, 2)]);
        assert_eq!(back(&[(1, 2, 10), (3, 4, 5), (5, 6, 4)]), [(0, 1), (1, 2)]);
    }

    #[test]
    fn a_request_that_outlasted_the_restore_goes_back_once() {
        // Sent before the last answers of the old store came, answered by the new one.
        assert_eq!(back(&[(1, 2, 10), (3, 50, 4), (4, 5, 11), (60, 61, 5), (62, 63, 6)]), [(0, 1)]);
    }
}
