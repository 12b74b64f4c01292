use super::super::small::{closed, failed, fault, log, moment, op};
use super::*;
use crate::history::record::{Answer, Op, Outcome};

/// Operations that return at 99, 100, 101, 199, 200 and 201.
fn counts(begin: u64, end: Option<u64>) -> (u64, u64, u64) {
    let get = |ret| op(90, ret, Op::Get { id: 1 }, Outcome::Ok(Answer::default()));
    let reader = log(ClientKind::GetReader, [99, 100, 101, 199, 200, 201].map(get).into());
    let boot = Some(moment(0).boot);
    let boundaries = Boundaries { boot, faults: vec![fault(begin, end)], ..Boundaries::default() };
    let found = operations(&reader, &boundaries);
    assert_eq!(found.total(), 6);
    (found.before, found.during, found.after)
}

#[test]
fn a_part_of_the_run_begins_with_its_first_instant() {
    assert_eq!(counts(100, Some(200)), (1, 3, 2));
    assert_eq!(counts(101, Some(199)), (2, 1, 3));
    assert_eq!(counts(100, Some(100)), (1, 0, 5), "a fault of no duration");
}

#[test]
fn a_fault_that_did_not_end_lasts_and_without_one_all_was_before_it() {
    assert_eq!(counts(100, None), (1, 5, 0));
    let reader = log(ClientKind::GetReader, vec![op(90, 91, Op::Get { id: 1 }, failed(404)), closed(92)]);
    let found = operations(&reader, &Boundaries::default());
    assert_eq!(found, Operations { before: 1, during: 0, after: 0 });
}

#[test]
fn an_update_counts_if_it_was_accepted_or_refused_for_what_it_rested_on() {
    let update = |outcome| op(90, 91, Op::CasUpdate { object: 1, held: 5, value: 2 }, outcome);
    let outcomes = [
        Outcome::Ok(Answer::default()),
        failed(404),
        failed(409),
        failed(500),
        Outcome::Unknown { reason: "timeout".to_owned() },
    ];
    let updater = log(ClientKind::CasUpdater, outcomes.map(update).into());
    assert_eq!(operations(&updater, &Boundaries::default()).before, 3);
}

#[test]
fn of_several_parts_with_too_few_operations_the_first_is_named() {
    let had = Operations { before: 3, during: 2, after: 1 };
    let short = |before, during, after| had.short_of(&MinimumOperations { before, during, after });
    assert_eq!(short(3, 2, 1), None);
    let named = |part: &str| Some(format!("{part}, the plan asks for 4"));
    assert_eq!(short(4, 4, 4), named("3 operations before the fault"));
    assert_eq!(short(3, 4, 4), named("2 operations during the fault"));
    assert_eq!(short(3, 2, 4), named("1 operations after the fault"));
}
