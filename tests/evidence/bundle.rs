//! A small real bundle, made through the same writers that a run uses.

use quakeproof::agent::log::LogEvent;
use quakeproof::agent::store::{LOG_FILE, Store};
use quakeproof::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use quakeproof::clock::{Clock, FakeClock};
use quakeproof::component::{ComponentId, StopMethod};
use quakeproof::digest::sha256_hex;
use quakeproof::drill::spec::{
    API_VERSION, ClusterSpec, Drill, Limits, Metadata, ProviderKind, Spec, Topology,
};
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::load::load_with_head;
use quakeproof::evidence::manifest::{Manifest, seal};
use quakeproof::evidence::signature::key::VerifyingKey;
use quakeproof::evidence::verify::{Judge, Reports, VerifyReport, verify};
use quakeproof::evidence::{EvidenceError, redact};
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Op, OpRecord, Outcome, Record};
use quakeproof::history::recorder::Recorder;
use quakeproof::journal::entry::{FORMAT_VERSION, JournalEvent, Phase, RunOutcome};
use quakeproof::journal::writer::JournalWriter;
use quakeproof::plan::{self, Binding, Plan, PlannedCluster, Versions};
use quakeproof::timeline::EvidenceInput;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// The drill of [`plan`].
pub const DRILL: &str = "apiVersion: quakeproof.dev/v1alpha1
kind: Drill
metadata: {name: lose-etcd, title: etcd is lost, owner: platform, reason: to know}
spec:
  cluster: {provider: local, kubernetes: v1.37.2, etcd: v3.7.3}
  steadyState: []
  clients: []
  steps: []
  objectives: []
";
pub const JUDGE: &str = "test/judge 1";

pub fn etcd() -> ComponentId {
    ComponentId("etcd-1".to_owned())
}

pub fn plan() -> Plan {
    let topology = Topology::default();
    let drill = Drill {
        api_version: API_VERSION.to_owned(),
        kind: "Drill".to_owned(),
        metadata: Metadata {
            name: "lose-etcd".to_owned(),
            title: "etcd is lost".to_owned(),
            owner: "platform".to_owned(),
            reason: "to know".to_owned(),
            expected_verdict: None,
        },
        spec: Spec {
            cluster: ClusterSpec {
                encryption_at_rest: None,
                provider: ProviderKind::Local,
                name: None,
                kubernetes: Some("v1.37.2".to_owned()),
                etcd: Some("v3.7.3".to_owned()),
                topology,
            },
            parameters: BTreeMap::new(),
            profiles: BTreeMap::new(),
            limits: Limits::default(),
            steady_state: vec![],
            clients: vec![],
            steps: vec![],
            objectives: vec![],
        },
    };
    Plan {
        format_version: plan::FORMAT_VERSION.to_owned(),
        drill,
        drill_digest: sha256_hex(DRILL.as_bytes()),
        parameters: BTreeMap::new(),
        overrides: BTreeMap::new(),
        profile: None,
        seed: 7,
        cluster: PlannedCluster {
            encryption_at_rest: None,
            name: "main".to_owned(),
            provider: ProviderKind::Local,
            standing: None,
            versions: Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() },
            topology,
            components: vec![],
        },
        clients: vec![],
        steps: vec![],
        steady_state: vec![],
        objectives: vec![],
        predictions: vec![],
        consumers: vec![],
        flow: vec![],
        limits: Limits::default(),
    }
}

pub fn opened() -> JournalEvent {
    let plan = serde_json::to_vec_pretty(&plan()).unwrap();
    JournalEvent::RunOpened {
        format_version: FORMAT_VERSION.to_owned(),
        run: "01990000-0000-7000-8000-00000000000a".to_owned(),
        drill: "lose-etcd".to_owned(),
        drill_digest: sha256_hex(DRILL.as_bytes()),
        plan_digest: sha256_hex(&plan),
        tool: "0.1.0".to_owned(),
        operator: "ada@lab".to_owned(),
    }
}

fn binding() -> Binding {
    Binding {
        cluster_uid: "uid-1".to_owned(),
        cluster_name: "main-1".to_owned(),
        ca_fingerprint: "c".repeat(64),
        reported_versions: BTreeMap::from([(etcd(), "3.7.3".to_owned())]),
        binary_digests: BTreeMap::new(),
        addresses: BTreeMap::new(),
        incarnations: BTreeMap::from([(etcd(), "101".to_owned())]),
        ledger_namespace: "ledger".to_owned(),
        machine: BTreeMap::new(),
    }
}

/// What happens to the run, in two parts; histories are anchored between them.
pub fn events() -> (Vec<JournalEvent>, Vec<JournalEvent>) {
    let injection = InjectionId("0-loseEtcd".to_owned());
    let undo = Undo {
        injection: injection.clone(),
        on_lapse: OnLapse::Revert,
        ops: vec![UndoOp::Start { component: etcd() }],
        within_ns: 30_000_000_000,
    };
    let before = vec![
        opened(),
        JournalEvent::Phase { phase: Phase::Preflight },
        JournalEvent::Bound { binding: Box::new(binding()) },
        JournalEvent::Phase { phase: Phase::Steps },
        JournalEvent::UndoArmed { undo, targets: vec![etcd()], ttl_ns: 30_000_000_000 },
        JournalEvent::Injecting {
            injection: injection.clone(),
            kind: "loseEtcd".to_owned(),
            targets: vec![etcd()],
            stop_method: Some(StopMethod::Kill),
        },
        JournalEvent::Injected { injection: injection.clone() },
    ];
    let after = vec![
        JournalEvent::UndoStarted {
            injection: injection.clone(),
            mode: OnLapse::Revert,
            cause: "runEnd".to_owned(),
        },
        JournalEvent::UndoFinished { injection },
        JournalEvent::RunClosed { outcome: RunOutcome::Completed, reason: None },
    ];
    (before, after)
}

fn record_history(dir: &Path, client: &str, clock: &Arc<FakeClock>, journal: &mut JournalWriter) {
    let (anchors, mut anchored) = tokio::sync::mpsc::unbounded_channel();
    let mut recorder = Recorder::create(dir, client, clock.clone() as Arc<dyn Clock>, anchors).unwrap();
    let opened = Record::Opened {
        client: client.to_owned(),
        kind: ClientKind::LedgerWriter,
        identity: format!("quakeproof:{client}"),
        target: "api/kube-apiserver-1".to_owned(),
        at: clock.wall(),
        mono_ns: clock.mono(),
        boot: clock.boot(),
    };
    recorder.append(&opened).unwrap();
    for id in 1..=8 {
        clock.advance(200_000_000);
        let call_ns = clock.mono();
        let outcome = if id % 3 == 0 {
            Outcome::Unknown { reason: "timeout".to_owned() }
        } else {
            Outcome::Ok(Answer { revision: Some(100 + id), ..Answer::default() })
        };
        let op = OpRecord {
            seq: id,
            boot: clock.boot(),
            due_ns: Some(call_ns),
            call_ns,
            return_ns: call_ns.plus(1_000_000),
            op: Op::Create { id },
            outcome,
            exchange: None,
        };
        recorder.op(op).unwrap();
    }
    recorder.anchor().unwrap();
    while let Ok(anchor) = anchored.try_recv() {
        let quakeproof::history::recorder::Anchor { file, bytes, records, sha256 } = anchor;
        journal.append(JournalEvent::HistoryAnchored { file, bytes, records, sha256 }).unwrap();
    }
}

/// A log as the dead-man agent writes it.
fn write_agent_log(path: &Path, clock: Arc<FakeClock>) {
    let dir = TempDir::new().unwrap();
    let (mut store, _) = Store::open(dir.path(), clock, Box::new(|_| {})).unwrap();
    let undone = LogEvent::Undone {
        run: "01990000-0000-7000-8000-00000000000a".to_owned(),
        injection: InjectionId("1-loseEtcd".to_owned()),
    };
    store.must(undone).unwrap();
    fs::copy(dir.path().join(LOG_FILE), path).unwrap();
}

/// Counts acknowledged writes: a judge simple enough to be right.
pub fn report_of(input: &EvidenceInput, judge: &str, journal_head: &str) -> Vec<u8> {
    let acknowledged = |records: &Vec<Record>| {
        records.iter().filter(|r| matches!(r, Record::Op(OpRecord { outcome: Outcome::Ok(_), .. }))).count()
    };
    let objectives: Vec<Value> = input
        .histories
        .iter()
        .map(
            |(client, records)| json!({"name": client, "verdict": "pass", "observed": acknowledged(records)}),
        )
        .collect();
    let report = json!({
        "formatVersion": "1.0", "judge": judge, "verdict": "pass", "objectives": objectives,
        "evidence": {"journalHead": journal_head, "entries": input.journal.len()},
    });
    serde_json::to_vec_pretty(&report).unwrap()
}

pub fn verified(dir: &Path) -> Result<VerifyReport, EvidenceError> {
    verified_by(dir, JUDGE)
}

pub fn verified_by(dir: &Path, version: &str) -> Result<VerifyReport, EvidenceError> {
    verified_with(dir, version, None)
}

pub fn verified_with(
    dir: &Path,
    version: &str,
    key: Option<&VerifyingKey>,
) -> Result<VerifyReport, EvidenceError> {
    let reports = |input: &EvidenceInput, head: &str| {
        Ok(Reports::from([("report.json", report_of(input, version, head))]))
    };
    verify(dir, &Judge { version, follows: &|_, _| Ok(()), reports: &reports }, key)
}

/// A finished, sealed run.
pub fn bundle() -> TempDir {
    let root = TempDir::new().unwrap();
    let dir = RunDir::create(&root.path().join("run")).unwrap();
    let clock = Arc::new(FakeClock::new());
    fs::write(dir.drill(), DRILL).unwrap();
    fs::write(dir.plan(), serde_json::to_vec_pretty(&plan()).unwrap()).unwrap();
    fs::write(dir.binding(), serde_json::to_vec(&binding()).unwrap()).unwrap();
    write_agent_log(&dir.agent().join("main.jsonl"), clock.clone());
    let log = root.path().join("etcd.log");
    fs::write(&log, "started with --token=abcdef0123456789\n").unwrap();
    assert_eq!(redact::copy_log(&log, &dir.logs().join("etcd-1.log")).unwrap(), 1);
    let mut journal = JournalWriter::create(&dir.journal(), clock.clone()).unwrap();
    let (before, after) = events();
    for event in before {
        clock.advance(1_000_000_000);
        journal.append(event).unwrap();
    }
    for client in ["orders", "reader"] {
        record_history(dir.path(), client, &clock, &mut journal);
    }
    for event in after {
        clock.advance(1_000_000_000);
        journal.append(event).unwrap();
    }
    drop(journal);
    let loaded = load_with_head(dir.path()).unwrap();
    fs::write(dir.report_json(), report_of(&loaded.input, JUDGE, &loaded.journal_head)).unwrap();
    seal(&dir, &["planted-canary"], None).unwrap();
    root
}

/// A copy of a bundle that a test may damage.
pub fn copy_of(bundle: &TempDir) -> (TempDir, RunDir) {
    let root = TempDir::new().unwrap();
    let from = RunDir::open(&bundle.path().join("run")).unwrap();
    let to = root.path().join("run");
    for file in
        from.files().unwrap().iter().map(String::as_str).chain(["manifest.json", "attestation.dsse.json"])
    {
        if !from.path().join(file).exists() {
            continue;
        }
        let target = to.join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(from.path().join(file), target).unwrap();
    }
    let dir = RunDir::open(&to).unwrap();
    (root, dir)
}

/// What a forger does who knows of the manifest: makes its digests fit again.
pub fn reseal(dir: &RunDir) {
    let manifest = Manifest::of(dir).unwrap();
    fs::write(dir.manifest(), serde_json::to_vec(&manifest).unwrap()).unwrap();
}

/// What a forger does who also has the tool: judges what there is, and makes everything fit again.
/// `None` when there is nothing that can be judged.
pub fn judge_and_reseal(dir: &RunDir) -> Option<()> {
    let loaded = load_with_head(dir.path()).ok()?;
    fs::write(dir.report_json(), report_of(&loaded.input, JUDGE, &loaded.journal_head)).ok()?;
    reseal(dir);
    Some(())
}
