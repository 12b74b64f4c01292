//! Journals as real runs write them, for tests.

use super::entry::{Entry, Fact, JournalEvent, Phase, RunOutcome};
use super::writer::JournalWriter;
use crate::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use crate::clock::{Clock, FakeClock, MonoNs};
use crate::component::{ComponentId, DataSlot, StopMethod};
use crate::plan::Binding;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn id(name: &str) -> ComponentId {
    ComponentId(name.to_owned())
}

pub(crate) fn injection() -> InjectionId {
    InjectionId("2-loseEtcd".to_owned())
}

/// Run that these journals are of.
pub(crate) const RUN: &str = "01990000-0000-7000-8000-000000000001";

pub(crate) fn opened() -> JournalEvent {
    JournalEvent::RunOpened {
        format_version: super::entry::FORMAT_VERSION.to_owned(),
        run: RUN.to_owned(),
        drill: "restore-without-bump".to_owned(),
        drill_digest: "d".repeat(64),
        plan_digest: "e".repeat(64),
        tool: "0.1.0".to_owned(),
        operator: "ada@lab".to_owned(),
    }
}

pub(crate) fn binding() -> Binding {
    Binding {
        cluster_uid: "uid-1".to_owned(),
        cluster_name: "main-1".to_owned(),
        ca_fingerprint: "c".repeat(64),
        reported_versions: BTreeMap::from([(id("etcd-1"), "3.7.3".to_owned())]),
        binary_digests: BTreeMap::new(),
        addresses: BTreeMap::new(),
        incarnations: BTreeMap::from([
            (id("etcd-1"), "101".to_owned()),
            (id("kube-apiserver-1"), "102".to_owned()),
        ]),
        ledger_namespace: "ledger".to_owned(),
        machine: BTreeMap::new(),
    }
}

pub(crate) fn undo(on_lapse: OnLapse) -> Undo {
    let ops = match on_lapse {
        OnLapse::RollForward => vec![UndoOp::Start { component: id("etcd-1") }, UndoOp::AwaitListEqualsEtcd],
        _ => vec![
            UndoOp::Stop { component: id("kube-apiserver-1"), how: StopMethod::Terminate },
            UndoOp::BringDataBack {
                component: id("etcd-1"),
                from: DataSlot::Aside("lost".to_owned()),
                displaced: DataSlot::Aside("displaced".to_owned()),
            },
            UndoOp::Start { component: id("etcd-1") },
        ],
    };
    Undo { injection: injection(), on_lapse, ops, within_ns: 30_000_000_000 }
}

/// An etcd loss that a restore ends, in a cluster made for the run.
pub(crate) fn events() -> Vec<JournalEvent> {
    use JournalEvent::*;
    let phase = |phase| Phase { phase };
    let started = |step, kind: &str| StepStarted { step, kind: kind.to_owned() };
    vec![
        opened(),
        ClusterCreating { cluster: "main-1".to_owned() },
        phase(self::Phase::Provision),
        phase(self::Phase::Preflight),
        SteadyState { condition: "apiReady".to_owned(), held: true, detail: "ok".to_owned() },
        Bound { binding: Box::new(binding()) },
        phase(self::Phase::Baseline),
        HistoryAnchored {
            file: "histories/orders.jsonl".to_owned(),
            bytes: 10,
            records: 1,
            sha256: "a".repeat(64),
        },
        phase(self::Phase::Steps),
        started(0, "takeSnapshot"),
        StepFinished { step: 0 },
        started(2, "loseEtcd"),
        Fact { fact: self::Fact::RevisionBefore { revision: 900, raft_term: 2, at_ns: MonoNs(5) } },
        UndoArmed { undo: undo(OnLapse::Revert), targets: vec![id("etcd-1")], ttl_ns: 30_000_000_000 },
        Injecting {
            injection: injection(),
            kind: "loseEtcd".to_owned(),
            targets: vec![id("etcd-1")],
            stop_method: Some(StopMethod::Kill),
        },
        Injected { injection: injection() },
        InjectionVerified { injection: injection(), observation: "connection refused".to_owned() },
        StepFinished { step: 2 },
        started(3, "restoreSnapshot"),
        UndoAmended {
            undo: undo(OnLapse::RollForward),
            reason: "the restored etcd is about to start".to_owned(),
        },
        Ended { injection: injection(), by_step: 3 },
        EndVerified { injection: injection(), observation: "etcd answers".to_owned() },
        Discharged { injection: injection(), reason: "ended by step 3".to_owned() },
        StepFinished { step: 3 },
        phase(self::Phase::Recovery),
        phase(self::Phase::Collect),
        phase(self::Phase::Cleanup),
        ClusterRemoved { cluster: "main-1".to_owned() },
        RunClosed { outcome: RunOutcome::Completed, reason: None },
    ]
}

/// Entries of [`events`], a second apart.
pub(crate) fn entries() -> Vec<Entry> {
    super::reader::read(&written().1).expect("the sample is a journal").entries
}

/// The text of a journal of [`events`].
pub(crate) fn journal_text() -> String {
    std::fs::read_to_string(written().1).expect("the sample was written")
}

fn written() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("journal.jsonl");
    let clock = Arc::new(FakeClock::new());
    let mut writer = JournalWriter::create(&path, clock.clone() as Arc<dyn Clock>).expect("a fresh journal");
    for event in events() {
        clock.advance(1_000_000_000);
        writer.append(event).expect("room for a few lines");
    }
    (dir, path)
}
