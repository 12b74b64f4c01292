//! Histories as judging reads them: comparable instants only, lists put together from their pages.

use super::EvidenceInput;
use crate::clock::{BootId, MonoNs};
use crate::history::kind::ClientKind;
use crate::history::record::{EventRecord, Op, OpRecord, Outcome, Record};
use crate::plan::PlannedClient;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One planned client and what it recorded.
#[derive(Debug, Clone)]
pub struct ClientLog<'a> {
    /// What the plan says of it.
    pub planned: &'a PlannedClient,
    /// Its records up to the first whose instants can't be compared with the run's.
    pub records: &'a [Record],
    /// Why later records are not looked at.
    pub cut: Option<String>,
}

impl<'a> ClientLog<'a> {
    /// The logs of all planned clients, in the plan's order.
    #[must_use]
    pub fn all(input: &'a EvidenceInput, boot: Option<&BootId>) -> Vec<Self> {
        input.plan.clients.iter().map(|planned| Self::of(&input.histories, planned, boot)).collect()
    }

    fn of(
        histories: &'a BTreeMap<String, Vec<Record>>,
        planned: &'a PlannedClient,
        boot: Option<&BootId>,
    ) -> Self {
        let Some(records) = histories.get(&planned.name) else {
            return Self { planned, records: &[], cut: Some(format!("{} left no history", planned.name)) };
        };
        let foreign = records.iter().position(|r| Some(boot_of(r)) != boot);
        let cut = foreign.map(|at| {
            format!(
                "from line {} on the history of {} is from another boot than the fault",
                at + 1,
                planned.name
            )
        });
        Self { planned, records: &records[..foreign.unwrap_or(records.len())], cut }
    }

    /// Name of the client.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.planned.name
    }

    /// Kind of the client.
    #[must_use]
    pub fn kind(&self) -> ClientKind {
        self.planned.kind
    }

    /// How a record is cited: `histories/orders.jsonl#203`, lines counted from 1.
    #[must_use]
    pub fn line(&self, index: usize) -> String {
        format!("histories/{}.jsonl#{}", self.planned.name, index + 1)
    }

    /// Operations with their index in the file, in the order of recording.
    pub fn ops(&self) -> impl Iterator<Item = (usize, &'a OpRecord)> + use<'a> {
        self.records.iter().enumerate().filter_map(|(i, r)| match r {
            Record::Op(op) => Some((i, op)),
            _ => None,
        })
    }

    /// Stream events with their index in the file.
    pub fn events(&self) -> impl Iterator<Item = (usize, &'a EventRecord)> + use<'a> {
        self.records.iter().enumerate().filter_map(|(i, r)| match r {
            Record::Event(event) => Some((i, event)),
            _ => None,
        })
    }

    /// Why nothing can be said about what came after the last record, or `None`
    /// when the recorder was closed in order.
    #[must_use]
    pub fn incomplete(&self) -> Option<String> {
        if let Some(cut) = &self.cut {
            return Some(cut.clone());
        }
        let mut last = None;
        for (index, op) in self.ops() {
            if last >= Some(op.seq) {
                return Some(format!("{} counts an operation again", self.line(index)));
            }
            last = Some(op.seq);
        }
        match self.records.last() {
            Some(Record::Closed { .. }) => None,
            _ => Some(format!("the history of {} was not closed in order", self.name())),
        }
    }

    /// Latest instant in the history: up to here the client is known to have been observing.
    #[must_use]
    pub fn end(&self) -> Option<MonoNs> {
        self.records.iter().map(last_instant).max()
    }

    /// LISTs put together from their pages, in the order of their first page.
    #[must_use]
    pub fn listings(&self) -> Vec<Listing<'a>> {
        let mut by_list: BTreeMap<u64, Listing<'a>> = BTreeMap::new();
        for (index, record) in self.ops() {
            if let Op::List { list, page, .. } = record.op {
                match by_list.entry(list) {
                    std::collections::btree_map::Entry::Vacant(slot) => {
                        slot.insert(Listing::first(list, index, record, page));
                    }
                    std::collections::btree_map::Entry::Occupied(mut slot) => {
                        slot.get_mut().next(index, record, page);
                    }
                }
            }
        }
        let mut listings: Vec<_> = by_list.into_values().collect();
        listings.sort_by_key(|l| (l.call, l.index));
        listings
    }
}

fn boot_of(record: &Record) -> &BootId {
    match record {
        Record::Opened { boot, .. } | Record::Closed { boot, .. } => boot,
        Record::Op(op) => &op.boot,
        Record::Event(event) => &event.boot,
    }
}

fn last_instant(record: &Record) -> MonoNs {
    match record {
        Record::Opened { mono_ns, .. } | Record::Closed { mono_ns, .. } => *mono_ns,
        Record::Op(op) => op.return_ns,
        Record::Event(event) => event.at_ns,
    }
}

/// One LIST, all its pages.
#[derive(Debug, Clone)]
pub struct Listing<'a> {
    /// What its pages share.
    pub number: u64,
    /// Index of the last page's record.
    pub index: usize,
    /// Call of the first page.
    pub call: MonoNs,
    /// Return of the last one.
    pub ret: MonoNs,
    /// What came of it.
    pub result: ListResult<'a>,
    next_page: u32,
    more: bool,
}

/// What came of a LIST.
#[derive(Debug, Clone)]
pub enum ListResult<'a> {
    /// Every page arrived, all at one revision.
    Complete {
        /// resourceVersion of the list.
        revision: u64,
        /// Every id in it.
        ids: Cow<'a, BTreeSet<u64>>,
    },
    /// A page was refused.
    Failed(String),
    /// A page was not answered.
    Unknown(String),
    /// The records do not make up a whole list.
    Unobserved(String),
}

impl<'a> Listing<'a> {
    fn first(number: u64, index: usize, record: &'a OpRecord, page: u32) -> Self {
        let mut listing = Self {
            number,
            index,
            call: record.call_ns,
            ret: record.return_ns,
            result: ListResult::Unobserved("the first page is not in the history".to_owned()),
            next_page: 1,
            more: false,
        };
        if page == 0 {
            (listing.result, listing.more) = Self::page(record);
        }
        listing
    }

    fn next(&mut self, index: usize, record: &'a OpRecord, page: u32) {
        self.index = index;
        self.ret = self.ret.max(record.return_ns);
        if page != self.next_page || !self.more {
            self.result = ListResult::Unobserved("pages are missing or out of order".to_owned());
            self.more = false;
            return;
        }
        self.next_page += 1;
        let (result, more) = Self::page(record);
        self.more = more;
        let so_far = std::mem::replace(&mut self.result, ListResult::Unobserved(String::new()));
        self.result = match (so_far, result) {
            (
                ListResult::Complete { revision, ids },
                ListResult::Complete { revision: page_revision, ids: page_ids },
            ) => {
                if revision == page_revision {
                    let mut all = ids.into_owned();
                    all.extend(page_ids.iter());
                    ListResult::Complete { revision, ids: Cow::Owned(all) }
                } else {
                    ListResult::Unobserved(format!("pages are of revisions {revision} and {page_revision}"))
                }
            }
            (ListResult::Complete { .. }, other) | (other, _) => other,
        };
    }

    fn page(record: &'a OpRecord) -> (ListResult<'a>, bool) {
        match &record.outcome {
            Outcome::Ok(answer) => match (answer.revision, &answer.ids) {
                (Some(revision), Some(ids)) => {
                    (ListResult::Complete { revision, ids: Cow::Borrowed(&ids.0) }, answer.more)
                }
                _ => (ListResult::Unobserved("a page lacks its revision or its ids".to_owned()), false),
            },
            Outcome::Failed { reason, .. } => (ListResult::Failed(reason.clone()), false),
            Outcome::Unknown { reason } => (ListResult::Unknown(reason.clone()), false),
        }
    }

    /// Revision and ids of a list whose pages are all there.
    #[must_use]
    pub fn complete(&self) -> Option<(u64, &BTreeSet<u64>)> {
        match &self.result {
            ListResult::Complete { revision, ids } if !self.more => Some((*revision, ids.as_ref())),
            _ => None,
        }
    }

    /// The last page said that more would follow, and nothing did.
    #[must_use]
    pub fn unfinished(&self) -> bool {
        self.more
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
