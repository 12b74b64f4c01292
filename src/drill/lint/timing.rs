//! Durations that contradict each other.

use super::super::values::Span;
use super::Lint;
use std::time::Duration;

pub(super) fn check(lint: &mut Lint<'_>) {
    whole_run(lint);
}

/// Holds and observations may last this long, whatever else happens.
fn whole_run(lint: &mut Lint<'_>) {
    let spec = &lint.drill.spec;
    let total: Duration = spec
        .steps
        .iter()
        .map(|step| step.kind().lasts_at_most())
        .fold(Duration::ZERO, Duration::saturating_add);
    let most = spec.limits.max_duration;
    if total > most.0 {
        let title = format!("the run is aborted after {most}, but its steps may take {}", Span(total));
        let help = "raise `limits.maxDuration`, or shorten `hold.for`, `load.atMost`, `observe.atMost` or `observe.then`";
        lint.error("spec.limits.maxDuration", title, help);
    }
}
