//! What the agent decides. Pure: (leases, request or time) → what to record, which undos
//! to begin, what to answer. State changes only by applying recorded events, so the
//! state after a crash is the fold of the log.

use super::log::{LogEntry, LogEvent};
use super::protocol::{Held, HeldState, Request, Response};
use super::undo::{InjectionId, Undo, UndoOp};
use crate::clock::Stamp;
use crate::clock::{BootId, MonoNs};
use crate::component::ComponentId;
use std::collections::BTreeSet;

/// How often the agent tries a failing undo by itself after its lease has lapsed.
pub const LAPSE_TRIES: u32 = 3;

/// Time between the failure of such a try and the next.
pub const RETRY_AFTER_NS: u64 = 2_000_000_000;

/// Which lease: injection ids are unique within their run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseKey {
    /// Run that owns it.
    pub run: String,
    /// Which of its injections.
    pub injection: InjectionId,
}

/// Every lease that the agent ever granted, in the order of arming.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    leases: Vec<Lease>,
}

#[derive(Debug, Clone, PartialEq)]
struct Lease {
    key: LeaseKey,
    undo: Undo,
    ttl_ns: u64,
    expires: MonoNs,
    /// Last instant from which the log alone would count the TTL.
    recorded: MonoNs,
    standing: Standing,
    /// Tries after lapse that failed.
    lapse_failures: u32,
}

#[derive(Debug, Clone, PartialEq)]
enum Standing {
    Armed,
    Lapsed,
    Undoing {
        by_lapse: bool,
        since: MonoNs,
        /// False after a restart of the agent: begun by its predecessor.
        running: bool,
    },
    Undone {
        by_lapse: bool,
        /// Absent when it was in another boot, whose instants say nothing in this one.
        during: Option<(MonoNs, MonoNs)>,
    },
    Failed {
        reason: String,
    },
    Discharged,
}

/// How an event is to be recorded before it is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Durably, else it has not happened and the request is refused.
    Must,
    /// Durably if possible; it happens anyway.
    Attempt,
    /// In memory only.
    Memory,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// To be recorded and applied, in order, before anything else.
    pub events: Vec<(Keep, LogEvent)>,
    /// Then these undos are to be begun.
    pub begin: Vec<LeaseKey>,
    /// Then this is to be answered.
    pub answer: Answer,
}

/// What is to be answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// This, now.
    Now(Response),
    /// How the undo ended, once it has: [`Machine::outcome`].
    WhenUndone(LeaseKey),
}

impl Decision {
    fn answer(response: Response) -> Self {
        Self { events: Vec::new(), begin: Vec::new(), answer: Answer::Now(response) }
    }

    fn refuse(message: String) -> Self {
        Self::answer(Response::Error { message })
    }

    fn record(event: LogEvent) -> Self {
        Self { events: vec![(Keep::Must, event)], ..Self::answer(Response::Done) }
    }
}

impl Machine {
    /// The state that a log stands for, in boot `boot`.
    #[must_use]
    pub fn rebuild(entries: &[LogEntry], boot: &BootId) -> Self {
        let mut machine = Self { leases: Vec::new() };
        for entry in entries {
            machine.apply(&entry.stamp, &entry.event, Keep::Must);
            if entry.stamp.boot != *boot {
                machine.forget_instants();
            }
        }
        for lease in &mut machine.leases {
            if let Standing::Undoing { running, .. } = &mut lease.standing {
                *running = false;
            }
        }
        machine
    }

    /// Instants of another boot: every lease counts as lapsed at the beginning of this one.
    fn forget_instants(&mut self) {
        for lease in &mut self.leases {
            lease.expires = MonoNs(0);
            lease.recorded = MonoNs(0);
            lease.lapse_failures = 0;
            if let Standing::Undone { during, .. } = &mut lease.standing {
                *during = None;
            }
        }
    }

    /// Changes the state as a recorded event says.
    pub fn apply(&mut self, stamp: &Stamp, event: &LogEvent, keep: Keep) {
        let now = stamp.mono_ns;
        match event {
            LogEvent::Started { .. } => {}
            LogEvent::Armed { run, undo, ttl_ns } => self.leases.push(Lease {
                key: LeaseKey { run: run.clone(), injection: undo.injection.clone() },
                undo: undo.clone(),
                ttl_ns: *ttl_ns,
                expires: now.plus(*ttl_ns),
                recorded: now,
                standing: Standing::Armed,
                lapse_failures: 0,
            }),
            LogEvent::Amended { run, undo } => self.change(run, &undo.injection, |lease| {
                lease.undo = undo.clone();
                lease.renew(now, keep);
            }),
            LogEvent::Renewed { run, injections } => {
                for injection in injections {
                    self.change(run, injection, |lease| lease.renew(now, keep));
                }
            }
            LogEvent::Lapsed { run, injection } => {
                self.change(run, injection, |lease| lease.standing = Standing::Lapsed);
            }
            LogEvent::Undoing { run, injection, by_lapse } => self.change(run, injection, |lease| {
                lease.standing = Standing::Undoing { by_lapse: *by_lapse, since: now, running: true };
            }),
            LogEvent::Undone { run, injection } => self.change(run, injection, |lease| {
                let (by_lapse, since) = lease.undoing().unwrap_or((true, now));
                lease.standing = Standing::Undone { by_lapse, during: Some((since, now)) };
            }),
            LogEvent::UndoFailed { run, injection, reason } => self.change(run, injection, |lease| {
                if lease.undoing().is_none_or(|(by_lapse, _)| by_lapse) {
                    lease.lapse_failures += 1;
                    lease.expires = now.plus(RETRY_AFTER_NS);
                }
                lease.standing = Standing::Failed { reason: reason.clone() };
            }),
            LogEvent::Discharged { run, injection } => {
                self.change(run, injection, |lease| lease.standing = Standing::Discharged);
            }
        }
    }

    fn change(&mut self, run: &str, injection: &InjectionId, change: impl FnOnce(&mut Lease)) {
        let found = self.leases.iter_mut().find(|l| l.key.run == run && l.key.injection == *injection);
        if let Some(lease) = found {
            change(lease);
        }
    }

    fn find(&self, run: &str, injection: &InjectionId) -> Option<&Lease> {
        self.leases.iter().find(|l| l.key.run == run && l.key.injection == *injection)
    }

    /// What time alone brings about: lapsed leases are acted on, newest injection first.
    ///
    /// Undos run side by side unless one is in the other's way; then the
    /// older one begins when the newer one has ended, so that things are taken apart in the
    /// reverse order of being put together.
    #[must_use]
    pub fn tick(&self, now: MonoNs) -> Decision {
        let mut decision = Decision::answer(Response::Done);
        let mut busy = self.busy();
        for lease in self.leases.iter().rev() {
            let (run, injection) = (lease.key.run.clone(), lease.key.injection.clone());
            let due = lease.due_at().is_some_and(|at| at <= now);
            if !due {
                continue;
            }
            if lease.standing == Standing::Armed && !lease.undo.on_lapse.acts() {
                decision.events.push((Keep::Attempt, LogEvent::Lapsed { run, injection }));
            } else if !lease.waits_for(&busy) {
                busy.extend(lease.components());
                let by_lapse = lease.undoing().is_none_or(|(by_lapse, _)| by_lapse);
                decision.events.push((Keep::Attempt, LogEvent::Undoing { run, injection, by_lapse }));
                decision.begin.push(lease.key.clone());
            }
        }
        decision
    }

    /// When [`Machine::tick`] has something to do next, if nothing else happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<MonoNs> {
        let busy = self.busy();
        let free = self.leases.iter().filter(|l| !l.waits_for(&busy));
        free.filter_map(Lease::due_at).min()
    }

    /// Components that running undos act on.
    fn busy(&self) -> BTreeSet<ComponentId> {
        let running =
            self.leases.iter().filter(|l| matches!(l.standing, Standing::Undoing { running: true, .. }));
        running.flat_map(Lease::components).collect()
    }

    /// What a request brings about. [`Machine::tick`] must have been carried out for `now`.
    #[must_use]
    pub fn request(&self, request: &Request, now: MonoNs) -> Decision {
        match request {
            Request::Arm { run, undo, ttl_ns } => self.arm(run, undo, *ttl_ns, now),
            Request::Amend { run, undo } => self.amend(run, undo, now),
            Request::Renew { run } => self.renew(run, now),
            Request::Revert { run, injection } => self.revert(run, injection),
            Request::Discharge { run, injection } => self.discharge(run, injection, now),
            Request::List => Decision::answer(self.list()),
        }
    }

    fn arm(&self, run: &str, undo: &Undo, ttl_ns: u64, now: MonoNs) -> Decision {
        let Some(lease) = self.find(run, &undo.injection) else {
            if ttl_ns == 0 {
                return Decision::refuse(
                    "a lease of no time can't be granted; ask for at least 1 ns".to_owned(),
                );
            }
            return Decision::record(LogEvent::Armed { run: run.to_owned(), undo: undo.clone(), ttl_ns });
        };
        if lease.undo == *undo && lease.ttl_ns == ttl_ns && lease.holds(now) {
            return Decision::answer(Response::Done);
        }
        Decision::refuse(format!(
            "injection {} of run {run} is known already, {}; an undo is changed by amending it",
            undo.injection,
            lease.in_words(now)
        ))
    }

    fn amend(&self, run: &str, undo: &Undo, now: MonoNs) -> Decision {
        match self.find(run, &undo.injection) {
            None => unknown(run, &undo.injection),
            Some(lease) if !lease.holds(now) => Decision::refuse(format!(
                "the undo of injection {} of run {run} can't be amended: {}",
                undo.injection,
                lease.in_words(now)
            )),
            Some(lease) if lease.undo == *undo => Decision::answer(Response::Done),
            Some(_) => Decision::record(LogEvent::Amended { run: run.to_owned(), undo: undo.clone() }),
        }
    }

    fn renew(&self, run: &str, now: MonoNs) -> Decision {
        let of_run = || self.leases.iter().filter(|l| l.key.run == run);
        let renewable: Vec<&Lease> = of_run().filter(|l| l.renewable(now)).collect();
        let mut decision = match of_run().find(|l| l.ended_by_lapse(now)) {
            None => Decision::answer(Response::Done),
            Some(lease) => Decision::refuse(format!(
                "the lease of injection {} lapsed; {}",
                lease.key.injection,
                lease.in_words(now)
            )),
        };
        if !renewable.is_empty() {
            let stale = renewable.iter().any(|l| now.since(l.recorded) >= l.ttl_ns / 4);
            let keep = if stale { Keep::Attempt } else { Keep::Memory };
            let injections = renewable.iter().map(|l| l.key.injection.clone()).collect();
            decision.events.push((keep, LogEvent::Renewed { run: run.to_owned(), injections }));
        }
        decision
    }

    fn revert(&self, run: &str, injection: &InjectionId) -> Decision {
        let Some(lease) = self.find(run, injection) else { return unknown(run, injection) };
        match &lease.standing {
            Standing::Discharged => Decision::answer(Response::Done),
            Standing::Undone { by_lapse: false, .. } | Standing::Undone { during: None, .. } => {
                Decision::answer(self.outcome(&lease.key))
            }
            Standing::Undoing { .. } => {
                Decision { answer: Answer::WhenUndone(lease.key.clone()), ..Decision::answer(Response::Done) }
            }
            // A runner that stood still past its lease may have gone on and disturbed again what
            // was undone without it; only from here on it is known to be done with that.
            Standing::Undone { by_lapse: true, .. }
            | Standing::Armed
            | Standing::Lapsed
            | Standing::Failed { .. } => {
                if lease.waits_for(&self.busy()) {
                    return Decision::refuse(format!(
                        "another undo acts on what injection {injection} needs; ask again when it has ended"
                    ));
                }
                let (run, injection) = (run.to_owned(), injection.clone());
                Decision {
                    events: vec![(Keep::Attempt, LogEvent::Undoing { run, injection, by_lapse: false })],
                    begin: vec![lease.key.clone()],
                    answer: Answer::WhenUndone(lease.key.clone()),
                }
            }
        }
    }

    fn discharge(&self, run: &str, injection: &InjectionId, now: MonoNs) -> Decision {
        let Some(lease) = self.find(run, injection) else { return unknown(run, injection) };
        if lease.standing == Standing::Discharged {
            return Decision::answer(Response::Done);
        }
        if lease.holds(now) || lease.standing == Standing::Lapsed {
            let (run, injection) = (run.to_owned(), injection.clone());
            return Decision::record(LogEvent::Discharged { run, injection });
        }
        Decision::refuse(format!(
            "injection {injection} of run {run} can't be discharged: {}",
            lease.in_words(now)
        ))
    }

    fn list(&self) -> Response {
        Response::Injections { injections: self.leases.iter().map(Lease::held).collect() }
    }

    /// The event that stands for the end of an undo.
    #[must_use]
    pub fn finished(key: &LeaseKey, outcome: Result<(), String>) -> LogEvent {
        let (run, injection) = (key.run.clone(), key.injection.clone());
        match outcome {
            Ok(()) => LogEvent::Undone { run, injection },
            Err(reason) => LogEvent::UndoFailed { run, injection, reason },
        }
    }

    /// How an ended undo ended, as an answer.
    #[must_use]
    pub fn outcome(&self, key: &LeaseKey) -> Response {
        match self.find(&key.run, &key.injection).map(|l| &l.standing) {
            Some(Standing::Undone { during: Some((started_ns, finished_ns)), .. }) => {
                Response::Reverted { started_ns: *started_ns, finished_ns: *finished_ns }
            }
            Some(Standing::Undone { during: None, .. }) => Response::Done,
            Some(Standing::Failed { reason }) => Response::Error {
                message: format!(
                    "the undo of injection {} failed and is still owed: {reason}",
                    key.injection
                ),
            },
            _ => {
                Response::Error { message: format!("the undo of injection {} has not ended", key.injection) }
            }
        }
    }

    /// The undo that holds for a lease.
    #[must_use]
    pub fn undo(&self, key: &LeaseKey) -> Option<&Undo> {
        self.find(&key.run, &key.injection).map(|l| &l.undo)
    }
}

impl Lease {
    fn renew(&mut self, now: MonoNs, keep: Keep) {
        self.expires = now.plus(self.ttl_ns);
        if keep != Keep::Memory {
            self.recorded = now;
        }
    }

    /// Armed, and the lease has not lapsed.
    fn holds(&self, now: MonoNs) -> bool {
        self.standing == Standing::Armed && now < self.expires
    }

    /// Also an undo that was asked for and failed is kept from automatic tries while its run lives.
    fn renewable(&self, now: MonoNs) -> bool {
        let owed = matches!(self.standing, Standing::Armed | Standing::Failed { .. });
        owed && self.lapse_failures == 0 && now < self.expires
    }

    fn ended_by_lapse(&self, now: MonoNs) -> bool {
        match &self.standing {
            Standing::Armed => now >= self.expires,
            Standing::Lapsed => true,
            Standing::Undoing { by_lapse, .. } | Standing::Undone { by_lapse, .. } => *by_lapse,
            Standing::Failed { .. } => self.lapse_failures > 0,
            Standing::Discharged => false,
        }
    }

    /// When the agent acts by itself.
    fn due_at(&self) -> Option<MonoNs> {
        match &self.standing {
            Standing::Armed => Some(self.expires),
            Standing::Failed { .. } if !self.undo.on_lapse.acts() => None,
            Standing::Failed { .. } => (self.lapse_failures < LAPSE_TRIES).then_some(self.expires),
            Standing::Undoing { running: false, .. } => Some(MonoNs(0)),
            Standing::Undoing { .. } | Standing::Lapsed | Standing::Undone { .. } | Standing::Discharged => {
                None
            }
        }
    }

    fn undoing(&self) -> Option<(bool, MonoNs)> {
        match self.standing {
            Standing::Undoing { by_lapse, since, .. } => Some((by_lapse, since)),
            _ => None,
        }
    }

    /// What the undo's operations act on.
    fn components(&self) -> BTreeSet<ComponentId> {
        let acted_on = self.undo.ops.iter().filter_map(|op| match op {
            UndoOp::Stop { component, .. }
            | UndoOp::Start { component }
            | UndoOp::Resume { component }
            | UndoOp::BringDataBack { component, .. } => Some(component.clone()),
            UndoOp::AwaitReady { .. }
            | UndoOp::AwaitListEqualsEtcd
            | UndoOp::RemoveObjects { .. }
            | UndoOp::PutObjectBack { .. } => None,
        });
        acted_on.collect()
    }

    /// An undo that is under way acts on what this one needs: the same components, or any at all for
    /// one that acts on none, since it asks the API servers, and they may be without etcd.
    fn waits_for(&self, busy: &BTreeSet<ComponentId>) -> bool {
        let own = self.components();
        if own.is_empty() { !busy.is_empty() } else { !own.is_disjoint(busy) }
    }

    fn in_words(&self, now: MonoNs) -> String {
        match &self.standing {
            Standing::Armed if now < self.expires => "it is armed".to_owned(),
            Standing::Armed => "its lease has lapsed and the undo is due".to_owned(),
            Standing::Lapsed => "its lease has lapsed and things were left as they are".to_owned(),
            Standing::Undoing { .. } => "its undo is under way".to_owned(),
            Standing::Undone { .. } => "it was undone".to_owned(),
            Standing::Failed { reason } => format!("its undo failed and is owed: {reason}"),
            Standing::Discharged => "it was discharged".to_owned(),
        }
    }

    fn held(&self) -> Held {
        Held {
            run: self.key.run.clone(),
            injection: self.key.injection.clone(),
            on_lapse: self.undo.on_lapse,
            state: match &self.standing {
                Standing::Armed => HeldState::Armed,
                Standing::Lapsed => HeldState::Lapsed,
                Standing::Undoing { .. } => HeldState::Undoing,
                Standing::Undone { by_lapse, .. } => HeldState::Undone { by_lapse: *by_lapse },
                Standing::Failed { reason } => HeldState::UndoFailed { reason: reason.clone() },
                Standing::Discharged => HeldState::Discharged,
            },
            expires_ns: self.expires,
            within_ns: self.undo.within_ns,
        }
    }
}

fn unknown(run: &str, injection: &InjectionId) -> Decision {
    Decision::refuse(format!(
        "injection {injection} of run {run} was never armed; nothing was injected under it"
    ))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
