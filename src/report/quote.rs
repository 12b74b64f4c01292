//! Quotes the records that a finding rests on.
//!
//! A reference is `<file>#<line>`, lines counted from 1.

use super::build::word;
use super::figure;
use crate::history::record::{Answer, Event, Op, OpRecord, Outcome, Record};
use crate::timeline::EvidenceInput;
use std::fmt::Write as _;

/// One record, as people read it.
pub(super) struct Quote {
    /// Where it stands.
    pub(super) reference: String,
    /// Its call or arrival, for sorting.
    pub(super) at_ns: u64,
    /// The same, from the reference instant.
    pub(super) when: String,
    /// What was asked, or what arrived.
    pub(super) what: String,
    /// resourceVersion or revision in the answer.
    pub(super) revision: String,
    /// What the answer said.
    pub(super) answer: String,
}

/// The record of a client's history that `reference` names; `None` for other
/// files and lines that don't exist.
pub(super) fn record(input: &EvidenceInput, client: &str, reference: &str, zero_ns: u64) -> Option<Quote> {
    let (file, line) = reference.rsplit_once('#')?;
    if file != format!("histories/{client}.jsonl") {
        return None;
    }
    let line: usize = line.parse().ok()?;
    let record = input.histories.get(client)?.get(line.checked_sub(1)?)?;
    let (at_ns, what, revision, answer) = match record {
        Record::Op(op) => (op.call_ns.0, asked(&op.op), revision(op), answered(op)),
        Record::Event(e) => {
            let (what, revision) = arrived(&e.event);
            (e.at_ns.0, format!("event on watch {}", e.stream), revision, what)
        }
        Record::Opened { mono_ns, target, .. } => {
            (mono_ns.0, format!("recorder opened, talking to {target}"), "—".to_owned(), String::new())
        }
        Record::Closed { mono_ns, .. } => {
            (mono_ns.0, "recorder closed".to_owned(), "—".to_owned(), String::new())
        }
    };
    Some(Quote {
        reference: reference.to_owned(),
        at_ns,
        when: figure::offset(at_ns, zero_ns),
        what,
        revision,
        answer,
    })
}

fn asked(op: &Op) -> String {
    match op {
        Op::Create { id } => format!("create ledger-{id}"),
        Op::Get { id } => format!("GET ledger-{id}"),
        Op::List { page, resource_version, limit, .. } => {
            let version = resource_version.as_deref().unwrap_or("unset");
            let mut text = format!("LIST resourceVersion={version}");
            if let Some(limit) = limit {
                let _ = write!(text, " limit={limit}");
            }
            if *page > 0 {
                let _ = write!(text, ", page {}", page + 1);
            }
            text
        }
        Op::Watch { from, .. } => format!("WATCH from {from}"),
        Op::EtcdRange { revision: Some(revision) } => format!("etcd range at {revision}"),
        Op::EtcdRange { revision: None } => "etcd range, linearizable".to_owned(),
        Op::Ready => "GET /readyz".to_owned(),
        Op::CreateSecret => "create a Secret".to_owned(),
        Op::GetSecret => "GET the Secret".to_owned(),
        Op::ListSecrets => "LIST Secrets".to_owned(),
        Op::Lease { name } => format!("GET lease {name}"),
        Op::WatchList { .. } => "WATCH with initial events".to_owned(),
        Op::CasCreate { object, value } => format!("create own object {object} with value {value}"),
        Op::CasUpdate { object, held, value } => {
            format!("update own object {object} to value {value}, from resourceVersion {held}")
        }
        Op::CasRead { object } => format!("GET own object {object}"),
        Op::EtcdLease { action, lease, ttl_seconds } => {
            let mut text = format!("etcd lease: {}", word(action));
            if let Some(lease) = lease {
                let _ = write!(text, " {lease}");
            }
            if let Some(ttl) = ttl_seconds {
                let _ = write!(text, " for {ttl} s");
            }
            text
        }
        Op::Elect { candidate, lease, action } => format!("{candidate}: {} lease {lease}", word(action)),
        Op::Make { what, id } => format!("create {} {id}", word(what)),
        Op::Look { what, id } => format!("GET {} {id}", word(what)),
        Op::Request { asked, of: None } => format!("{} of a load", word(asked)),
        Op::Request { asked, of: Some(attempt) } => {
            format!("{} {}, attempt {}", word(asked), attempt.request, attempt.number + 1)
        }
        Op::Owned { id, name } => format!("GET ReplicaSet {name} of deployment {id}"),
    }
}

fn revision(op: &OpRecord) -> String {
    match &op.outcome {
        Outcome::Ok(Answer { revision: Some(revision), .. }) => revision.to_string(),
        _ => "—".to_owned(),
    }
}

fn answered(op: &OpRecord) -> String {
    let took = figure::duration(op.return_ns.since(op.call_ns));
    match &op.outcome {
        Outcome::Ok(answer) => {
            let mut text = "ok".to_owned();
            if let Some(ids) = &answer.ids {
                let _ = write!(text, ", {} objects: {}", ids.len(), shortened(&ids.to_ranges()));
            }
            if let Some(objects) = &answer.objects {
                let _ = write!(text, ", {} objects", objects.len());
            }
            if let Some(holder) = &answer.holder {
                let _ = write!(text, ", held by {holder}");
            }
            if let Some(value) = answer.value {
                let _ = write!(text, ", value {value}");
            }
            if let Some(seconds) = answer.ttl_seconds {
                let _ = write!(text, ", {seconds} s left");
            }
            match answer.acted {
                Some(true) => text.push_str(", acted upon"),
                Some(false) => text.push_str(", not acted upon yet"),
                None => {}
            }
            if answer.wrong_value {
                text.push_str(", with a value that was not written");
            }
            format!("{text} (in {took})")
        }
        Outcome::Failed { status: Some(status), reason } => format!("{status} {reason} (in {took})"),
        Outcome::Failed { status: None, reason } => format!("failed: {reason} (in {took})"),
        Outcome::Unknown { reason } => format!("no answer: {reason} (given up after {took})"),
    }
}

/// Long id sets keep their ends, and say how much was left out.
fn shortened(ranges: &str) -> String {
    let parts: Vec<&str> = ranges.split(',').collect();
    match parts.as_slice() {
        [] => String::new(),
        few if few.len() <= 6 => few.join(", "),
        many => format!(
            "{}, … {} more ranges …, {}",
            many[..3].join(", "),
            many.len() - 5,
            many[many.len() - 2..].join(", ")
        ),
    }
}

fn arrived(event: &Event) -> (String, String) {
    match event {
        Event::Put { id, revision } => (format!("ledger-{id} added or changed"), revision.to_string()),
        Event::Delete { id, revision } => (format!("ledger-{id} deleted"), revision.to_string()),
        Event::Other { revision } => ("another object".to_owned(), revision.to_string()),
        Event::Error { code, message } => (format!("ERROR {code}: {message}"), "—".to_owned()),
        Event::Ended { reason } => (format!("stream ended: {reason}"), "—".to_owned()),
        Event::Bookmark { revision, initial_events_end: false } => {
            ("bookmark".to_owned(), revision.to_string())
        }
        Event::Bookmark { revision, initial_events_end: true } => {
            ("bookmark, the initial events are complete".to_owned(), revision.to_string())
        }
        Event::Store { ids, revision } => {
            let text = format!("store filled with {} objects: {}", ids.len(), shortened(&ids.to_ranges()));
            (text, revision.map_or_else(|| "—".to_owned(), |revision| revision.to_string()))
        }
        Event::Leading { candidate, revision, .. } => {
            (format!("{candidate} believes that it leads"), revision.to_string())
        }
        Event::LeadingEnded { candidate, reason } => {
            (format!("{candidate} leads no more: {reason}"), "—".to_owned())
        }
    }
}
