use super::super::small::{answered, log, op};
use super::*;
use crate::history::kind::ClientKind;
use crate::history::record::{Made, Record};

const MADE_AT: u64 = 10;

fn seen(acted: bool) -> Outcome {
    Outcome::Ok(Answer { acted: Some(acted), ..Answer::default() })
}

fn look(call: u64, acted: bool) -> Record {
    op(call, call + 1, Op::Look { what: Made::Deployment, id: 1 }, seen(acted))
}

fn owned(call: u64, acted: bool) -> Record {
    op(call, call + 1, Op::Owned { id: 1, name: "rs".to_owned() }, seen(acted))
}

/// A Deployment whose creation was acknowledged at 10, and what was seen of it.
fn deployer(looks: Vec<Record>) -> ClientLog<'static> {
    let made = op(5, MADE_AT, Op::Make { what: Made::Deployment, id: 1 }, answered(3));
    log(ClientKind::Deployer, [vec![made], looks].concat())
}

#[test]
fn what_was_made_for_an_object_does_not_show_that_it_is_there() {
    let there = |looks| items(&deployer(looks)).remove(&1).unwrap().there.map(|look| look.call.0);
    assert_eq!(there(vec![owned(20, true)]), None);
    assert_eq!(there(vec![look(20, false), owned(30, true)]), Some(20));
    assert_eq!(there(vec![look(20, false), look(30, true)]), Some(30));
}

#[test]
fn an_object_waits_in_vain_once_it_has_done_so_for_more_than_a_second() {
    let last = |looks| samples(&deployer(looks)).pop().map(|s| s.state);
    let second = 1_000_000_000;
    assert_eq!(last(vec![look(MADE_AT + second, false)]), None);
    let vain = State::Bad("nothing was done about it for 1 s".to_owned());
    assert_eq!(last(vec![look(MADE_AT + second + 1, false)]), Some(vain));
    assert_eq!(last(vec![look(20, false), look(30, true)]), Some(State::Good));
    let of_the_first = samples(&deployer(vec![look(20, true), look(30, true)]));
    assert_eq!(of_the_first.len(), 1, "only the first look that finds it acted upon says something");
}

#[test]
fn a_look_that_was_stopped_says_nothing_and_one_without_an_answer_does() {
    let last = |reason: &str| {
        let outcome = Outcome::Unknown { reason: reason.to_owned() };
        let look = op(20, 21, Op::Look { what: Made::Deployment, id: 1 }, outcome);
        samples(&deployer(vec![look])).pop().map(|s| s.state)
    };
    assert_eq!(last(STOPPED), None);
    assert_eq!(last("timeout"), Some(State::Unknown("timeout".to_owned())));
}
