//! The checkers against a world whose state is known, against brute force, and
//! against twins of a good record that differ in one line.

#[path = "checkers/brute.rs"]
mod brute;
#[path = "checkers/client_facts.rs"]
mod client_facts;
#[path = "checkers/holder_limits.rs"]
mod holder_limits;
#[path = "checkers/holders.rs"]
mod holders;
#[path = "checkers/limits.rs"]
mod limits;
#[path = "checkers/missing.rs"]
mod missing;
#[path = "checkers/twins.rs"]
mod twins;
#[path = "checkers/versions.rs"]
mod versions;
#[path = "checkers/view_clients.rs"]
mod view_clients;
#[path = "checkers/windows.rs"]
mod windows;
#[path = "checkers/world.rs"]
mod world;

use quakeproof::check::{Finding, Judgement, judge};
use quakeproof::history::record::{Answer, OpRecord, Outcome, Record};
use quakeproof::timeline::EvidenceInput;
use world::MS;

fn finding<'a>(judgement: &'a Judgement, name: &str) -> &'a Finding {
    judgement.findings.iter().find(|f| f.name == name).unwrap()
}

fn lost_timeline(input: &EvidenceInput) -> Finding {
    finding(&judge(input), "no-client-on-lost-timeline").clone()
}

fn history<'a>(input: &'a mut EvidenceInput, client: &str) -> &'a mut Vec<Record> {
    input.histories.get_mut(client).unwrap()
}

fn instant(record: &Record) -> u64 {
    match record {
        Record::Opened { mono_ns, .. } | Record::Closed { mono_ns, .. } => mono_ns.0 / MS,
        Record::Op(op) => op.return_ns.0 / MS,
        Record::Event(event) => event.at_ns.0 / MS,
    }
}

/// The first operation of a client that was called at or after `at`.
fn op_at<'a>(input: &'a mut EvidenceInput, client: &str, at: u64) -> &'a mut OpRecord {
    history(input, client)
        .iter_mut()
        .find_map(|r| match r {
            Record::Op(op) if op.call_ns.0 >= at * MS => Some(op),
            _ => None,
        })
        .unwrap()
}

fn answer_of(op: &mut OpRecord) -> &mut Answer {
    match &mut op.outcome {
        Outcome::Ok(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}
