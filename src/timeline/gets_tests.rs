use super::super::small::{answered, failed, log, op, range, restored};
use super::*;
use crate::history::kind::ClientKind;

/// What is said of one GET, sent at `call` and answered at 130.
fn right(restored: &Restored, call: u64, id: u64, outcome: Outcome) -> Right {
    let reader = log(ClientKind::GetReader, vec![op(call, 130, Op::Get { id }, outcome)]);
    gets(&reader, restored).remove(0).right
}

fn unread() -> Right {
    Right::Unjudged("etcd was not read after this answer".to_owned())
}

#[test]
fn an_object_that_etcd_lacks_is_rightly_not_found_if_it_was_read_since_or_the_write_was_lost() {
    for (read_at, known) in [(129, false), (130, true), (131, true)] {
        let mut restored = restored(vec![range(read_at, 140, 11, &[(1, 11)])]);
        restored.acked_before = [5].into();
        let expected = if known { Right::Yes } else { unread() };
        assert_eq!(right(&restored, 120, 6, failed(404)), expected, "{read_at}");
        assert_eq!(right(&restored, 120, 5, failed(404)), Right::Yes, "{read_at}");
        let found = right(&restored, 120, 6, answered(12));
        assert_eq!(matches!(found, Right::No(_)), known, "{read_at}");
    }
}

#[test]
fn an_object_is_wrongly_not_found_if_etcd_had_certainly_reached_its_revision() {
    let restored = restored(vec![
        range(110, 120, 11, &[(1, 10), (2, 11)]),
        range(140, 141, 12, &[(1, 10), (2, 11), (3, 12)]),
    ]);
    let wrong = |call, id| match right(&restored, call, id, failed(404)) {
        Right::No(_) => true,
        Right::Unjudged(why) => {
            assert_eq!(why, format!("object {id} was being created"));
            false
        }
        other => panic!("{other:?}"),
    };
    assert!(wrong(105, 1), "the restored timeline began with it");
    assert!(!wrong(119, 2), "the reading was under way");
    assert!(wrong(120, 2));
    assert!(!wrong(125, 3));
}

#[test]
fn a_get_that_was_refused_is_told_from_one_that_was_not_answered() {
    let restored = restored(Vec::new());
    let silent = |refused, reason: &str| Right::NoAnswer { refused, reason: reason.to_owned() };
    assert_eq!(right(&restored, 120, 1, failed(500)), silent(true, "status 500"));
    let timeout = Outcome::Unknown { reason: "timeout".to_owned() };
    assert_eq!(right(&restored, 120, 1, timeout), silent(false, "timeout"));
}
