//! Values outside their range, and lists that must not be empty.

use super::super::spec::{Client, LeaderElector, SteadyState, Step};
use super::super::values::Span;
use super::{Lint, client_path, condition_key, levels, objective_path, step_path};
use crate::drill::spec::Objective;

/// Shortest lease: a shorter one would lapse while a healthy runner renews it.
const DEAD_MAN: (Span, Span) = (Span::secs(5), Span::secs(600));
/// Pace of clients and conditions.
const EVERY: (Span, Span) = (Span::millis(10), Span::secs(60));
/// Anything that is waited for.
const WAIT: (Span, Span) = (Span::millis(1), Span::secs(24 * 3600));
/// Time after which a watch is to end; below it an API server sends no bookmark.
const WATCH_TIMEOUT: (Span, Span) = (Span::secs(5), Span::secs(24 * 3600));
/// Objects of a client that compares and swaps.
const OBJECTS: (u32, u32) = (1, 100);
/// States that a search explores: the most takes minutes.
const STATES: (u64, u64) = (1, 100_000_000);
/// Objects per page that API servers are asked for.
pub(super) const PAGE: (u32, u32) = (1, 100_000);
/// Below 10 s the short leases of a keeper would run out before they are given back.
const LEASE_TTL: (Span, Span) = (Span::secs(10), Span::secs(3600));
/// Of elections.
const LEASE_DURATION: (Span, Span) = (Span::secs(2), Span::secs(3600));
/// Of elections.
const RETRY: (Span, Span) = (Span::millis(100), Span::secs(600));

pub(super) fn check(lint: &mut Lint<'_>) {
    empty_lists(lint);
    topology(lint);
    limits(lint);
    steady_state(lint);
    clients(lint);
    steps(lint);
    objectives(lint);
}

fn empty_lists(lint: &mut Lint<'_>) {
    let spec = &lint.drill.spec;
    let lists = [
        ("steadyState", spec.steady_state.is_empty(), "say what healthy means, as `- apiReady: {}`"),
        ("clients", spec.clients.is_empty(), "a drill without clients sees nothing"),
        ("steps", spec.steps.is_empty(), "a drill without steps does nothing"),
        ("objectives", spec.objectives.is_empty(), "a drill without objectives proves nothing"),
    ];
    for (key, empty, help) in lists {
        if empty {
            lint.error(&format!("spec.{key}"), format!("`{key}` needs at least one entry"), help);
        }
    }
}

fn topology(lint: &mut Lint<'_>) {
    let t = lint.drill.spec.cluster.topology;
    let counts = [
        ("etcd", t.etcd, [1, 3].as_slice(), "1 or 3"),
        ("apiServers", t.api_servers, &[1, 2], "1 or 2"),
        ("controllerManagers", t.controller_managers, &[0, 1, 2], "0 to 2"),
        ("schedulers", t.schedulers, &[0, 1, 2], "0 to 2"),
    ];
    for (key, count, allowed, words) in counts {
        if !allowed.contains(&count) {
            let path = format!("spec.cluster.topology.{key}");
            lint.error(&path, format!("`{key}: {count}` is out of range"), format!("write {words}"));
        }
    }
}

fn limits(lint: &mut Lint<'_>) {
    let limits = &lint.drill.spec.limits;
    span(lint, "spec.limits.deadMan", limits.dead_man, DEAD_MAN);
    span(lint, "spec.limits.maxDuration", limits.max_duration, (Span::secs(10), WAIT.1));
    span(lint, "spec.limits.recovery", limits.recovery, (Span::secs(1), WAIT.1));
    span(lint, "spec.limits.sustained.over", limits.sustained.over, (Span::millis(1), Span::secs(600)));
    if !(1..=100_000).contains(&limits.sustained.samples) {
        let title = format!("`samples: {}` is out of range", limits.sustained.samples);
        lint.error("spec.limits.sustained.samples", title, "write 1 to 100000");
    }
}

fn steady_state(lint: &mut Lint<'_>) {
    for (i, condition) in lint.drill.spec.steady_state.iter().enumerate() {
        let (every, within) = match condition {
            SteadyState::ApiReady(c) => (c.every, c.within),
            SteadyState::WriteSucceeds(c) => (c.every, c.within),
        };
        let path = format!("spec.steadyState[{i}].{}", condition_key(condition));
        span(lint, &format!("{path}.every"), every, EVERY);
        span(lint, &format!("{path}.within"), within, (Span::millis(1), Span::secs(60)));
    }
}

fn clients(lint: &mut Lint<'_>) {
    for (i, client) in lint.drill.spec.clients.iter().enumerate() {
        match client {
            Client::GetReader(c) => span(lint, &client_path(i, client, "every"), c.every, EVERY),
            Client::SecretReader(c) => span(lint, &client_path(i, client, "every"), c.every, EVERY),
            Client::ListReader(c) => {
                span(lint, &client_path(i, client, "every"), c.every, EVERY);
                if let Some(limit) = c.limit
                    && !(PAGE.0..=PAGE.1).contains(&limit)
                {
                    let path = client_path(i, client, "limit");
                    let help = format!("write {} to {}, or leave it out for one page", PAGE.0, PAGE.1);
                    lint.error(&path, format!("`limit: {limit}` is out of range"), help);
                }
            }
            Client::Watcher(c) => {
                if let Some(timeout) = c.timeout {
                    let path = client_path(i, client, "timeout");
                    span(lint, &path, timeout, WATCH_TIMEOUT);
                    if timeout.0.subsec_nanos() != 0 {
                        let title = format!("`timeout: {timeout}` is not in whole seconds");
                        lint.error(&path, title, "API servers are asked in whole seconds, as `10s`");
                    }
                }
            }
            Client::CasUpdater(c) => {
                span(lint, &client_path(i, client, "every"), c.every, EVERY);
                if !(OBJECTS.0..=OBJECTS.1).contains(&c.objects) {
                    let path = client_path(i, client, "objects");
                    let help = format!("write {} to {}", OBJECTS.0, OBJECTS.1);
                    lint.error(&path, format!("`objects: {}` is out of range", c.objects), help);
                }
            }
            // The rate's own type knows its range.
            Client::LedgerWriter(_) | Client::EtcdWatcher(_) | Client::Reflector(_) => {}
            Client::LeaseKeeper(c) => {
                span(lint, &client_path(i, client, "every"), c.every, EVERY);
                whole_seconds(lint, &client_path(i, client, "ttl"), c.ttl, LEASE_TTL);
            }
            Client::LeaderElector(c) => elector(lint, i, client, c),
            Client::EventWriter(c) => span(lint, &client_path(i, client, "every"), c.every, EVERY),
            Client::Deployer(c) => span(lint, &client_path(i, client, "every"), c.every, EVERY),
            Client::PodCreator(c) => span(lint, &client_path(i, client, "every"), c.every, EVERY),
            Client::Load(_) | Client::RetryingLoad(_) => {}
        }
    }
}

/// As client-go refuses to start with other values.
fn elector(lint: &mut Lint<'_>, i: usize, client: &Client, c: &LeaderElector) {
    let path = |key: &str| client_path(i, client, key);
    if !(1..=5).contains(&c.candidates) {
        let title = format!("`candidates: {}` is out of range", c.candidates);
        lint.error(&path("candidates"), title, "write 1 to 5");
    }
    whole_seconds(lint, &path("leaseDuration"), c.lease_duration, LEASE_DURATION);
    span(lint, &path("retryPeriod"), c.retry_period, RETRY);
    if let Some(after) = c.stands_after {
        span(lint, &path("standsAfter"), after, (Span::millis(1), Span::secs(30)));
    }
    if let Some(after) = c.hand_over {
        span(lint, &path("handOver"), after, (Span::secs(1), WAIT.1));
    }
    if c.lease_duration <= c.renew_deadline {
        let title = format!("`renewDeadline: {}` is not less than `leaseDuration`", c.renew_deadline);
        lint.error(&path("renewDeadline"), title, "others would take over while a leader still tries");
    }
    // retryPeriod × 1.2, as client-go's jitter.
    if c.renew_deadline.0 <= c.retry_period.0.saturating_mul(6) / 5 {
        let title = format!("`retryPeriod: {}` leaves no second try in `renewDeadline`", c.retry_period);
        lint.error(&path("retryPeriod"), title, "make it less than five sixths of `renewDeadline`");
    }
}

/// A value that travels as whole seconds.
fn whole_seconds(lint: &mut Lint<'_>, path: &str, value: Span, range: (Span, Span)) {
    if value.0.subsec_nanos() != 0 {
        let key = path.rsplit('.').next().unwrap_or(path);
        lint.error(path, format!("`{key}: {value}` is not a whole number of seconds"), "round it");
    }
    span(lint, path, value, range);
}

fn steps(lint: &mut Lint<'_>) {
    for (i, step) in lint.drill.spec.steps.iter().enumerate() {
        match step {
            Step::Hold(s) => span(lint, &step_path(i, step, "for"), s.duration, WAIT),
            Step::RestoreSnapshot(s) => {
                span(lint, &step_path(i, step, "readyWithin"), s.ready_within, (Span::secs(1), WAIT.1));
            }
            Step::Load(s) => span(lint, &step_path(i, step, "atMost"), s.at_most, WAIT),
            Step::ApfLevel(s) => levels::check(lint, i, step, s),
            Step::ApfShares(s) => levels::shares(lint, &step_path(i, step, "shares"), s.shares),
            Step::Observe(s) => {
                span(lint, &step_path(i, step, "atMost"), s.at_most, WAIT);
                span(lint, &step_path(i, step, "then"), s.then, (Span::millis(0), WAIT.1));
            }
            _ => {}
        }
    }
}

fn objectives(lint: &mut Lint<'_>) {
    for (i, objective) in lint.drill.spec.objectives.iter().enumerate() {
        match objective {
            Objective::Rto(o) => span(lint, &objective_path(i, objective, "within"), o.within, WAIT),
            Objective::Rpo(o) => {
                if let Some(within) = o.within {
                    let path = objective_path(i, objective, "within");
                    span(lint, &path, within, (Span::millis(0), WAIT.1));
                }
            }
            Objective::NoClientOnLostTimeline(o) => {
                span(lint, &objective_path(i, objective, "settle"), o.settle, (Span::millis(0), WAIT.1));
                span(lint, &objective_path(i, objective, "maxLag"), o.max_lag, (Span::millis(100), WAIT.1));
            }
            Objective::NoTwoLeaders(_) | Objective::RetriesHide(_) | Objective::SuccessRate(_) => {}
            Objective::WatchDelivers(o) => {
                let path = objective_path(i, objective, "within");
                span(lint, &path, o.within, (Span::millis(1), Span::secs(60)));
            }
            Objective::LosesLease(o) => {
                let path = objective_path(i, objective, "slack");
                span(lint, &path, o.slack, (Span::millis(1), Span::secs(60)));
            }
            Objective::Latency(o) => {
                span(lint, &objective_path(i, objective, "within"), o.within, WAIT);
                if !(1..=100).contains(&o.percentile) {
                    let title = format!("`percentile: {}` is out of range", o.percentile);
                    lint.error(&objective_path(i, objective, "percentile"), title, "write 1 to 100");
                }
            }
            Objective::ApfOutcomes(o) => {
                let path = |key| objective_path(i, objective, key);
                span(lint, &path("arrival"), o.arrival, (Span::millis(1), Span::secs(10)));
                span(lint, &path("holding"), o.holding, (Span::millis(1), Span::secs(10)));
                span(lint, &path("propagation"), o.propagation, (Span::millis(1), Span::secs(60)));
            }
            Objective::Linearizable(o) => {
                let (least, most) = STATES;
                if !(least..=most).contains(&o.budget) {
                    let title = format!("`budget: {}` is out of range", o.budget);
                    let help = format!("write {least} to {most} explored states");
                    lint.error(&objective_path(i, objective, "budget"), title, help);
                }
            }
        }
    }
}

pub(super) fn span(lint: &mut Lint<'_>, path: &str, value: Span, (least, most): (Span, Span)) {
    if value < least || value > most {
        let key = path.rsplit('.').next().unwrap_or(path);
        lint.error(path, format!("`{key}: {value}` is out of range"), format!("write {least} to {most}"));
    }
}
