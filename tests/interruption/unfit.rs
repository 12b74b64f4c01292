//! A restore that can't be carried out: the step says why, and what was lost is put back. Once a restored
//! member was started nothing can be put back; the undo then goes on from what was restored.

use crate::drills::{STANDING, Site, block_on, name};
use crate::lab::eventually;
use crate::truth::{assert_healthy, stored};
use quakeproof::agent::undo::OnLapse;
use quakeproof::component::{ComponentId, ComponentState, DataSlot};
use quakeproof::journal::entry::JournalEvent;
use quakeproof::provider::Cluster;
use std::fs;
use std::path::PathBuf;

fn member() -> ComponentId {
    ComponentId("etcd-1".to_owned())
}

/// Runs the drill; `spoil` is called while etcd is lost. The restore must fail with these words.
fn refused(site: &Site, run: &str, words: &[&str], spoil: impl FnOnce(&str)) {
    let before = stored(site);
    let mut run = site.start(run, &["--set", "faulted=2s"]);
    run.reached("injectionVerified", 1);
    spoil(&run.id());
    run.ended_with(2);
    let reasons: Vec<String> = run
        .journal()
        .into_iter()
        .filter_map(|entry| match entry.event {
            JournalEvent::StepFailed { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert!(reasons.len() == 1 && words.iter().all(|w| reasons[0].contains(w)), "{words:?}: {reasons:?}");
    assert_eq!(run.report()["outcome"], "aborted");
    assert_eq!(run.undos().iter().map(|(mode, _)| *mode).collect::<Vec<_>>(), [OnLapse::Revert]);
    site.verify(&run);
    let after = stored(site);
    assert!(
        before.iter().all(|(name, revision)| after.get(name) == Some(revision)),
        "the original data is back"
    );
    assert_healthy(site);
    site.lap(words[0]);
}

#[test]
fn a_restore_that_can_not_begin_puts_the_lost_data_back() {
    let site = Site::standing();
    let cluster = site.lab.attach(STANDING);
    let snapshot = |run: &str| cluster.private_file(&format!("{run}-backup.db"));
    refused(&site, "damaged", &["the file was changed or damaged", "offset"], |run| {
        let mut bytes = fs::read(snapshot(run)).unwrap();
        let value = bytes.len() - 40;
        bytes[value] ^= 1;
        fs::write(snapshot(run), bytes).unwrap();
    });
    refused(&site, "truncated", &["truncated"], |run| {
        let bytes = fs::read(snapshot(run)).unwrap();
        fs::write(snapshot(run), &bytes[..bytes.len() / 2]).unwrap();
    });
    refused(&site, "exchanged", &["is not the snapshot `backup` that was taken"], |run| {
        let bytes = fs::read(snapshot(run)).unwrap();
        fs::write(snapshot(run), &bytes[..bytes.len() - 32]).unwrap();
    });
    let in_use = block_on(cluster.control().data_dir(&member(), &DataSlot::InUse)).unwrap().unwrap();
    let taken: PathBuf = in_use.with_file_name("data.restored");
    refused(&site, "taken", &["etcdutl snapshot restore", "not empty"], |_| {
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("somebody's"), "data").unwrap();
    });
    assert!(taken.join("somebody's").exists(), "what stood in the way is nobody's to remove");
}

#[test]
fn a_member_that_does_not_come_back_fails_the_restore_and_is_rolled_forward_once_it_does() {
    let site = Site::standing();
    let control = site.lab.attach(STANDING).control();
    let mut run = site.start("hung", &["--set", "faulted=1s", "--set", "readyWithin=3s"]);
    run.reached("injectionVerified", 1);
    eventually("the restored member was started", crate::drills::LONG, || {
        let member = member();
        let starts = run.journal().iter().any(|entry| name(entry) == "undoAmended");
        let listed = block_on(control.list()).unwrap();
        starts && listed.iter().any(|s| s.component == member && s.state == ComponentState::Running)
    });
    block_on(control.pause(&member())).unwrap();
    let failed = run.reached("stepFailed", 1);
    let JournalEvent::StepFailed { reason, .. } = &failed.event else { panic!("{failed:?}") };
    for words in ["etcd-1 did not come back within 3s (`readyWithin`)", "its log is in the evidence"] {
        assert!(reason.contains(words), "no {words:?} in {reason}");
    }
    run.reached("undoStarted", 1);

    block_on(control.resume(&member())).unwrap();
    run.ended_with(2);
    assert_eq!(run.undos().iter().map(|(mode, _)| *mode).collect::<Vec<_>>(), [OnLapse::RollForward]);
    assert_eq!(run.report()["outcome"], "aborted");
    site.verify(&run);
    assert_healthy(&site);
    site.lap("rolled forward");
}
