//! Histories of a few records, for tests. Instants are nanoseconds.

use super::Restored;
use super::boundaries::{FaultSpan, Moment};
use super::clients::ClientLog;
use super::truth::Truth;
use crate::agent::undo::InjectionId;
use crate::clock::{BootId, MonoNs, WallTime};
use crate::component::ComponentId;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Event, EventRecord, Op, OpRecord, Outcome, Record};
use crate::plan::{MinimumOperations, PlannedClient};
use std::collections::BTreeSet;

pub const BOOT: &str = "boot";

/// The log of a client that has the name of its kind. It lives as long as the tests.
pub fn log(kind: ClientKind, records: Vec<Record>) -> ClientLog<'static> {
    let planned = PlannedClient {
        name: format!("{kind:?}"),
        kind,
        target: ComponentId("kube-apiserver-1".to_owned()),
        identity: "client".to_owned(),
        spec: None,
        every_ns: None,
        minimum: MinimumOperations { before: 0, during: 0, after: 0 },
    };
    ClientLog { planned: Box::leak(Box::new(planned)), records: records.leak(), cut: None }
}

pub fn op(call: u64, ret: u64, op: Op, outcome: Outcome) -> Record {
    Record::Op(OpRecord {
        seq: call,
        boot: BootId(BOOT.to_owned()),
        due_ns: None,
        call_ns: MonoNs(call),
        return_ns: MonoNs(ret),
        op,
        outcome,
        exchange: None,
    })
}

pub fn event(at: u64, event: Event) -> Record {
    Record::Event(EventRecord { stream: 1, boot: BootId(BOOT.to_owned()), at_ns: MonoNs(at), event })
}

pub fn closed(at: u64) -> Record {
    let boot = BootId(BOOT.to_owned());
    Record::Closed { mono_ns: MonoNs(at), boot, scheduled: 0, recorded: 0, late: 0, lost: 0 }
}

pub fn answered(revision: u64) -> Outcome {
    Outcome::Ok(Answer { revision: Some(revision), ..Answer::default() })
}

pub fn failed(status: u16) -> Outcome {
    Outcome::Failed { status: Some(status), reason: format!("status {status}") }
}

pub fn create(call: u64, ret: u64, id: u64, revision: u64) -> Record {
    op(call, ret, Op::Create { id }, answered(revision))
}

pub fn put(at: u64, id: u64, revision: u64) -> Record {
    event(at, Event::Put { id, revision })
}

pub fn list(call: u64, ret: u64, revision: u64, ids: &[u64]) -> Record {
    page(call, ret, (call, 0), revision, ids, false)
}

pub fn page(call: u64, ret: u64, (list, page): (u64, u32), revision: u64, ids: &[u64], more: bool) -> Record {
    let ids = Some(ids.iter().copied().collect());
    let answer = Answer { revision: Some(revision), ids, more, ..Answer::default() };
    op(call, ret, Op::List { list, page, resource_version: None, limit: None }, Outcome::Ok(answer))
}

/// A range of `(id, mod revision)` with the store at `head`.
pub fn range(call: u64, ret: u64, head: u64, objects: &[(u64, u64)]) -> Record {
    let answer = Answer { revision: Some(head), objects: Some(objects.to_vec()), ..Answer::default() };
    op(call, ret, Op::EtcdRange { revision: None }, Outcome::Ok(answer))
}

/// A timeline that etcd was restored to at 100, at revision 10, with these ranges read since.
pub fn restored(ranges: Vec<Record>) -> Restored {
    let since = MonoNs(100);
    let truth = Truth::since(since, &[log(ClientKind::EtcdTruth, ranges)], &[]);
    let looks = truth.iter().flat_map(Truth::readings).map(|r| r.call).collect();
    Restored {
        since,
        base: 10,
        kept: 10,
        lost_head: None,
        truth,
        acked_before: BTreeSet::new(),
        acked_after: BTreeSet::new(),
        looks,
    }
}

pub fn moment(at: u64) -> Moment {
    Moment {
        at: WallTime("2026-01-01T00:00:00.000000Z".to_owned()),
        mono_ns: MonoNs(at),
        boot: BootId(BOOT.to_owned()),
        line: format!("journal.jsonl#{at}"),
    }
}

/// A fault that was injected at `begin`, and ended at `end`.
pub fn fault(begin: u64, end: Option<u64>) -> FaultSpan {
    FaultSpan {
        injecting: Some(moment(begin)),
        injected: Some(moment(begin)),
        ended: end.map(moment),
        ..FaultSpan::of(&InjectionId("1-loseEtcd".to_owned()))
    }
}
