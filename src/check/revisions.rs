//! Revisions as a witness: whether what a client is told goes back, and whether a number
//! that named one change names another one later.

use super::Judge;
use crate::clock::MonoNs;
use crate::history::record::{Event, EventRecord, Op, Outcome, RevisionOf};
use crate::timeline::Restored;
use crate::timeline::clients::ClientLog;
use crate::timeline::truth::{Side, side};
use std::collections::{BTreeMap, BTreeSet};

/// What a revision is of: those of the store are one sequence, those of an object another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// A list, a watch, an etcd header, an acknowledged write.
    Store,
    /// A read of one object: a number of the client, or a name.
    Object(u64),
    /// A read of one named object.
    Named(String),
}

#[derive(Debug, Clone)]
struct Told {
    of: Of,
    call: MonoNs,
    ret: MonoNs,
    revision: u64,
}

/// How often what the client was told of a revision went back: an answer gives a lower one than
/// another that had returned before it was asked for, on the same sequence. Counted once for each
/// step back, not for every answer until the old revision is reached again.
///
/// # Errors
/// Why there is nothing that could go back.
pub fn regressions(log: &ClientLog) -> Result<u64, String> {
    let mut told = told(log);
    if told.is_empty() {
        return Err("it is told no revisions that follow each other".to_owned());
    }
    let mut sequences: BTreeMap<Of, Vec<Told>> = BTreeMap::new();
    for one in told.drain(..) {
        sequences.entry(one.of.clone()).or_default().push(one);
    }
    Ok(sequences.into_values().map(steps_back).sum())
}

/// An answer is held against those that had returned when it was asked for: of two that were out
/// at the same time either may be the later one. After a step back only what returned since counts,
/// or every request that was out meanwhile would be another step.
fn steps_back(mut told: Vec<Told>) -> u64 {
    told.sort_by_key(|t| t.ret);
    // The highest revision that had been told by each return since the last step back.
    let mut highest: Vec<(MonoNs, u64)> = Vec::new();
    let mut steps = 0;
    for told in &told {
        let before = highest.partition_point(|(ret, _)| *ret <= told.call);
        if before.checked_sub(1).is_some_and(|last| highest[last].1 > told.revision) {
            steps += 1;
            highest.clear();
        }
        let so_far = highest.last().map_or(0, |(_, revision)| *revision);
        highest.push((told.ret, so_far.max(told.revision)));
    }
    steps
}

fn told(log: &ClientLog) -> Vec<Told> {
    let answers = log.ops().filter_map(|(_, op)| {
        let Outcome::Ok(answer) = &op.outcome else { return None };
        let revision = answer.revision?;
        let of = match op.op.revision_of() {
            // Pages of one list share its revision, so the first one speaks for all; so do ranges at a named one.
            RevisionOf::Store
                if matches!(op.op, Op::List { page: 1.., .. } | Op::EtcdRange { revision: Some(_) }) =>
            {
                return None;
            }
            RevisionOf::Store => Of::Store,
            RevisionOf::Write(object) | RevisionOf::Object(object) => Of::Object(object),
            RevisionOf::Named(name) => Of::Named(name.to_owned()),
            RevisionOf::Nothing => return None,
        };
        Some(Told { of, call: op.call_ns, ret: op.return_ns, revision })
    });
    let events = delivered(log).map(|(_, event, revision)| Told {
        of: Of::Store,
        call: event.at_ns,
        ret: event.at_ns,
        revision,
    });
    answers.chain(events).collect()
}

/// Events that tell a revision of the store, with their index in the log and that revision. Those that a stream
/// begins with come with the revision of each object, in no order, and are left out.
pub fn delivered<'a>(log: &ClientLog<'a>) -> impl Iterator<Item = (usize, &'a EventRecord, u64)> + use<'a> {
    let mut initial = initial_streams(log);
    log.events().filter_map(move |(index, event)| {
        let revision = match event.event {
            Event::Put { .. } | Event::Delete { .. } | Event::Other { .. }
                if initial.contains(&event.stream) =>
            {
                return None;
            }
            Event::Put { revision, .. } | Event::Delete { revision, .. } | Event::Other { revision } => {
                revision
            }
            Event::Bookmark { revision, .. } => {
                initial.remove(&event.stream);
                revision
            }
            Event::Store { .. }
            | Event::Error { .. }
            | Event::Ended { .. }
            | Event::Leading { .. }
            | Event::LeadingEnded { .. } => return None,
        };
        Some((index, event, revision))
    })
}

/// Streams that begin with the state as it is, whose events come in no order until a bookmark ends it.
fn initial_streams(log: &ClientLog) -> BTreeSet<u64> {
    log.ops()
        .filter_map(|(_, op)| match op.op {
            Op::WatchList { stream } => Some(stream),
            _ => None,
        })
        .collect()
}

/// A change that a history gives a revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// A ledger object was created.
    Ledger(u64),
    /// Client, object and value of a compare-and-swap update.
    Own(String, u64, u64),
}

/// Revisions above the snapshot's that clients saw with one content before the restore and with
/// another one after it. Only changes whose content is recorded count, so it is the least number.
#[must_use]
pub fn reused(judge: &Judge, restored: &Restored) -> u64 {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    let mut note = |at: Side, revision: u64, change: Change| {
        let seen: &mut BTreeMap<u64, BTreeSet<Change>> = match at {
            Side::Lost => &mut before,
            Side::Restored => &mut after,
            Side::Spanning => return,
        };
        if revision > restored.kept {
            seen.entry(revision).or_default().insert(change);
        }
    };
    for log in &judge.logs {
        for (_, op) in log.ops() {
            let Outcome::Ok(answer) = &op.outcome else { continue };
            let at = side(restored.since, op.call_ns, op.return_ns);
            for (id, revision) in answer.objects.iter().flatten() {
                note(at, *revision, Change::Ledger(*id));
            }
            let Some(revision) = answer.revision else { continue };
            match op.op {
                Op::Create { id } => note(at, revision, Change::Ledger(id)),
                Op::CasCreate { object, value } | Op::CasUpdate { object, value, .. } => {
                    note(at, revision, Change::Own(log.name().to_owned(), object, value));
                }
                _ => {}
            }
        }
        // What a cache delivers late is a change of the timeline that it was made on: only what
        // arrived before the restore is certainly of the lost one.
        for (_, event) in log.events().filter(|(_, e)| e.at_ns <= restored.since) {
            if let Event::Put { id, revision } = event.event {
                note(Side::Lost, revision, Change::Ledger(id));
            }
        }
    }
    after.iter().filter(|(revision, now)| before.get(*revision).is_some_and(|then| then != *now)).count()
        as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::kind::ClientKind;
    use crate::timeline::small::{log, page, put};

    #[test]
    fn a_later_page_of_a_list_that_comes_late_is_no_step_back() {
        let steps_with = |last| {
            let first = page(1, 2, (1, 0), 10, &[1], true);
            regressions(&log(ClientKind::Watcher, vec![first, put(3, 2, 12), last]))
        };
        assert_eq!(steps_with(page(4, 5, (1, 1), 10, &[2], false)), Ok(0));
        assert_eq!(steps_with(page(4, 5, (2, 0), 10, &[2], false)), Ok(1), "the first page of another list");
    }

    fn steps(told: &[(u64, u64, u64)]) -> u64 {
        let one = |&(call, ret, revision): &(u64, u64, u64)| Told {
            of: Of::Store,
            call: MonoNs(call),
            ret: MonoNs(ret),
            revision,
        };
        steps_back(told.iter().map(one).collect())
    }

    #[test]
    fn a_step_back_counts_once_however_long_the_way_up_again_is() {
        assert_eq!(steps(&[(1, 2, 10), (3, 4, 20), (5, 6, 12), (7, 8, 13), (9, 10, 21)]), 1);
        assert_eq!(steps(&[(1, 2, 10), (3, 4, 5), (5, 6, 10), (7, 8, 5)]), 2);
        assert_eq!(steps(&[(1, 2, 10), (3, 4, 10), (5, 6, 11)]), 0);
    }

    #[test]
    fn answers_that_were_out_together_are_not_held_against_each_other() {
        assert_eq!(steps(&[(1, 9, 20), (2, 8, 19), (3, 7, 18)]), 0);
        assert_eq!(steps(&[(1, 4, 20), (2, 8, 19), (5, 7, 18)]), 1);
        assert_eq!(steps(&[(1, 2, 100), (3, 20, 30), (4, 6, 20), (5, 9, 25), (7, 10, 21)]), 1);
        // Two requests that were out over a restore, with answers of before it between their calls.
        assert_eq!(steps(&[(1, 2, 465), (3, 50, 220), (1, 4, 470), (5, 51, 221), (60, 61, 222)]), 1);
    }

    #[test]
    fn an_answer_is_held_against_the_highest_that_had_returned_by_its_call() {
        assert_eq!(steps(&[(1, 2, 10), (2, 3, 9)]), 1);
        assert_eq!(steps(&[(1, 3, 10), (2, 4, 9)]), 0);
        assert_eq!(steps(&[(1, 2, 10), (3, 4, 20), (3, 6, 12), (7, 8, 15)]), 1);
    }

    #[test]
    fn events_of_one_instant_are_taken_in_order() {
        assert_eq!(steps(&[(5, 5, 3), (5, 5, 4), (6, 6, 4)]), 0);
        assert_eq!(steps(&[(5, 5, 4), (6, 6, 3)]), 1);
    }
}
