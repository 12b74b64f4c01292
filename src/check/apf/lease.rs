//! The objective `losesLease`.

use super::{holding_up, in_force};
use crate::check::coverage::cut_short;
use crate::check::leaders::beliefs;
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::check::{Finding, Judge, Verdict};
use crate::clock::MonoNs;
use crate::drill::lint::{Lint, Place};
use crate::drill::spec::Step;
use crate::drill::values::Span;
use crate::plan::PlannedObjective;
use crate::plan::predict::fates::loses_lease;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A leader elector whose requests are held up loses its Lease when its own rules say so: `renewDeadline` after its
/// last renewal, which was at most `retryPeriod` before the level was in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LosesLease {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of a `leaderElector`.
    pub client: String,
    /// How much later than its rules say, at most.
    #[serde(default = "LosesLease::default_slack")]
    pub slack: Span,
}

impl LosesLease {
    fn default_slack() -> Span {
        Span::secs(1)
    }
}

impl ObjectiveKind for LosesLease {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("slack"), self.slack, (Span::millis(1), Span::secs(60)));
        let path = at.key("client");
        lint.needs_held_up(&path, "leaderElector", &self.client);
        held_up_long_enough(lint, &path, self);
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        loses_lease(foreseen.drill, self)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// An elector that is let go before its deadline is over loses nothing.
fn held_up_long_enough(lint: &mut Lint<'_>, path: &str, o: &LosesLease) {
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
        lint.error(path, title, "hold for longer before the level is ended");
    }
}

/// Judges it by what the elector believes. The level began to hold it up somewhere between the begin of the injection
/// and the moment at which it was seen in force; both ends count for the bounds.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &LosesLease) -> Finding {
    let mut finding = judge.finding(planned);
    finding.unit = Unit::Nanoseconds;
    let log = judge.log(&objective.client);
    let bounds = judge.input.plan.drill.lease_lost(objective);
    let (Some(log), Some((seen, ended)), Some((earliest, latest))) =
        (log, in_force(judge, &objective.client), bounds)
    else {
        finding.reason = format!("{} was not seen while its level was in force", objective.client);
        return finding;
    };
    let begun = holding_up(judge, &objective.client)
        .and_then(|fault| fault.injecting.as_ref())
        .map_or(seen, |m| m.mono_ns);
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (first, last) = (begun.plus(nanos(earliest)), seen.plus(nanos(latest)));
    finding.target = Some(nanos(latest));
    let held: Vec<_> =
        beliefs(&[log]).into_iter().filter(|belief| belief.from <= begun && belief.to >= begun).collect();
    let unsure =
        log.incomplete().or_else(|| cut_short(&judge.input.plan, judge.boundaries())).or_else(|| {
            (last > ended).then(|| "the level was not in force for as long as that takes".to_owned())
        });
    let Some(belief) = held.first() else {
        finding.reason = format!("{} did not lead when its level was made", objective.client);
        return finding;
    };
    finding.evidence.clone_from(&belief.lines);
    let lost = (belief.ended && belief.to <= ended).then_some(belief.to);
    finding.reason = match lost {
        Some(at) => format!(
            "{} stopped leading {} after its level was in force",
            belief.candidate,
            super::super::figures::human(at.since(seen))
        ),
        None => format!("{} led on while its level was in force", belief.candidate),
    };
    if let Some(unsure) = unsure {
        return finding.unsure(&unsure);
    }
    let since = |at: MonoNs| (Some(at.since(seen)), Some(at.since(begun)));
    if let Some(at) = lost {
        (finding.lower, finding.upper) = since(at);
        finding.observed = finding.lower;
    }
    let as_predicted = lost.is_some_and(|at| first <= at && at <= last);
    finding.verdict = if as_predicted { Verdict::Pass } else { Verdict::Fail };
    finding
}
