//! How full queues were, by the model and by API servers.

use super::{facts, queue, requests};
use quakeproof::check::apf::fill::{QueueFill, queue_fills};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Step;
use quakeproof::fault::apf_level::{ApfLevel, Existing};
use quakeproof::journal::entry::Fact;
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::clients::ClientLog;

fn fills(input: &EvidenceInput) -> Vec<QueueFill> {
    let boundaries = Boundaries::of(input);
    queue_fills(input, &ClientLog::all(input, boundaries.boot.as_ref()))
}

/// Level, shares and acknowledgement of the only change.
fn change(input: &mut EvidenceInput) -> (&mut String, &mut u32, MonoNs) {
    let only = facts(input).find_map(|fact| match fact {
        Fact::SharesChanged { level, shares, return_ns, .. } => Some((level, shares, *return_ns)),
        _ => None,
    });
    only.unwrap()
}

/// Requests that wait by the model right before the change, and from it on.
fn around_the_change(input: &mut EvidenceInput) -> (u64, u64) {
    let at = change(input).2;
    let model = fills(input).remove(0).model;
    let waiting = |from: &dyn Fn(MonoNs) -> bool| {
        model.iter().rev().find(|(at, _)| from(*at)).map_or(0, |(_, count)| *count)
    };
    (waiting(&|instant| instant < at), waiting(&|instant| instant <= at))
}

#[test]
fn the_model_empties_the_queue_when_the_level_itself_is_given_shares() {
    // 66 seats for the 44 that still wait.
    assert_eq!(around_the_change(&mut queue("v1.37.2")), (44, 0));
    let mut one_share = queue("v1.37.2");
    *change(&mut one_share).1 = 1;
    assert_eq!(around_the_change(&mut one_share), (44, 0), "seats are those that the server counts with");
    let mut still_none = queue("v1.37.2");
    *change(&mut still_none).1 = 0;
    assert_eq!(around_the_change(&mut still_none), (44, 44));
    let mut another = queue("v1.37.2");
    "another".clone_into(change(&mut another).0);
    assert_eq!(around_the_change(&mut another), (44, 44));
}

#[test]
fn the_model_has_only_levels_of_the_drills_own_that_begin_without_seats() {
    let having = |change: fn(&mut ApfLevel)| {
        let mut input = queue("v1.37.2");
        let levels = input.plan.steps.iter_mut().filter_map(|planned| match &mut planned.step {
            Step::ApfLevel(level) => Some(level),
            _ => None,
        });
        levels.for_each(change);
        fills(&input).len()
    };
    assert_eq!(having(|_| {}), 1);
    assert_eq!(having(|level| level.shares = 1), 0);
    let of_the_cluster = |level: &mut ApfLevel| {
        let name = "workload-low".to_owned();
        level.existing = Some(Existing { level: name.clone(), confirm: name });
    };
    assert_eq!(having(of_the_cluster), 0);
}

#[test]
fn what_a_server_says_of_another_level_or_another_server_of_this_one_is_not_shown() {
    let mut input = queue("v1.37.2");
    let all = fills(&input)[0].seen.len();
    let mut said = facts(&mut input).filter_map(|fact| match fact {
        Fact::QueueFill { server, level, .. } => Some((server, level)),
        _ => None,
    });
    "another".clone_into(said.next().unwrap().1);
    "kube-apiserver-2".clone_into(&mut said.next().unwrap().0.0);
    drop(said);
    assert_eq!(fills(&input)[0].seen.len(), all - 2);
}

#[test]
fn a_request_waits_by_the_model_from_when_it_was_sent() {
    let mut input = queue("v1.37.2");
    let sent = requests(&mut input, "batch").iter().filter_map(|op| op.exchange.as_ref()?.sent_ns).min();
    assert_eq!(fills(&input)[0].model.first(), sent.map(|at| (at, 1)).as_ref());
}
