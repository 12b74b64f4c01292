//! What can be read but makes no sense: a drill whose objectives its clients can't
//! measure, steps in an impossible order, values outside their range.

mod levels;
mod loads;
mod names;
pub use names::is_kebab;
mod objectives;
mod ranges;
mod steps;
mod timing;

use super::problem::Problem;
use super::source::SourceMap;
use super::spec::{Client, Drill, Objective, SteadyState, Step};
use std::ops::Range;

/// Judges a drill that could be read. Errors keep it from being run, warnings don't.
#[must_use]
pub fn lint(drill: &Drill, source: &SourceMap) -> Vec<Problem> {
    let mut lint = Lint { drill, source, problems: Vec::new() };
    names::check(&mut lint);
    ranges::check(&mut lint);
    loads::check(&mut lint);
    steps::check(&mut lint);
    objectives::check(&mut lint);
    timing::check(&mut lint);
    lint.problems.sort_by_key(|p| p.span.as_ref().map_or(0, |s| s.start));
    lint.problems
}

/// A drill being judged.
struct Lint<'a> {
    drill: &'a Drill,
    source: &'a SourceMap,
    problems: Vec<Problem>,
}

impl Lint<'_> {
    fn at(&self, path: &str) -> Option<Range<usize>> {
        self.source.at(path)
    }

    fn error(&mut self, path: &str, title: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(title, self.at(path)).help(help));
    }

    fn warning(&mut self, path: &str, title: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(title, self.at(path)).help(help));
    }
}

/// Key under which a client stands in the file.
pub(crate) fn client_key(client: &Client) -> &'static str {
    match client {
        Client::LedgerWriter(_) => "ledgerWriter",
        Client::GetReader(_) => "getReader",
        Client::ListReader(_) => "listReader",
        Client::Watcher(_) => "watcher",
        Client::EtcdWatcher(_) => "etcdWatcher",
        Client::SecretReader(_) => "secretReader",
        Client::CasUpdater(_) => "casUpdater",
        Client::Reflector(_) => "reflector",
        Client::LeaseKeeper(_) => "leaseKeeper",
        Client::LeaderElector(_) => "leaderElector",
        Client::EventWriter(_) => "eventWriter",
        Client::Deployer(_) => "deployer",
        Client::PodCreator(_) => "podCreator",
        Client::Load(_) => "load",
        Client::RetryingLoad(_) => "retryingLoad",
    }
}

/// Name of a client.
pub(crate) fn client_name(client: &Client) -> &str {
    match client {
        Client::LedgerWriter(c) => &c.name,
        Client::GetReader(c) => &c.name,
        Client::ListReader(c) => &c.name,
        Client::Watcher(c) => &c.name,
        Client::EtcdWatcher(c) => &c.name,
        Client::SecretReader(c) => &c.name,
        Client::CasUpdater(c) => &c.name,
        Client::Reflector(c) => &c.name,
        Client::LeaseKeeper(c) => &c.name,
        Client::LeaderElector(c) => &c.name,
        Client::EventWriter(c) => &c.name,
        Client::Deployer(c) => &c.name,
        Client::PodCreator(c) => &c.name,
        Client::Load(c) => &c.name,
        Client::RetryingLoad(c) => &c.name,
    }
}

/// Key under which an objective stands in the file.
pub(crate) fn objective_key(objective: &Objective) -> &'static str {
    match objective {
        Objective::Rto(_) => "rto",
        Objective::Rpo(_) => "rpo",
        Objective::NoClientOnLostTimeline(_) => "noClientOnLostTimeline",
        Objective::NoTwoLeaders(_) => "noTwoLeaders",
        Objective::Linearizable(_) => "linearizable",
        Objective::ApfOutcomes(_) => "apfOutcomes",
        Objective::WatchDelivers(_) => "watchDelivers",
        Objective::LosesLease(_) => "losesLease",
        Objective::Latency(_) => "latency",
        Objective::SuccessRate(_) => "successRate",
        Objective::RetriesHide(_) => "retriesHide",
    }
}

/// Name of an objective.
pub(crate) fn objective_name(objective: &Objective) -> &str {
    match objective {
        Objective::Rto(o) => &o.name,
        Objective::Rpo(o) => &o.name,
        Objective::NoClientOnLostTimeline(o) => &o.name,
        Objective::NoTwoLeaders(o) => &o.name,
        Objective::Linearizable(o) => &o.name,
        Objective::ApfOutcomes(o) => &o.name,
        Objective::WatchDelivers(o) => &o.name,
        Objective::LosesLease(o) => &o.name,
        Objective::Latency(o) => &o.name,
        Objective::SuccessRate(o) => &o.name,
        Objective::RetriesHide(o) => &o.name,
    }
}

/// Key under which a step stands in the file.
pub(crate) fn step_key(step: &Step) -> &'static str {
    match step {
        Step::TakeSnapshot(_) => "takeSnapshot",
        Step::Hold(_) => "hold",
        Step::LoseEtcd(_) => "loseEtcd",
        Step::MemberLoss(_) => "memberLoss",
        Step::QuorumLoss(_) => "quorumLoss",
        Step::ApfLevel(_) => "apfLevel",
        Step::ApfShares(_) => "apfShares",
        Step::Load(_) => "load",
        Step::End(_) => "end",
        Step::RestoreSnapshot(_) => "restoreSnapshot",
        Step::Observe(_) => "observe",
    }
}

/// Key under which a condition of the steady state stands in the file.
fn condition_key(condition: &SteadyState) -> &'static str {
    match condition {
        SteadyState::ApiReady(_) => "apiReady",
        SteadyState::WriteSucceeds(_) => "writeSucceeds",
    }
}

fn client_path(index: usize, client: &Client, key: &str) -> String {
    format!("spec.clients[{index}].{}.{key}", client_key(client))
}

fn step_path(index: usize, step: &Step, key: &str) -> String {
    format!("spec.steps[{index}].{}.{key}", step_key(step))
}

fn objective_path(index: usize, objective: &Objective, key: &str) -> String {
    format!("spec.objectives[{index}].{}.{key}", objective_key(objective))
}
