//! Values outside their range, and lists that must not be empty.

use super::super::spec::SteadyState;
use super::super::values::Span;
use super::{Lint, condition_key};

/// Shortest lease: a shorter one would lapse while a healthy runner renews it.
const DEAD_MAN: (Span, Span) = (Span::secs(5), Span::secs(600));
/// Pace of clients and conditions.
pub(super) const EVERY: (Span, Span) = (Span::millis(10), Span::secs(60));
/// Anything that is waited for.
pub(crate) const WAIT: (Span, Span) = (Span::millis(1), Span::secs(24 * 3600));
/// Objects per page that API servers are asked for.
pub(crate) const PAGE: (u32, u32) = (1, 100_000);

pub(super) fn check(lint: &mut Lint<'_>) {
    empty_lists(lint);
    topology(lint);
    limits(lint);
    steady_state(lint);
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
    lint.span("spec.limits.deadMan", limits.dead_man, DEAD_MAN);
    lint.span("spec.limits.maxDuration", limits.max_duration, (Span::secs(10), WAIT.1));
    lint.span("spec.limits.recovery", limits.recovery, (Span::secs(1), WAIT.1));
    lint.span("spec.limits.sustained.over", limits.sustained.over, (Span::millis(1), Span::secs(600)));
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
        lint.span(&format!("{path}.every"), every, EVERY);
        lint.span(&format!("{path}.within"), within, (Span::millis(1), Span::secs(60)));
    }
}
