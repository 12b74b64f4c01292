//! Objectives that the drill's own clients and steps can't measure.

use super::super::spec::{ApfOutcomes, Client, Objective, Rpo, Rto, Step};
use super::super::suggest;
use super::{Lint, client_name, client_path, objective_path};
use crate::check::objectives::{LosesLease, RtoFrom, RtoTo};
use crate::client::spec::Load;
use crate::drill::flow::Unforeseen;
use crate::drill::values::Span;
use crate::fault;
use crate::step::spec::Until;
use std::collections::BTreeMap;

pub(super) fn check(lint: &mut Lint<'_>) {
    let drill = lint.drill;
    for (i, objective) in drill.spec.objectives.iter().enumerate() {
        match objective {
            Objective::Rto(o) => rto(lint, i, objective, o),
            Objective::Rpo(o) => rpo(lint, i, objective, o),
            Objective::NoClientOnLostTimeline(_) => timeline(lint, i, objective),
            Objective::NoTwoLeaders(_) => leaders(lint, i, objective),
            Objective::Linearizable(_) => linearizable(lint, i, objective),
            Objective::ApfOutcomes(o) => outcomes(lint, i, objective, o),
            Objective::WatchDelivers(o) => {
                let watches = |c: &Client| matches!(c, Client::Watcher(w) if w.name == o.client);
                one_of(lint, i, objective, has(lint, watches), "watcher", &o.client);
                if !has(lint, is_writer) {
                    let path = objective_path(i, objective, "client");
                    lint.error(&path, "nothing is written that the watch could deliver", WRITER);
                }
            }
            Objective::LosesLease(o) => {
                let elects = |c: &Client| matches!(c, Client::LeaderElector(e) if e.name == o.client);
                one_of(lint, i, objective, has(lint, elects), "leaderElector", &o.client);
                held_up_long_enough(lint, i, objective, o);
            }
            Objective::RetriesHide(o) => {
                let retries = |c: &Client| matches!(c, Client::RetryingLoad(r) if r.name == o.client);
                one_of(lint, i, objective, has(lint, retries), "retryingLoad", &o.client);
                let refused = lint
                    .drill
                    .level_of(&o.client)
                    .is_some_and(|(at, level)| lint.drill.shares_before(at, level) == 0);
                if has(lint, retries) && !refused {
                    let title =
                        format!("nothing refuses the requests of `{}` when its load begins", o.client);
                    let path = objective_path(i, objective, "client");
                    lint.error(&path, title, "begin it by a `load` step while its level has no shares");
                }
            }
            Objective::Latency(o) => load_of(lint, i, objective, &o.client),
            Objective::SuccessRate(o) => {
                load_of(lint, i, objective, &o.client);
                if o.at_least.is_some() == o.at_most.is_some() {
                    let title = "a `successRate` has one limit";
                    let help = "write `atLeast: 99.9%` or `atMost: 1%`; two limits are two objectives";
                    lint.error(&objective_path(i, objective, "client"), title, help);
                }
            }
        }
    }
    for (i, client) in drill.spec.clients.iter().enumerate() {
        if matches!(client, Client::GetReader(_)) && !has(lint, is_writer) {
            let title = "a `getReader` reads what a `ledgerWriter` wrote, and there is none";
            lint.error(&client_path(i, client, "name"), title, WRITER);
        }
    }
}

/// A load that some step begins.
fn load_of(lint: &mut Lint<'_>, i: usize, objective: &Objective, client: &String) {
    let path = objective_path(i, objective, "client");
    let client = std::slice::from_ref(client);
    loads(lint, &path, client, is_load);
    begun(lint, &path, client);
}

const WRITER: &str = "add a client, as `- ledgerWriter: {name: orders, rate: 50/s}`";

fn is_writer(client: &Client) -> bool {
    matches!(client, Client::LedgerWriter(_))
}

fn has(lint: &Lint<'_>, which: impl Fn(&Client) -> bool) -> bool {
    lint.drill.spec.clients.iter().any(which)
}

fn has_step(lint: &Lint<'_>, which: impl Fn(&Step) -> bool) -> bool {
    lint.drill.spec.steps.iter().any(which)
}

fn rto(lint: &mut Lint<'_>, i: usize, objective: &Objective, o: &Rto) {
    let from = objective_path(i, objective, "from");
    match o.from {
        RtoFrom::Fault if !has_step(lint, |s| fault::of(s).is_some()) => {
            lint.error(
                &from,
                "the time starts at the fault, and no step injects one",
                "add a `loseEtcd` step",
            );
        }
        RtoFrom::RestoreCommand if !has_step(lint, |s| matches!(s, Step::RestoreSnapshot(_))) => {
            let title = "the time starts at the restore command, and no step gives it";
            lint.error(&from, title, "add a `restoreSnapshot` step");
        }
        RtoFrom::Fault | RtoFrom::RestoreCommand => {}
    }
    let (kind, help) = match o.to {
        // Measured by probes that every plan adds.
        RtoTo::EtcdServing | RtoTo::ApiReady => return,
        RtoTo::FirstGoodWrite if !has(lint, is_writer) => ("ledgerWriter", WRITER),
        RtoTo::FirstGoodGet if !has(lint, |c| matches!(c, Client::GetReader(_))) => {
            ("getReader", "add a client, as `- getReader: {name: reader, every: 50ms}`")
        }
        RtoTo::FirstTrueList if !has(lint, |c| matches!(c, Client::ListReader(_))) => {
            ("listReader", "add a client, as `- listReader: {name: lister, every: 200ms}`")
        }
        RtoTo::SecretsReadable if !has(lint, |c| matches!(c, Client::SecretReader(_))) => {
            ("secretReader", "add a client, as `- secretReader: {name: secrets, every: 500ms}`")
        }
        RtoTo::ControllersAct if !has(lint, |c| matches!(c, Client::Deployer(_))) => {
            ("deployer", "add a client, as `- deployer: {name: deployer}`")
        }
        RtoTo::SchedulerActs if !has(lint, |c| matches!(c, Client::PodCreator(_))) => {
            ("podCreator", "add a client, as `- podCreator: {name: pods}`")
        }
        RtoTo::EventsWritten if !has(lint, |c| matches!(c, Client::EventWriter(_))) => {
            ("eventWriter", "add a client, as `- eventWriter: {name: events}`")
        }
        _ => return,
    };
    let title = format!("no client measures where this time ends: that takes a `{kind}`");
    lint.error(&objective_path(i, objective, "to"), title, help);
}

fn rpo(lint: &mut Lint<'_>, i: usize, objective: &Objective, o: &Rpo) {
    let path = objective_path(i, objective, "name");
    if o.within.is_none() && o.at_most_writes.is_none() {
        lint.error(&path, "an `rpo` needs a limit", "add `within: 10s` or `atMostWrites: 500`");
    }
    if !has(lint, is_writer) {
        lint.error(&path, "no client counts lost writes: that takes a `ledgerWriter`", WRITER);
    }
    if !has_step(lint, |s| fault::of(s).is_some()) {
        let title = "no step injects a fault that could lose a write";
        lint.error(&path, title, "add a `loseEtcd` step and a `restoreSnapshot` step");
    }
}

fn leaders(lint: &mut Lint<'_>, i: usize, objective: &Objective) {
    let mut candidates: BTreeMap<&str, u32> = BTreeMap::new();
    for client in &lint.drill.spec.clients {
        if let Client::LeaderElector(c) = client {
            *candidates.entry(c.lease_name()).or_default() += u32::from(c.candidates);
        }
    }
    if candidates.values().all(|n| *n < 2) {
        let title = "no Lease has two candidates, so no two could lead";
        let help = "add a client, as `- leaderElector: {name: elector, candidates: 2}`";
        lint.error(&objective_path(i, objective, "name"), title, help);
    }
}

fn timeline(lint: &mut Lint<'_>, i: usize, objective: &Objective) {
    let path = objective_path(i, objective, "name");
    if !has(lint, is_writer) {
        let title = "without a `ledgerWriter` there is nothing that a client could miss";
        lint.error(&path, title, WRITER);
    }
    let views = |c: &Client| {
        matches!(
            c,
            Client::ListReader(_) | Client::Watcher(_) | Client::EtcdWatcher(_) | Client::Reflector(_)
        )
    };
    if !has(lint, views) {
        let title = "no client has a view that could be held against etcd";
        lint.error(&path, title, "add a `listReader`, `watcher` or `etcdWatcher`");
    }
    let passes = |s: &Step| matches!(s, Step::Observe(o) if o.until == Until::RevisionPassedLost);
    if !has_step(lint, passes) {
        let title =
            "the phase after the old revision was passed would not be observed; both phases are judged";
        let help = "add `- observe: {until: revisionPassedLost, atMost: 60s}` after `restoreSnapshot`";
        lint.error(&path, title, help);
    }
}

/// An elector that is let go before its deadline is over loses nothing.
fn held_up_long_enough(lint: &mut Lint<'_>, i: usize, objective: &Objective, o: &LosesLease) {
    let drill = lint.drill;
    let steps = &drill.spec.steps;
    let holds_up = |s: &Step| matches!(s, Step::ApfLevel(level) if level.clients.contains(&o.client));
    let (Some((_, latest)), Some(begin)) = (drill.lease_lost(o), steps.iter().position(holds_up)) else {
        return;
    };
    let end =
        steps[begin..].iter().position(|s| matches!(s, Step::End(_))).map_or(steps.len(), |e| e + begin);
    let meanwhile = &steps[begin + 1..end];
    let held = Step::held(meanwhile);
    if meanwhile.iter().all(|s| matches!(s, Step::Hold(_))) && held < latest {
        let title = format!(
            "`{}` loses its Lease up to {} after its level is in force, which is for {}",
            o.client,
            Span(latest),
            Span(held)
        );
        lint.error(
            &objective_path(i, objective, "client"),
            title,
            "hold for longer before the level is ended",
        );
    }
}

/// The client that an objective is about is of its kind, and a level holds it up.
fn one_of(lint: &mut Lint<'_>, i: usize, objective: &Objective, is: bool, kind: &str, name: &str) {
    let path = objective_path(i, objective, "client");
    if !is {
        lint.error(
            &path,
            format!("no `{kind}` is named `{name}`"),
            format!("name a client of kind `{kind}`"),
        );
    }
    let held_up = |s: &Step| matches!(s, Step::ApfLevel(level) if level.clients.iter().any(|c| c == name));
    if !has_step(lint, held_up) {
        let title = format!("no `apfLevel` holds up `{name}`");
        lint.error(&path, title, format!("add it to the `clients` of an `apfLevel`, as `[{name}]`"));
    }
}

fn outcomes(lint: &mut Lint<'_>, i: usize, objective: &Objective, o: &ApfOutcomes) {
    let path = objective_path(i, objective, "clients");
    if o.clients.is_empty() {
        lint.error(&path, "no load is named, so nothing is counted", "name `load` clients, as `[jailed]`");
    }
    loads(lint, &path, &o.clients, is_load);
    begun(lint, &path, &o.clients);
    for (index, client) in o.clients.iter().enumerate() {
        if o.clients[..index].contains(client) {
            let title = format!("`{client}` is named twice, and would be counted twice");
            lint.error(&path, title, "name each load once");
        }
        // Only which of the requests come close to each other depends on the seed.
        let due = |load: &Load| load.arrivals.offsets(0);
        if let Err(Unforeseen { why, help }) = lint.drill.foresee(client, due) {
            lint.error(&path, format!("nothing can be predicted of `{client}`: {why}"), help);
        }
    }
}

/// A load that no step begins is of no objective's use.
fn begun(lint: &mut Lint<'_>, path: &str, clients: &[String]) {
    let drill = lint.drill;
    let there = |client: &&String| drill.spec.clients.iter().any(|c| client_name(c) == client.as_str());
    for client in clients.iter().filter(there).filter(|client| drill.begin_of(client).is_none()) {
        let title = format!("no step begins the load `{client}`");
        lint.error(path, title, format!("add `- load: {{clients: [{client}]}}`"));
    }
}

/// A load of which each request is one attempt, so that its fate can be counted.
fn is_load(client: &Client) -> bool {
    matches!(client, Client::Load(_))
}

/// Names that are no clients of a kind of load.
pub(super) fn loads(lint: &mut Lint<'_>, path: &str, names: &[String], is_load: fn(&Client) -> bool) {
    let known: Vec<&str> =
        lint.drill.spec.clients.iter().filter(|client| is_load(client)).map(client_name).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let help = suggest::hint(name, "load clients", &known).unwrap_or_else(|| {
            "add a client, as `- load: {name: jailed, arrivals: {burst: {requests: 30}}}`".to_owned()
        });
        lint.error(path, format!("no client `{name}` is a `load`"), help);
    }
}

fn linearizable(lint: &mut Lint<'_>, i: usize, objective: &Objective) {
    if !has(lint, is_writer) {
        let title = "without a `ledgerWriter` there is no order of writes that answers could fit";
        lint.error(&objective_path(i, objective, "name"), title, WRITER);
    }
}
