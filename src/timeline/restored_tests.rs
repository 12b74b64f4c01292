use super::boundaries::{Restore, SnapshotTaken};
use super::small::{self, create, log, moment, op, range};
use super::*;
use crate::clock::BootId;
use crate::history::kind::ClientKind;
use crate::history::record::{Op, Outcome};

fn snapshot(name: &str, revision: u64) -> SnapshotTaken {
    SnapshotTaken {
        name: name.to_owned(),
        revision,
        keys: None,
        sha256_ok: None,
        size_bytes: 0,
        call_ns: MonoNs(50),
        return_ns: MonoNs(51),
        moment: moment(51),
    }
}

/// Restored at 100 from `backup`; the store's first revision that was read is 150.
fn boundaries(snapshots: Vec<SnapshotTaken>, bump: Option<u64>) -> Boundaries {
    let restore = Restore {
        from: "backup".to_owned(),
        bump,
        revision_after: 150,
        command_ns: MonoNs(90),
        restored_ns: MonoNs(100),
        restarted: BTreeMap::new(),
        moment: moment(110),
    };
    let boot = Some(moment(0).boot);
    Boundaries { boot, snapshots, restores: vec![restore], ..Boundaries::default() }
}

#[test]
fn a_restored_timeline_begins_at_the_revision_of_its_snapshot_plus_the_bump() {
    let begins = |snapshots, bump| {
        let restored = restored(&boundaries(snapshots, bump), &[], &[]).unwrap();
        (restored.base, restored.kept)
    };
    let several = || vec![snapshot("backup", 110), snapshot("backup", 120), snapshot("other", 130)];
    assert_eq!(begins(several(), None), (120, 120), "the last of that name");
    assert_eq!(begins(several(), Some(20)), (140, 120));
    assert_eq!(begins(vec![snapshot("other", 130)], None), (150, 150), "not known but from the store");
    assert_eq!(begins(several(), Some(40)), (150, 110), "no later than what was read");
}

#[test]
fn only_what_was_acknowledged_before_the_restore_or_after_it_was_so() {
    let tried = |call, ret, id| op(call, ret, Op::Create { id }, small::failed(500));
    let logs = [log(
        ClientKind::LedgerWriter,
        vec![
            create(80, 100, 1, 11),
            tried(81, 82, 2),
            create(90, 101, 3, 13),
            tried(91, 102, 4),
            create(100, 103, 5, 15),
            tried(104, 105, 6),
            op(106, 107, Op::Create { id: 7 }, Outcome::Unknown { reason: "timeout".to_owned() }),
        ],
    )];
    let restored = restored(&boundaries(Vec::new(), None), &logs, &writes(&logs)).unwrap();
    assert_eq!((restored.acked_before, restored.acked_after), ([1].into(), [5].into()));
}

#[test]
fn an_object_of_the_snapshot_s_last_revision_is_not_the_restored_timeline_s_own() {
    let restored = small::restored(vec![range(110, 111, 12, &[(1, 9), (2, 10), (3, 11)])]);
    assert_eq!([1, 2, 3, 4].map(|id| restored.own_revision(id)), [None, None, Some(11), None]);
    let logs = [log(ClientKind::LedgerWriter, vec![create(90, 105, 2, 10), create(91, 106, 3, 11)])];
    let taken: Vec<bool> = writes(&logs).iter().map(|write| restored.has_taken(write)).collect();
    assert_eq!(taken, [false, true], "both were sent before and answered after it");
}

#[test]
fn a_restore_on_another_boot_than_the_fault_begins_no_timeline() {
    let elsewhere = Boundaries { boot: Some(BootId("other".to_owned())), ..boundaries(Vec::new(), None) };
    let why = "the restore happened on another boot than the fault";
    assert_eq!(elsewhere.restore(), Err(why.to_owned()));
    assert!(restored(&elsewhere, &[], &[]).is_none());
}
