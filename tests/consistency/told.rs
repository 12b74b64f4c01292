//! Runs told in a few records, on the journal of the world with one restore.

use crate::world::{Book, World};
use quakeproof::history::record::{Answer, Op, Outcome};
use quakeproof::journal::entry::{Entry, Fact, JournalEvent};
use quakeproof::timeline::EvidenceInput;

/// A client of the world and what it did.
pub type Told<'a> = (&'a str, &'a dyn Fn(&mut Book));

/// The world's run, in which clients did only what is told here.
pub fn told(world: &World, told: &[Told]) -> EvidenceInput {
    let mut input = world.input();
    for planned in &input.plan.clients {
        let mut book = Book::open(&planned.name, planned.kind);
        told.iter().filter(|(client, _)| *client == planned.name).for_each(|(_, tell)| tell(&mut book));
        input.histories.insert(planned.name.clone(), book.close(world.end()));
    }
    input
}

pub fn create(book: &mut Book, (call, ret): (u64, u64), id: u64, outcome: Outcome) {
    book.op(call, ret, Op::Create { id }, outcome);
}

pub fn silent() -> Outcome {
    Outcome::Ok(Answer::default())
}

pub fn unknown() -> Outcome {
    Outcome::Unknown { reason: "timeout".to_owned() }
}

pub fn refused(reason: &str) -> Outcome {
    Outcome::Failed { status: Some(409), reason: reason.to_owned() }
}

pub fn range(book: &mut Book, at: u64, head: u64, objects: &[(u64, u64)]) {
    let answer = Answer { revision: Some(head), objects: Some(objects.to_vec()), ..Answer::default() };
    book.op(at, at + 1, Op::EtcdRange { revision: None }, Outcome::Ok(answer));
}

pub fn is_fact(entry: &Entry, wanted: fn(&Fact) -> bool) -> bool {
    matches!(&entry.event, JournalEvent::Fact { fact } if wanted(fact))
}

pub fn without(mut input: EvidenceInput, unwanted: fn(&Fact) -> bool) -> EvidenceInput {
    input.journal.retain(|entry| !is_fact(entry, unwanted));
    input
}
