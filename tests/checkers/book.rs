//! Histories of clients, written a record at a time. Times are in milliseconds.

use super::{BOOT, MS, START};
use quakeproof::clock::{BootId, MonoNs, WallTime};
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, EventRecord, Op, OpRecord, Outcome, Record};
use std::collections::BTreeSet;

/// A history in the making.
pub struct Book {
    records: Vec<Record>,
    seq: u64,
    pub stream: u64,
}

impl Book {
    pub fn open(client: &str, kind: ClientKind) -> Self {
        let opened = Record::Opened {
            client: client.to_owned(),
            kind,
            identity: "client".to_owned(),
            target: "api/kube-apiserver-1".to_owned(),
            at: WallTime("2026-01-01T00:00:00.000000Z".to_owned()),
            mono_ns: MonoNs((START - 20) * MS),
            boot: BootId(BOOT.to_owned()),
        };
        Self { records: vec![opened], seq: 0, stream: 0 }
    }

    pub fn op(&mut self, call: u64, ret: u64, op: Op, outcome: Outcome) {
        self.records.push(Record::Op(OpRecord {
            seq: self.seq,
            boot: BootId(BOOT.to_owned()),
            due_ns: Some(MonoNs(call * MS)),
            call_ns: MonoNs(call * MS),
            return_ns: MonoNs(ret * MS),
            op,
            outcome,
            exchange: None,
        }));
        self.seq += 1;
    }

    /// An operation that takes a millisecond.
    pub fn did(&mut self, call: u64, op: Op, outcome: Outcome) {
        self.op(call, call + 1, op, outcome);
    }

    pub fn event(&mut self, at: u64, event: Event) {
        self.records.push(Record::Event(EventRecord {
            stream: self.stream,
            boot: BootId(BOOT.to_owned()),
            at_ns: MonoNs(at * MS),
            event,
        }));
    }

    /// A list, or for etcd a range, and a new stream from there.
    pub fn fresh(
        &mut self,
        kind: ClientKind,
        at: u64,
        (revision, ids): &(u64, BTreeSet<u64>),
        list: u64,
        revision_of: impl Fn(u64) -> u64,
    ) {
        let (op, answer) = if kind == ClientKind::Watcher {
            let op = Op::List { list, page: 0, resource_version: None, limit: None };
            (op, Answer { ids: Some(ids.iter().copied().collect()), ..Answer::default() })
        } else {
            let objects = ids.iter().map(|id| (*id, revision_of(*id))).collect();
            (Op::EtcdRange { revision: None }, Answer { objects: Some(objects), ..Answer::default() })
        };
        self.op(at, at + 1, op, Outcome::Ok(Answer { revision: Some(*revision), ..answer }));
        self.stream += 1;
        // Exclusive through the API server, inclusive on etcd.
        let from = revision + u64::from(kind == ClientKind::EtcdWatcher);
        let watch = Op::Watch { stream: self.stream, from };
        self.op(at + 1, at + 1, watch, Outcome::Ok(Answer::default()));
    }

    pub fn close(mut self, at: u64) -> Vec<Record> {
        self.records.push(Record::Closed {
            mono_ns: MonoNs(at * MS),
            boot: BootId(BOOT.to_owned()),
            scheduled: self.seq,
            recorded: self.seq,
            late: 0,
            lost: 0,
        });
        self.records
    }
}
