//! The objective `noClientOnLostTimeline`: after a restore every client's view is
//! etcd's own state at the same revision, before and after the restored timeline
//! has passed the old revision. How long a watch was silent is not the criterion:
//! one that goes on after a short silence may have skipped objects for good.

use super::coverage::{cut_short, is_about_ledger, too_little};
use super::restore_facts::on_lost_state;
use super::seen::{ObservedView, Seen, accepted_on_lost_state, seen};
use super::window::{Phase, Windows};
use super::{Finding, Judge, Verdict};
use crate::check::objective::{Foreseen, ObjectiveKind};
use crate::check::unit::Unit;
use crate::drill::lint::{Lint, Place, WAIT};
use crate::drill::spec::{Client, Step};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::plan::{PlannedObjective, predict};
use crate::step::bump::Bump;
use crate::step::observe::Until;
use crate::timeline::clients::ClientLog;
use crate::timeline::gets::Right;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No client's view differs from etcd's own state at the same revision, neither
/// before nor after the new timeline has passed the old revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NoClientOnLostTimeline {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time after the restore in which clients may still be converging.
    pub settle: Span,
    /// A view older than this, while writes were acknowledged, is stale.
    pub max_lag: Span,
}

impl Default for NoClientOnLostTimeline {
    fn default() -> Self {
        Self { name: "no-client-on-lost-timeline".to_owned(), settle: Span::secs(3), max_lag: Span::secs(5) }
    }
}

impl ObjectiveKind for NoClientOnLostTimeline {
    fn name(&self) -> &str {
        &self.name
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        lint.span(&at.key("settle"), self.settle, (Span::millis(0), WAIT.1));
        lint.span(&at.key("maxLag"), self.max_lag, (Span::millis(100), WAIT.1));
        let path = at.key("name");
        lint.needs_writer(&path, "without a `ledgerWriter` there is nothing that a client could miss");
        let views = |c: &Client| {
            matches!(
                c,
                Client::ListReader(_) | Client::Watcher(_) | Client::EtcdWatcher(_) | Client::Reflector(_)
            )
        };
        if !lint.has(views) {
            let title = "no client has a view that could be held against etcd";
            lint.error(&path, title, "add a `listReader`, `watcher` or `etcdWatcher`");
        }
        let passes = |s: &Step| matches!(s, Step::Observe(o) if o.until == Until::RevisionPassedLost);
        if !lint.has_step(passes) {
            let title =
                "the phase after the old revision was passed would not be observed; both phases are judged";
            let help = "add `- observe: {until: revisionPassedLost, atMost: 60s}` after `restoreSnapshot`";
            lint.error(&path, title, help);
        }
        settling(lint, at, self);
    }

    fn rests_on_truth(&self) -> bool {
        true
    }

    fn predicted(&self, foreseen: &Foreseen<'_>) -> Option<String> {
        predict::timeline(foreseen.views)
    }

    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding {
        check(judge, planned, self)
    }
}

/// A client is judged only once `settle` has passed since the restore, so each
/// phase has to last longer than that.
fn settling(lint: &mut Lint<'_>, place: &Place, o: &NoClientOnLostTimeline) {
    let drill = lint.drill;
    let settle_path = place.key("settle");
    for (at, step) in drill.spec.steps.iter().enumerate() {
        if let Step::Observe(s) = step
            && s.until == Until::RevisionPassedLost
            && s.then <= o.settle
        {
            let title = format!(
                "clients may converge for {} (`settle` of `{}`), but are observed for {} only",
                o.settle, o.name, s.then
            );
            lint.error(
                &Place::of("steps", at, step.key()).key("then"),
                title,
                "make `then` longer than `settle`",
            );
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

/// What every planned client saw, in the plan's order.
#[must_use]
pub fn all_seen(judge: &Judge, objective: &NoClientOnLostTimeline) -> Vec<Seen> {
    let windows = Windows::of(&judge.timeline, &judge.logs, objective.settle.as_ns());
    judge
        .logs
        .iter()
        .map(|log| seen(log, judge.timeline.restored.as_ref(), &windows, objective.max_lag.as_ns()))
        .collect()
}

/// What one client's view says.
enum Told {
    /// It was etcd's.
    True,
    /// It was the lost timeline's, and the records that show it.
    Lost { how: String, lines: Vec<String> },
    /// Why it can't be told.
    Unknown(String),
}

fn told(log: &ClientLog, seen: &Seen) -> Told {
    let name = log.name();
    if log.kind() == ClientKind::CasUpdater {
        // Also while clients may still be converging: what was overwritten stays so.
        match on_lost_state(log.kind(), seen) {
            Ok(0) => {}
            Ok(updates) => {
                let lines = seen.updates.iter().filter(|u| matches!(u.right, Right::No(_)));
                return Told::Lost {
                    how: format!("{name} ({})", accepted_on_lost_state(updates)),
                    lines: lines.map(|u| u.line.clone()).collect(),
                };
            }
            Err(why) => return Told::Unknown(format!("{name}: {why}")),
        }
    }
    let wrong: Vec<_> = seen.phases.iter().filter(|p| p.is_wrong()).collect();
    if let Some(first) = wrong.first() {
        let phases = if let [one] = wrong.as_slice() { one.phase.words() } else { "in both phases" };
        let reason = first.reason.clone().unwrap_or_default();
        return Told::Lost {
            how: format!("{name} ({phases}; {reason})"),
            lines: seen.phases.iter().filter_map(|p| p.first_wrong.clone()).collect(),
        };
    }
    match seen.phases.iter().find(|p| p.observed == ObservedView::Unknown) {
        Some(phase) => {
            let reason = phase.reason.clone().unwrap_or_default();
            Told::Unknown(format!("{name} {}: {reason}", phase.phase.words()))
        }
        None => Told::True,
    }
}

/// Judges it.
fn check(judge: &Judge, planned: &PlannedObjective, objective: &NoClientOnLostTimeline) -> Finding {
    let mut finding = judge.finding(planned);
    (finding.unit, finding.target) = (Unit::Clients, Some(0));
    if let Err(reason) = judge.boundaries().restore() {
        finding.reason = format!("there is no restored timeline: {reason}");
        return finding;
    }
    let seen = all_seen(judge, objective);
    let judged = || judge.logs.iter().zip(&seen).filter(|(log, _)| log.kind().knows().shows_timeline());
    let total = judged().count() as u64;
    let (mut wrong, mut unknown) = (Vec::new(), Vec::new());
    for (log, seen) in judged() {
        match told(log, seen) {
            Told::True => {}
            Told::Unknown(why) => unknown.push(why),
            Told::Lost { how, lines } => {
                wrong.push(how);
                finding.evidence.extend(lines);
            }
        }
    }
    finding.observed = Some(wrong.len() as u64);
    finding.lower = Some(wrong.len() as u64);
    finding.upper = Some((wrong.len() + unknown.len()) as u64);
    if !wrong.is_empty() {
        finding.verdict = Verdict::Fail;
        finding.reason = format!("{} of {total} clients: {}", wrong.len(), wrong.join(", "));
        return finding;
    }
    if total == 0 {
        finding.observed = None;
        finding.reason = "no client of the drill reads or watches the ledger".to_owned();
        return finding;
    }
    if let Some(first) = unknown.first() {
        finding.observed = None;
        finding.reason = format!("{} of {total} clients can't be judged: {first}", unknown.len());
        return finding;
    }
    finding.verdict = Verdict::Pass;
    finding.reason = format!("every view of {total} clients was etcd's state at the same revision");
    if let Some(phase) = seen.iter().flat_map(|s| &s.phases).find(|p| p.phase == Phase::BeforePassing)
        && phase.observed == ObservedView::NotApplicable
    {
        let why = phase.reason.clone().unwrap_or_default();
        finding.reason = format!("{}; one phase only: {why}", finding.reason);
    }
    finding.cannot_pass_if(
        cut_short(&judge.input.plan, judge.boundaries())
            .or_else(|| too_little(&judge.logs, judge.boundaries(), is_about_ledger))
            .or_else(|| {
                let unmet = judge.boundaries().observed.iter().find(|o| !o.held)?;
                Some(format!("step {} waited in vain: {}", unmet.step, unmet.detail))
            }),
    );
    finding
}
