//! Raw etcd leases: one that is kept alive, and short ones that come and go.

use super::context::{ClientContext, Setup};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::clock::MonoNs;
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::etcd::client::{EtcdClient, EtcdFailure};
use crate::etcd::lease::LeaseId;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, LeaseAction, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::stopped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Holds raw etcd leases beside the API server: one that is kept alive at a third of
/// its time to live, and short ones, a new one each tenth of it, of which the newest is
/// kept alive and each is given back after a fifth. Whenever a snapshot is taken, some
/// of them are given back, and others granted, after it: a restore brings the first
/// back with their full time to live, and the others are gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseKeeper {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time to live of every lease, whole seconds, 10 s to 1 h.
    #[serde(default = "default_lease_ttl")]
    pub ttl: Span,
    /// Time between two rounds of operations.
    #[serde(default = "default_round")]
    pub every: Span,
}

fn default_lease_ttl() -> Span {
    Span::secs(20)
}

fn default_round() -> Span {
    Span::secs(1)
}

/// Below 10 s the short leases of a keeper would run out before they are given back.
const LEASE_TTL: (Span, Span) = (Span::secs(10), Span::secs(3600));

impl ClientUnderTest for LeaseKeeper {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::LeaseKeeper,
            talks_to: TalksTo::Etcd,
            works: Works::Every(self.every),
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.whole_seconds(&at.key("ttl"), self.ttl, LEASE_TTL);
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let ttl = self.ttl;
        Box::pin(live(ctx, async move |session, setup| keep(ttl, session, setup).await))
    }
}

/// An answer later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Does one round of operations per slot until told to end. What it holds then is left
/// to run out, as with a client that died.
async fn keep(ttl: Span, session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut keeper = Keeper {
        etcd: EtcdClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?,
        prefix: format!("/quakeproof/{}/leases/", setup.namespace),
        held: Held::new(ttl.as_ns()),
        ttl_seconds: ttl.0.as_secs(),
    };
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        keeper.round(session, slot.due).await?;
    }
    Ok(pace.account())
}

/// What the client knows of the leases that it was granted. Pure.
#[derive(Debug)]
struct Held {
    ttl_ns: u64,
    leases: BTreeMap<LeaseId, Lease>,
    /// The one that is kept alive for the whole run.
    main: Option<LeaseId>,
    /// The youngest of the short ones, which is kept alive until there is a younger one.
    newest: Option<LeaseId>,
    newest_at: Option<MonoNs>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    granted: MonoNs,
    kept: MonoNs,
    given_back: bool,
}

/// What a lease is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Main,
    Short,
}

impl Held {
    fn new(ttl_ns: u64) -> Self {
        Self { ttl_ns, leases: BTreeMap::new(), main: None, newest: None, newest_at: None }
    }

    fn granted(&mut self, purpose: Purpose, id: LeaseId, now: MonoNs) {
        self.leases.insert(id, Lease { granted: now, kept: now, given_back: false });
        match purpose {
            Purpose::Main => self.main = Some(id),
            Purpose::Short => (self.newest, self.newest_at) = (Some(id), Some(now)),
        }
    }

    fn wanted(&self, now: MonoNs) -> Option<Purpose> {
        if self.main.is_none() {
            return Some(Purpose::Main);
        }
        let due = self.newest_at.is_none_or(|at| now.since(at) >= self.ttl_ns / 10);
        due.then_some(Purpose::Short)
    }

    /// The main lease at a third of its time, the youngest short one always.
    fn to_keep(&self, now: MonoNs) -> Vec<LeaseId> {
        let main = self
            .main
            .filter(|id| self.leases.get(id).is_none_or(|lease| now.since(lease.kept) >= self.ttl_ns / 3));
        main.into_iter().chain(self.newest).collect()
    }

    /// Short ones that have been held for a fifth of their time, oldest first.
    fn to_give_back(&self, now: MonoNs) -> Vec<LeaseId> {
        let old = |lease: &Lease| !lease.given_back && now.since(lease.granted) >= self.ttl_ns / 5;
        let mut ids: Vec<(MonoNs, LeaseId)> = (self.leases.iter())
            .filter(|(id, lease)| Some(**id) != self.main && Some(**id) != self.newest && old(lease))
            .map(|(id, lease)| (lease.granted, *id))
            .collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    fn kept(&mut self, id: LeaseId, now: MonoNs) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.kept = now;
        }
    }

    fn given_back(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.given_back = true;
        }
    }

    /// etcd says that there is no such lease: it is never asked for again, unless it is listed.
    fn gone(&mut self, id: LeaseId) {
        self.given_back(id);
        self.main = self.main.filter(|main| *main != id);
        self.newest = self.newest.filter(|newest| *newest != id);
    }
}

struct Keeper {
    etcd: EtcdClient,
    prefix: String,
    held: Held,
    ttl_seconds: u64,
}

/// Whether a round goes on after an operation.
enum Round {
    On,
    Over,
}

impl Keeper {
    /// One round; the first operation that etcd does not answer ends it.
    async fn round(&mut self, session: &mut Session, due: MonoNs) -> Result<(), Broken> {
        let Some(exist) = self.list(session, due).await? else { return Ok(()) };
        let now = session.clock().mono();
        // Before anything is kept alive, so that what a restore left them is seen.
        for id in exist {
            if let Round::Over = self.time_to_live(session, id).await? {
                return Ok(());
            }
        }
        for id in self.held.to_keep(now) {
            if let Round::Over = self.keep_alive(session, id).await? {
                return Ok(());
            }
        }
        for id in self.held.to_give_back(now) {
            if let Round::Over = self.give_back(session, id).await? {
                return Ok(());
            }
        }
        if let Some(purpose) = self.held.wanted(now) {
            self.grant(session, purpose).await?;
        }
        Ok(())
    }

    /// The client's own leases that exist; `None` without an answer.
    async fn list(&mut self, session: &mut Session, due: MonoNs) -> Result<Option<Vec<LeaseId>>, Broken> {
        let (timing, result) = session.timed(Some(due), self.etcd.leases(DEADLINE)).await;
        let own = result.as_ref().and_then(|r| r.as_ref().ok()).map(|(all, _)| {
            all.iter().filter(|id| self.held.leases.contains_key(id)).copied().collect::<Vec<_>>()
        });
        let leases = own.as_ref().map(|own| own.iter().map(ToString::to_string).collect());
        let outcome =
            read(result, |(_, revision)| Answer { revision: Some(revision), leases, ..Answer::default() });
        session.op(timing, op(LeaseAction::List, None), outcome)?;
        Ok(own)
    }

    async fn grant(&mut self, session: &mut Session, purpose: Purpose) -> Result<(), Broken> {
        let (timing, result) = session.timed(None, self.etcd.grant(self.ttl_seconds, DEADLINE)).await;
        let id = result.as_ref().and_then(|r| r.as_ref().ok()).map(|(id, _)| *id);
        let outcome = write(result, |(id, state)| Answer {
            lease: Some(id.to_string()),
            revision: Some(state.revision),
            ttl_seconds: Some(state.ttl_seconds),
            granted_ttl_seconds: Some(state.granted_ttl_seconds),
            ..Answer::default()
        });
        let asked =
            Op::EtcdLease { action: LeaseAction::Grant, lease: None, ttl_seconds: Some(self.ttl_seconds) };
        session.op(timing, asked, outcome)?;
        let Some(id) = id else { return Ok(()) };
        self.held.granted(purpose, id, timing.returned);
        self.attach(session, id).await
    }

    async fn attach(&mut self, session: &mut Session, id: LeaseId) -> Result<(), Broken> {
        let key = format!("{}{id}", self.prefix);
        let (timing, result) = session.timed(None, self.etcd.attach(id, &key, DEADLINE)).await;
        let outcome = write(result, |revision| Answer { revision: Some(revision), ..Answer::default() });
        self.settle(session, LeaseAction::Attach, id, timing, outcome).map(|_| ())
    }

    async fn keep_alive(&mut self, session: &mut Session, id: LeaseId) -> Result<Round, Broken> {
        let (timing, result) = session.timed(None, self.etcd.keep_alive(id, DEADLINE)).await;
        let outcome = write(result, |state| Answer {
            revision: Some(state.revision),
            ttl_seconds: Some(state.ttl_seconds),
            ..Answer::default()
        });
        if matches!(outcome, Outcome::Ok(_)) {
            self.held.kept(id, timing.returned);
        }
        self.settle(session, LeaseAction::KeepAlive, id, timing, outcome)
    }

    async fn time_to_live(&mut self, session: &mut Session, id: LeaseId) -> Result<Round, Broken> {
        let (timing, result) = session.timed(None, self.etcd.time_to_live(id, DEADLINE)).await;
        let outcome = read(result, |state| Answer {
            revision: Some(state.revision),
            ttl_seconds: Some(state.ttl_seconds),
            granted_ttl_seconds: Some(state.granted_ttl_seconds),
            ..Answer::default()
        });
        self.settle(session, LeaseAction::TimeToLive, id, timing, outcome)
    }

    async fn give_back(&mut self, session: &mut Session, id: LeaseId) -> Result<Round, Broken> {
        let (timing, result) = session.timed(None, self.etcd.revoke(id, DEADLINE)).await;
        let outcome = write(result, |revision| Answer { revision: Some(revision), ..Answer::default() });
        if matches!(outcome, Outcome::Ok(_)) {
            self.held.given_back(id);
        }
        self.settle(session, LeaseAction::Revoke, id, timing, outcome)
    }

    fn settle(
        &mut self,
        session: &mut Session,
        action: LeaseAction,
        id: LeaseId,
        timing: crate::load::timing::Timing,
        outcome: Outcome,
    ) -> Result<Round, Broken> {
        let not_found = FailureClass::LeaseNotFound.as_str();
        let round = match &outcome {
            Outcome::Ok(_) => Round::On,
            Outcome::Failed { reason, .. } if reason == not_found => {
                self.held.gone(id);
                Round::On
            }
            _ => Round::Over,
        };
        session.op(timing, op(action, Some(id)), outcome)?;
        Ok(round)
    }
}

fn op(action: LeaseAction, id: Option<LeaseId>) -> Op {
    Op::EtcdLease { action, lease: id.map(|id| id.to_string()), ttl_seconds: None }
}

fn read<T>(result: Option<Result<T, EtcdFailure>>, answer: impl FnOnce(T) -> Answer) -> Outcome {
    match result {
        None => stopped(),
        Some(Ok(value)) => Outcome::Ok(answer(value)),
        Some(Err(failure)) => Outcome::Failed { status: None, reason: failure.class.to_string() },
    }
}

/// As [`read`]; but where no answer came, it may have had its effect.
fn write<T>(result: Option<Result<T, EtcdFailure>>, answer: impl FnOnce(T) -> Answer) -> Outcome {
    use FailureClass::{ConnectionLost, ServerError, Timeout, Unavailable};
    match result {
        Some(Err(failure))
            if matches!(failure.class, ConnectionLost | ServerError | Timeout | Unavailable) =>
        {
            Outcome::Unknown { reason: failure.class.to_string() }
        }
        result => read(result, answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn id(n: u64) -> LeaseId {
        format!("{n:x}").parse().unwrap()
    }

    fn at(seconds: u64) -> MonoNs {
        MonoNs(seconds * S)
    }

    #[test]
    fn at_any_time_some_short_lease_is_about_to_be_given_back_and_one_has_just_been_granted() {
        let mut held = Held::new(20 * S);
        assert_eq!(held.wanted(at(0)), Some(Purpose::Main));
        held.granted(Purpose::Main, id(1), at(0));
        assert_eq!(held.wanted(at(0)), Some(Purpose::Short));
        held.granted(Purpose::Short, id(2), at(0));
        assert_eq!(held.wanted(at(1)), None);
        assert_eq!(held.wanted(at(2)), Some(Purpose::Short));
        held.granted(Purpose::Short, id(3), at(2));
        assert!(held.to_give_back(at(3)).is_empty());
        assert_eq!(held.to_give_back(at(4)), [id(2)], "a fifth of its time has passed");
        held.given_back(id(2));
        assert!(held.to_give_back(at(5)).is_empty());
    }

    #[test]
    fn the_main_lease_is_kept_at_a_third_of_its_time_and_the_youngest_always() {
        let mut held = Held::new(21 * S);
        held.granted(Purpose::Main, id(1), at(0));
        held.granted(Purpose::Short, id(2), at(0));
        assert_eq!(held.to_keep(at(6)), [id(2)]);
        assert_eq!(held.to_keep(at(7)), [id(1), id(2)]);
        held.kept(id(1), at(7));
        assert_eq!(held.to_keep(at(8)), [id(2)]);
    }

    #[test]
    fn a_lease_that_is_gone_is_replaced_and_not_kept_alive_again() {
        let mut held = Held::new(20 * S);
        held.granted(Purpose::Main, id(1), at(0));
        held.granted(Purpose::Short, id(2), at(0));
        held.gone(id(2));
        assert!(held.to_keep(at(1)).is_empty());
        held.gone(id(1));
        assert_eq!(held.wanted(at(1)), Some(Purpose::Main));
        assert!(held.to_give_back(at(30)).is_empty());
    }
}
