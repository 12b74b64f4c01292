//! A tiny world of one etcd and its clients, small enough to be judged by brute force.
//!
//! Time is in milliseconds. Writes, losses and restores happen at set times;
//! what varies is how many, and how each client behaves after the restore.

#[path = "book.rs"]
mod book;

pub use book::Book;
use quakeproof::check::lost_timeline::NoClientOnLostTimeline;
use quakeproof::check::rpo::Rpo;
use quakeproof::check::rto::{Rto, RtoFrom, RtoTo};
use quakeproof::clock::{BootId, MonoNs, WallTime};
use quakeproof::component::{ComponentId, StopMethod};
use quakeproof::drill::spec::{
    ClusterSpec, Drill, Limits, Metadata, Objective, ProviderKind, Spec, Step, Sustained, Topology,
};
use quakeproof::drill::values::Span;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, Op, Outcome, Record};
use quakeproof::journal::entry::{Entry, Fact, JournalEvent, Phase, RunOutcome};
use quakeproof::plan::{
    MinimumOperations, Plan, PlannedClient, PlannedCluster, PlannedObjective, PlannedStep, PredictedView,
    Prediction, Versions,
};
use quakeproof::step::hold::Hold;
use quakeproof::timeline::EvidenceInput;
use std::collections::{BTreeMap, BTreeSet};

pub const MS: u64 = 1_000_000;
pub const BOOT: &str = "0badcafe";
pub const START: u64 = 1_000;
pub const SETTLE: u64 = 300;
pub const MAX_LAG: u64 = 500;
pub const WRITE_EVERY: u64 = 20;
pub const LOOK_EVERY: u64 = 100;

/// How a reader or watcher behaves after the restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Lists anew once etcd serves, and is right from then on.
    Honest,
    /// Goes on from the lost timeline's last revision, as a cache does that nobody restarts.
    Frozen,
    /// Honest, but one event or one id of one list is left out.
    Omits(u64),
    /// Honest, but one object that nobody wrote turns up.
    Invents(u64),
    /// Honest, then delivers nothing more.
    Stalls(u64),
}

#[derive(Debug, Clone)]
pub struct World {
    /// Writes before the snapshot, after it, and after the restore.
    pub writes: [u64; 3],
    pub bump: Option<u64>,
    pub list: Manner,
    pub watch: Manner,
    pub etcd_watch: Manner,
    /// GETs answer from the lost timeline.
    pub get_lies: bool,
}

impl World {
    pub fn honest() -> Self {
        Self {
            writes: [40, 40, 150],
            bump: Some(1_000_000),
            list: Manner::Honest,
            watch: Manner::Honest,
            etcd_watch: Manner::Honest,
            get_lies: false,
        }
    }

    /// What an API server does that is kept running through a restore without a bump.
    pub fn api_server_kept() -> Self {
        Self {
            bump: None,
            list: Manner::Frozen,
            watch: Manner::Frozen,
            etcd_watch: Manner::Frozen,
            ..Self::honest()
        }
    }

    pub fn snapshot_at(&self) -> u64 {
        START + self.writes[0] * WRITE_EVERY + WRITE_EVERY / 2
    }

    pub fn lost_at(&self) -> u64 {
        self.snapshot_at() + self.writes[1] * WRITE_EVERY
    }

    pub fn command_at(&self) -> u64 {
        self.lost_at() + 200
    }

    pub fn restored_at(&self) -> u64 {
        self.lost_at() + 400
    }

    pub fn serving_at(&self) -> u64 {
        self.lost_at() + 500
    }

    pub fn verified_at(&self) -> u64 {
        self.serving_at() + 100
    }

    /// Views are judged from here on.
    pub fn judged_from(&self) -> u64 {
        self.verified_at() + SETTLE
    }

    pub fn collect_at(&self) -> u64 {
        self.serving_at() + self.writes[2] * WRITE_EVERY + WRITE_EVERY / 2
    }

    /// `(committed at, id, revision)` of the timeline that is lost.
    pub fn lost(&self) -> Vec<(u64, u64, u64)> {
        (1..=self.writes[0] + self.writes[1]).map(|id| (START + id * WRITE_EVERY, id, 100 + id)).collect()
    }

    pub fn snapshot_revision(&self) -> u64 {
        100 + self.writes[0]
    }

    pub fn old_head(&self) -> u64 {
        100 + self.writes[0] + self.writes[1]
    }

    /// Of the restored one, what the snapshot held included.
    pub fn restored(&self) -> Vec<(u64, u64, u64)> {
        let kept = self.lost().into_iter().filter(|(_, _, revision)| *revision <= self.snapshot_revision());
        let base = self.snapshot_revision() + self.bump.unwrap_or(0);
        let first = 1_000;
        let written =
            (0..self.writes[2]).map(|n| (self.serving_at() + n * WRITE_EVERY, first + n, base + 1 + n));
        kept.map(|(_, id, revision)| (0, id, revision)).chain(written).collect()
    }

    /// The restored timeline's revision and ids at an instant.
    pub fn now(&self, at: u64) -> (u64, BTreeSet<u64>) {
        let base = self.snapshot_revision() + self.bump.unwrap_or(0);
        let done: Vec<_> = self.restored().into_iter().filter(|(when, _, _)| *when <= at).collect();
        let revision = done.iter().map(|(_, _, r)| *r).max().unwrap_or(0).max(base);
        (revision, done.iter().map(|(_, id, _)| *id).collect())
    }

    /// Revision at which an object was written.
    fn revision_of(&self, id: u64) -> u64 {
        match id.checked_sub(1_000) {
            None => 100 + id,
            Some(n) => self.snapshot_revision() + self.bump.unwrap_or(0) + 1 + n,
        }
    }

    pub fn old_now(&self, at: u64) -> (u64, BTreeSet<u64>) {
        let done: Vec<_> = self.lost().into_iter().filter(|(when, _, _)| *when <= at).collect();
        (done.iter().map(|(_, _, r)| *r).max().unwrap_or(100), done.iter().map(|(_, id, _)| *id).collect())
    }

    /// A cache that missed the restore: the lost objects at the lost revision,
    /// then whatever the restored timeline writes above it.
    pub fn frozen(&self, at: u64) -> (u64, BTreeSet<u64>) {
        let (mut revision, mut ids) = self.old_now(self.lost_at());
        for (when, id, written) in self.restored() {
            if when > 0 && when <= at && written > self.old_head() {
                revision = revision.max(written);
                ids.insert(id);
            }
        }
        (revision, ids)
    }

    pub fn input(&self) -> EvidenceInput {
        let mut histories = BTreeMap::new();
        histories.insert("orders".to_owned(), self.writer());
        histories.insert("reader".to_owned(), self.reader());
        histories.insert("lister".to_owned(), self.lister());
        histories.insert("watch".to_owned(), self.watcher(ClientKind::Watcher, self.watch));
        histories.insert("raw".to_owned(), self.watcher(ClientKind::EtcdWatcher, self.etcd_watch));
        histories.insert("truth".to_owned(), self.truth());
        EvidenceInput {
            plan: self.plan(),
            binding: None,
            journal: self.journal(),
            histories,
            agent: Vec::new(),
        }
    }

    pub fn end(&self) -> u64 {
        self.collect_at() + 40
    }

    fn writer(&self) -> Vec<Record> {
        let mut book = Book::open("orders", ClientKind::LedgerWriter);
        for (at, id, revision) in self.lost() {
            book.op(at - 3, at + 3, Op::Create { id }, acked(revision));
        }
        let mut refused = 500;
        let mut at = self.lost_at() + WRITE_EVERY;
        while at + 5 < self.serving_at() {
            let outcome = if refused % 2 == 0 {
                Outcome::Unknown { reason: "timeout".to_owned() }
            } else {
                Outcome::Failed { status: None, reason: "refused".to_owned() }
            };
            book.op(at, at + 2, Op::Create { id: refused }, outcome);
            refused += 1;
            at += WRITE_EVERY;
        }
        for (at, id, revision) in self.restored().into_iter().filter(|(when, _, _)| *when > 0) {
            book.op(at - 3, at + 3, Op::Create { id }, acked(revision));
        }
        book.close(self.end())
    }

    fn reader(&self) -> Vec<Record> {
        let mut book = Book::open("reader", ClientKind::GetReader);
        let mut at = START + 2 * WRITE_EVERY;
        let mut turn = 7u64;
        while at < self.collect_at() {
            let (call, ret) = (at, at + 4);
            // Acknowledged before the call, old or new, in a fixed shuffle.
            let acked: Vec<u64> = self
                .lost()
                .into_iter()
                .chain(self.restored().into_iter().filter(|(when, _, _)| *when > 0))
                .filter(|(when, _, _)| when + 3 <= call)
                .map(|(_, id, _)| id)
                .collect();
            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = acked[(turn >> 33) as usize % acked.len()];
            let outcome = if call < self.lost_at() {
                acked_read(true)
            } else if call < self.serving_at() {
                Outcome::Failed { status: None, reason: "refused".to_owned() }
            } else if self.get_lies {
                acked_read(self.frozen(call).1.contains(&id))
            } else {
                acked_read(self.now(call).1.contains(&id))
            };
            book.op(call, ret, Op::Get { id }, outcome);
            at += 50;
        }
        book.close(self.end())
    }

    fn lister(&self) -> Vec<Record> {
        let mut book = Book::open("lister", ClientKind::ListReader);
        let (mut at, mut n) = (START + 5, 0u64);
        while at < self.collect_at() {
            let view = if at < self.lost_at() {
                Some(self.old_now(at))
            } else if at < self.serving_at() {
                None
            } else {
                Some(match self.list {
                    Manner::Frozen => self.frozen(at + 1),
                    Manner::Stalls(from) if at >= from => self.now(from.max(self.serving_at())),
                    _ => self.now(at + 1),
                })
            };
            let outcome = match view {
                None => Outcome::Failed { status: Some(429), reason: "reinitializing".to_owned() },
                Some((revision, mut ids)) => {
                    match self.list {
                        Manner::Omits(from) if at >= from && at < from + LOOK_EVERY => {
                            ids.pop_last();
                        }
                        Manner::Invents(from) if at >= from && at < from + LOOK_EVERY => {
                            ids.insert(9_999);
                        }
                        _ => {}
                    }
                    Outcome::Ok(Answer {
                        revision: Some(revision),
                        ids: Some(ids.into_iter().collect()),
                        ..Answer::default()
                    })
                }
            };
            let op = Op::List { list: n, page: 0, resource_version: None, limit: None };
            book.op(at, at + 2, op, outcome);
            (at, n) = (at + LOOK_EVERY, n + 1);
        }
        book.close(self.end())
    }

    fn watcher(&self, kind: ClientKind, manner: Manner) -> Vec<Record> {
        let name = if kind == ClientKind::Watcher { "watch" } else { "raw" };
        let mut book = Book::open(name, kind);
        book.fresh(kind, START + 1, &self.old_now(START + 2), 0, |id| self.revision_of(id));
        for (at, id, revision) in self.lost() {
            book.event(at + 2, Event::Put { id, revision });
        }
        let relisted = if manner == Manner::Frozen {
            None
        } else {
            let at = self.serving_at() + 50;
            book.event(at, Event::Error { code: 410, message: "too old resource version".to_owned() });
            book.fresh(kind, at + 1, &self.now(at + 2), 1, |id| self.revision_of(id));
            Some(at + 2)
        };
        let (mut omitted, mut invented) = (false, false);
        for (at, id, revision) in self.restored().into_iter().filter(|(when, _, _)| *when > 0) {
            let due = match relisted {
                Some(since) => at > since,
                None => revision > self.old_head(),
            };
            let stalled = matches!(manner, Manner::Stalls(from) if at >= from);
            if !due || stalled || at + 2 >= self.end() {
                continue;
            }
            if let Manner::Omits(from) = manner
                && at >= from
                && !omitted
            {
                omitted = true;
                continue;
            }
            if let Manner::Invents(from) = manner
                && at >= from
                && !invented
            {
                invented = true;
                book.event(at + 1, Event::Put { id: 9_999, revision: revision - 1 });
            }
            book.event(at + 2, Event::Put { id, revision });
        }
        book.close(self.end())
    }

    fn truth(&self) -> Vec<Record> {
        let mut book = Book::open("truth", ClientKind::EtcdTruth);
        let mut at = START + 7;
        while at <= self.collect_at() + 30 {
            let objects: Option<(u64, Vec<(u64, u64)>)> = if at < self.lost_at() {
                let (revision, _) = self.old_now(at);
                let all =
                    self.lost().into_iter().filter(|(_, _, r)| *r <= revision).map(|(_, id, r)| (id, r));
                Some((revision, all.collect()))
            } else if at < self.serving_at() {
                None
            } else {
                let (revision, _) = self.now(at);
                let all =
                    self.restored().into_iter().filter(|(_, _, r)| *r <= revision).map(|(_, id, r)| (id, r));
                Some((revision, all.collect()))
            };
            let outcome = match objects {
                None => Outcome::Failed { status: None, reason: "refused".to_owned() },
                Some((revision, objects)) => Outcome::Ok(Answer {
                    revision: Some(revision),
                    objects: Some(objects),
                    raft_term: Some(2),
                    ..Answer::default()
                }),
            };
            book.op(at, at + 1, Op::EtcdRange { revision: None }, outcome);
            at += LOOK_EVERY;
        }
        // One reading after everything else, as a run takes it while collecting.
        let (revision, _) = self.now(self.end());
        let objects = self.restored().into_iter().map(|(_, id, r)| (id, r)).collect();
        let answer = Answer {
            revision: Some(revision),
            objects: Some(objects),
            raft_term: Some(2),
            ..Answer::default()
        };
        book.op(self.end(), self.end() + 1, Op::EtcdRange { revision: None }, Outcome::Ok(answer));
        book.close(self.end() + 2)
    }

    fn journal(&self) -> Vec<Entry> {
        let id = quakeproof::agent::undo::InjectionId("1-loseEtcd".to_owned());
        let etcd = ComponentId("etcd-1".to_owned());
        let lost = self.lost_at();
        let mut lines = vec![
            (START - 50, JournalEvent::Phase { phase: Phase::Baseline }),
            (START - 10, JournalEvent::Phase { phase: Phase::Steps }),
            (
                self.snapshot_at() + 3,
                JournalEvent::Fact {
                    fact: Fact::SnapshotTaken {
                        name: "backup".to_owned(),
                        member: etcd.clone(),
                        revision: self.snapshot_revision(),
                        keys: Some(100),
                        sha256_ok: Some(true),
                        size_bytes: 20_480,
                        sha256: "00".repeat(32),
                        call_ns: MonoNs(self.snapshot_at() * MS),
                        return_ns: MonoNs((self.snapshot_at() + 2) * MS),
                    },
                },
            ),
            (
                lost - 1,
                JournalEvent::Fact {
                    fact: Fact::RevisionBefore {
                        revision: self.old_head(),
                        raft_term: 2,
                        at_ns: MonoNs((lost - 2) * MS),
                    },
                },
            ),
            (
                lost,
                JournalEvent::Injecting {
                    injection: id.clone(),
                    kind: "loseEtcd".to_owned(),
                    targets: vec![etcd.clone()],
                    stop_method: Some(StopMethod::Kill),
                },
            ),
            (lost + 5, JournalEvent::Injected { injection: id.clone() }),
            (
                lost + 6,
                JournalEvent::InjectionVerified { injection: id.clone(), observation: "refused".to_owned() },
            ),
            (
                self.verified_at() - 2,
                JournalEvent::Fact {
                    fact: Fact::Restored {
                        from: "backup".to_owned(),
                        bump: self.bump,
                        revision_after: self.snapshot_revision() + self.bump.unwrap_or(0),
                        raft_term: 2,
                        command_ns: MonoNs(self.command_at() * MS),
                        restored_ns: MonoNs(self.restored_at() * MS),
                        restarted: BTreeMap::new(),
                    },
                },
            ),
            (self.verified_at() - 1, JournalEvent::Ended { injection: id.clone(), by_step: 0 }),
            (
                self.verified_at(),
                JournalEvent::EndVerified { injection: id, observation: "served".to_owned() },
            ),
            (self.collect_at() - 2, JournalEvent::StepFinished { step: 0 }),
            (self.collect_at() - 1, JournalEvent::Phase { phase: Phase::Recovery }),
            (self.collect_at(), JournalEvent::Phase { phase: Phase::Collect }),
            (self.end() + 10, JournalEvent::Phase { phase: Phase::Cleanup }),
        ];
        lines.push((
            self.end() + 20,
            JournalEvent::RunClosed { outcome: RunOutcome::Completed, reason: None },
        ));
        lines
            .into_iter()
            .enumerate()
            .map(|(seq, (at, event))| Entry {
                prev: "0".repeat(64),
                seq: seq as u64,
                at: WallTime("2026-01-01T00:00:00.000000Z".to_owned()),
                mono_ns: MonoNs(at * MS),
                boot: BootId(BOOT.to_owned()),
                event,
            })
            .collect()
    }

    fn plan(&self) -> Plan {
        let objectives = vec![
            Objective::Rto(Rto {
                name: "writes-again".to_owned(),
                from: RtoFrom::Fault,
                to: RtoTo::FirstGoodWrite,
                within: Span::secs(1),
            }),
            Objective::Rto(Rto {
                name: "lists-right".to_owned(),
                from: RtoFrom::RestoreCommand,
                to: RtoTo::FirstTrueList,
                within: Span::secs(2),
            }),
            Objective::Rpo(Rpo {
                name: "lost-writes".to_owned(),
                within: Some(Span::secs(10)),
                at_most_writes: None,
            }),
            Objective::NoClientOnLostTimeline(NoClientOnLostTimeline {
                name: "no-client-on-lost-timeline".to_owned(),
                settle: Span::millis(SETTLE),
                max_lag: Span::millis(MAX_LAG),
            }),
        ];
        let names = ["writes-again", "lists-right", "lost-writes", "no-client-on-lost-timeline"];
        let limits =
            Limits { sustained: Sustained { samples: 5, over: Span::millis(80) }, ..Limits::default() };
        let step = Step::Hold(Hold { duration: Span::secs(1) });
        let cluster = ClusterSpec {
            encryption_at_rest: None,
            provider: ProviderKind::Local,
            name: None,
            kubernetes: Some("v1.37.2".to_owned()),
            etcd: Some("v3.7.3".to_owned()),
            topology: Topology::default(),
        };
        let clients = [
            ("orders", ClientKind::LedgerWriter, Some(WRITE_EVERY)),
            ("reader", ClientKind::GetReader, Some(50)),
            ("lister", ClientKind::ListReader, Some(LOOK_EVERY)),
            ("watch", ClientKind::Watcher, None),
            ("raw", ClientKind::EtcdWatcher, None),
            ("truth", ClientKind::EtcdTruth, Some(LOOK_EVERY)),
        ];
        Plan {
            format_version: "1.0".to_owned(),
            drill: Drill {
                api_version: "quakeproof.dev/v1alpha1".to_owned(),
                kind: "Drill".to_owned(),
                metadata: Metadata {
                    name: "tiny".to_owned(),
                    title: "tiny".to_owned(),
                    owner: "tests".to_owned(),
                    reason: "tests".to_owned(),
                    expected_verdict: None,
                },
                spec: Spec {
                    cluster,
                    parameters: BTreeMap::new(),
                    profiles: BTreeMap::new(),
                    limits: limits.clone(),
                    steady_state: Vec::new(),
                    clients: Vec::new(),
                    steps: vec![step.clone()],
                    objectives: objectives.clone(),
                },
            },
            drill_digest: String::new(),
            parameters: BTreeMap::new(),
            overrides: BTreeMap::new(),
            profile: None,
            seed: 1,
            cluster: PlannedCluster {
                encryption_at_rest: None,
                name: "main".to_owned(),
                provider: ProviderKind::Local,
                standing: None,
                versions: Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() },
                topology: Topology::default(),
                components: Vec::new(),
            },
            clients: clients
                .into_iter()
                .map(|(name, kind, every)| PlannedClient {
                    name: name.to_owned(),
                    kind,
                    target: ComponentId("kube-apiserver-1".to_owned()),
                    identity: "client".to_owned(),
                    spec: None,
                    every_ns: every.map(|ms| ms * MS),
                    minimum: MinimumOperations { before: 3, during: 0, after: 3 },
                })
                .collect(),
            steps: vec![PlannedStep { index: 0, step, targets: Vec::new(), fault: None }],
            steady_state: Vec::new(),
            objectives: objectives
                .into_iter()
                .zip(names)
                .map(|(objective, name)| PlannedObjective {
                    name: name.to_owned(),
                    objective,
                    predicted: None,
                })
                .collect(),
            consumers: vec![],
            flow: vec![],
            predictions: vec![Prediction {
                client: "watch".to_owned(),
                before_passing: PredictedView::LostTimeline,
                after_passing: PredictedView::LostTimeline,
                gone_410: false,
                refusals: BTreeMap::new(),
                source: "tests".to_owned(),
            }],
            limits,
        }
    }
}

pub fn acked(revision: u64) -> Outcome {
    Outcome::Ok(Answer { revision: Some(revision), ..Answer::default() })
}

fn acked_read(found: bool) -> Outcome {
    if found {
        Outcome::Ok(Answer::default())
    } else {
        Outcome::Failed { status: Some(404), reason: "not-found".to_owned() }
    }
}
