//! `facts.etcdRestore[]` of the report: figures, each from recorded histories.
//! Unknown is `null` with a reason beside it; 0 means measured as none.

use super::consumers::{ConsumerFacts, consumer_facts};
use super::leaders::{LeaderFacts, leader_facts};
use super::leases::{LeaseFacts, lease_facts};
use super::ledger::LedgerAccount;
use super::lost_timeline::{NoClientOnLostTimeline, all_seen};
use super::seen::{ObservedView, Seen, SeenInPhase};
use super::{Judge, revisions};
use crate::clock::{MonoNs, WallTime};
use crate::component::{ComponentId, Role, StopMethod};
use crate::drill::spec::Objective;
use crate::history::kind::ClientKind;
use crate::history::record::{ENDED_AS_ASKED, Event, Op, Outcome};
use crate::plan::{Plan, Prediction};
use crate::timeline::Restored;
use crate::timeline::boundaries::wall_of;
use crate::timeline::clients::{ClientLog, ListResult, Listing};
use crate::timeline::gets::{GetAnswer, Right};
use crate::timeline::lanes::STOPPED;
use crate::timeline::phases::{Operations, operations};
use crate::timeline::truth::{Side, side};
use crate::timeline::writes::Told;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Figures of one etcd loss and restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdRestoreFacts {
    /// Cluster that it is about.
    pub cluster: String,
    /// The snapshot restored from.
    pub snapshot: Option<SnapshotFacts>,
    /// etcd's revision, read just before the loss.
    pub revision_before: Option<u64>,
    /// The highest revision that anyone saw before the loss.
    pub highest_revision_seen: Option<u64>,
    /// First revision that the restored store reported.
    pub revision_after: u64,
    /// Revisions between the snapshot and the highest one seen.
    pub revisions_lost: Option<u64>,
    /// Revisions that the restore added; `null`: it was not bumped.
    pub bump: Option<u64>,
    /// Revision numbers that clients saw with one change before the restore and with another one
    /// after it. Only changes whose content is in a history count: it is the least number.
    pub revisions_reused: Option<u64>,
    /// The procedure restarted the API servers.
    pub api_servers_restarted: bool,
    /// How each restarted component was stopped.
    pub restarted: BTreeMap<ComponentId, StopMethod>,
    /// When the restored timeline was past the highest revision seen: not before, not after.
    pub passed_ns: Option<(MonoNs, MonoNs)>,
    /// What became of the writes.
    pub ledger: LedgerAccount,
    /// Ids of writes acknowledged before the loss and gone, as ranges.
    pub lost_ids: String,
    /// What each client saw.
    pub clients: Vec<ClientFacts>,
    /// Raw etcd leases that were there at the snapshot or at the loss.
    #[serde(default)]
    pub leases: Vec<LeaseFacts>,
    /// Who led, before and after.
    #[serde(default)]
    pub leaders: Vec<LeaderFacts>,
    /// What the controller manager and the scheduler did.
    #[serde(default)]
    pub consumers: Vec<ConsumerFacts>,
    /// Why figures above are `null`.
    pub reason: Option<String>,
}

/// The snapshot that was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFacts {
    /// Revision in the file.
    pub revision: u64,
    /// Keys that exist at that revision; `null`: the journal does not tell.
    #[serde(default)]
    pub keys: Option<u64>,
    /// The SHA-256 digest that etcd appended is that of the file; `null`: the file has none, as a copy of
    /// a database, or the journal does not tell.
    #[serde(default)]
    pub sha256_ok: Option<bool>,
    /// Size of the file.
    pub size_bytes: u64,
    /// When it was saved: the return of the call.
    pub taken_at: InstantFacts,
}

/// An instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstantFacts {
    /// Wall time, for people.
    pub at: Option<WallTime>,
    /// Monotonic.
    pub mono_ns: MonoNs,
}

/// What one client saw of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientFacts {
    /// Client name.
    pub name: String,
    /// Kind.
    pub kind: ClientKind,
    /// Completed operations; for watches, events.
    pub operations: u64,
    /// The same by part of the run.
    pub operations_by_part: Operations,
    /// GETs that contradict etcd's state, over both phases.
    pub stale_reads: Option<u64>,
    /// GETs that contradict both the LIST before and the one after them. Of a list
    /// reader: with its LISTs; of a get reader: with those of any list reader.
    pub get_list_disagreements: Option<u64>,
    /// Longest time without an event although a write had been acknowledged.
    pub silent_for_ns: Option<u64>,
    /// Most objects created after the restore that a watch had skipped.
    pub events_missed: Option<u64>,
    /// Most objects in a view that etcd did not have.
    pub phantom_objects: Option<u64>,
    /// Most objects that etcd had and a view did not.
    pub absent_objects: Option<u64>,
    /// Streams that ended with 410, or with etcd's word for it, since the fault.
    pub gone410: u64,
    /// Lists of a watcher since the fault.
    pub relists: u64,
    /// Times that a revision which the client was told went back, over the whole run.
    pub rv_regressions: Option<u64>,
    /// Updates since the restore that were accepted though they rested on a resourceVersion of
    /// the lost timeline.
    pub cas_on_lost_state: Option<u64>,
    /// Operations and streams since the fault that failed or were not answered, by class.
    pub errors: BTreeMap<String, u64>,
    /// From the restore command to the first instant from which on every view was true.
    pub converged_after_ns: Option<u64>,
    /// Each phase by itself.
    pub phases: Vec<SeenInPhase>,
    /// Why figures above are `null`: they don't apply to this kind, or were not observed.
    pub reason: Option<String>,
}

impl ClientFacts {
    /// Both phases together: what is proven wrong in one is wrong, and only what
    /// is known to be true in every phase that occurred is true.
    #[must_use]
    pub fn view(&self) -> ObservedView {
        use ObservedView::{LostTimeline, NotApplicable, Stale, True, Unknown};
        // What an update has overwritten stays overwritten, whichever phase it fell in.
        if self.cas_on_lost_state.is_some_and(|updates| updates > 0) {
            return LostTimeline;
        }
        [LostTimeline, Stale, Unknown, True]
            .into_iter()
            .find(|view| self.phases.iter().any(|p| p.observed == *view))
            .unwrap_or(NotApplicable)
    }

    /// Whether the client was shown something else than etcd's state; `None` when that can't be told.
    #[must_use]
    pub fn on_lost_timeline(&self) -> Option<bool> {
        match self.view() {
            ObservedView::LostTimeline | ObservedView::Stale => Some(true),
            ObservedView::True => Some(false),
            ObservedView::Unknown | ObservedView::NotApplicable => None,
        }
    }
}

/// A prediction of the plan and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PredictionOutcome {
    /// Client that it is about.
    pub subject: String,
    /// What is predicted of it.
    pub what: String,
    /// What the plan says.
    pub predicted: String,
    /// What was seen, or why that is unknown.
    pub observed: String,
    /// Whether they agree; `null` when it can't be told.
    pub agrees: Option<bool>,
    /// Where the rule behind the prediction comes from.
    pub source: String,
}

/// The settings under which views are counted: those of the drill's objective, else the defaults.
fn settings(plan: &Plan) -> NoClientOnLostTimeline {
    plan.objectives
        .iter()
        .find_map(|o| match &o.objective {
            Objective::NoClientOnLostTimeline(objective) => Some(objective.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

/// Facts of the run's restore; none when there was no single one.
#[must_use]
pub fn etcd_restore(judge: &Judge) -> Option<(EtcdRestoreFacts, Vec<PredictionOutcome>)> {
    let boundaries = judge.boundaries();
    let restore = boundaries.restore().ok()?;
    let restored = judge.timeline.restored.as_ref()?;
    let seen = all_seen(judge, &settings(&judge.input.plan));
    let snapshot = boundaries.snapshots.iter().rfind(|s| s.name == restore.from);
    let mut unknown = Vec::new();
    if snapshot.is_none() {
        unknown.push(format!("the journal does not tell of snapshot `{}`", restore.from));
    }
    if boundaries.revision_before.is_none() {
        unknown.push("the revision was not read before the loss".to_owned());
    }
    let api_servers: BTreeSet<&ComponentId> = judge
        .input
        .plan
        .cluster
        .components
        .iter()
        .filter(|c| c.role == Role::KubeApiserver)
        .map(|c| &c.component)
        .collect();
    let passed = restored.lost_head.and_then(|head| {
        restored.truth.as_ref().ok().filter(|_| restored.base < head)?.passed(head, restored.since)
    });
    let taken_at = snapshot.map(|s| InstantFacts {
        at: wall_of(&judge.input.journal, &s.moment.boot, s.return_ns),
        mono_ns: s.return_ns,
    });
    if taken_at.as_ref().is_some_and(|taken| taken.at.is_none()) {
        unknown.push("no journal line gives the wall time of the snapshot".to_owned());
    }
    let facts = EtcdRestoreFacts {
        cluster: judge.input.plan.cluster.name.clone(),
        snapshot: snapshot.zip(taken_at).map(|(s, taken_at)| SnapshotFacts {
            revision: s.revision,
            keys: s.keys,
            sha256_ok: s.sha256_ok,
            size_bytes: s.size_bytes,
            taken_at,
        }),
        revision_before: boundaries.revision_before.map(|(revision, _, _)| revision),
        highest_revision_seen: restored.lost_head,
        revision_after: restore.revision_after,
        revisions_lost: match (restored.lost_head, snapshot) {
            (Some(head), Some(s)) => Some(head.saturating_sub(s.revision)),
            _ => None,
        },
        bump: restore.bump,
        revisions_reused: Some(revisions::reused(judge, restored)),
        api_servers_restarted: !api_servers.is_empty()
            && api_servers.iter().all(|c| restore.restarted.contains_key(*c)),
        restarted: restore.restarted.clone(),
        passed_ns: passed,
        ledger: judge.ledger.account.clone(),
        lost_ids: judge.ledger.lost_ids.to_ranges(),
        clients: client_facts(judge, restored, restore.command_ns, &seen),
        leases: lease_facts(judge),
        leaders: leader_facts(judge),
        consumers: consumer_facts(judge),
        reason: (!unknown.is_empty()).then(|| unknown.join("; ")),
    };
    let mut outcomes = predictions(judge, &facts);
    outcomes.extend(super::consumers::predictions(judge, &facts));
    Some((facts, outcomes))
}

fn client_facts(judge: &Judge, restored: &Restored, command: MonoNs, seen: &[Seen]) -> Vec<ClientFacts> {
    let gets: Vec<&GetAnswer> = seen.iter().flat_map(|s| &s.gets).collect();
    let lists: Vec<Vec<Listing>> = judge
        .logs
        .iter()
        .map(|log| if log.kind() == ClientKind::ListReader { log.listings() } else { Vec::new() })
        .collect();
    let disagreeing: Vec<BTreeSet<&str>> = lists.iter().map(|l| disagreements(l, &gets)).collect();
    let fault = judge.boundaries().fault().and_then(|f| f.injecting.as_ref()).map(|m| m.mono_ns);
    judge
        .logs
        .iter()
        .zip(seen)
        .enumerate()
        .map(|(index, (log, seen))| {
            let kind = log.kind();
            let watches = kind.is_watch();
            let most = |figure: fn(&SeenInPhase) -> Option<u64>| seen.phases.iter().filter_map(figure).max();
            let disagree = match kind {
                ClientKind::ListReader if !gets.is_empty() => Some(disagreeing[index].len() as u64),
                ClientKind::GetReader if lists.iter().any(|l| !l.is_empty()) => {
                    let any: BTreeSet<&str> = disagreeing.iter().flatten().copied().collect();
                    Some(seen.gets.iter().filter(|g| any.contains(g.line.as_str())).count() as u64)
                }
                _ => None,
            };
            let operations = operations(log, judge.boundaries());
            let regressions = revisions::regressions(log);
            let on_lost_state = on_lost_state(kind, seen);
            ClientFacts {
                name: log.name().to_owned(),
                kind,
                operations: operations.total(),
                operations_by_part: operations,
                stale_reads: seen
                    .phases
                    .iter()
                    .any(|p| p.stale_reads.is_some())
                    .then(|| seen.phases.iter().filter_map(|p| p.stale_reads).sum()),
                get_list_disagreements: disagree,
                silent_for_ns: if watches { silent_for(judge, log, restored) } else { None },
                events_missed: if watches { most(|p| p.events_missed) } else { None },
                phantom_objects: most(|p| p.phantom_objects),
                absent_objects: most(|p| p.absent_objects),
                gone410: gone(log, fault),
                relists: if watches { relists(log, fault) } else { 0 },
                rv_regressions: regressions.as_ref().ok().copied(),
                cas_on_lost_state: on_lost_state.as_ref().ok().copied(),
                errors: errors(log, fault),
                converged_after_ns: seen.converged.as_ref().ok().map(|at| at.since(command)),
                phases: seen.phases.clone(),
                reason: why_null(kind, seen, [regressions.err(), on_lost_state.err()]),
            }
        })
        .collect()
}

fn why_null(kind: ClientKind, seen: &Seen, others: [Option<String>; 2]) -> Option<String> {
    let others = others.into_iter().flatten();
    if !kind.knows().shows_timeline() {
        let first = "it neither reads nor watches the ledger".to_owned();
        return Some(std::iter::once(first).chain(others).collect::<Vec<_>>().join("; "));
    }
    let unseen = seen.phases.iter().find(|p| p.compared == 0).and_then(|p| p.reason.clone());
    let not_converged = seen.converged.as_ref().err().cloned();
    let inapplicable = match kind {
        ClientKind::GetReader => "it reads single objects: no views, no events",
        ClientKind::ListReader => "it is no watch: no silence, no events; it does not GET",
        ClientKind::CasUpdater => "it updates single objects of its own: no views, no events, no ledger",
        _ => "it does not GET",
    };
    let reasons: Vec<String> =
        [Some(inapplicable.to_owned()), unseen, not_converged].into_iter().flatten().chain(others).collect();
    Some(reasons.join("; "))
}

/// Updates that were accepted on a state of the lost timeline.
///
/// # Errors
/// Why that can't be told.
pub(super) fn on_lost_state(kind: ClientKind, seen: &Seen) -> Result<u64, String> {
    if kind != ClientKind::CasUpdater {
        return Err("it does not compare and swap".to_owned());
    }
    let proven = seen.updates.iter().filter(|u| matches!(u.right, Right::No(_))).count() as u64;
    let open = seen.updates.iter().find_map(|u| match &u.right {
        Right::Unjudged(why) => Some(why),
        _ => None,
    });
    match open {
        Some(why) if proven == 0 => Err(why.clone()),
        _ => Ok(proven),
    }
}

/// Lines of GETs that contradict both the LIST completed just before and the one begun just after.
fn disagreements<'a>(lists: &[Listing], gets: &[&'a GetAnswer]) -> BTreeSet<&'a str> {
    let complete: Vec<(MonoNs, MonoNs, &BTreeSet<u64>)> =
        lists.iter().filter_map(|l| l.complete().map(|(_, ids)| (l.call, l.ret, ids))).collect();
    gets.iter()
        .filter(|get| {
            let Some(found) = get.found else { return false };
            let before =
                complete.iter().filter(|(_, ret, _)| *ret <= get.call).max_by_key(|(_, ret, _)| *ret);
            let after =
                complete.iter().filter(|(call, _, _)| *call >= get.ret).min_by_key(|(call, _, _)| *call);
            match (before, after) {
                (Some((_, _, before)), Some((_, _, after))) => {
                    before.contains(&get.id) != found && after.contains(&get.id) != found
                }
                _ => false,
            }
        })
        .map(|get| get.line.as_str())
        .collect()
}

/// The longest time from the acknowledgement of a write to the next event, with
/// no event in between. A measure of delay, not of harm.
fn silent_for(judge: &Judge, log: &ClientLog, restored: &Restored) -> Option<u64> {
    let acks: Vec<MonoNs> = judge
        .timeline
        .writes
        .iter()
        .filter(|w| matches!(w.told, Told::Acked(_)))
        .filter(|w| side(restored.since, w.call, w.ret) == Side::Restored)
        .map(|w| w.ret)
        .collect();
    let end = log.end()?;
    let events = log
        .events()
        .filter(|(_, e)| e.at_ns >= restored.since)
        .filter(|(_, e)| matches!(e.event, Event::Put { .. } | Event::Delete { .. } | Event::Other { .. }))
        .map(|(_, e)| e.at_ns);
    let mut from = restored.since;
    let mut longest = None;
    for until in events.chain(std::iter::once(end)) {
        let next = acks.partition_point(|at| *at < from);
        if let Some(acked) = acks.get(next).filter(|at| **at <= until) {
            longest = longest.max(Some(until.since(*acked)));
        }
        from = from.max(until);
    }
    match longest {
        None if !acks.is_empty() => Some(0),
        longest => longest,
    }
}

fn gone(log: &ClientLog, fault: Option<MonoNs>) -> u64 {
    let mut streams = BTreeSet::new();
    for (_, op) in log.ops().filter(|(_, op)| fault.is_some_and(|f| op.return_ns >= f)) {
        if let (Op::Watch { stream, .. }, Outcome::Failed { status: Some(410), .. }) = (&op.op, &op.outcome) {
            streams.insert(*stream);
        }
    }
    for (_, event) in log.events().filter(|(_, e)| fault.is_some_and(|f| e.at_ns >= f)) {
        let gone = match &event.event {
            Event::Error { code, .. } => *code == 410,
            Event::Ended { reason } => reason == "compacted",
            _ => false,
        };
        if gone {
            streams.insert(event.stream);
        }
    }
    streams.len() as u64
}

fn relists(log: &ClientLog, fault: Option<MonoNs>) -> u64 {
    let after = |call: MonoNs| fault.is_some_and(|f| call >= f);
    let lists = log
        .listings()
        .iter()
        .filter(|l| after(l.call) && matches!(l.result, ListResult::Complete { .. }))
        .count();
    let ranges = log
        .ops()
        .filter(|(_, op)| after(op.call_ns) && matches!(op.op, Op::EtcdRange { .. }))
        .filter(|(_, op)| matches!(op.outcome, Outcome::Ok(_)))
        .count();
    (lists + ranges) as u64
}

fn errors(log: &ClientLog, fault: Option<MonoNs>) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    let mut count = |class: String| *errors.entry(class).or_insert(0) += 1;
    for (_, op) in log.ops().filter(|(_, op)| fault.is_some_and(|f| op.return_ns >= f)) {
        match &op.outcome {
            // Not there is an answer.
            Outcome::Failed { status: Some(404), .. }
                if matches!(op.op, Op::Get { .. } | Op::CasRead { .. }) => {}
            Outcome::Unknown { reason } if reason == STOPPED => {}
            Outcome::Failed { reason, .. } | Outcome::Unknown { reason } => count(reason.clone()),
            Outcome::Ok(_) => {}
        }
    }
    for (_, event) in log.events().filter(|(_, e)| fault.is_some_and(|f| e.at_ns >= f)) {
        match &event.event {
            Event::Error { code, .. } => count(format!("error-{code}")),
            Event::Ended { reason } if reason != STOPPED && reason != ENDED_AS_ASKED => {
                count(format!("ended-{reason}"))
            }
            _ => {}
        }
    }
    errors
}

fn predictions(judge: &Judge, facts: &EtcdRestoreFacts) -> Vec<PredictionOutcome> {
    use crate::plan::PredictedView;
    let mut rows = Vec::new();
    for prediction in &judge.input.plan.predictions {
        let Some(client) = facts.clients.iter().find(|c| c.name == prediction.client) else { continue };
        for (phase, predicted) in
            client.phases.iter().zip([prediction.before_passing, prediction.after_passing])
        {
            let (words, wanted) = match predicted {
                PredictedView::True => (ObservedView::True.words(), ObservedView::True),
                PredictedView::LostTimeline => {
                    (ObservedView::LostTimeline.words(), ObservedView::LostTimeline)
                }
                PredictedView::NotApplicable => {
                    (ObservedView::NotApplicable.words(), ObservedView::NotApplicable)
                }
            };
            let unknown = phase.observed == ObservedView::Unknown;
            rows.push(PredictionOutcome {
                subject: client.name.clone(),
                what: format!("view {}", phase.phase.words()),
                predicted: words.to_owned(),
                observed: match &phase.reason {
                    Some(why) if unknown => format!("unknown: {why}"),
                    _ => phase.observed.words().to_owned(),
                },
                agrees: (!unknown).then_some(phase.observed == wanted),
                source: prediction.source.clone(),
            });
        }
        if client.kind.is_watch() {
            let said = |gone: bool| if gone { "ends with 410" } else { "does not end with 410" };
            let incomplete = judge.log(&client.name).and_then(ClientLog::incomplete);
            let gone = client.gone410 > 0;
            rows.push(PredictionOutcome {
                subject: client.name.clone(),
                what: "watch at the old revision".to_owned(),
                predicted: said(prediction.gone_410).to_owned(),
                observed: match &incomplete {
                    Some(why) if !gone => format!("unknown: {why}"),
                    _ => said(gone).to_owned(),
                },
                agrees: (gone || incomplete.is_none()).then_some(gone == prediction.gone_410),
                source: prediction.source.clone(),
            });
        }
        if let Some(log) = judge.log(&client.name) {
            rows.extend(prediction.refusals.iter().map(|(class, met)| refusal(log, class, *met, prediction)));
        }
    }
    rows
}

/// Whether a refusal that the plan names was met, at any time of the run.
fn refusal(log: &ClientLog, class: &str, predicted: bool, prediction: &Prediction) -> PredictionOutcome {
    let times = log
        .ops()
        .filter(|(_, op)| matches!(&op.outcome, Outcome::Failed { reason, .. } if reason == class))
        .count();
    let incomplete = log.incomplete().filter(|_| times == 0);
    PredictionOutcome {
        subject: log.name().to_owned(),
        what: format!("refused as `{class}`"),
        predicted: if predicted { "at least once" } else { "never" }.to_owned(),
        observed: match (&incomplete, times) {
            (Some(why), _) => format!("unknown: {why}"),
            (None, 0) => "never".to_owned(),
            (None, 1) => "once".to_owned(),
            (None, times) => format!("{times} times"),
        },
        agrees: incomplete.is_none().then_some((times > 0) == predicted),
        source: prediction.source.clone(),
    }
}
