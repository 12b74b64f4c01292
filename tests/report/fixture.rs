//! A run as the report sees it: etcd restored without a revision bump while the
//! API server keeps running, one minute, six clients and a probe. The figures
//! are of the size that real runs of Kubernetes 1.37.2 show.

#[path = "fixture/evidence.rs"]
mod evidence;
#[path = "fixture/judged.rs"]
mod judged;
#[path = "fixture/views.rs"]
mod views;

use evidence::{binding, histories, journal, plan};
use judged::{facts, findings, phases, predictions};
use quakeproof::check::recorder::RecorderAccount;
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Judgement, Verdict};
use quakeproof::clock::{BootId, MonoNs, WallTime};
use quakeproof::component::ComponentId;
use quakeproof::history::record::{Event, Op, Outcome, Record};
use quakeproof::journal::entry::{JournalEvent, RunOutcome};
use quakeproof::report::Prepared;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::marks::Marks;
use quakeproof::timeline::sustained::{Sample, State};
use quakeproof::timeline::{EvidenceInput, Timeline};
use std::collections::BTreeMap;
use views::{mark, timeline};

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

/// A failed drill: nothing is restarted, no bump.
pub fn restore_without_bump() -> Case {
    let input = EvidenceInput {
        plan: plan(),
        binding: Some(binding()),
        journal: journal(),
        histories: histories(),
        agent: Vec::new(),
    };
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
            apf: vec![],
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
    facts.revisions_reused = Some(0);
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
    case.timeline.boundaries = Boundaries::of(&case.input);
    case.judgement = Judgement {
        verdict: None,
        reason: "steady state did not hold: kube-apiserver-1 answered /readyz with 500".to_owned(),
        outcome: Some(RunOutcome::Refused),
        outcome_reason: None,
        findings: Vec::new(),
        etcd_restore: Vec::new(),
        apf: vec![],
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
    case.timeline.boundaries = Boundaries::of(&case.input);
    let judgement = &mut case.judgement;
    judgement.reason = t();
    for finding in &mut judgement.findings {
        finding.name = t();
        finding.reason = t();
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
