use super::super::small::{answered, failed, log, op, restored};
use super::*;
use crate::history::kind::ClientKind;

#[test]
fn an_update_that_rests_on_the_snapshot_s_last_revision_rests_on_the_restored_timeline() {
    let right = |held| {
        let records = vec![
            op(50, 51, Op::CasRead { object: 1 }, answered(held)),
            op(120, 121, Op::CasUpdate { object: 1, held, value: 2 }, answered(20)),
        ];
        updates(&log(ClientKind::CasUpdater, records), &restored(Vec::new())).remove(0).right
    };
    assert_eq!(right(9), Right::Yes);
    assert_eq!(right(10), Right::Yes);
    let lost = "an update was accepted that rested on resourceVersion 11 of the lost timeline";
    assert_eq!(right(11), Right::No(lost.to_owned()));
}

#[test]
fn what_kept_an_update_from_being_answered_is_told_apart_and_only_a_conflict_or_an_object_that_is_gone_is_an_answer()
 {
    let right = |outcome| {
        let update = op(120, 121, Op::CasUpdate { object: 1, held: 9, value: 2 }, outcome);
        updates(&log(ClientKind::CasUpdater, vec![update]), &restored(Vec::new())).remove(0).right
    };
    let silent = |refused, reason: &str| Right::NoAnswer { refused, reason: reason.to_owned() };
    assert_eq!(right(failed(500)), silent(true, "status 500"));
    assert_eq!(right(Outcome::Unknown { reason: "timeout".to_owned() }), silent(false, "timeout"));
    assert_eq!((right(failed(404)), right(failed(409))), (Right::Yes, Right::Yes));
}
