//! What each client saw in a phase, held against etcd's own state.

use super::figures::human;
use super::window::{Phase, Window, Windows};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::plan::PredictedView;
use crate::timeline::Restored;
use crate::timeline::cas::{CasAnswer, updates};
use crate::timeline::clients::ClientLog;
use crate::timeline::gets::{GetAnswer, Right, gets};
use crate::timeline::sustained::GAP_INTERVALS;
use crate::timeline::truth::Truth;
use crate::timeline::views::{Judged, View, views};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a client's views turned out to be in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ObservedView {
    /// Equal to etcd's state at the same revision.
    True,
    /// Not equal to it.
    LostTimeline,
    /// Equal to an older state, while newer writes had long been acknowledged.
    Stale,
    /// The phase does not occur.
    NotApplicable,
    /// Not observed, or not enough.
    Unknown,
}

impl ObservedView {
    /// In words, those of predictions where there are such.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ObservedView::True => PredictedView::True.words(),
            ObservedView::LostTimeline => PredictedView::LostTimeline.words(),
            ObservedView::Stale => "stale",
            ObservedView::NotApplicable => PredictedView::NotApplicable.words(),
            ObservedView::Unknown => "unknown",
        }
    }
}

/// What a client saw in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeenInPhase {
    /// Which.
    pub phase: Phase,
    /// What the views turned out to be.
    pub observed: ObservedView,
    /// Why, where it is not `true`.
    pub reason: Option<String>,
    /// Views (answers, for GETs) that were compared.
    pub compared: u64,
    /// Of those, not equal to etcd's state.
    pub false_views: u64,
    /// Of those, equal to a state older than the objective allows.
    pub stale_views: u64,
    /// Of those, of a revision that etcd had not reached.
    pub ahead_of_etcd: u64,
    /// Views that there was nothing to hold against.
    pub unjudged: u64,
    /// Most objects that a view held and etcd did not.
    pub phantom_objects: Option<u64>,
    /// Most objects that etcd held and a view did not.
    pub absent_objects: Option<u64>,
    /// Most objects created after the restore that a view lacked.
    pub events_missed: Option<u64>,
    /// As `phantomObjects`, of the last view.
    pub phantom_at_end: Option<u64>,
    /// As `absentObjects`, of the last view.
    pub absent_at_end: Option<u64>,
    /// GETs that contradict etcd's state.
    pub stale_reads: Option<u64>,
    /// The record of the first wrong view.
    pub first_wrong: Option<String>,
}

impl SeenInPhase {
    fn empty(phase: Phase, observed: ObservedView, reason: Option<String>) -> Self {
        Self {
            phase,
            observed,
            reason,
            compared: 0,
            false_views: 0,
            stale_views: 0,
            ahead_of_etcd: 0,
            unjudged: 0,
            phantom_objects: None,
            absent_objects: None,
            events_missed: None,
            phantom_at_end: None,
            absent_at_end: None,
            stale_reads: None,
            first_wrong: None,
        }
    }

    /// The client is proven to show something else than what is.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        matches!(self.observed, ObservedView::LostTimeline | ObservedView::Stale)
    }
}

/// One client over the whole restored timeline.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Views of list readers and watchers.
    pub views: Vec<View>,
    /// Answers of get readers.
    pub gets: Vec<GetAnswer>,
    /// Updates of clients that compare and swap.
    pub updates: Vec<CasAnswer>,
    /// Both phases; empty for clients without views.
    pub phases: Vec<SeenInPhase>,
    /// The first instant from which on every compared view was true; `Err` says why there is none.
    pub converged: Result<MonoNs, String>,
}

/// Looks at everything that a client saw since the restore.
#[must_use]
pub fn seen(log: &ClientLog, restored: Option<&Restored>, windows: &Windows, max_lag_ns: u64) -> Seen {
    let (views, gets, updates) = match restored {
        Some(restored) => (views(log, restored), gets(log, restored), updates(log, restored)),
        None => (Vec::new(), Vec::new(), Vec::new()),
    };
    let truth = restored.and_then(|r| r.truth.as_ref().ok());
    let phases = if log.kind().knows().shows_timeline() {
        Phase::BOTH
            .into_iter()
            .map(|phase| match windows.get(phase) {
                Window::NotApplicable(why) => {
                    SeenInPhase::empty(phase, ObservedView::NotApplicable, Some(why.clone()))
                }
                Window::Unknown(why) => SeenInPhase::empty(phase, ObservedView::Unknown, Some(why.clone())),
                Window::Of(from, to) => {
                    let scope = Scope { phase, from: *from, to: *to, max_lag_ns, log, truth };
                    match log.kind() {
                        ClientKind::GetReader => {
                            let mut seen = scope.of_answers(gets.iter().map(|g| (g.call, &g.right, &g.line)));
                            seen.stale_reads = (seen.compared > 0).then_some(seen.false_views);
                            seen
                        }
                        ClientKind::CasUpdater => {
                            scope.of_answers(updates.iter().map(|u| (u.call, &u.right, &u.line)))
                        }
                        _ => scope.of_views(&views),
                    }
                }
            })
            .collect()
    } else {
        Vec::new()
    };
    let converged = converged(log, &views, &gets, &updates);
    Seen { views, gets, updates, phases, converged }
}

struct Scope<'a> {
    phase: Phase,
    from: MonoNs,
    to: MonoNs,
    max_lag_ns: u64,
    log: &'a ClientLog<'a>,
    truth: Option<&'a Truth>,
}

impl Scope<'_> {
    fn covers(&self, call: MonoNs) -> bool {
        call >= self.from && call < self.to
    }

    fn of_views(&self, views: &[View]) -> SeenInPhase {
        let mut seen = SeenInPhase::empty(self.phase, ObservedView::Unknown, None);
        let mut instants = Vec::new();
        let mut why_unjudged = None;
        for view in views.iter().filter(|v| self.covers(v.call)) {
            let difference = match &view.judged {
                Judged::Compared(difference) => difference,
                Judged::Unjudged(why) => {
                    seen.unjudged += 1;
                    why_unjudged.get_or_insert(why.clone());
                    continue;
                }
                Judged::NoAnswer { reason, .. } => {
                    why_unjudged.get_or_insert(format!("no answer ({reason})"));
                    continue;
                }
            };
            seen.compared += 1;
            instants.push(view.call);
            seen.ahead_of_etcd += u64::from(difference.ahead);
            seen.phantom_objects = seen.phantom_objects.max(Some(difference.phantom));
            seen.absent_objects = seen.absent_objects.max(Some(difference.absent));
            seen.events_missed = seen.events_missed.max(Some(difference.missed));
            (seen.phantom_at_end, seen.absent_at_end) = (Some(difference.phantom), Some(difference.absent));
            let stale = !difference.is_false() && self.is_stale(view);
            seen.false_views += u64::from(difference.is_false());
            seen.stale_views += u64::from(stale);
            if difference.is_false() || stale {
                seen.first_wrong.get_or_insert(view.line.clone());
            }
        }
        self.conclude(seen, &instants, why_unjudged)
    }

    /// A write acknowledged long ago is newer than the view.
    fn is_stale(&self, view: &View) -> bool {
        let (Some(truth), Some(revision)) = (self.truth, view.revision) else { return false };
        let long_ago = MonoNs(view.call.0.saturating_sub(self.max_lag_ns));
        truth.acked_by(long_ago).is_some_and(|acked| acked > revision)
    }

    /// Answers about single objects: when each was asked for, whether it was right, its record.
    fn of_answers<'a>(&self, answers: impl Iterator<Item = (MonoNs, &'a Right, &'a String)>) -> SeenInPhase {
        let mut seen = SeenInPhase::empty(self.phase, ObservedView::Unknown, None);
        let mut instants = Vec::new();
        let mut why_unjudged = None;
        for (call, right, line) in answers.filter(|(call, ..)| self.covers(*call)) {
            match right {
                Right::Yes => {}
                Right::No(_) => {
                    seen.false_views += 1;
                    seen.first_wrong.get_or_insert(line.clone());
                }
                Right::NoAnswer { reason, .. } => {
                    why_unjudged.get_or_insert(format!("no answer ({reason})"));
                    continue;
                }
                Right::Unjudged(why) => {
                    seen.unjudged += 1;
                    why_unjudged.get_or_insert(why.clone());
                    continue;
                }
            }
            seen.compared += 1;
            instants.push(call);
        }
        self.conclude(seen, &instants, why_unjudged)
    }

    fn conclude(&self, mut seen: SeenInPhase, instants: &[MonoNs], why: Option<String>) -> SeenInPhase {
        (seen.observed, seen.reason) = if seen.false_views > 0 {
            (ObservedView::LostTimeline, Some(self.wrong_in_words(&seen)))
        } else if seen.stale_views > 0 {
            let lag = human(self.max_lag_ns);
            let words =
                format!("{} views lacked writes acknowledged more than {lag} earlier", seen.stale_views);
            (ObservedView::Stale, Some(words))
        } else if let Some(gap) = self.longest_gap(instants) {
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            (ObservedView::Unknown, Some(format!("no view could be compared for {}{why}", human(gap))))
        } else if let Some(why) = self.log.incomplete().filter(|_| self.phase == Phase::AfterPassing) {
            (ObservedView::Unknown, Some(why))
        } else {
            (ObservedView::True, None)
        };
        seen
    }

    fn wrong_in_words(&self, seen: &SeenInPhase) -> String {
        match self.log.kind() {
            ClientKind::GetReader => {
                return format!("{} of {} answers contradict etcd's state", seen.false_views, seen.compared);
            }
            ClientKind::CasUpdater => return accepted_on_lost_state(seen.false_views),
            _ => {}
        }
        format!(
            "{} of {} views were not etcd's state: up to {} objects that etcd does not have, up to {} missing",
            seen.false_views,
            seen.compared,
            seen.phantom_objects.unwrap_or(0),
            seen.absent_objects.unwrap_or(0)
        )
    }

    /// The longest time in the phase without a compared view, if that is too long
    /// to speak for the phase.
    fn longest_gap(&self, instants: &[MonoNs]) -> Option<u64> {
        let tolerated = self.log.planned.every_ns.map_or(0, |every| every.saturating_mul(GAP_INTERVALS));
        let edges = std::iter::once(self.from).chain(instants.iter().copied());
        let longest = edges
            .zip(instants.iter().copied().chain(std::iter::once(self.to)))
            .map(|(a, b)| b.since(a))
            .max()
            .unwrap_or(0);
        (instants.is_empty() || longest > tolerated.max(self.max_lag_ns)).then_some(longest)
    }
}

/// From when on everything that the client saw was true.
fn converged(
    log: &ClientLog,
    views: &[View],
    gets: &[GetAnswer],
    updates: &[CasAnswer],
) -> Result<MonoNs, String> {
    if !log.kind().knows().shows_timeline() {
        return Err("it has no view".to_owned());
    }
    let mut judged: Vec<(MonoNs, bool)> = views
        .iter()
        .filter_map(|v| v.difference().map(|d| (v.ret, !d.is_false())))
        .chain(gets.iter().filter_map(|g| told(g.ret, &g.right)))
        // An update that is accepted, and rightly so, shows that the client holds what is there.
        .chain(
            updates.iter().filter_map(|u| told(u.ret, &u.right).map(|(at, right)| (at, right && u.accepted))),
        )
        .collect();
    judged.sort_unstable();
    if judged.is_empty() {
        return Err("no view after the restore could be compared".to_owned());
    }
    let first_true = judged.iter().rposition(|(_, right)| !right).map_or(0, |last_false| last_false + 1);
    judged
        .get(first_true)
        .map(|(at, _)| *at)
        .ok_or_else(|| "its last view was still not etcd's state".to_owned())
}

fn told(ret: MonoNs, right: &Right) -> Option<(MonoNs, bool)> {
    match right {
        Right::Yes => Some((ret, true)),
        Right::No(_) => Some((ret, false)),
        _ => None,
    }
}

/// In words: so many updates rested on a state that no longer exists.
#[must_use]
pub fn accepted_on_lost_state(updates: u64) -> String {
    let updates = if updates == 1 { "1 update".to_owned() } else { format!("{updates} updates") };
    format!("{updates} accepted that rested on a resourceVersion of the lost timeline")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_update_is_not_several() {
        let rested = "accepted that rested on a resourceVersion of the lost timeline";
        assert_eq!(accepted_on_lost_state(1), format!("1 update {rested}"));
        assert_eq!(accepted_on_lost_state(2), format!("2 updates {rested}"));
    }
}
