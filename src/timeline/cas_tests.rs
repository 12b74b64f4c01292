use super::super::small::{answered, log, op, restored};
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
