//! Orders of a handful of operations, told by hand: what revisions, and where they are
//! missing a search, say of them.

use quakeproof::check::consistency::epochs::{Epoch, Sighting};
use quakeproof::check::consistency::minimise::minimise;
use quakeproof::check::consistency::model::{
    Action, Cell, Change, Name, Operation, PENDING, RangeRead, Seen, WriteResult, is_ledgers, own_key,
};
use quakeproof::check::consistency::versions::Versions;
use quakeproof::check::consistency::violation::{Rule, Violation};
use quakeproof::check::consistency::witness::differs;
use quakeproof::check::consistency::{Checked, operations};
use std::collections::{BTreeMap, BTreeSet};

const AMPLE: u64 = 10_000;

fn write(key: u64, change: Change, result: WriteResult) -> Action {
    Action::Write { key, change, result }
}

fn create(key: u64, revision: u64) -> Action {
    write(key, Change::Create, WriteResult::Done(Some(revision)))
}

/// A create that was acknowledged without a revision.
fn silent(key: u64) -> Action {
    write(key, Change::Create, WriteResult::Done(None))
}

fn update(key: u64, expected: u64, revision: u64) -> Action {
    write(key, Change::Update(Some(expected)), WriteResult::Done(Some(revision)))
}

fn refused(key: u64, change: Change) -> Action {
    write(key, change, WriteResult::Conflict)
}

fn unknown(key: u64, change: Change) -> Action {
    write(key, change, WriteResult::Unknown)
}

fn read(key: u64, seen: Seen) -> Action {
    Action::Read { key, seen }
}

fn at(revision: u64) -> Seen {
    Seen::Present(Some(revision))
}

fn range(head: u64, objects: &[(u64, u64)]) -> RangeRead {
    let objects = objects.iter().map(|(key, revision)| (*key, Some(*revision))).collect();
    RangeRead { head, at: head, fresh: true, objects }
}

fn ranged(head: u64, objects: &[(u64, u64)]) -> Action {
    Action::Range(range(head, objects))
}

/// Operations one after the other: the `n`-th is sent at `10 n` and answered at `10 n + 5`.
fn told(actions: impl IntoIterator<Item = Action>) -> Epoch {
    let times = (0..).map(|n| (10 * n, 10 * n + 5));
    timed(times.zip(actions))
}

fn timed(operations: impl IntoIterator<Item = ((u64, u64), Action)>) -> Epoch {
    let operation =
        |(n, ((call, ret), action))| Operation { client: 0, line: format!("#{n}"), call, ret, action };
    Epoch {
        number: 1,
        operations: operations.into_iter().enumerate().map(operation).collect(),
        ..Epoch::default()
    }
}

fn check(epoch: &Epoch) -> Checked {
    operations(epoch, &Versions::of(epoch), &mut { AMPLE })
}

/// Rule, records and instant of everything that is impossible.
fn found(epoch: &Epoch) -> Vec<(Rule, String, u64)> {
    let one = |v: Violation| (v.rule, v.records.join(" "), v.at);
    check(epoch).violations.into_iter().map(one).collect()
}

const NOTHING: [(Rule, String, u64); 0] = [];

fn of(rule: Rule, records: &str, at: u64) -> Vec<(Rule, String, u64)> {
    vec![(rule, records.to_owned(), at)]
}

#[test]
fn own_objects_are_apart_from_the_ledger_and_by_client_and_number() {
    let keys: BTreeSet<u64> = (0..3).flat_map(|client| (0..3).map(move |n| own_key(client, n))).collect();
    assert_eq!(keys.len(), 9);
    assert!(keys.iter().all(|key| !is_ledgers(*key)));
    assert!(is_ledgers(own_key(0, 0) - 1));
    assert_eq!(Name(own_key(2, 7)).to_string(), "own object 7 of client 2");
    assert_eq!(Name(7).to_string(), "object 7");
}

#[test]
fn an_object_takes_only_what_fits_how_it_is() {
    let acked = BTreeSet::from([7, 9]);
    let step = |cell: Cell, action: Action| cell.step(&action, 1, &acked);
    let (absent, there) = (Cell::absent(), Cell::at(5));
    // Changed since 5, nobody knows at which revision.
    let changed = step(there, unknown(1, Change::Update(None))).unwrap();
    for (cell, seen, after) in [
        (absent, Seen::Absent, Some(absent)),
        (absent, Seen::Present(None), None),
        (absent, at(0), None),
        (there, Seen::Absent, None),
        (there, at(4), None),
        (there, at(5), Some(there)),
        (there, at(6), None),
        (changed, Seen::Absent, None),
        (changed, at(4), None),
        (changed, at(5), None),
        (changed, at(6), Some(Cell::at(6))),
        (changed, at(7), None),
        (changed, at(8), Some(Cell::at(8))),
    ] {
        assert_eq!(step(cell, read(1, seen)), after, "{cell:?} {seen:?}");
    }
    assert_eq!(step(absent, create(1, 1)), Some(Cell::at(1)));
    assert_eq!(step(there, create(1, 6)), None);
    assert_eq!(step(there, update(1, 5, 6)), Some(Cell::at(6)));
    assert_eq!(step(there, update(1, 5, 5)), None);
    assert_eq!(step(there, update(1, 4, 6)), None);
    assert_eq!(step(absent, update(1, 0, 6)), None);
    assert_eq!(step(changed, update(1, 6, 7)), Some(Cell::at(7)));
}

#[test]
fn a_change_is_refused_only_where_its_condition_does_not_hold() {
    let acked = BTreeSet::new();
    let (absent, there) = (Cell::absent(), Cell::at(5));
    let changed = there.step(&unknown(1, Change::Update(None)), 1, &acked).unwrap();
    for (change, refusing, taking) in [
        (Change::Create, vec![there, changed], vec![absent]),
        (Change::Update(None), vec![absent], vec![there, changed]),
        (Change::Update(Some(5)), vec![absent, changed, Cell::at(6)], vec![there]),
        (Change::Update(Some(0)), vec![absent], vec![]),
    ] {
        let after = |cell: Cell| cell.step(&refused(1, change), 1, &acked);
        assert!(refusing.iter().all(|cell| after(*cell) == Some(*cell)), "{change:?}");
        assert!(taking.iter().all(|cell| after(*cell).is_none()), "{change:?}");
    }
}

#[test]
fn the_state_at_a_revision_is_every_change_up_to_it() {
    let deleted = Sighting { key: 1, revision: 16, present: false, at: 90, line: "#9".to_owned() };
    let operations = [create(1, 10), create(own_key(0, 0), 11), create(2, 12), update(2, 12, 14), silent(3)];
    let epoch = Epoch { initial: BTreeMap::from([(4, 3)]), sightings: vec![deleted], ..told(operations) };
    let versions = Versions::of(&epoch);
    assert_eq!(versions.residue, BTreeSet::from([3]));
    assert_eq!(
        [2, 3, 9, 10, 11, 12, 14, 15, 16, 17].map(|r| versions.count_at(r)),
        [0, 1, 1, 2, 2, 3, 3, 3, 2, 2]
    );
    let at = |key, revision| versions.at(key, revision).map(|v| (v.revision, v.present));
    assert_eq!(
        [at(2, 11), at(2, 12), at(2, 13), at(2, 14)],
        [None, Some((12, true)), Some((12, true)), Some((14, true))]
    );
    assert_eq!([at(1, 15), at(1, 16)], [Some((10, true)), Some((16, false))]);
    assert_eq!(versions.state_at(13), BTreeMap::from([(1, 10), (2, 12), (4, 3), (own_key(0, 0), 11)]));
    assert_eq!(versions.state_at(16), BTreeMap::from([(2, 14), (4, 3), (own_key(0, 0), 11)]));
    assert_eq!(versions.strays.len(), 1);
}

#[test]
fn an_unanswered_write_gets_the_one_revision_at_which_its_object_was_seen() {
    let seen = |revision, present| Sighting { key: 1, revision, present, at: 90, line: "#9".to_owned() };
    let versions = |actions: &[Action], sightings: &[Sighting]| {
        Versions::of(&Epoch { sightings: sightings.to_vec(), ..told(actions.to_vec()) })
    };
    let lost = || unknown(1, Change::Create);
    let resolved = versions(&[lost()], &[seen(10, true)]);
    assert_eq!((resolved.resolved, resolved.residue), (BTreeMap::from([(0, 10)]), BTreeSet::new()));
    assert!(resolved.strays.is_empty());
    for (actions, sightings) in [
        // A deletion is none of its.
        (vec![lost()], vec![seen(10, false)]),
        (vec![lost()], vec![seen(10, true), seen(11, true)]),
        (vec![lost(), lost()], vec![seen(10, true)]),
    ] {
        let open = versions(&actions, &sightings);
        assert_eq!((open.resolved, open.residue), (BTreeMap::new(), BTreeSet::from([1])), "{sightings:?}");
    }
    let stray = versions(&[create(1, 10)], &[seen(10, true), seen(11, true)]);
    assert_eq!(stray.strays, [seen(11, true)]);
    // It was written at this revision, and so it was not deleted at it.
    assert_eq!(versions(&[create(1, 10)], &[seen(10, false)]).strays, [seen(10, false)]);
}

#[test]
fn an_object_is_searched_only_where_an_open_write_may_matter() {
    let residue = |actions: &[Action]| Versions::of(&told(actions.to_vec())).residue;
    let lost = || unknown(1, Change::Create);
    let bare = RangeRead { objects: vec![(1, None), (2, None)], ..range(9, &[]) };
    for open in [
        vec![silent(1)],
        vec![silent(1), lost()],
        vec![lost(), read(1, Seen::Present(None))],
        vec![lost(), refused(1, Change::Create)],
        vec![lost(), write(1, Change::Update(None), WriteResult::Done(Some(9)))],
        vec![lost(), create(2, 8), Action::Range(bare.clone())],
    ] {
        assert_eq!(residue(&open), BTreeSet::from([1]), "{open:?}");
    }
    for settled in [
        vec![lost()],
        vec![lost(), read(1, Seen::Absent), ranged(9, &[])],
        vec![lost(), create(2, 8), refused(2, Change::Create), read(2, Seen::Present(None))],
        vec![create(1, 7), create(2, 8), Action::Range(bare)],
    ] {
        assert_eq!(residue(&settled), BTreeSet::new(), "{settled:?}");
    }
}

#[test]
fn two_writes_do_not_share_a_revision() {
    assert_eq!(found(&told([create(1, 10), create(2, 11), update(1, 10, 12)])), NOTHING);
    let twice = timed([((0, 5), create(1, 10)), ((2, 7), create(2, 10))]);
    assert_eq!(found(&twice), of(Rule::RevisionUsedTwice, "#0 #1", 7));
}

#[test]
fn what_is_sent_later_has_no_lower_revision_and_a_write_a_higher_one() {
    let order = |records, at| of(Rule::RevisionOrder, records, at);
    assert_eq!(found(&told([create(1, 10), create(2, 9)])), order("#0 #1", 15));
    assert_eq!(found(&told([ranged(10, &[(1, 10)]), create(1, 10)])), order("#0 #1", 15));
    assert_eq!(found(&told([ranged(10, &[]), create(1, 11)])), NOTHING);
    assert_eq!(found(&told([ranged(10, &[]), ranged(10, &[])])), NOTHING);
    // The first that showed it is named.
    assert_eq!(found(&told([ranged(10, &[]), ranged(10, &[]), ranged(9, &[])])), order("#0 #2", 25));
    let begun = |revision| Epoch { base: 10, ..told([create(1, revision)]) };
    assert_eq!(found(&begun(10)), order("#0", 5));
    assert_eq!(found(&begun(11)), NOTHING);
    // Sent in the very instant of the answer, it may be the earlier one.
    let touching = |call| timed([((0, 5), create(1, 10)), ((call, 15), create(2, 9))]);
    assert_eq!(found(&touching(5)), NOTHING);
    assert_eq!(found(&touching(6)), order("#0 #1", 15));
}

#[test]
fn only_a_fresh_read_of_all_objects_must_not_be_older_than_what_was_answered() {
    let older = |fresh| {
        let list = RangeRead { fresh, ..range(10, &[(1, 10)]) };
        told([create(1, 10), create(2, 11), Action::Range(list)])
    };
    assert_eq!(found(&older(true)), of(Rule::RevisionOrder, "#1 #2", 25));
    assert_eq!(found(&older(false)), NOTHING);
}

#[test]
fn a_violation_is_dated_by_its_call_where_no_answer_came() {
    let late = |ret| timed([((0, 5), create(1, 10)), ((20, ret), create(2, 9))]);
    assert_eq!(found(&late(25)), of(Rule::RevisionOrder, "#0 #1", 25));
    assert_eq!(found(&late(PENDING)), of(Rule::RevisionOrder, "#0 #1", 20));
}

#[test]
fn a_conditional_write_rests_on_the_version_just_before_it() {
    let condition = |records, at| of(Rule::Condition, records, at);
    let any = |revision| write(1, Change::Update(None), WriteResult::Done(Some(revision)));
    assert_eq!(found(&told([create(1, 10), update(1, 10, 11), any(12)])), NOTHING);
    assert_eq!(found(&told([create(1, 10), create(1, 11)])), condition("#0 #1", 15));
    assert_eq!(found(&told([create(1, 10), update(1, 10, 11), update(1, 10, 12)])), condition("#1 #2", 25));
    assert_eq!(found(&told([any(12)])), condition("#0", 5));
    let gone = Sighting { key: 1, revision: 11, present: false, at: 9, line: "#9".to_owned() };
    let deleted = Epoch { sightings: vec![gone], ..told([create(1, 10), update(1, 10, 12)]) };
    assert_eq!(found(&deleted), condition("#1", 15));
}

#[test]
fn a_refusal_needs_a_version_that_refuses() {
    let refusal = |change| found(&told([create(1, 10), update(1, 10, 11), refused(1, change)]));
    assert_eq!(refusal(Change::Create), NOTHING);
    assert_eq!(refusal(Change::Update(Some(10))), NOTHING);
    assert_eq!(refusal(Change::Update(Some(11))), of(Rule::Condition, "#1 #2", 25));
    assert_eq!(refusal(Change::Update(None)), of(Rule::Condition, "#1 #2", 25));
    let of_nothing = |change| found(&told([create(2, 10), refused(1, change)]));
    assert_eq!(of_nothing(Change::Update(None)), NOTHING);
    assert_eq!(of_nothing(Change::Update(Some(10))), NOTHING);
    assert_eq!(of_nothing(Change::Create), of(Rule::Condition, "#0 #1", 15));
}

#[test]
fn a_read_shows_a_version_that_there_was_from_what_had_been_reached_on() {
    let reading = |seen| found(&told([create(1, 10), update(1, 10, 12), read(1, seen)]));
    assert_eq!(reading(at(12)), NOTHING);
    assert_eq!(reading(Seen::Present(None)), NOTHING);
    assert_eq!(reading(at(10)), of(Rule::Read, "#1 #2", 25));
    assert_eq!(reading(Seen::Absent), of(Rule::Read, "#1 #2", 25));
    let of_nothing = |seen| found(&told([create(2, 10), read(1, seen)]));
    assert_eq!(of_nothing(Seen::Absent), NOTHING);
    assert_eq!(of_nothing(Seen::Present(None)), of(Rule::Read, "#0 #1", 15));
}

#[test]
fn a_read_is_put_as_early_as_its_answer_allows() {
    let early = |head, objects: &[(u64, u64)]| {
        timed([
            ((0, 5), read(1, Seen::Present(None))),
            ((0, 90), create(1, 10)),
            ((0, 91), update(1, 10, 20)),
            ((10, 15), ranged(head, objects)),
        ])
    };
    assert_eq!(found(&early(15, &[(1, 10)])), NOTHING);
    assert_eq!(found(&early(9, &[])), of(Rule::RevisionOrder, "#0 #3", 15));
}

#[test]
fn a_read_of_all_objects_is_the_state_at_its_revision() {
    let epoch = told([create(1, 10), create(2, 12), update(2, 12, 14), create(own_key(0, 0), 15)]);
    let versions = Versions::of(&epoch);
    let differs = |at, objects: &[(u64, u64)]| differs(&range(at, objects), &versions);
    assert_eq!(differs(9, &[]), None);
    assert_eq!(differs(10, &[(1, 10)]), None);
    assert_eq!(differs(13, &[(1, 10), (2, 12)]), None);
    assert_eq!(differs(15, &[(1, 10), (2, 14)]), None);
    let words = |what: &str, writer| Some((what.to_owned(), writer));
    let lacks = "the read at revision 13 lacks object";
    assert_eq!(differs(13, &[(1, 10)]), words(&format!("{lacks} 2, written at revision 12"), Some(1)));
    assert_eq!(differs(13, &[(2, 12)]), words(&format!("{lacks} 1, written at revision 10"), Some(0)));
    assert_eq!(differs(13, &[]), words(&format!("{lacks} 1, written at revision 10"), Some(0)));
    assert_eq!(
        differs(14, &[(1, 10), (2, 12)]),
        words("the read at revision 14 has object 2 at revision 12, it was at 14", Some(2))
    );
    assert_eq!(
        differs(11, &[(1, 10), (2, 12)]),
        words("the read at revision 11 has object 2, which was not there", Some(1))
    );
}

#[test]
fn an_object_that_is_searched_is_not_missed_in_a_read_of_all() {
    let actions = [silent(1), create(2, 10), create(3, 11)];
    let epoch = Epoch { initial: BTreeMap::from([(1, 3)]), ..told(actions) };
    let versions = Versions::of(&epoch);
    assert_eq!(versions.residue, BTreeSet::from([1]));
    assert_eq!(differs(&range(11, &[(2, 10), (3, 11)]), &versions), None);
    assert_eq!(differs(&range(11, &[(1, 7), (2, 10), (3, 11)]), &versions), None);
    let (what, writer) = differs(&range(11, &[(2, 10)]), &versions).unwrap();
    assert_eq!(
        (what.as_str(), writer),
        ("the read at revision 11 lacks object 3, written at revision 11", Some(2))
    );
}

#[test]
fn only_a_quorum_read_of_the_newest_state_has_a_part_in_a_search() {
    let after = |list: RangeRead| check(&told([silent(1), Action::Range(list)]));
    let none = |list: RangeRead| {
        let checked = after(list);
        assert_eq!((checked.violations, checked.undecided, checked.searched), (vec![], BTreeMap::new(), 1));
    };
    none(RangeRead { fresh: false, ..range(9, &[]) });
    none(RangeRead { at: 8, ..range(9, &[]) });
    none(RangeRead { fresh: false, at: 8, ..range(9, &[]) });
    let missing = after(range(9, &[]));
    assert_eq!(
        missing.violations.iter().map(|v| (v.rule, v.key, v.at)).collect::<Vec<_>>(),
        [(Rule::NoOrder, Some(1), 15)]
    );
}

#[test]
fn outcomes_without_an_order_are_dated_by_the_last_of_them() {
    let twice = |first, second| timed([((0, first), silent(1)), ((10, second), silent(1))]);
    assert_eq!(found(&twice(5, 15)), of(Rule::NoOrder, "#0 #1", 15));
    assert_eq!(found(&twice(25, 15)), of(Rule::NoOrder, "#0 #1", 25));
    // One that may take effect at any time proves nothing before it was sent.
    assert_eq!(found(&twice(PENDING, 15)), of(Rule::NoOrder, "#0 #1", 15));
    assert_eq!(found(&twice(5, PENDING)), of(Rule::NoOrder, "#0 #1", 10));
    assert_eq!(check(&twice(5, 15)).searched, 1);
}

#[test]
fn an_object_that_began_unknown_is_undecided_only_if_a_client_asked_for_it() {
    let begun = |actions: &[Action]| {
        let epoch = Epoch { unsure: BTreeSet::from([1]), ..told(actions.to_vec()) };
        let checked = check(&epoch);
        assert_eq!((checked.violations, checked.searched), (vec![], 0));
        checked.undecided.into_keys().collect::<BTreeSet<u64>>()
    };
    assert_eq!(begun(&[create(2, 10), ranged(10, &[(2, 10)])]), BTreeSet::new());
    assert_eq!(begun(&[read(1, Seen::Absent)]), BTreeSet::from([1]));
    assert_eq!(begun(&[read(1, Seen::Absent), ranged(10, &[])]), BTreeSet::from([1]));
}

#[test]
fn the_records_of_a_counterexample_are_those_of_the_earliest_answer_that_completes_one() {
    let epoch =
        timed([((0, 5), silent(1)), ((10, 100), read(1, Seen::Absent)), ((20, 25), read(1, Seen::Absent))]);
    let all: Vec<&Operation> = epoch.operations.iter().collect();
    let kept = minimise(&all, 1, Cell::absent(), &mut { AMPLE });
    assert_eq!(kept.iter().map(|o| o.line.as_str()).collect::<Vec<_>>(), ["#0", "#2"]);
}
