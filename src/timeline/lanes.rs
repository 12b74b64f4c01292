//! Each client's observations as good, bad, unknown or unobserved.

use super::Restored;
use super::cas;
use super::clients::{ClientLog, ListResult};
use super::consumed;
use super::gets::{self, Right};
use super::sustained::{Sample, State, with_gaps};
use super::truth::{Side, side};
use super::views::{Judged, View, views};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{ENDED_AS_ASKED, Op, OpRecord, Outcome, Record};
use serde::Serialize;
use std::collections::BTreeSet;

/// One client's observations, for drawing and for marks.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Client name.
    pub client: String,
    /// Its kind.
    pub kind: ClientKind,
    /// Its observations by call, gaps included.
    pub samples: Vec<Sample>,
}

/// What a stretch of observations was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneState {
    /// Answered and, after the restore, right.
    Good,
    /// Refused.
    Failed,
    /// Answered as if all were well, but not with what etcd has.
    Wrong,
    /// Not answered.
    Unknown,
    /// Not observed, or nothing to hold the answer against.
    Unobserved,
}

/// A stretch of equal observations, exactly as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stretch {
    /// Call of the first.
    pub from_ns: MonoNs,
    /// Return of the last.
    pub to_ns: MonoNs,
    /// What they were.
    pub state: LaneState,
    /// Number of observations; 0 for a gap.
    pub samples: u64,
    /// Why, for the first that was not good.
    pub reason: Option<String>,
}

/// A good answer that took longer is drawn as waiting until it came.
const SLOW_NS: u64 = 500_000_000;

impl Lane {
    /// Neighbouring observations of the same state as one stretch.
    #[must_use]
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut out: Vec<Stretch> = Vec::new();
        for sample in &self.samples {
            let took = sample.ret.since(sample.call);
            let (state, reason) = match &sample.state {
                // Until its answer came nobody could know that it would be a good one.
                State::Good if took > SLOW_NS && !self.kind.is_watch() => (
                    LaneState::Unknown,
                    Some(format!("answered, and rightly, after {} ms", took / 1_000_000)),
                ),
                State::Good => (LaneState::Good, None),
                State::Bad(why) => (LaneState::Failed, Some(why.clone())),
                State::Wrong(why) => (LaneState::Wrong, Some(why.clone())),
                State::Unknown(why) => (LaneState::Unknown, Some(why.clone())),
                State::Unobserved(why) => (LaneState::Unobserved, Some(why.clone())),
            };
            let counted = u64::from(sample.line.is_some());
            match out.last_mut() {
                Some(last) if last.state == state => {
                    last.to_ns = last.to_ns.max(sample.ret);
                    last.samples += counted;
                }
                _ => out.push(Stretch {
                    from_ns: sample.call,
                    to_ns: sample.ret,
                    state,
                    samples: counted,
                    reason,
                }),
            }
        }
        out
    }
}

/// The lane of a client. Before the restore "good" means answered; after it,
/// readers must also be right.
#[must_use]
pub fn lane(log: &ClientLog, restored: Option<&Restored>) -> Lane {
    let mut samples = match log.kind() {
        kind if kind.knows().all() => view_samples(log, restored),
        ClientKind::GetReader => get_samples(log, restored),
        ClientKind::CasUpdater => cas_samples(log, restored),
        ClientKind::Deployer | ClientKind::PodCreator => consumed::samples(log),
        kind => log
            .ops()
            .map(|(index, op)| sample(op, lease_or_answered(kind, op, restored), log.line(index)))
            .collect(),
    };
    samples.sort_by_key(|s| (s.call, s.ret));
    let until = match log.records.last() {
        Some(Record::Closed { mono_ns, .. }) => Some(*mono_ns),
        _ => None,
    };
    Lane {
        client: log.name().to_owned(),
        kind: log.kind(),
        samples: with_gaps(samples, log.planned.every_ns, until),
    }
}

fn sample(op: &OpRecord, state: State, line: String) -> Sample {
    Sample { call: op.call_ns, ret: op.return_ns, state, line: Some(line) }
}

fn answered(op: &OpRecord) -> State {
    match &op.outcome {
        Outcome::Ok(_) => State::Good,
        Outcome::Failed { reason, .. } => State::Bad(reason.clone()),
        Outcome::Unknown { reason } if reason == STOPPED => State::Unobserved(reason.clone()),
        Outcome::Unknown { reason } => State::Unknown(reason.clone()),
    }
}

/// Class of an operation that ended because its client was told to.
pub const STOPPED: &str = "stopped";

/// After a restore a Lease is good once a holder has renewed it on the restored timeline.
fn lease_or_answered(kind: ClientKind, op: &OpRecord, restored: Option<&Restored>) -> State {
    let (ClientKind::LeaderLease, Outcome::Ok(answer)) = (kind, &op.outcome) else { return answered(op) };
    if answer.holder.as_ref().is_none_or(String::is_empty) {
        return State::Bad("no holder".to_owned());
    }
    match restored {
        Some(restored) if side(restored.since, op.call_ns, op.return_ns) != Side::Lost => {
            match answer.revision {
                Some(revision) if revision > restored.base => State::Good,
                Some(_) => State::Bad("not renewed since the restore".to_owned()),
                None => State::Unobserved("the lease's revision was not recorded".to_owned()),
            }
        }
        _ => State::Good,
    }
}

fn get_samples(log: &ClientLog, restored: Option<&Restored>) -> Vec<Sample> {
    let since = restored.map(|r| r.since);
    let mut samples: Vec<Sample> = log
        .ops()
        .filter(|(_, op)| since.is_none_or(|s| side(s, op.call_ns, op.return_ns) == Side::Lost))
        .map(|(index, op)| sample(op, answered(op), log.line(index)))
        .collect();
    if let Some(restored) = restored {
        samples.extend(gets::gets(log, restored).into_iter().map(|get| Sample {
            call: get.call,
            ret: get.ret,
            state: of_right(get.right),
            line: Some(get.line),
        }));
    }
    samples
}

/// A refusal of what the client holds is a good answer; reads and creates are good when answered.
fn cas_samples(log: &ClientLog, restored: Option<&Restored>) -> Vec<Sample> {
    let updates = restored.map_or_else(Vec::new, |restored| cas::updates(log, restored));
    let judged: BTreeSet<&str> = updates.iter().map(|update| update.line.as_str()).collect();
    let mut samples: Vec<Sample> = log
        .ops()
        .map(|(index, op)| (op, log.line(index)))
        .filter(|(_, line)| !judged.contains(line.as_str()))
        .map(|(op, line)| {
            let answer = cas::is_answered(op) && !matches!(op.op, Op::CasCreate { .. });
            sample(op, if answer { State::Good } else { answered(op) }, line)
        })
        .collect();
    samples.extend(updates.iter().map(|update| Sample {
        call: update.call,
        ret: update.ret,
        state: of_right(update.right.clone()),
        line: Some(update.line.clone()),
    }));
    samples
}

fn of_right(right: Right) -> State {
    match right {
        Right::Yes => State::Good,
        Right::No(why) => State::Wrong(why),
        Right::NoAnswer { refused: true, reason } => State::Bad(reason),
        Right::NoAnswer { refused: false, reason } => State::Unknown(reason),
        Right::Unjudged(why) => State::Unobserved(why),
    }
}

fn view_samples(log: &ClientLog, restored: Option<&Restored>) -> Vec<Sample> {
    let since = restored.map(|r| r.since);
    let mut samples = Vec::new();
    if log.kind() == ClientKind::ListReader {
        for list in log.listings() {
            if since.is_some_and(|s| side(s, list.call, list.ret) != Side::Lost) {
                continue;
            }
            let state = match (&list.result, list.unfinished()) {
                (ListResult::Complete { .. }, false) => State::Good,
                (ListResult::Complete { .. }, true) => {
                    State::Unobserved("the last page is missing".to_owned())
                }
                (ListResult::Failed(why), _) => State::Bad(why.clone()),
                (ListResult::Unknown(why), _) => State::Unknown(why.clone()),
                (ListResult::Unobserved(why), _) => State::Unobserved(why.clone()),
            };
            let line = Some(log.line(list.index));
            samples.push(Sample { call: list.call, ret: list.ret, state, line });
        }
    } else {
        // A watch is paced by what happens; before the restore each event is an observation.
        samples.extend(log.events().filter(|(_, e)| since.is_none_or(|s| e.at_ns <= s)).map(|(index, e)| {
            use crate::history::record::Event;
            let state = match &e.event {
                Event::Error { code, .. } => State::Bad(format!("error {code}")),
                Event::Ended { reason } if reason == ENDED_AS_ASKED => State::Good,
                Event::Ended { reason } => State::Unknown(reason.clone()),
                _ => State::Good,
            };
            Sample { call: e.at_ns, ret: e.at_ns, state, line: Some(log.line(index)) }
        }));
    }
    if let Some(restored) = restored {
        samples.extend(views(log, restored).into_iter().map(of_view));
    }
    samples
}

fn of_view(view: View) -> Sample {
    let state = match view.judged {
        Judged::Compared(d) if d.is_false() => {
            State::Wrong(format!("{} objects that etcd does not have, {} missing", d.phantom, d.absent))
        }
        Judged::Compared(_) => State::Good,
        Judged::NoAnswer { refused: true, reason } => State::Bad(reason),
        Judged::NoAnswer { refused: false, reason } => State::Unknown(reason),
        Judged::Unjudged(why) => State::Unobserved(why),
    };
    Sample { call: view.call, ret: view.ret, state, line: Some(view.line) }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
