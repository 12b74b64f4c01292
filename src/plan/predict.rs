//! What each client is predicted to see after a restore, by version and procedure.
//!
//! The rules, and how each was established:
//! * GET without resourceVersion is a quorum read of etcd: always right.
//! * Without a bump the restored store counts from the snapshot's revision again, so a
//!   watch that goes on from its last revision asks for the future. etcd and every API
//!   server accept that silently, deliver nothing until the revision is reached, and
//!   never deliver what was written in between (executed on 1.37.2 with etcd 3.7.3 and
//!   on 1.30.4 with etcd 3.5.21).
//! * An API server that keeps running feeds its cache from such a watch, so what the
//!   cache answers is the lost timeline. Up to Kubernetes 1.30 that is LIST at
//!   resourceVersion 0; from 1.31 on (`ConsistentListFromCache`) LIST without
//!   resourceVersion too, with `limit` or without (executed on both).
//! * An API server that is restarted builds its cache anew: LIST is right, watches of
//!   clients are not (executed on 1.37.2).
//! * A bump past the old revision with the old revisions marked compacted ends every
//!   watch: etcd says "compacted", the API server lists again and ends its clients'
//!   watches with 410 (executed on 1.37.2). A smaller bump leaves watches in the future.

pub(crate) mod consumers;
pub mod fates;

use super::expand::writes_per_second;
use super::{FlowPrediction, PlannedClient, PlannedObjective, PredictedView, Prediction, Versions};
use crate::check::objective::Foreseen;
use crate::check::rto::{Rto, RtoFrom, RtoTo};
use crate::client::list_reader::ListResourceVersion;
use crate::client::watcher::InitialState;
use crate::component::ComponentId;
use crate::drill::spec::{Client, Drill, ListReader, Objective, RestoreSnapshot, Step};
use crate::drill::values::Span;
use crate::history::kind::Knows;
use crate::step::bump::Bump;
use crate::step::restart::Which;
use crate::version::minor;
use crate::wire::failure::FailureClass;
use std::collections::BTreeMap;
use std::time::Duration;

/// First minor version of Kubernetes that answers LIST without resourceVersion from its cache.
const CONSISTENT_LIST_FROM_CACHE: u32 = 31;

/// Whether an API server begins watches with the state when asked to: the gate `WatchList` is on by
/// default in 1.32 and from 1.34 on (1.33 turned it off again; read in the sources of 1.37.2).
fn watch_list(kubernetes: &str) -> bool {
    // A version that can't be read is taken for a new one.
    minor(kubernetes).is_none_or(|m| m == 32 || m >= 34)
}

/// A prediction per client of the drill; none when no restore follows a loss.
pub(super) fn predictions(drill: &Drill, versions: &Versions, clients: &[PlannedClient]) -> Vec<Prediction> {
    let Some(procedure) = Procedure::of(drill, versions) else { return Vec::new() };
    let own = clients.iter().filter_map(|planned| Some((planned.spec.as_ref()?, &planned.target)));
    own.filter_map(|(client, target)| procedure.with(target).predict(client)).collect()
}

/// Whether the bump leads past every revision that the lost timeline reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// There is none, or it is certainly too small.
    No,
    /// That depends on how many revisions are lost.
    Perhaps,
    /// Certainly.
    Yes,
}

/// What decides about every client.
#[derive(Clone, Copy)]
struct Procedure<'a> {
    versions: &'a Versions,
    past: Past,
    bump: Option<u64>,
    /// Revisions that the drill's own writers are expected to lose.
    expected_lost: u64,
    /// Which API servers are restarted.
    restarts: &'a Which,
    /// Whether the one that the client talks to is among them.
    api_server_restarted: bool,
    /// How long clients write that the restore loses.
    lost_for: Duration,
}

impl<'a> Procedure<'a> {
    fn of(drill: &'a Drill, versions: &'a Versions) -> Option<Self> {
        let (restore, lost_for) = restore(drill)?;
        let bump = restore.bump_revision.at_least();
        let expected_lost = writes_per_second(drill).saturating_mul(lost_for.as_secs().saturating_add(1));
        Some(Self {
            versions,
            past: reaches(bump, expected_lost),
            bump,
            expected_lost,
            restarts: &restore.restart.api_servers,
            api_server_restarted: false,
            lost_for,
        })
    }

    /// The procedure as it looks to a client of `target`.
    fn with(self, target: &ComponentId) -> Self {
        Self { api_server_restarted: self.restarts.takes(target), ..self }
    }

    fn predict(&self, client: &Client) -> Option<Prediction> {
        let knows = client.kind().about().kind.knows();
        let lies = match (client, knows) {
            (Client::ListReader(list), _) => self.list_lies(list),
            (_, Knows::Objects) => false,
            (_, Knows::Watch) => self.past != Past::Yes,
            // They hold no view; what is expected of them is in `consumers`.
            (_, Knows::Lists | Knows::Writes | Knows::Truth | Knows::Nothing) => return None,
        };
        let after = if lies { PredictedView::LostTimeline } else { PredictedView::True };
        let before = if self.past == Past::Yes { PredictedView::NotApplicable } else { after };
        Some(Prediction {
            client: client.name().to_owned(),
            before_passing: before,
            after_passing: after,
            gone_410: knows == Knows::Watch && self.past == Past::Yes,
            refusals: self.refusals(client),
            source: self.source(client),
        })
    }

    /// What a client is certain to be refused with, or certain not to be.
    fn refusals(&self, client: &Client) -> BTreeMap<String, bool> {
        let (class, met) = match client {
            Client::ListReader(list) if list.resource_version == ListResourceVersion::LastSeen => {
                let met = match self.past {
                    Past::Yes => false,
                    // A restarted API server waits for its cache to get there, and it may.
                    Past::No if !self.api_server_restarted => !self.list_lies(list),
                    Past::No | Past::Perhaps => return BTreeMap::new(),
                };
                (FailureClass::TooLargeResourceVersion, met)
            }
            Client::Watcher(watcher) if watcher.initial == InitialState::WatchList => {
                (FailureClass::Invalid, !watch_list(&self.versions.kubernetes))
            }
            Client::CasUpdater(cas) => {
                // Each object must have been updated between the snapshot and the loss.
                let round = cas.every.0.saturating_mul(cas.objects.saturating_mul(2));
                if self.lost_for < round {
                    return BTreeMap::new();
                }
                (FailureClass::Conflict, true)
            }
            _ => return BTreeMap::new(),
        };
        BTreeMap::from([(class.to_string(), met)])
    }

    fn list_lies(&self, list: &ListReader) -> bool {
        // A version that can't be read is taken for a new one.
        let newer = minor(&self.versions.kubernetes).is_none_or(|m| m >= CONSISTENT_LIST_FROM_CACHE);
        let cached = match list.resource_version {
            ListResourceVersion::Zero => true,
            ListResourceVersion::Unset => newer,
            ListResourceVersion::LastSeen => newer || list.limit.is_none(),
        };
        cached && !self.api_server_restarted && self.past != Past::Yes
    }

    fn source(&self, client: &Client) -> String {
        let rule = match (client, self.past) {
            (Client::GetReader(_), _) => "a GET without resourceVersion is a quorum read of etcd".to_owned(),
            (Client::CasUpdater(_), _) => "an update with a resourceVersion of the lost timeline is a conflict, \
                unless the restored one has since written that object at exactly that revision; nobody else writes \
                these objects"
                .to_owned(),
            (Client::ListReader(_), Past::Yes) => {
                "etcd ends the cache's watch as compacted, so the cache is built anew".to_owned()
            }
            (Client::EtcdWatcher(_), Past::Yes) => {
                "etcd cancels the watch as compacted; it lists again and goes on".to_owned()
            }
            (_, Past::Yes) => {
                "the API server lists again and ends the watch with 410; the client lists again".to_owned()
            }
            (Client::ListReader(list), _) if self.api_server_restarted => {
                let too_large = if list.resource_version == ListResourceVersion::LastSeen {
                    "; it refuses the last resourceVersion as too large unless the store gets there within the 3 s \
                     that it waits, and the client then asks without one"
                } else {
                    ""
                };
                format!("a restarted API server builds its cache from the restored store{too_large}")
            }
            (Client::ListReader(list), _) => self.list_rule(list),
            (Client::EtcdWatcher(_), _) => {
                "the watch goes on from its last revision + 1, which the restored store \
                has not reached: accepted in silence, then resumed with every event in between missing"
                    .to_owned()
            }
            _ => {
                "the watch goes on from its last resourceVersion, which the restored store has not reached: \
                accepted in silence, then resumed with every event in between missing"
                    .to_owned()
            }
        };
        format!("{rule}{} ({}{})", self.manner(client), self.where_seen(client), self.caveat(client))
    }

    /// What is particular to a client's own way of watching.
    fn manner(&self, client: &Client) -> String {
        match (client, self.past) {
            (Client::Watcher(watcher), _) if watcher.initial == InitialState::WatchList => {
                let version = &self.versions.kubernetes;
                if watch_list(version) {
                    format!("; on {version} the watch itself brings the state (`WatchList` is on)")
                } else {
                    format!("; {version} refuses initial events as invalid (`WatchList` is off), so it lists")
                }
            }
            (Client::Watcher(watcher), Past::No | Past::Perhaps) if watcher.bookmarks => {
                "; bookmarks come from the same cache and tell of no loss".to_owned()
            }
            (Client::Reflector(_), Past::No | Past::Perhaps) => {
                "; kube's watcher lists again only after a 410".to_owned()
            }
            _ => String::new(),
        }
    }

    fn list_rule(&self, list: &ListReader) -> String {
        match (list.resource_version, self.list_lies(list)) {
            (ListResourceVersion::LastSeen, true) => {
                "LIST not older than the last resourceVersion is answered by the cache, which is at that \
                revision or above and stays on the lost timeline while the API server keeps running"
                    .to_owned()
            }
            (ListResourceVersion::LastSeen, false) => {
                "up to 1.30 LIST with limit is read from etcd, which refuses the last resourceVersion as too large \
                until it has got there; the client then asks without one"
                    .to_owned()
            }
            (ListResourceVersion::Zero, _) => "LIST at resourceVersion 0 is answered by the cache, which stays on \
                the lost timeline while the API server keeps running"
                .to_owned(),
            (ListResourceVersion::Unset, true) => "from 1.31 on LIST without resourceVersion is answered by the \
                cache once it is at etcd's revision or above, and the lost timeline is above; limit makes no difference"
                .to_owned(),
            (ListResourceVersion::Unset, false) => {
                "up to 1.30 LIST without resourceVersion is read from etcd, with limit or without".to_owned()
            }
        }
    }

    /// Which real versions the rule was seen on.
    fn where_seen(&self, client: &Client) -> &'static str {
        match (client, self.past, self.api_server_restarted) {
            (Client::EtcdWatcher(_), Past::Yes, _) => "etcd's own end-to-end test of restores with a bump",
            (Client::EtcdWatcher(_), ..) => "executed on etcd 3.4.23 and 3.7.3",
            (Client::Reflector(_) | Client::CasUpdater(_), ..) => {
                "read in the sources of Kubernetes 1.30.4 and 1.37.2 and of kube 5.0"
            }
            (Client::ListReader(list), ..) if list.resource_version == ListResourceVersion::LastSeen => {
                "read in the sources of Kubernetes 1.30.4 and 1.37.2"
            }
            (_, Past::Yes, _) | (_, _, true) => "executed on Kubernetes 1.37.2 with etcd 3.7.3",
            _ => "executed on Kubernetes 1.37.2 with etcd 3.7.3 and 1.30.4 with etcd 3.5.21",
        }
    }

    /// Both outcomes, where the bump alone does not decide.
    fn caveat(&self, client: &Client) -> String {
        let (Past::Perhaps, Some(bump)) = (self.past, self.bump) else { return String::new() };
        if matches!(client, Client::GetReader(_) | Client::CasUpdater(_)) {
            return String::new();
        }
        format!(
            "; a bump of {bump} is close to the {} revisions expected to be lost: if fewer are lost than it adds, \
             watches end with 410 and every view is right, if more, it is as without a bump",
            self.expected_lost
        )
    }
}

/// The drill's own writers are not alone (leases are renewed, controllers write), and
/// they may be slower than asked: decided only outside a factor of 4 and a half, and
/// never for a bump below what idle components write by themselves.
fn reaches(bump: Option<u64>, expected_lost: u64) -> Past {
    match bump {
        None => Past::No,
        Some(n) if n >= expected_lost.saturating_mul(4).saturating_add(1_000) => Past::Yes,
        Some(n) if n < expected_lost / 2 => Past::No,
        Some(_) => Past::Perhaps,
    }
}

/// The restore that ends the loss, and how long clients write that it loses.
fn restore(drill: &Drill) -> Option<(&RestoreSnapshot, Duration)> {
    let steps = &drill.spec.steps;
    let lost = steps.iter().position(|s| matches!(s, Step::LoseEtcd(_)))?;
    let restore = steps[lost..].iter().find_map(|s| match s {
        Step::RestoreSnapshot(r) => Some(r),
        _ => None,
    })?;
    let taken =
        steps[..lost].iter().rposition(|s| matches!(s, Step::TakeSnapshot(t) if t.name == restore.from))?;
    Some((restore, Step::held(&steps[taken..lost])))
}

/// Objectives, each with what is expected of it in words.
pub(super) fn objectives(
    drill: &Drill,
    views: &[Prediction],
    flows: &[FlowPrediction],
) -> Vec<PlannedObjective> {
    let planned = |objective: &Objective| PlannedObjective {
        name: objective.kind().name().to_owned(),
        objective: objective.clone(),
        predicted: objective.kind().predicted(&Foreseen { drill, views, flows }),
    };
    drill.spec.objectives.iter().map(planned).collect()
}

/// Whether a fault that loses members, and no data, leaves enough of them.
enum Quorum {
    Kept,
    /// For at least this long.
    Lost(Span),
}

fn quorum(drill: &Drill) -> Option<Quorum> {
    let steps = &drill.spec.steps;
    let begin = steps.iter().position(|s| matches!(s, Step::MemberLoss(_) | Step::QuorumLoss(_)))?;
    let lasting = steps[begin..].iter().take_while(|s| !matches!(s, Step::End(_)));
    Some(match steps[begin] {
        Step::QuorumLoss(_) => Quorum::Lost(Span(Step::held(lasting))),
        _ => Quorum::Kept,
    })
}

fn rto_of_members(drill: &Drill, o: &Rto) -> Option<String> {
    let work = match quorum(drill)? {
        Quorum::Kept => {
            "the others elect a leader, if it was theirs, within about two seconds, and clients of the \
                         lost member turn to another"
                .to_owned()
        }
        Quorum::Lost(held) => format!(
            "the quorum is gone for at least {held}, then members start and elect a leader within a few seconds"
        ),
    };
    Some(format!("met, if {} leaves room for it: {work}", o.within))
}

pub(crate) fn rto(drill: &Drill, o: &Rto, predictions: &[Prediction]) -> Option<String> {
    let Some((restore, _)) = restore(drill) else { return rto_of_members(drill, o) };
    let from = match o.from {
        RtoFrom::Fault => "the fault",
        RtoFrom::RestoreCommand => "the restore command",
    };
    if o.to == RtoTo::FirstTrueList && !some_list_is_true(drill, predictions) {
        return Some(
            "missed: every LIST of this drill is predicted to show the lost timeline until an API server \
            is restarted"
                .to_owned(),
        );
    }
    let work = if restore.restart.api_servers != Which::None {
        "etcdutl, one etcd start and one API server start: a few seconds"
    } else {
        "etcdutl and one etcd start, after which a running API server answers again by itself within about a \
         second (1.1 s executed)"
    };
    let lease = if waits_for_a_lease(o.to, restore) {
        "; then the new leader waits for the Lease of the one that was killed to lapse: 15 s after its last renewal, \
         looked at every 2 s"
    } else {
        ""
    };
    Some(format!("met, if {} leaves room for it: {work}, counted from {from}{lease}", o.within))
}

/// Whether who has to act was killed, and left its Lease behind.
fn waits_for_a_lease(to: RtoTo, restore: &RestoreSnapshot) -> bool {
    match to {
        RtoTo::ControllersAct => restore.restart.controller_managers != Which::None,
        RtoTo::SchedulerActs => restore.restart.schedulers != Which::None,
        RtoTo::EtcdServing
        | RtoTo::ApiReady
        | RtoTo::FirstGoodWrite
        | RtoTo::FirstGoodGet
        | RtoTo::FirstTrueList
        | RtoTo::SecretsReadable
        | RtoTo::EventsWritten => false,
    }
}

fn some_list_is_true(drill: &Drill, predictions: &[Prediction]) -> bool {
    let lists =
        |name: &str| drill.spec.clients.iter().any(|c| matches!(c, Client::ListReader(l) if l.name == name));
    predictions.iter().any(|p| p.after_passing == PredictedView::True && lists(&p.client))
}

pub(crate) fn rpo(drill: &Drill) -> Option<String> {
    let Some((restore, held)) = restore(drill) else {
        return quorum(drill).map(|_| {
            "met: what etcd acknowledges is on the disks of a majority, which come back".to_owned()
        });
    };
    let writes = u128::from(writes_per_second(drill)) * held.as_millis() / 1_000;
    Some(format!(
        "at least {}, about {writes} writes: what is acknowledged between snapshot `{}` and the fault is lost, \
         whatever the procedure",
        Span(held),
        restore.from
    ))
}

pub(crate) fn timeline(predictions: &[Prediction]) -> Option<String> {
    if predictions.is_empty() {
        return None;
    }
    let named = |wanted: fn(&Prediction) -> bool| {
        let names: Vec<&str> = predictions.iter().filter(|p| wanted(p)).map(|p| p.client.as_str()).collect();
        names.join(", ")
    };
    let lying = named(|p| p.after_passing == PredictedView::LostTimeline);
    let right = named(|p| p.after_passing != PredictedView::LostTimeline);
    Some(match (lying.is_empty(), right.is_empty()) {
        (true, _) => format!("met: {right} see what etcd holds"),
        (false, true) => format!("missed: {lying} are on the lost timeline"),
        (false, false) => format!("missed: {lying} are on the lost timeline; {right} see what etcd holds"),
    })
}

/// A bump of the right size is the only procedure after which no client sees its revision go back.
pub(crate) fn linearizable(drill: &Drill) -> Option<String> {
    let Some((restore, _)) = restore(drill) else {
        return Some("met: no step takes back what etcd has acknowledged".to_owned());
    };
    match restore.bump_revision {
        Bump::Auto => Some("met: revisions go on above every one that was seen".to_owned()),
        Bump::None => Some("missed: clients see the revision go back to the snapshot's".to_owned()),
        Bump::By(_) => None,
    }
}

#[cfg(test)]
mod tests;
