//! A run as the report sees it: etcd restored without a revision bump while the
//! API server keeps running, one minute, six clients and a probe. The figures
//! are of the size that real runs of Kubernetes 1.37.2 show.

use quakeproof::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use quakeproof::check::facts::{
    ClientFacts, EtcdRestoreFacts, InstantFacts, PredictionOutcome, SnapshotFacts,
};
use quakeproof::check::ledger::LedgerAccount;
use quakeproof::check::recorder::RecorderAccount;
use quakeproof::check::seen::{ObservedView, SeenInPhase};
use quakeproof::check::{Finding, FindingMark, Judgement, Verdict};
use quakeproof::clock::{BootId, MonoNs, WallTime};
use quakeproof::history::record::{Answer, ClientKind, Event, EventRecord, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Entry, JournalEvent, Phase, RunOutcome};
use quakeproof::plan::{Binding, Plan};
use quakeproof::provider::component::{ComponentId, StopMethod};
use quakeproof::report::Prepared;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::marks::Marks;
use quakeproof::timeline::phases::Operations;
use quakeproof::timeline::samples::Lane;
use quakeproof::timeline::sustained::{Sample, State};
use quakeproof::timeline::{EvidenceInput, Mark, Marked, Timeline};
use serde_json::json;
use std::collections::BTreeMap;

/// Evidence and judgement of one run.
pub struct Case {
    pub input: EvidenceInput,
    pub judgement: Judgement,
    pub timeline: Timeline,
}

impl Case {
    /// As the formats take it.
    pub fn prepared(&self) -> Prepared<'_> {
        Prepared::of(&self.input, &self.judgement, Some(self.timeline.clone()), HEAD)
    }
}

/// Hash of the fixture's last journal line.
pub const HEAD: &str = "9f0c3a5d7be1402266d1f6a90b8e57c4412f7a3d0ce85b91a6f2d37484cc10ab";

const START_NS: u64 = 5_000_000_000_000;
const FAULT_MS: u64 = 18_214;
const COMMAND_MS: u64 = 18_437;

fn at(ms: u64) -> MonoNs {
    MonoNs(START_NS + ms * 1_000_000)
}

fn wall(ms: u64) -> WallTime {
    let start: jiff::Timestamp = "2026-11-29T18:00:00Z".parse().unwrap();
    let ns = start.as_nanosecond() + i128::from(ms) * 1_000_000;
    WallTime(format!("{:.6}", jiff::Timestamp::from_nanosecond(ns).unwrap()))
}

fn boot() -> BootId {
    BootId("3f1c9a02".to_owned())
}

fn etcd() -> ComponentId {
    ComponentId("etcd-1".to_owned())
}

fn plan() -> Plan {
    let steps = json!([
        {"takeSnapshot": {"as": "backup"}},
        {"hold": {"for": "5s"}},
        {"loseEtcd": {"members": "all"}},
        {"restoreSnapshot": {"from": "backup", "bumpRevision": "none", "restart": {"apiServers": false, "controllerManagers": false, "schedulers": false}}},
        {"observe": {"until": "revisionPassedLost", "atMost": "60s", "then": "3s"}}
    ]);
    let objectives = json!([
        {"rto": {"name": "writes-again", "from": "fault", "to": "firstGoodWrite", "within": "30s"}},
        {"rto": {"name": "lists-true-again", "from": "restoreCommand", "to": "firstTrueList", "within": "30s"}},
        {"rpo": {"name": "lost-writes", "within": "10s"}},
        {"noClientOnLostTimeline": {"name": "no-client-on-lost-timeline", "settle": "3s", "maxLag": "5s"}}
    ]);
    let topology = json!({"etcd": 1, "apiServers": 1, "controllerManagers": 1, "schedulers": 1});
    let limits = json!({"maxDuration": "5m", "deadMan": "30s", "recovery": "60s", "sustained": {"samples": 5, "over": "1s"}});
    let steady = json!([{"apiReady": {"every": "100ms", "within": "1s"}}, {"writeSucceeds": {"every": "200ms", "within": "1s"}}]);
    let component = |name: &str, role: &str| json!({"component": name, "role": role, "host": name});
    let step = |i: usize, targets: serde_json::Value, fault: serde_json::Value| json!({"index": i, "step": steps[i], "targets": targets, "fault": fault});
    let objective = |i: usize, name: &str, predicted: Option<&str>| json!({"name": name, "objective": objectives[i], "predicted": predicted});
    serde_json::from_value(json!({
        "formatVersion": "1.0",
        "drill": {
            "apiVersion": "quakeproof.dev/v1alpha1", "kind": "Drill",
            "metadata": {
                "name": "restore-without-bump",
                "title": "etcd restored without a revision bump while the API server keeps running",
                "owner": "platform-team",
                "reason": "know what clients see before the runbook is needed"
            },
            "spec": {
                "cluster": {"provider": "local", "kubernetes": "v1.37.2", "etcd": "v3.7.3", "topology": topology},
                "limits": limits, "steadyState": steady, "clients": [], "steps": steps, "objectives": objectives
            }
        },
        "drillDigest": "b8e1f0d7c35a4f1e9a3e6b7207c4d1552a8893f0e6b4c1d9727f5ea0340bd612",
        "parameters": {"bump": "none"}, "overrides": {}, "profile": null, "seed": 20_261_129,
        "cluster": {
            "name": "main", "provider": "local", "standing": null,
            "versions": {"kubernetes": "v1.37.2", "etcd": "v3.7.3"}, "topology": topology,
            "components": [
                component("etcd-1", "etcd"), component("kube-apiserver-1", "kube-apiserver"),
                component("kube-controller-manager-1", "kube-controller-manager"),
                component("kube-scheduler-1", "kube-scheduler")
            ]
        },
        "clients": [],
        "steps": [
            step(0, json!(["etcd-1"]), json!(null)),
            step(1, json!([]), json!(null)),
            step(2, json!(["etcd-1"]), json!({
                "blastRadius": "etcd-1 is killed and its data taken away: no API reads or writes on this cluster until the restore; writes since the snapshot are lost",
                "closedBy": 3, "onLapse": "revert",
                "undo": "stop every API server, original data back, start everything; once the restored etcd has taken a write: roll forward instead",
                "undoWithinNs": 60_000_000_000_u64
            })),
            step(3, json!(["etcd-1"]), json!(null)),
            step(4, json!([]), json!(null))
        ],
        "steadyState": steady,
        "objectives": [
            objective(0, "writes-again", Some("within 0.5 s to 5 s")),
            objective(1, "lists-true-again", Some("never, while the API server keeps its cache")),
            objective(2, "lost-writes", Some("every write since the snapshot")),
            objective(3, "no-client-on-lost-timeline", Some("missed by every LIST and watch"))
        ],
        "predictions": [], "limits": limits
    }))
    .unwrap()
}

fn binding() -> Binding {
    serde_json::from_value(json!({
        "clusterUid": "6c0d6c1e-5a4f-4f0b-9d57-0f4a4b8f2f11",
        "clusterName": "restore-without-bump-8d2f",
        "caFingerprint": "4be19c0a7d2f8e6651b3d0c4f7a95e18823d6c40b91f7ae5d20c6f3b8e147a90",
        "reportedVersions": {"etcd-1": "3.7.3", "kube-apiserver-1": "v1.37.2"},
        "binaryDigests": {},
        "addresses": {
            "etcd-1": "10.201.0.11", "kube-apiserver-1": "10.201.0.21",
            "kube-controller-manager-1": "10.201.0.31", "kube-scheduler-1": "10.201.0.41"
        },
        "incarnations": {}, "ledgerNamespace": "quakeproof-ledger",
        "machine": {"os": "Debian GNU/Linux 13", "kernel": "6.12.48", "arch": "x86_64", "cpus": "2"}
    }))
    .unwrap()
}

fn journal() -> Vec<Entry> {
    let loss = || InjectionId("2-loseEtcd".to_owned());
    let phase = |phase| JournalEvent::Phase { phase };
    let started = |step: usize, kind: &str| JournalEvent::StepStarted { step, kind: kind.to_owned() };
    let undo = |on_lapse| Undo {
        injection: loss(),
        on_lapse,
        ops: vec![UndoOp::AwaitListEqualsEtcd],
        within_ns: 60_000_000_000,
    };
    let events = vec![
        (
            0,
            JournalEvent::RunOpened {
                format_version: "1.0".to_owned(),
                run: "019ad0f3-6c8e-7b31-9a44-5d1f0e2b7c90".to_owned(),
                drill: "restore-without-bump".to_owned(),
                drill_digest: "b8e1f0d7c35a4f1e9a3e6b7207c4d1552a8893f0e6b4c1d9727f5ea0340bd612".to_owned(),
                plan_digest: "27c94a6b0f1d83e5526ab97c40d1f7be8835c60e92af4d17c3b05e8f6a7d9124".to_owned(),
                tool: "quakeproof 0.1.0".to_owned(),
                operator: "mira@drill-box-3".to_owned(),
            },
        ),
        (4, phase(Phase::Provision)),
        (7_911, phase(Phase::Preflight)),
        (8_020, JournalEvent::Bound { binding: Box::new(binding()) }),
        (8_043, phase(Phase::Baseline)),
        (13_010, phase(Phase::Steps)),
        (13_012, started(0, "takeSnapshot")),
        (13_190, JournalEvent::StepFinished { step: 0 }),
        (13_192, started(1, "hold")),
        (18_195, JournalEvent::StepFinished { step: 1 }),
        (18_197, started(2, "loseEtcd")),
        (
            18_203,
            JournalEvent::UndoArmed {
                undo: undo(OnLapse::Revert),
                targets: vec![etcd()],
                ttl_ns: 30_000_000_000,
            },
        ),
        (
            FAULT_MS,
            JournalEvent::Injecting {
                injection: loss(),
                kind: "loseEtcd".to_owned(),
                targets: vec![etcd()],
                stop_method: Some(StopMethod::Kill),
            },
        ),
        (18_231, JournalEvent::Injected { injection: loss() }),
        (
            18_290,
            JournalEvent::InjectionVerified {
                injection: loss(),
                observation: "etcd-1 refused a connection; its data directory is gone".to_owned(),
            },
        ),
        (18_292, JournalEvent::StepFinished { step: 2 }),
        (18_294, started(3, "restoreSnapshot")),
        (
            18_640,
            JournalEvent::UndoAmended {
                undo: undo(OnLapse::RollForward),
                reason: "the restored etcd is about to start; going back would be another rollback"
                    .to_owned(),
            },
        ),
        (19_118, JournalEvent::Ended { injection: loss(), by_step: 3 }),
        (
            19_171,
            JournalEvent::EndVerified {
                injection: loss(),
                observation: "etcd-1 answered a linearizable range at revision 214".to_owned(),
            },
        ),
        (19_174, JournalEvent::StepFinished { step: 3 }),
        (19_176, started(4, "observe")),
        (57_402, JournalEvent::StepFinished { step: 4 }),
        (57_404, phase(Phase::Recovery)),
        (58_640, phase(Phase::Collect)),
        (59_120, phase(Phase::Cleanup)),
        (61_377, JournalEvent::RunClosed { outcome: RunOutcome::Completed, reason: None }),
    ];
    events
        .into_iter()
        .enumerate()
        .map(|(seq, (ms, event))| Entry {
            prev: format!("{seq:064x}"),
            seq: seq as u64,
            at: wall(ms),
            mono_ns: at(ms),
            boot: boot(),
            event,
        })
        .collect()
}

fn opened(client: &str, kind: ClientKind) -> Record {
    Record::Opened {
        client: client.to_owned(),
        kind,
        identity: format!("quakeproof:{client}"),
        target: "api/kube-apiserver-1".to_owned(),
        at: wall(8_100),
        mono_ns: at(8_100),
        boot: boot(),
    }
}

fn op(seq: u64, ms: u64, took: u64, op: Op, outcome: Outcome) -> Record {
    Record::Op(OpRecord {
        seq,
        boot: boot(),
        due_ns: Some(at(ms)),
        call_ns: at(ms),
        return_ns: at(ms + took),
        op,
        outcome,
    })
}

fn closed(scheduled: u64, recorded: u64, late: u64) -> Record {
    Record::Closed {
        mono_ns: at(59_000),
        boot: boot(),
        scheduled,
        recorded,
        late,
        lost: scheduled - recorded,
    }
}

fn answer(revision: u64) -> Answer {
    Answer { revision: Some(revision), ..Answer::default() }
}

fn list(resource_version: Option<&str>) -> Op {
    Op::List { list: 1, page: 0, resource_version: resource_version.map(str::to_owned), limit: None }
}

fn listed(revision: u64) -> Outcome {
    Outcome::Ok(Answer { ids: Some((1..=503).collect()), ..answer(revision) })
}

fn histories() -> BTreeMap<String, Vec<Record>> {
    let unknown = |reason: &str| Outcome::Unknown { reason: reason.to_owned() };
    let event =
        |ms: u64, event: Event| Record::Event(EventRecord { stream: 1, boot: boot(), at_ns: at(ms), event });
    [
        (
            "orders",
            vec![
                opened("orders", ClientKind::LedgerWriter),
                op(1, 13_160, 6, Op::Create { id: 252 }, Outcome::Ok(answer(214))),
                op(2, 18_180, 5, Op::Create { id: 503 }, Outcome::Ok(answer(465))),
                op(3, 18_220, 1_000, Op::Create { id: 505 }, unknown("timeout")),
                op(4, 19_280, 11, Op::Create { id: 558 }, Outcome::Ok(answer(215))),
                closed(2_540, 2_540, 3),
            ],
        ),
        (
            "reader",
            vec![
                opened("reader", ClientKind::GetReader),
                op(
                    1,
                    19_300,
                    4,
                    Op::Get { id: 503 },
                    Outcome::Failed { status: Some(404), reason: "not-found".to_owned() },
                ),
                closed(1_016, 1_016, 0),
            ],
        ),
        (
            "lister-unset",
            vec![
                opened("lister-unset", ClientKind::ListReader),
                op(1, 19_420, 9, list(None), listed(465)),
                op(2, 57_010, 12, list(None), listed(713)),
                closed(254, 254, 1),
            ],
        ),
        (
            "lister-zero",
            vec![
                opened("lister-zero", ClientKind::ListReader),
                op(1, 19_510, 7, list(Some("0")), listed(465)),
                closed(254, 251, 2),
            ],
        ),
        (
            "watch",
            vec![
                opened("watch", ClientKind::Watcher),
                event(18_190, Event::Put { id: 503, revision: 465 }),
                event(23_290, Event::Put { id: 806, revision: 466 }),
                closed(0, 0, 0),
            ],
        ),
        (
            "etcd-watch",
            vec![
                opened("etcd-watch", ClientKind::EtcdWatcher),
                event(18_215, Event::Ended { reason: "connection-lost".to_owned() }),
                op(1, 19_200, 5, Op::Watch { stream: 2, from: 466 }, Outcome::Ok(answer(214))),
            ],
        ),
    ]
    .into_iter()
    .map(|(name, records)| (name.to_owned(), records))
    .collect()
}

#[derive(Clone, Copy)]
enum Saw {
    Good,
    Refused,
    NoAnswer,
    Wrong,
    Nothing,
}

impl Saw {
    fn state(self) -> State {
        match self {
            Saw::Good => State::Good,
            Saw::Refused => State::Bad("refused".to_owned()),
            Saw::NoAnswer => State::Unknown("timeout".to_owned()),
            Saw::Wrong => State::Wrong("251 objects that etcd does not have, 248 missing".to_owned()),
            Saw::Nothing => State::Unobserved("no operation for 3400 ms".to_owned()),
        }
    }
}

fn lane(client: &str, kind: ClientKind, spans: &[(u64, u64, Saw)]) -> Lane {
    let samples = spans.iter().map(|(from, to, saw)| Sample {
        call: at(*from),
        ret: at(*to),
        state: saw.state(),
        line: Some(format!("histories/{client}.jsonl#2")).filter(|_| !matches!(saw, Saw::Nothing)),
    });
    Lane { client: client.to_owned(), kind, samples: samples.collect() }
}

fn lanes() -> Vec<Lane> {
    use Saw::{Good, NoAnswer, Nothing, Refused, Wrong};
    vec![
        lane(
            "orders",
            ClientKind::LedgerWriter,
            &[
                (8_100, 18_214, Good),
                (18_214, 19_220, NoAnswer),
                (19_220, 19_280, Refused),
                (19_280, 59_000, Good),
            ],
        ),
        lane(
            "reader",
            ClientKind::GetReader,
            &[(8_100, 18_219, Good), (18_219, 19_250, Refused), (19_250, 59_000, Good)],
        ),
        lane(
            "lister-unset",
            ClientKind::ListReader,
            &[(8_110, 18_230, Good), (18_230, 19_240, Refused), (19_240, 59_000, Wrong)],
        ),
        lane(
            "lister-zero",
            ClientKind::ListReader,
            &[
                (8_110, 19_240, Good),
                (19_240, 41_000, Wrong),
                (41_000, 44_400, Nothing),
                (44_400, 59_000, Wrong),
            ],
        ),
        lane("watch", ClientKind::Watcher, &[(8_120, 18_195, Good), (18_195, 59_000, Wrong)]),
        lane(
            "etcd-watch",
            ClientKind::EtcdWatcher,
            &[
                (8_130, 18_215, Good),
                (18_215, 19_205, Refused),
                (19_205, 24_120, NoAnswer),
                (24_120, 59_000, Wrong),
            ],
        ),
        lane(
            "api-ready",
            ClientKind::ApiReady,
            &[(8_100, 18_260, Good), (18_260, 19_700, Refused), (19_700, 59_000, Good)],
        ),
    ]
}

fn mark(name: &str, lower: u64, upper: u64, source: &str) -> (String, Marked) {
    let mark = Mark { name: name.to_owned(), lower: at(lower), upper: at(upper), source: source.to_owned() };
    (name.to_owned(), Ok(mark))
}

fn marks() -> Marks {
    let by_name = BTreeMap::from([
        mark("fault", FAULT_MS, 18_231, "journal: injecting, injected"),
        mark("restoreCommand", COMMAND_MS, COMMAND_MS, "journal: restored"),
        mark("etcdServing", 19_090, 19_171, "etcd-truth: last failed range, first good one"),
        mark("apiReady", 19_600, 19_702, "api-ready: last failed sample, first good one of 5 over 1 s"),
        mark(
            "firstGoodWrite",
            19_260,
            19_291,
            "orders: last unknown write, first acknowledged one of 5 over 1 s",
        ),
        mark("firstGoodGet", 19_250, 19_304, "reader: last failed GET, first right one"),
        (
            "firstTrueList".to_owned(),
            Err("no LIST equalled etcd’s state at its revision before the recording ended".to_owned()),
        ),
        mark("revisionPassedLost", 24_080, 24_140, "etcd-truth: revision 466"),
    ]);
    Marks { by_name, recoveries: BTreeMap::new() }
}

fn timeline(input: &EvidenceInput) -> Timeline {
    Timeline {
        boundaries: Boundaries::of(&input.journal),
        writes: Vec::new(),
        restored: None,
        lanes: lanes(),
        marks: marks(),
        watches: Vec::new(),
    }
}

fn finding_mark(name: &str, lower: u64, upper: u64, source: &str) -> Option<FindingMark> {
    Some(FindingMark {
        name: name.to_owned(),
        lower_ns: at(lower).0,
        upper_ns: at(upper).0,
        source: source.to_owned(),
    })
}

fn findings() -> Vec<Finding> {
    let ms = |n: u64| Some(n * 1_000_000);
    let evidence = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
    vec![
        Finding {
            capability: None,
            name: "writes-again".to_owned(),
            kind: "rto".to_owned(),
            cluster: "main".to_owned(),
            verdict: Verdict::Pass,
            reason: "writes were acknowledged again well within the limit".to_owned(),
            unit: "ns".to_owned(),
            target: ms(30_000),
            observed: ms(1_053),
            lower: ms(1_029),
            upper: ms(1_077),
            predicted: Some("within 0.5 s to 5 s".to_owned()),
            from: finding_mark("fault", FAULT_MS, 18_231, "journal"),
            to: finding_mark("firstGoodWrite", 19_260, 19_291, "orders"),
            evidence: evidence(&["journal.jsonl#13", "histories/orders.jsonl#4", "histories/orders.jsonl#5"]),
        },
        Finding {
            capability: None,
            name: "lists-true-again".to_owned(),
            kind: "rto".to_owned(),
            cluster: "main".to_owned(),
            verdict: Verdict::Fail,
            reason: "no LIST equalled etcd’s state at its revision in the 40 s after the restore command".to_owned(),
            unit: "ns".to_owned(),
            target: ms(30_000),
            observed: None,
            lower: ms(40_563),
            upper: None,
            predicted: Some("never, while the API server keeps its cache".to_owned()),
            from: finding_mark("restoreCommand", COMMAND_MS, COMMAND_MS, "journal"),
            to: None,
            evidence: evidence(&["histories/lister-unset.jsonl#3"]),
        },
        Finding {
            capability: None,
            name: "lost-writes".to_owned(),
            kind: "rpo".to_owned(),
            cluster: "main".to_owned(),
            verdict: Verdict::Pass,
            reason: "251 acknowledged writes (ids 253 to 503) are gone: everything between snapshot and loss".to_owned(),
            unit: "ns".to_owned(),
            target: ms(10_000),
            observed: ms(5_019),
            lower: ms(5_013),
            upper: ms(5_025),
            predicted: Some("every write since the snapshot".to_owned()),
            from: finding_mark("lastKeptWrite", 13_160, 13_166, "orders"),
            to: finding_mark("lastAckedWrite", 18_180, 18_185, "orders"),
            evidence: evidence(&["histories/orders.jsonl#2", "histories/orders.jsonl#3"]),
        },
        Finding {
            capability: None,
            name: "no-client-on-lost-timeline".to_owned(),
            kind: "noClientOnLostTimeline".to_owned(),
            cluster: "main".to_owned(),
            verdict: Verdict::Fail,
            reason: "4 of 5 clients stayed on the lost timeline, before and after the new one had passed revision 465".to_owned(),
            unit: "clients".to_owned(),
            target: Some(0),
            observed: Some(4),
            lower: Some(4),
            upper: Some(4),
            predicted: Some("missed by every LIST and watch".to_owned()),
            from: None,
            to: None,
            evidence: evidence(&[
                "histories/reader.jsonl#2",
                "histories/lister-unset.jsonl#2",
                "histories/lister-unset.jsonl#3",
                "histories/lister-zero.jsonl#2",
                "histories/watch.jsonl#2",
                "histories/watch.jsonl#3",
                "histories/etcd-watch.jsonl#2",
                "histories/etcd-watch.jsonl#3",
            ]),
        },
    ]
}

fn phase(phase: quakeproof::check::window::Phase, observed: ObservedView) -> SeenInPhase {
    let wrong = observed == ObservedView::LostTimeline;
    SeenInPhase {
        phase,
        observed,
        reason: wrong.then(|| "every compared view was false".to_owned()),
        compared: 100,
        false_views: if wrong { 100 } else { 0 },
        stale_views: 0,
        ahead_of_etcd: 0,
        unjudged: 0,
        phantom_objects: None,
        absent_objects: None,
        events_missed: None,
        phantom_at_end: None,
        absent_at_end: None,
        stale_reads: None,
        first_wrong: None,
    }
}

fn phases(observed: ObservedView) -> Vec<SeenInPhase> {
    quakeproof::check::window::Phase::BOTH.into_iter().map(|p| phase(p, observed)).collect()
}

fn client(name: &str, kind: ClientKind, operations: [u64; 3]) -> ClientFacts {
    let [before, during, after] = operations;
    ClientFacts {
        name: name.to_owned(),
        kind,
        operations: before + during + after,
        operations_by_part: Operations { before, during, after },
        stale_reads: None,
        get_list_disagreements: None,
        silent_for_ns: None,
        events_missed: None,
        phantom_objects: None,
        absent_objects: None,
        gone410: 0,
        relists: 0,
        errors: BTreeMap::new(),
        converged_after_ns: None,
        phases: Vec::new(),
        reason: None,
    }
}

fn facts() -> EtcdRestoreFacts {
    let errors = |all: &[(&str, u64)]| all.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
    let lister = |name: &str, operations| ClientFacts {
        get_list_disagreements: Some(251),
        phantom_objects: Some(251),
        absent_objects: Some(248),
        errors: errors(&[("refused", 5)]),
        phases: phases(ObservedView::LostTimeline),
        reason: Some("it is no watch: no silence, no events; it does not GET".to_owned()),
        ..client(name, ClientKind::ListReader, operations)
    };
    EtcdRestoreFacts {
        cluster: "main".to_owned(),
        snapshot: Some(SnapshotFacts {
            revision: 214,
            size_bytes: 1_261_600,
            taken_at: InstantFacts { at: Some(wall(13_188)), mono_ns: at(13_188) },
        }),
        revision_before: Some(465),
        highest_revision_seen: Some(465),
        revision_after: 214,
        revisions_lost: Some(251),
        bump: None,
        api_servers_restarted: false,
        restarted: BTreeMap::new(),
        passed_ns: Some((at(24_080), at(24_140))),
        ledger: LedgerAccount {
            refused: 0,
            acked: 2_487,
            acked_before_loss: 503,
            acked_after_restore: 1_984,
            kept: Some(252),
            lost: Some(251),
            lost_after_restore: Some(0),
            indeterminate: 53,
            applied: Some(1),
            not_applied: Some(52),
            unsettled: Some(0),
            phantom: Some(0),
            reason: None,
        },
        lost_ids: "253-503".to_owned(),
        clients: vec![
            ClientFacts {
                errors: errors(&[("timeout", 50), ("refused", 3)]),
                reason: Some("it neither reads nor watches the ledger".to_owned()),
                ..client("orders", ClientKind::LedgerWriter, [503, 53, 1_984])
            },
            ClientFacts {
                stale_reads: Some(0),
                get_list_disagreements: Some(251),
                errors: errors(&[("refused", 21)]),
                phases: phases(ObservedView::True),
                reason: Some("it reads single objects: no views, no events".to_owned()),
                ..client("reader", ClientKind::GetReader, [201, 21, 794])
            },
            lister("lister-unset", [50, 5, 199]),
            lister("lister-zero", [50, 5, 196]),
            ClientFacts {
                silent_for_ns: Some(5_100_000_000),
                events_missed: Some(248),
                phantom_objects: Some(251),
                absent_objects: Some(248),
                phases: phases(ObservedView::LostTimeline),
                ..client("watch", ClientKind::Watcher, [503, 0, 1_736])
            },
            ClientFacts {
                silent_for_ns: Some(4_915_000_000),
                events_missed: Some(251),
                phantom_objects: Some(251),
                absent_objects: Some(251),
                errors: errors(&[("connection-lost", 1)]),
                phases: phases(ObservedView::LostTimeline),
                ..client("etcd-watch", ClientKind::EtcdWatcher, [503, 0, 1_733])
            },
        ],
        reason: None,
    }
}

fn prediction(
    subject: &str,
    what: &str,
    predicted: &str,
    observed: &str,
    agrees: Option<bool>,
) -> PredictionOutcome {
    PredictionOutcome {
        subject: subject.to_owned(),
        what: what.to_owned(),
        predicted: predicted.to_owned(),
        observed: observed.to_owned(),
        agrees,
        source: "API server ≥ 1.31 answers LIST from its cache, which is fed by a watch at the lost revision"
            .to_owned(),
    }
}

fn predictions() -> Vec<PredictionOutcome> {
    let before = "view before the old revision is passed";
    let after = "view after it";
    vec![
        prediction("reader", before, "true", "true", Some(true)),
        prediction("lister-unset", before, "lost timeline", "lost timeline", Some(true)),
        prediction("lister-unset", after, "lost timeline", "lost timeline", Some(true)),
        prediction("lister-zero", before, "lost timeline", "lost timeline", Some(true)),
        prediction(
            "lister-zero",
            after,
            "lost timeline",
            "unknown: nothing recorded for 3.400 s at the decisive moment",
            None,
        ),
        prediction("watch", before, "lost timeline", "lost timeline", Some(true)),
        prediction(
            "watch",
            after,
            "true",
            "lost timeline: 248 acknowledged writes never delivered",
            Some(false),
        ),
        prediction("etcd-watch", before, "lost timeline", "lost timeline", Some(true)),
    ]
}

/// A failed drill: nothing is restarted, no bump.
pub fn restore_without_bump() -> Case {
    let input =
        EvidenceInput { plan: plan(), binding: Some(binding()), journal: journal(), histories: histories() };
    Case {
        timeline: timeline(&input),
        input,
        judgement: Judgement {
            verdict: Some(Verdict::Fail),
            reason: "2 of 4 objectives missed".to_owned(),
            outcome: Some(RunOutcome::Completed),
            outcome_reason: None,
            findings: findings(),
            etcd_restore: vec![facts()],
            recorder: RecorderAccount {
                scheduled: Some(4_064),
                recorded: Some(4_061),
                late: Some(6),
                lost: Some(3),
                reason: Some(
                    "watches have no schedule; etcd-watch was not closed in order and is not counted"
                        .to_owned(),
                ),
            },
            predictions: predictions(),
        },
    }
}

/// The same drill with a bump: every view is true again, the lost writes stated.
pub fn restore_bump_and_mark() -> Case {
    let mut case = restore_without_bump();
    let drill = &mut case.input.plan.drill.metadata;
    drill.name = "restore-bump-and-mark".to_owned();
    drill.title = "etcd restored with a revision bump, old revisions marked compacted".to_owned();
    let judgement = &mut case.judgement;
    judgement.verdict = Some(Verdict::Pass);
    judgement.findings[1].predicted = Some("within seconds".to_owned());
    judgement.findings[3].predicted =
        Some("met: every watch ends with 410 and its client lists again".to_owned());
    judgement.reason = "4 of 4 objectives met".to_owned();
    for finding in &mut judgement.findings {
        finding.verdict = Verdict::Pass;
    }
    judgement.findings[1].observed = Some(1_874_000_000);
    judgement.findings[1].lower = Some(1_780_000_000);
    judgement.findings[1].upper = Some(1_968_000_000);
    judgement.findings[1].reason = "LIST equalled etcd’s state again".to_owned();
    judgement.findings[3].observed = Some(0);
    judgement.findings[3].lower = Some(0);
    judgement.findings[3].upper = Some(0);
    judgement.findings[3].reason = "every client’s view equalled etcd’s after the restore".to_owned();
    case.timeline.marks.by_name.extend([mark("firstTrueList", 20_217, 20_405, "lister-unset")]);
    let facts = &mut judgement.etcd_restore[0];
    facts.bump = Some(1_000_000_000);
    facts.revision_after = 1_000_000_214;
    facts.passed_ns = None;
    for client in facts.clients.iter_mut().filter(|c| c.on_lost_timeline() == Some(true)) {
        client.phases = phases(ObservedView::True);
        client.converged_after_ns = Some(1_874_000_000);
        client.phantom_objects = Some(0);
        client.absent_objects = Some(0);
        client.events_missed = client.events_missed.map(|_| 0);
        client.stale_reads = client.stale_reads.map(|_| 0);
        client.get_list_disagreements = client.get_list_disagreements.map(|_| 0);
        client.gone410 = 1;
        client.relists = 1;
    }
    judgement.predictions.retain(|p| p.agrees == Some(true));
    for sample in case.timeline.lanes.iter_mut().flat_map(|lane| &mut lane.samples) {
        if matches!(sample.state, State::Wrong(_)) {
            sample.state = State::Good;
        }
    }
    case
}

/// Gaps at the decisive moment: one objective can't be told.
pub fn inconclusive() -> Case {
    let mut case = restore_bump_and_mark();
    let judgement = &mut case.judgement;
    judgement.verdict = Some(Verdict::Inconclusive);
    judgement.reason = "1 of 4 objectives inconclusive".to_owned();
    let finding = &mut judgement.findings[0];
    finding.verdict = Verdict::Inconclusive;
    (finding.observed, finding.lower, finding.upper) = (None, None, None);
    finding.reason = "the writer recorded nothing from 0.8 s to 2.9 s after the fault".to_owned();
    let why = "no sample of the writer at the decisive moment".to_owned();
    case.timeline.marks.by_name.insert("firstGoodWrite".to_owned(), Err(why));
    case
}

/// Refused before anything was disturbed: nothing judged, nothing recorded.
pub fn refused() -> Case {
    let mut case = restore_without_bump();
    case.input.binding = None;
    case.input.histories.clear();
    case.input.journal.truncate(3);
    case.judgement = Judgement {
        verdict: None,
        reason: "steady state did not hold: kube-apiserver-1 answered /readyz with 500".to_owned(),
        outcome: Some(RunOutcome::Refused),
        outcome_reason: None,
        findings: Vec::new(),
        etcd_restore: Vec::new(),
        recorder: RecorderAccount {
            reason: Some("no client was started".to_owned()),
            ..RecorderAccount::default()
        },
        predictions: Vec::new(),
    };
    case.timeline.marks = Marks::default();
    case.timeline.lanes.clear();
    case
}

/// `restore_without_bump` with `text` wherever a drill file, a cluster or a tool could put it.
pub fn hostile(text: &str) -> Case {
    let mut case = restore_without_bump();
    let t = || text.to_owned();
    let plan = &mut case.input.plan;
    plan.drill.metadata.name = t();
    plan.drill.metadata.title = t();
    plan.drill.metadata.owner = t();
    plan.drill.metadata.reason = t();
    plan.drill_digest = t();
    plan.parameters = BTreeMap::from([(t(), t())]);
    plan.overrides = BTreeMap::from([(t(), t())]);
    plan.profile = Some(t());
    plan.cluster.versions.kubernetes = t();
    plan.cluster.versions.etcd = t();
    for component in &mut plan.cluster.components {
        component.component = ComponentId(t());
    }
    for step in &mut plan.steps {
        step.targets = vec![ComponentId(t())];
        if let Some(fault) = &mut step.fault {
            fault.blast_radius = t();
            fault.undo = t();
        }
    }
    let binding = case.input.binding.as_mut().unwrap();
    binding.cluster_uid = t();
    binding.ca_fingerprint = t();
    binding.machine = BTreeMap::from([(t(), t())]);
    for entry in &mut case.input.journal {
        match &mut entry.event {
            JournalEvent::RunOpened { run, plan_digest, tool, operator, .. } => {
                (*run, *plan_digest, *tool, *operator) = (t(), t(), t(), t());
            }
            JournalEvent::InjectionVerified { observation, .. } => *observation = t(),
            JournalEvent::UndoArmed { targets, .. } => *targets = vec![ComponentId(t())],
            JournalEvent::UndoAmended { reason, .. } => *reason = t(),
            _ => {}
        }
    }
    let judgement = &mut case.judgement;
    judgement.reason = t();
    for finding in &mut judgement.findings {
        finding.name = t();
        finding.reason = t();
        finding.unit = if finding.unit == "ns" { finding.unit.clone() } else { t() };
        finding.predicted = Some(t());
        finding.evidence.push(t());
    }
    for marked in case.timeline.marks.by_name.values_mut() {
        match marked {
            Ok(mark) => mark.source = t(),
            Err(reason) => *reason = t(),
        }
    }
    case.timeline.marks.by_name.insert(t(), Err(t()));
    for lane in &mut case.timeline.lanes {
        lane.client = t();
        lane.samples[0].state = State::Bad(t());
    }
    for row in &mut judgement.predictions {
        (row.subject, row.what, row.predicted, row.observed, row.source) = (t(), t(), t(), t(), t());
    }
    let facts = &mut judgement.etcd_restore[0];
    facts.lost_ids = t();
    facts.reason = Some(t());
    facts.ledger.reason = Some(t());
    judgement.outcome_reason = Some(t());
    for client in &mut facts.clients {
        client.reason = Some(t());
        client.errors.insert(t(), 1);
    }
    facts.clients[0].name = t();
    for records in case.input.histories.values_mut() {
        for record in records {
            match record {
                Record::Opened { target, .. } => *target = t(),
                Record::Op(op) => {
                    if let Op::List { resource_version, .. } = &mut op.op {
                        *resource_version = Some(t());
                    }
                    if let Outcome::Failed { reason, .. } | Outcome::Unknown { reason } = &mut op.outcome {
                        *reason = t();
                    }
                }
                Record::Event(event) => event.event = Event::Error { code: 410, message: t() },
                Record::Closed { .. } => {}
            }
        }
    }
    judgement.recorder.reason = Some(t());
    case
}

/// A lane of the fixture replaced by one with `stretches` operations, some of them refused.
pub fn long_history(stretches: u64) -> Case {
    let mut case = restore_without_bump();
    let length = 50_000_000_000 / stretches;
    let start = at(8_100).0;
    case.timeline.lanes[0].samples = (0..stretches)
        .map(|i| Sample {
            call: MonoNs(start + i * length),
            ret: MonoNs(start + (i + 1) * length),
            state: if i % 97 == 5 { State::Bad("refused".to_owned()) } else { State::Good },
            line: Some("histories/orders.jsonl#2".to_owned()),
        })
        .collect();
    case
}
