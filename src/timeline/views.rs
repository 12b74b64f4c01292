//! What clients believed to exist, and whether that was so.

use super::Restored;
use super::clients::{ClientLog, ListResult, Listing};
use super::truth::{Difference, Side, side};
use crate::clock::MonoNs;
use crate::history::kind::{ClientKind, Knows};
use crate::history::record::{Event, Op, Outcome, Record};
use std::collections::BTreeSet;

/// One look at what a client believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The belief was asked for; for a folded stream, the instant of the look.
    pub call: MonoNs,
    /// The belief was there.
    pub ret: MonoNs,
    /// The revision that it claims to be of.
    pub revision: Option<u64>,
    /// How it compares with etcd.
    pub judged: Judged,
    /// The record that it rests on.
    pub line: String,
}

/// How a view compares with etcd's state at the same revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// Held against etcd's state.
    Compared(Difference),
    /// The operation was refused or not answered: there is no view.
    NoAnswer {
        /// A definite refusal, as opposed to no answer.
        refused: bool,
        /// Short class.
        reason: String,
    },
    /// There was a view, or should have been, but it can't be compared.
    Unjudged(String),
}

impl View {
    /// The view was compared.
    #[must_use]
    pub fn difference(&self) -> Option<Difference> {
        match self.judged {
            Judged::Compared(difference) => Some(difference),
            _ => None,
        }
    }
}

/// Every look at the beliefs of a list reader or watcher on the restored timeline.
#[must_use]
pub fn views(log: &ClientLog, restored: &Restored) -> Vec<View> {
    match log.kind().knows() {
        Knows::Lists => log.listings().iter().filter_map(|l| list_view(log, l, restored)).collect(),
        Knows::Watch => folded(log, restored),
        Knows::Nothing | Knows::Writes | Knows::Objects | Knows::Truth => Vec::new(),
    }
}

fn list_view(log: &ClientLog, listing: &Listing, restored: &Restored) -> Option<View> {
    let spanning = match side(restored.since, listing.call, listing.ret) {
        Side::Lost => return None,
        Side::Restored => false,
        Side::Spanning => true,
    };
    let complete = listing.complete();
    let judged = match (&listing.result, complete) {
        (_, Some((revision, ids))) => {
            match restored.compare(ids, revision, listing.call, listing.ret) {
                // Asked for before the restore, it may rightly show what was there then.
                Ok(d) if spanning && d.is_false() => {
                    Judged::Unjudged("the list was under way during the restore".to_owned())
                }
                Ok(difference) => Judged::Compared(difference),
                Err(reason) => Judged::Unjudged(reason),
            }
        }
        (ListResult::Failed(reason), _) => Judged::NoAnswer { refused: true, reason: reason.clone() },
        (ListResult::Unknown(reason), _) => Judged::NoAnswer { refused: false, reason: reason.clone() },
        (ListResult::Unobserved(reason), _) => Judged::Unjudged(reason.clone()),
        (ListResult::Complete { .. }, None) => Judged::Unjudged("the list's last page is missing".to_owned()),
    };
    Some(View {
        call: listing.call,
        ret: listing.ret,
        revision: complete.map(|(revision, _)| revision),
        judged,
        line: log.line(listing.index),
    })
}

/// What a watcher believes: its last list with every event since put on top.
struct Fold {
    ids: Option<BTreeSet<u64>>,
    position: u64,
    index: usize,
}

impl Fold {
    fn look(&self, log: &ClientLog, at: MonoNs, restored: &Restored) -> View {
        let judged = match &self.ids {
            None => Judged::Unjudged("the watcher never had a first list".to_owned()),
            Some(ids) => match restored.compare(ids, self.position, at, at) {
                Ok(difference) => Judged::Compared(difference),
                Err(reason) => Judged::Unjudged(reason),
            },
        };
        View { call: at, ret: at, revision: Some(self.position), judged, line: log.line(self.index) }
    }

    fn apply(&mut self, index: usize, event: &Event) {
        let Some(ids) = &mut self.ids else { return };
        match event {
            Event::Put { id, revision } => {
                ids.insert(*id);
                self.position = *revision;
            }
            Event::Delete { id, revision } => {
                ids.remove(id);
                self.position = *revision;
            }
            Event::Other { revision } | Event::Bookmark { revision, .. } => self.position = *revision,
            // A store filled anew is a new fold.
            Event::Error { .. }
            | Event::Ended { .. }
            | Event::Store { .. }
            | Event::Leading { .. }
            | Event::LeadingEnded { .. } => return,
        }
        self.index = index;
    }
}

/// Looks at a watcher's fold whenever etcd's state was read, just before and
/// after each new list, and at the end. A missed or phantom object stays in a
/// fold until the next list, so nothing that lasts is overlooked in between.
fn folded(log: &ClientLog, restored: &Restored) -> Vec<View> {
    let mut views = Vec::new();
    let mut looks = restored.looks.iter().copied().peekable();
    let mut fold = Fold { ids: None, position: 0, index: 0 };
    let listings = log.listings();
    // A reflector's lists are not its view yet: its store is, once it says so.
    let lists = log.kind() != ClientKind::Reflector;
    // What a watch that begins with the state has delivered of it so far.
    let mut initial: Option<(u64, BTreeSet<u64>)> = None;
    for (index, record) in log.records.iter().enumerate() {
        let at = match record {
            Record::Op(op) => op.return_ns,
            Record::Event(event) => event.at_ns,
            Record::Opened { .. } | Record::Closed { .. } => continue,
        };
        while let Some(look) = looks.next_if(|look| *look < at) {
            views.push(fold.look(log, look, restored));
        }
        let fresh = match record {
            Record::Op(op) => {
                if let (Op::WatchList { stream }, Outcome::Ok(_)) = (&op.op, &op.outcome) {
                    initial = Some((*stream, BTreeSet::new()));
                }
                let listed = lists && !matches!(op.op, Op::WatchList { .. });
                let list = if listed { fresh_list(index, &op.op, &op.outcome, &listings) } else { None };
                list.map(|(ids, revision)| (ids, revision, op.call_ns))
            }
            Record::Event(event) => {
                let filled = match (&event.event, &mut initial) {
                    (Event::Store { ids, revision }, _) => revision.map(|revision| (ids.0.clone(), revision)),
                    (what, Some((stream, ids))) if *stream == event.stream => {
                        let done = initial_event(what, ids);
                        if done.is_some() || matches!(what, Event::Error { .. } | Event::Ended { .. }) {
                            initial = None;
                        }
                        done
                    }
                    (what, _) => {
                        fold.apply(index, what);
                        None
                    }
                };
                filled.map(|(ids, revision)| (ids, revision, at))
            }
            Record::Opened { .. } | Record::Closed { .. } => None,
        };
        if let Some((ids, revision, asked)) = fresh {
            if at >= restored.since && fold.ids.is_some() {
                views.push(fold.look(log, MonoNs(at.0.saturating_sub(1)).max(restored.since), restored));
            }
            fold = Fold { ids: Some(ids), position: revision, index };
            if asked >= restored.since {
                views.push(fold.look(log, at, restored));
            }
        }
    }
    if let Some(end) = log.end() {
        for look in looks.filter(|look| *look <= end) {
            views.push(fold.look(log, look, restored));
        }
    }
    views.sort_by_key(|v| v.ret);
    views
}

/// Takes an initial event in. The state that they make up is one only once a bookmark says so.
fn initial_event(event: &Event, ids: &mut BTreeSet<u64>) -> Option<(BTreeSet<u64>, u64)> {
    match event {
        Event::Put { id, .. } => {
            ids.insert(*id);
            None
        }
        Event::Bookmark { revision, initial_events_end: true } => Some((std::mem::take(ids), *revision)),
        _ => None,
    }
}

fn fresh_list(
    index: usize,
    op: &Op,
    outcome: &Outcome,
    listings: &[Listing],
) -> Option<(BTreeSet<u64>, u64)> {
    match (op, outcome) {
        (Op::List { .. }, _) => {
            let (revision, ids) = listings.iter().find(|l| l.index == index)?.complete()?;
            Some((ids.clone(), revision))
        }
        (Op::EtcdRange { revision }, Outcome::Ok(answer)) => {
            let objects = answer.objects.as_ref()?;
            Some((objects.iter().map(|(id, _)| *id).collect(), revision.or(answer.revision)?))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
