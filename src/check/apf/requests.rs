//! Requests of a load by what became of them, and the levels that their answers name.

use crate::apf::answer::Class;
use crate::clock::MonoNs;
use crate::drill::spec::Step;
use crate::fault::apf_level::{ApfLevel, LimitResponse};
use crate::history::kind::ClientKind;
use crate::history::record::OpRecord;
use crate::journal::entry::{Fact, JournalEvent};
use crate::plan::{FlowPrediction, PlannedClient};
use crate::timeline::EvidenceInput;
use crate::timeline::clients::ClientLog;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Facts of the journal, in order.
pub(super) fn facts(input: &EvidenceInput) -> impl Iterator<Item = &Fact> {
    input.journal.iter().filter_map(|entry| match &entry.event {
        JournalEvent::Fact { fact } => Some(fact),
        _ => None,
    })
}

/// Id of the run, which is part of the names of its objects.
pub(super) fn run_id(input: &EvidenceInput) -> &str {
    let opened = input.journal.iter().find_map(|entry| match &entry.event {
        JournalEvent::RunOpened { run, .. } => Some(run.as_str()),
        _ => None,
    });
    opened.unwrap_or_default()
}

/// The drill's levels, with the index of the step that makes each.
pub(super) fn drill_levels(input: &EvidenceInput) -> impl Iterator<Item = (usize, &ApfLevel)> {
    input.plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::ApfLevel(level) => Some((planned.index, level)),
        _ => None,
    })
}

/// Requests of one load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written to the history.
    pub recorded: u64,
    /// Executed, with success.
    pub ok: u64,
    /// Of these, answered after shares had been given to the level.
    pub ok_after_restore: u64,
    /// Refused by flow control at once, of a level that queues.
    pub queue_full: u64,
    /// Refused by flow control after a wait.
    pub time_out: u64,
    /// Refused by flow control at once, of a level that rejects.
    pub concurrency_limit: u64,
    /// Answered otherwise.
    pub other: u64,
    /// Sent, and no whole answer came; or not sent at all.
    pub unanswered: u64,
    /// Answers whose headers name a level.
    pub with_headers: u64,
    /// Answers without them.
    pub without_headers: u64,
    /// Longest time from due to sent.
    pub latest_sent_after_due: u64,
    /// The first was sent.
    pub first_sent: Option<MonoNs>,
    /// The last answer was there.
    pub last_done: Option<MonoNs>,
    /// From due to answered, ascending, by what the answer was.
    pub latencies: BTreeMap<Kind, Vec<u64>>,
    /// Least and most of `Retry-After`.
    pub retry_after: Option<(u64, u64)>,
    /// One record of each kind.
    pub examples: Vec<usize>,
}

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Executed, with success.
    Ok,
    /// See [`Counts::queue_full`].
    QueueFull,
    /// See [`Counts::time_out`].
    TimeOut,
    /// See [`Counts::concurrency_limit`].
    ConcurrencyLimit,
    /// Any other answer.
    Other,
    /// None.
    Unanswered,
}

impl Kind {
    /// As reports have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::QueueFull => "queueFull",
            Self::TimeOut => "timeOut",
            Self::ConcurrencyLimit => "concurrencyLimit",
            Self::Other => "other",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Counts a load's requests.
#[must_use]
pub fn counts(log: &ClientLog, input: &EvidenceInput) -> Counts {
    let level = level_of(log, input);
    let restored = facts(input).find_map(|fact| match fact {
        Fact::SharesChanged { level: name, shares, call_ns, .. }
            if *shares > 0 && level.is_some_and(|level| level.name == *name) =>
        {
            Some(*call_ns)
        }
        _ => None,
    });
    let mut counts = Counts::default();
    let mut examples = BTreeMap::new();
    for (index, op, kind) in kinds(log, input) {
        examples.entry(kind).or_insert(index);
        counts.take(op, kind, restored);
    }
    counts.latencies.values_mut().for_each(|of_kind| of_kind.sort_unstable());
    counts.examples = examples.into_values().collect();
    counts
}

/// The level that the drill meant a load for.
pub(super) fn level_of<'a>(log: &ClientLog, input: &'a EvidenceInput) -> Option<&'a ApfLevel> {
    input.plan.drill.level_of(log.name()).map(|(_, level)| level)
}

/// Whether a client sends the requests of a load, with retries or without.
#[must_use]
pub fn is_load(log: &ClientLog) -> bool {
    matches!(log.kind(), ClientKind::Load | ClientKind::RetryingLoad)
}

/// The operations of a load with their index in the file, and what became of each.
pub(super) fn kinds<'a>(
    log: &ClientLog<'a>,
    input: &'a EvidenceInput,
) -> impl Iterator<Item = (usize, &'a OpRecord, Kind)> + use<'a> {
    let level = level_of(log, input);
    let planned = log.planned;
    log.ops().map(move |(index, op)| (index, op, kind(op, planned, level)))
}

/// One request of a load, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it was due.
    pub due: MonoNs,
    /// When it was sent, or would have been.
    pub sent: MonoNs,
    /// When it was answered, or given up.
    pub done: MonoNs,
    /// What became of it.
    pub kind: Kind,
}

/// The requests of a load; none of a client that is none.
#[must_use]
pub fn fates(log: &ClientLog, input: &EvidenceInput) -> Vec<Request> {
    let requests = kinds(log, input).filter_map(|(_, op, kind)| {
        let exchange = op.exchange.as_ref()?;
        Some(Request {
            due: op.due_ns.unwrap_or(op.call_ns),
            sent: exchange.sent_ns.unwrap_or(op.call_ns),
            done: op.return_ns,
            kind,
        })
    });
    requests.collect()
}

/// Shares of a level at an instant.
pub(super) fn shares_at(input: &EvidenceInput, level: &ApfLevel, at: Option<MonoNs>) -> u32 {
    let changes = facts(input).filter_map(|fact| match fact {
        Fact::SharesChanged { level: name, shares, return_ns, .. } if *name == level.name => {
            at.is_none_or(|at| *return_ns <= at).then_some(*shares)
        }
        _ => None,
    });
    changes.last().unwrap_or(level.shares)
}

/// How much earlier than its wait limit a request may seem to be refused: clocks of two processes.
const EARLY: Duration = Duration::from_millis(50);

/// A time-out comes after the whole wait, a refusal for want of room at once. What lies between is neither.
fn kind(op: &OpRecord, planned: &PlannedClient, level: Option<&ApfLevel>) -> Kind {
    let Some(exchange) = &op.exchange else { return Kind::Unanswered };
    match exchange.class {
        None => Kind::Unanswered,
        Some(Class::Ok) => Kind::Ok,
        Some(Class::FlowControl) => match level.map(|level| &level.limit_response) {
            Some(LimitResponse::Reject {}) => Kind::ConcurrencyLimit,
            _ => {
                let wait = planned.wait_limit();
                let took = Duration::from_nanos(exchange.sent_ns.map_or(0, |sent| op.return_ns.since(sent)));
                match took {
                    took if took < wait / 2 => Kind::QueueFull,
                    // A wait begins after the request was sent, so nothing is timed out before it is over.
                    took if took.saturating_add(EARLY) < wait => Kind::Other,
                    _ => Kind::TimeOut,
                }
            }
        },
        Some(_) => Kind::Other,
    }
}

impl Counts {
    fn take(&mut self, op: &OpRecord, kind: Kind, restored: Option<MonoNs>) {
        self.recorded += 1;
        let count = match kind {
            Kind::Ok => &mut self.ok,
            Kind::QueueFull => &mut self.queue_full,
            Kind::TimeOut => &mut self.time_out,
            Kind::ConcurrencyLimit => &mut self.concurrency_limit,
            Kind::Other => &mut self.other,
            Kind::Unanswered => &mut self.unanswered,
        };
        *count += 1;
        self.ok_after_restore +=
            u64::from(kind == Kind::Ok && restored.is_some_and(|restored| op.return_ns >= restored));
        let Some(exchange) = &op.exchange else { return };
        if let (Some(sent), Some(due)) = (exchange.sent_ns, op.due_ns) {
            self.latest_sent_after_due = self.latest_sent_after_due.max(sent.since(due));
        }
        self.first_sent = [self.first_sent, exchange.sent_ns].into_iter().flatten().min();
        if kind == Kind::Unanswered {
            return;
        }
        self.last_done = self.last_done.max(Some(op.return_ns));
        let took = op.return_ns.since(op.due_ns.unwrap_or(op.call_ns));
        self.latencies.entry(kind).or_default().push(took);
        *(if exchange.level.is_some() { &mut self.with_headers } else { &mut self.without_headers }) += 1;
        if let Some(seconds) = exchange.retry_after_seconds {
            let (least, most) = self.retry_after.unwrap_or((seconds, seconds));
            self.retry_after = Some((least.min(seconds), most.max(seconds)));
        }
    }

    /// By name, in the order of [`crate::apf::range::Outcomes::named`].
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 4] {
        [
            (Kind::Ok.name(), self.ok),
            (Kind::QueueFull.name(), self.queue_full),
            (Kind::TimeOut.name(), self.time_out),
            (Kind::ConcurrencyLimit.name(), self.concurrency_limit),
        ]
    }

    /// What there is, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        let rest = [(Kind::Other.name(), self.other), (Kind::Unanswered.name(), self.unanswered)];
        for (name, count) in self.named().into_iter().chain(rest).filter(|(_, count)| *count > 0) {
            let separator = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{separator}{count} {name}");
        }
        if text.is_empty() { "nothing".to_owned() } else { text }
    }

    /// From due to answered, ascending, whatever the answer was.
    #[must_use]
    pub fn all_latencies(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.latencies.values().flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

/// What `percent` of `of` requests don't exceed, nearest rank; `sorted` are those that have a figure, and the rest
/// counts as longer than any. `None`: it is among the rest.
#[must_use]
pub(super) fn nearest_rank(sorted: &[u64], of: usize, percent: usize) -> Option<u64> {
    let rank = (of * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Which UID was which object, as the journal has it.
#[derive(Debug, Default)]
pub struct Levels {
    /// Name in the cluster of each level of the drill.
    objects: BTreeMap<String, String>,
    /// Each listing, in order of time.
    listed: Vec<(MonoNs, BTreeMap<String, String>)>,
}

impl Levels {
    /// As listed in the run.
    #[must_use]
    pub fn of(input: &EvidenceInput) -> Self {
        let listed = facts(input).filter_map(|fact| match fact {
            Fact::FlowObjects { levels, return_ns, .. } => Some((*return_ns, levels.clone())),
            _ => None,
        });
        let run = run_id(input);
        let objects = drill_levels(input).map(|(_, level)| (level.name.clone(), level.level_name(run)));
        Self { objects: objects.collect(), listed: listed.collect() }
    }

    /// Name of a level at an instant: from the last listing before it, else the first one after it.
    #[must_use]
    pub fn name(&self, uid: &str, at: MonoNs) -> Option<&str> {
        let before = self.listed.iter().rev().filter(|(listed, _)| *listed <= at);
        let after = self.listed.iter().filter(|(listed, _)| *listed > at);
        before.chain(after).find_map(|(_, names)| names.get(uid)).map(String::as_str)
    }

    /// Whether a request was on this level of the drill.
    #[must_use]
    pub fn is_on(&self, op: &OpRecord, level: &str) -> bool {
        let uid = op.exchange.as_ref().and_then(|exchange| exchange.level.as_deref());
        uid.is_some_and(|uid| self.is_level(uid, op.call_ns, level))
    }

    /// Whether a UID was this level of the drill at an instant.
    #[must_use]
    pub fn is_level(&self, uid: &str, at: MonoNs, level: &str) -> bool {
        self.name(uid, at).is_some_and(|name| self.objects.get(level).is_some_and(|object| object == name))
    }

    /// Why a load may have been somewhere else than predicted.
    pub(super) fn doubt(&self, flow: &FlowPrediction, log: &ClientLog, seen: &Counts) -> Option<String> {
        if seen.without_headers > 0 {
            return Some(format!("{} answers to {} name no level", seen.without_headers, flow.client));
        }
        let answered = || log.ops().filter(|(_, op)| op.exchange.as_ref().is_some_and(|e| e.level.is_some()));
        let elsewhere = match &flow.level {
            Some(level) => answered().find(|(_, op)| !self.is_on(op, level)),
            None => answered().find(|(_, op)| {
                let uid = op.exchange.as_ref().and_then(|exchange| exchange.level.as_deref());
                let name = uid.and_then(|uid| self.name(uid, op.call_ns));
                name.is_none_or(|name| name == "exempt" || name.starts_with("quakeproof-"))
            }),
        };
        let (index, op) = elsewhere?;
        let uid = op.exchange.as_ref().and_then(|exchange| exchange.level.clone()).unwrap_or_default();
        let name = self.name(&uid, op.call_ns).unwrap_or("a level that nobody listed");
        Some(format!("{} was sent to {} ({})", log.line(index), name.escape_default(), flow.client))
    }
}
