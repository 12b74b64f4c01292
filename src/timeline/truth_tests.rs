use super::super::small::{self, answered, create, event, log, op, put, range};
use super::*;
use crate::history::record::Event;

const BOTH: [(u64, u64); 2] = [(1, 11), (2, 12)];

fn written(records: Vec<crate::history::record::Record>) -> Vec<Write> {
    super::super::writes::writes(&[log(ClientKind::LedgerWriter, records)])
}

/// Since 100, with these ranges and acknowledged writes.
fn since(ranges: Vec<crate::history::record::Record>, writes: &[Write]) -> Result<Truth, String> {
    Truth::since(MonoNs(100), &[log(ClientKind::EtcdTruth, ranges)], writes)
}

#[test]
fn what_was_answered_in_the_instant_of_the_restore_is_lost_and_what_was_sent_in_it_is_not() {
    let side = |call, ret| side(MonoNs(100), MonoNs(call), MonoNs(ret));
    assert_eq!(side(90, 100), Side::Lost);
    assert_eq!(side(90, 101), Side::Spanning);
    assert_eq!(side(99, 101), Side::Spanning);
    assert_eq!(side(100, 101), Side::Restored);
}

#[test]
fn a_state_that_was_never_read_is_no_truth() {
    assert_eq!(Truth::unbroken(&[], &[]).unwrap_err(), "etcd's own state was never read");
    let lost = since(vec![range(90, 100, 12, &BOTH)], &[]).unwrap_err();
    assert_eq!(lost, "etcd's own state was never read after the restore");
}

#[test]
fn a_run_without_a_restore_has_one_timeline_from_its_first_instant_on() {
    let truth = Truth::unbroken(&[log(ClientKind::EtcdTruth, vec![range(0, 1, 12, &BOTH)])], &[]).unwrap();
    assert_eq!((truth.newest(), truth.readings().len()), (12, 1));
}

#[test]
fn the_store_had_reached_what_an_answer_says_when_it_came_and_not_before() {
    let ranges = || vec![range(110, 120, 11, &BOTH[..1]), range(130, 140, 12, &BOTH)];
    let truth = since(ranges(), &[]).unwrap();
    let at = [119, 120, 139, 140, 200].map(|at| truth.floor_at(MonoNs(at)));
    assert_eq!(at, [None, Some(11), Some(11), Some(12), Some(12)]);
    let writes = written(vec![create(100, 105, 1, 11), create(150, 160, 3, 13), create(161, 162, 4, 14)]);
    let truth = since(ranges(), &writes).unwrap();
    let at = [104, 105, 140, 159, 160, 161, 162].map(|at| truth.floor_at(MonoNs(at)));
    assert_eq!(at, [None, Some(11), Some(12), Some(12), Some(13), Some(13), Some(14)]);
    let at = [104, 105, 159, 160, 162].map(|at| truth.acked_by(MonoNs(at)));
    assert_eq!(at, [None, Some(11), Some(11), Some(13), Some(14)]);
}

#[test]
fn a_range_sent_in_an_instant_was_read_after_it() {
    let truth = since(vec![range(110, 120, 12, &BOTH)], &[]).unwrap();
    assert!(truth.read_after(MonoNs(109)) && truth.read_after(MonoNs(110)));
    assert!(!truth.read_after(MonoNs(111)));
}

#[test]
fn a_revision_is_passed_between_the_last_range_at_it_and_the_first_answer_above_it() {
    let ranges = || {
        vec![
            range(110, 111, 11, &BOTH[..1]),
            range(120, 121, 12, &BOTH),
            range(130, 131, 13, &BOTH),
            range(140, 141, 14, &BOTH),
        ]
    };
    let truth = since(ranges(), &[]).unwrap();
    let passed = |truth: &Truth, revision| {
        truth.passed(revision, MonoNs(100)).map(|(lower, upper)| (lower.0, upper.0))
    };
    assert_eq!(passed(&truth, 10), Some((100, 111)));
    assert_eq!(passed(&truth, 12), Some((120, 131)));
    assert_eq!(passed(&truth, 13), Some((130, 141)));
    assert_eq!(passed(&truth, 14), None);
    let truth = since(ranges(), &written(vec![create(122, 125, 3, 13)])).unwrap();
    assert_eq!(passed(&truth, 12), Some((120, 125)));
}

#[test]
fn ranges_that_contradict_each_other_are_no_truth() {
    let newest = || range(120, 121, 12, &BOTH);
    assert!(since(vec![range(110, 111, 11, &BOTH[..1]), newest()], &[]).is_ok());
    let why = |objects: &[(u64, u64)]| since(vec![range(110, 111, 12, objects), newest()], &[]).unwrap_err();
    // Of several that are absent the first is named; one at the very revision is one of them.
    assert!(why(&[]).contains("object 1 of revision 11 in"), "{}", why(&[]));
    assert!(why(&BOTH[..1]).contains("object 2 of revision 12 in"), "{}", why(&BOTH[..1]));
    let moved = [(1, 10), (2, 12)];
    assert!(why(&moved).contains("object 1 at revision 10 in"), "{}", why(&moved));
    let early = since(vec![range(110, 111, 11, &BOTH), newest()], &[]).unwrap_err();
    assert!(early.ends_with("holds object 2 of revision 12, later than its own"), "{early}");
}

#[test]
fn a_revision_that_went_back_is_no_truth() {
    let heads = |ranges: &[(u64, u64, u64)]| {
        since(ranges.iter().map(|(call, ret, head)| range(*call, *ret, *head, &[])).collect(), &[]).map(drop)
    };
    let back = "etcd's revision went back after the restore: ";
    assert_eq!(heads(&[(110, 120, 15), (119, 130, 14)]), Ok(()), "under way at once");
    assert_eq!(heads(&[(110, 120, 15), (121, 130, 15)]), Ok(()));
    for call in [120, 121] {
        let why = heads(&[(110, 120, 15), (call, 130, 14)]).unwrap_err();
        assert_eq!(
            why,
            format!("{back}15 at histories/EtcdTruth.jsonl#1, then 14 at histories/EtcdTruth.jsonl#2")
        );
    }
    let why = heads(&[(110, 111, 15), (112, 113, 17), (114, 115, 17), (116, 117, 16)]).unwrap_err();
    assert_eq!(
        why,
        format!("{back}17 at histories/EtcdTruth.jsonl#2, then 16 at histories/EtcdTruth.jsonl#4")
    );
    assert_eq!(heads(&[(110, 110, 15), (120, 120, 16)]), Ok(()), "answered in the instant of the call");
}

#[test]
fn the_highest_lost_revision_is_that_of_any_client_but_readyz_up_to_the_restore() {
    let get = |ret, revision| op(90, ret, Op::Get { id: 1 }, answered(revision));
    let ready = log(ClientKind::ApiReady, vec![get(91, 99)]);
    let highest = |log: ClientLog, before| highest_lost_revision(MonoNs(100), &[ready.clone(), log], before);
    let reader = |ret| log(ClientKind::GetReader, vec![get(91, 20), get(ret, 30)]);
    assert_eq!(highest(reader(100), None), Some(30));
    assert_eq!(highest(reader(101), None), Some(20));
    assert_eq!(highest(reader(101), Some(25)), Some(25));
    let bookmark = |at| event(at, Event::Bookmark { revision: 30, initial_events_end: false });
    let watch = |at| log(ClientKind::Watcher, vec![put(91, 1, 20), bookmark(at)]);
    assert_eq!(highest(watch(100), None), Some(30));
    assert_eq!(highest(watch(101), None), Some(20));
    assert_eq!(highest(log(ClientKind::Watcher, Vec::new()), None), None);
}

#[test]
fn a_view_ahead_of_etcd_may_hold_what_was_there_when_it_was_answered() {
    let restored = small::restored(vec![
        range(110, 111, 11, &BOTH[..1]),
        range(130, 131, 12, &BOTH),
        range(150, 151, 13, &[(1, 11), (2, 12), (3, 13)]),
    ]);
    let truth = restored.truth.unwrap();
    let compare = |ids: &[u64]| {
        truth.compare(&ids.iter().copied().collect(), 14, MonoNs(120), MonoNs(130), 10).unwrap()
    };
    let right = Difference { ahead: true, ..Difference::default() };
    assert_eq!(compare(&[1]), right, "it was asked for before the second");
    assert_eq!(compare(&[1, 2]), right, "the second is of the revision read in the instant of the answer");
    assert_eq!(compare(&[1, 2, 3]), Difference { phantom: 1, ..right });
    assert_eq!(compare(&[2]), Difference { absent: 1, missed: 1, ..right });
}

#[test]
fn a_view_of_a_revision_that_was_not_read_is_not_compared() {
    let truth = since(vec![range(110, 111, 12, &BOTH)], &[]).unwrap();
    let compare =
        |revision, ret| truth.compare(&[1, 2].into(), revision, MonoNs(105), MonoNs(ret), 10).map(|_| ());
    assert_eq!(compare(13, 110), Ok(()), "etcd was read after it, and had not got so far");
    assert_eq!(compare(12, 120), Ok(()));
    assert_eq!(compare(13, 120), Err("etcd was not read at or after revision 13".to_owned()));
}
