//! What the tests of the objective share.

use quakeproof::check::linearizable::Linearizable;
use quakeproof::check::{Finding, judge};
use quakeproof::drill::spec::Objective;
use quakeproof::history::record::{Answer, Op, OpRecord, Outcome, Record};
use quakeproof::plan::PlannedObjective;
use quakeproof::timeline::EvidenceInput;

/// The evidence judged by `linearizable` alone.
pub fn linearizable(input: &EvidenceInput) -> Finding {
    within(input, Linearizable::default().budget)
}

/// The same with a budget of explored states.
pub fn within(input: &EvidenceInput, budget: u64) -> Finding {
    let mut input = input.clone();
    let objective = Objective::Linearizable(Linearizable { budget, ..Linearizable::default() });
    input.plan.objectives =
        vec![PlannedObjective { name: "linearizable".to_owned(), objective, predicted: None }];
    judge(&input).findings.remove(0)
}

pub fn history<'a>(input: &'a mut EvidenceInput, client: &str) -> &'a mut Vec<Record> {
    input.histories.get_mut(client).unwrap()
}

/// Answered operations of a client for which `wanted` holds.
pub fn answered<'a>(
    input: &'a mut EvidenceInput,
    client: &str,
    wanted: impl Fn(&OpRecord, &Answer) -> bool,
) -> Vec<&'a mut OpRecord> {
    let matching = |r: &'a mut Record| match r {
        Record::Op(op) => {
            let matches = matches!(&op.outcome, Outcome::Ok(answer) if wanted(op, answer));
            matches.then_some(op)
        }
        _ => None,
    };
    history(input, client).iter_mut().filter_map(matching).collect()
}

pub fn answer_of(op: &mut OpRecord) -> &mut Answer {
    match &mut op.outcome {
        Outcome::Ok(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}

/// Ledger id of a write or read of one object.
pub fn id_of(op: &OpRecord) -> u64 {
    match op.op {
        Op::Create { id } | Op::Get { id } => id,
        ref other => panic!("not about one object: {other:?}"),
    }
}
