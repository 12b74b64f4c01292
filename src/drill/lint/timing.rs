//! Durations that contradict each other.

use super::super::spec::{Client, Objective, Step};
use super::super::values::Span;
use super::{Lint, objective_path, step_path};
use crate::drill::spec::NoClientOnLostTimeline;
use crate::step::bump::Bump;
use crate::step::spec::Until;
use std::time::Duration;

pub(super) fn check(lint: &mut Lint<'_>) {
    whole_run(lint);
    for (i, objective) in lint.drill.spec.objectives.iter().enumerate() {
        if let Objective::NoClientOnLostTimeline(o) = objective {
            settling(lint, i, objective, o);
        }
    }
}

/// Holds and observations may last this long, whatever else happens.
fn whole_run(lint: &mut Lint<'_>) {
    let spec = &lint.drill.spec;
    let total: Duration = spec
        .steps
        .iter()
        .map(|step| match step {
            Step::Hold(s) => s.duration.0,
            Step::Observe(s) => s.at_most.0.saturating_add(s.then.0),
            Step::Load(s) => s.at_most.0,
            _ => Duration::ZERO,
        })
        .fold(Duration::ZERO, Duration::saturating_add);
    let most = spec.limits.max_duration;
    if total > most.0 {
        let title = format!("the run is aborted after {most}, but its steps may take {}", Span(total));
        let help = "raise `limits.maxDuration`, or shorten `hold.for`, `load.atMost`, `observe.atMost` or `observe.then`";
        lint.error("spec.limits.maxDuration", title, help);
    }
}

/// A client is judged only once `settle` has passed since the restore, so each
/// phase has to last longer than that.
fn settling(lint: &mut Lint<'_>, i: usize, objective: &Objective, o: &NoClientOnLostTimeline) {
    let drill = lint.drill;
    let settle_path = objective_path(i, objective, "settle");
    for (at, step) in drill.spec.steps.iter().enumerate() {
        if let Step::Observe(s) = step
            && s.until == Until::RevisionPassedLost
            && s.then <= o.settle
        {
            let title = format!(
                "clients may converge for {} (`settle` of `{}`), but are observed for {} only",
                o.settle, o.name, s.then
            );
            lint.error(&step_path(at, step, "then"), title, "make `then` longer than `settle`");
        }
    }
    let bumped = drill
        .spec
        .steps
        .iter()
        .any(|s| matches!(s, Step::RestoreSnapshot(r) if r.bump_revision != Bump::None));
    let lost_for = lost_window(&drill.spec.steps);
    let writes = drill.spec.clients.iter().any(|c| matches!(c, Client::LedgerWriter(_)));
    if !bumped && writes && lost_for.is_some_and(|lost| lost <= o.settle.0) {
        let title = format!(
            "the old revision is passed about {} after the restore, before `settle` ({}) is over",
            Span(lost_for.unwrap_or_default()),
            o.settle
        );
        let help = "hold longer between `takeSnapshot` and `loseEtcd`, or shorten `settle`";
        lint.error(&settle_path, title, help);
    }
}

/// How long clients write between the snapshot that is restored and the loss: the
/// writer needs about the same time to get past the old revision again.
fn lost_window(steps: &[Step]) -> Option<Duration> {
    let restore = steps.iter().find_map(|s| match s {
        Step::RestoreSnapshot(r) => Some(r),
        _ => None,
    })?;
    let taken = steps.iter().position(|s| matches!(s, Step::TakeSnapshot(t) if t.name == restore.from))?;
    let lost = steps.iter().position(|s| matches!(s, Step::LoseEtcd(_)))?;
    Some(Step::held(steps.get(taken..lost)?))
}
