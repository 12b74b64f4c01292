//! What API servers counted against what clients recorded, at the edges of both.

use super::{facts, found, last_counts, queue, reject, requests};
use quakeproof::apf::answer::Class;
use quakeproof::check::apf::facts::{ApfFacts, ApfPhase};
use quakeproof::check::apf::requests::{Counts, Levels, counts};
use quakeproof::check::{Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Step;
use quakeproof::fault::apf_level::Existing;
use quakeproof::history::record::OpRecord;
use quakeproof::journal::entry::{Fact, JournalEvent};
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::clients::ClientLog;
use std::collections::BTreeMap;

const SERVER: &str = "kube-apiserver-1";

fn figures(input: &EvidenceInput) -> ApfFacts {
    judge(input).apf.remove(0)
}

fn adds_up(input: &EvidenceInput) -> Option<bool> {
    figures(input).accounting.holds
}

fn phase(input: &EvidenceInput, client: &str) -> ApfPhase {
    figures(input).phases.into_iter().find(|phase| phase.name == client).unwrap()
}

/// From when to when each reading of the first API server took.
fn readings(input: &mut EvidenceInput) -> Vec<(&mut MonoNs, &mut MonoNs)> {
    let of_server = facts(input).filter_map(|fact| match fact {
        Fact::FlowMetrics { server, call_ns, return_ns, .. } if server.0 == SERVER => {
            Some((call_ns, return_ns))
        }
        _ => None,
    });
    of_server.collect()
}

#[test]
fn what_was_sent_in_the_instants_of_the_readings_is_between_them() {
    let good = reject("v1.37.2");
    let probed = facts(&mut good.clone())
        .find_map(|fact| match fact {
            Fact::FlowProbed { server, call_ns, .. } if server.0 == SERVER => Some(*call_ns),
            _ => None,
        })
        .unwrap();
    let last_sent = requests(&mut good.clone(), "after-1").last().unwrap().call_ns;
    let between = |from: Option<MonoNs>, to: Option<MonoNs>| {
        let mut input = good.clone();
        let mut readings = readings(&mut input);
        *readings.first_mut().unwrap().0 = from.unwrap_or(MonoNs(0));
        if let Some(to) = to {
            *readings.last_mut().unwrap().1 = to;
        }
        adds_up(&input)
    };
    assert_eq!(between(Some(probed), None), Some(true));
    assert_eq!(between(Some(probed.plus(1)), None), Some(false), "the server counted the probe");
    assert_eq!(between(None, Some(last_sent)), Some(true));
    assert_eq!(between(None, Some(MonoNs(last_sent.0 - 1))), Some(false), "the server counted the request");
}

/// Counts one more request as executed, by the server's count alone.
fn executed_one_more(input: &mut EvidenceInput) {
    let counts = last_counts(input, SERVER);
    *counts.get_mut("dispatched").unwrap() += 1;
    *counts.get_mut("waitsExecuteTrue").unwrap() += 1;
}

#[test]
fn a_request_of_the_level_without_an_answer_explains_one_that_the_server_counted() {
    let mut lost = reject("v1.37.2");
    requests(&mut lost, "after-1")[0].exchange.as_mut().unwrap().class = None;
    assert_eq!(adds_up(&lost), Some(true));
    executed_one_more(&mut lost);
    assert_eq!(adds_up(&lost), Some(false), "not two");
    let mut elsewhere = reject("v1.37.2");
    requests(&mut elsewhere, "control")[0].exchange.as_mut().unwrap().class = None;
    assert_eq!(adds_up(&elsewhere), Some(true));
    executed_one_more(&mut elsewhere);
    assert_eq!(adds_up(&elsewhere), Some(false), "it was meant for no level of the drill");
}

#[test]
fn seats_that_do_not_follow_from_the_shares_prove_nothing() {
    let with_seats = |mut input: EvidenceInput, nominal: u64, upper: u64| {
        let seats = facts(&mut input).filter_map(|fact| match fact {
            Fact::FlowMetrics { seats, .. } => Some(seats),
            _ => None,
        });
        seats.last().unwrap().extend([("nominal".to_owned(), nominal), ("upper".to_owned(), upper)]);
        let finding = found(&input);
        let said = format!("counts with {nominal} nominal and {upper} upper seats");
        assert_eq!(finding.verdict == Verdict::Inconclusive, finding.reason.contains(&said));
        finding.verdict
    };
    let none = || reject("v1.37.2");
    assert_eq!(with_seats(none(), 0, 0), Verdict::Pass);
    assert_eq!(with_seats(none(), 0, 1), Verdict::Inconclusive, "it must not borrow");
    assert_eq!(with_seats(none(), 1, 1), Verdict::Inconclusive);
    // Shares were given back before the last reading.
    let given = || queue("v1.37.2");
    assert_eq!(with_seats(given(), 1, 1), Verdict::Pass);
    assert_eq!(with_seats(given(), 1, 2), Verdict::Pass);
    assert_eq!(with_seats(given(), 0, 0), Verdict::Inconclusive);
    assert_eq!(with_seats(given(), 2, 1), Verdict::Inconclusive);
}

#[test]
fn answers_that_name_no_level_or_another_one_lack_the_headers_of_theirs() {
    let mut input = reject("v1.37.2");
    let good = phase(&input, "serial");
    assert_eq!((good.headers_matched, good.headers_missing), (20, 0));
    let mut serial = requests(&mut input, "serial");
    serial[3].exchange.as_mut().unwrap().level = None;
    serial[4].exchange.as_mut().unwrap().level = Some("elsewhere".to_owned());
    let seen = phase(&input, "serial");
    assert_eq!((seen.headers_matched, seen.headers_missing), (18, 2));
}

#[test]
fn a_load_of_two_objectives_is_shown_with_what_the_first_predicts() {
    let mut input = reject("v1.37.2");
    let serial = input.plan.flow.iter().find(|flow| flow.client == "serial").unwrap().clone();
    let mut again = serial.clone();
    again.source = "another rule".to_owned();
    input.plan.flow.push(again);
    assert_eq!(phase(&input, "serial").predicted.unwrap().source, serial.source);
}

#[test]
fn only_what_was_surely_sent_later_came_through_after_the_holder() {
    let mut input = reject("v1.37.2");
    let end = requests(&mut input, "holder-1")[0].return_ns;
    let mut admitted_after = |sent: Option<MonoNs>| {
        requests(&mut input, "after-1")[0].exchange.as_mut().unwrap().sent_ns = sent;
        figures(&input).leak[0].admitted_after
    };
    assert_eq!(admitted_after(Some(end.plus(1))), 3);
    assert_eq!(admitted_after(Some(end)), 2);
    assert_eq!(admitted_after(None), 2);
}

#[test]
fn shares_of_a_load_are_those_that_were_acknowledged_when_its_first_request_was_sent() {
    let mut input = queue("v1.37.2");
    let first = requests(&mut input, "batch")
        .iter()
        .filter_map(|op| op.exchange.as_ref().unwrap().sent_ns)
        .min()
        .unwrap();
    let mut shares = |acknowledged: MonoNs| {
        for fact in facts(&mut input) {
            if let Fact::SharesChanged { return_ns, .. } = fact {
                *return_ns = acknowledged;
            }
        }
        phase(&input, "batch").shares
    };
    assert_eq!(shares(first), 30);
    assert_eq!(shares(first.plus(1)), 0);
    requests(&mut input, "batch").iter_mut().for_each(|op| op.exchange = None);
    assert_eq!(phase(&input, "batch").shares, 30, "nothing was sent: those in the end");
}

#[test]
fn a_uid_is_what_the_last_listing_says_up_to_its_own_instant() {
    let mut input = reject("v1.37.2");
    let uid = requests(&mut input, "serial")[0].exchange.as_ref().unwrap().level.clone().unwrap();
    assert!(Levels::of(&input).is_level(&uid, MonoNs(0), "jail"));
    assert!(!Levels::of(&input).is_level(&uid, MonoNs(0), "another"), "the drill has no such level");
    let listings = facts(&mut input).filter_map(|fact| match fact {
        Fact::FlowObjects { levels, return_ns, .. } => Some((levels, *return_ns)),
        _ => None,
    });
    let mut at = Vec::new();
    for (index, (levels, listed)) in listings.enumerate() {
        *levels = BTreeMap::from([(uid.clone(), format!("name-{index}"))]);
        at.push(listed);
    }
    let levels = Levels::of(&input);
    assert_eq!(levels.name(&uid, MonoNs(0)), Some("name-0"), "the first one after it");
    assert_eq!(levels.name(&uid, MonoNs(at[1].0 - 1)), Some("name-0"));
    assert_eq!(levels.name(&uid, at[1]), Some("name-1"));
    assert_eq!(levels.name("another", at[1]), None);
}

#[test]
fn counters_that_were_read_once_prove_nothing() {
    let mut input = reject("v1.37.2");
    let mut read = Vec::new();
    input.journal.retain(|entry| match &entry.event {
        JournalEvent::Fact { fact: Fact::FlowMetrics { server, level, .. } } => {
            let reading = (server.clone(), level.clone());
            let first = !read.contains(&reading);
            read.push(reading);
            first
        }
        _ => true,
    });
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert!(finding.reason.contains(&format!("{SERVER} were read only once")), "{}", finding.reason);
}

#[test]
fn a_refusal_on_another_level_is_none_of_this_one() {
    let mut input = reject("v1.37.2");
    assert_eq!(adds_up(&input), Some(true));
    let mut held = requests(&mut input, "held-1");
    let refused = |op: &&mut &mut OpRecord| op.exchange.as_ref().unwrap().class == Some(Class::FlowControl);
    held.iter_mut().find(refused).unwrap().exchange.as_mut().unwrap().level = Some("elsewhere".to_owned());
    assert_eq!(adds_up(&input), Some(false), "the server counted it here");
}

#[test]
fn seats_that_were_not_read_prove_nothing() {
    let mut input = reject("v1.37.2");
    for fact in facts(&mut input) {
        if let Fact::FlowMetrics { seats, .. } = fact {
            seats.remove("nominal");
        }
    }
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert!(finding.reason.contains("counts with unknown nominal and 0 upper seats"), "{}", finding.reason);
}

#[test]
fn of_a_level_of_the_cluster_s_own_it_is_not_known_which_seats_follow_from_its_shares() {
    let mut input = reject("v1.37.2");
    for fact in facts(&mut input) {
        if let Fact::FlowMetrics { seats, .. } = fact {
            seats.extend([("nominal".to_owned(), 1), ("upper".to_owned(), 1)]);
        }
    }
    let said =
        |input: &EvidenceInput| found(input).reason.contains("counts with 1 nominal and 1 upper seats");
    assert!(said(&input));
    for planned in &mut input.plan.steps {
        if let Step::ApfLevel(level) = &mut planned.step {
            let name = "workload-low".to_owned();
            level.existing = Some(Existing { level: name.clone(), confirm: name });
        }
    }
    assert!(!said(&input));
}

#[test]
fn a_plan_that_predicts_nothing_proves_nothing() {
    let mut input = reject("v1.37.2");
    input.plan.flow.clear();
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert!(finding.reason.ends_with("the plan predicts nothing"), "{}", finding.reason);
}

/// What the journal tells of one level, told of another one as well, with other figures.
#[test]
fn what_is_told_of_another_level_changes_nothing() {
    let mut input = queue("v1.37.2");
    let good = judge(&input);
    let mut told = Vec::new();
    for entry in &input.journal {
        let mut other = entry.clone();
        if let JournalEvent::Fact { fact } = &mut other.event {
            match fact {
                Fact::SharesChanged { level, shares, return_ns, .. } => {
                    (*level, *shares) = ("another".to_owned(), *shares + 7);
                    // Before the first request was sent.
                    *return_ns = MonoNs(0);
                    told.push(other);
                }
                Fact::FlowMetrics { level, requests, .. } => {
                    *level = "another".to_owned();
                    requests.values_mut().for_each(|count| *count += 1_000 + told.len() as u64);
                    told.push(other);
                }
                _ => {}
            }
        }
    }
    assert!(told.len() > 2);
    input.journal.extend(told);
    input.journal.sort_by_key(|entry| entry.mono_ns);
    let seen = judge(&input);
    assert_eq!((seen.findings, seen.apf), (good.findings, good.apf));
}

#[test]
fn what_was_not_answered_has_no_latency() {
    let mut input = reject("v1.37.2");
    let latencies = |input: &EvidenceInput| {
        let boundaries = Boundaries::of(input);
        let logs = ClientLog::all(input, boundaries.boot.as_ref());
        let counts = counts(logs.iter().find(|log| log.name() == "serial").unwrap(), input);
        (counts.all_latencies().len(), counts.unanswered)
    };
    assert_eq!(latencies(&input), (20, 0));
    requests(&mut input, "serial")[3].exchange.as_mut().unwrap().class = None;
    assert_eq!(latencies(&input), (19, 1));
}

#[test]
fn counts_of_nothing_are_nothing_in_words() {
    assert_eq!(Counts::default().in_words(), "nothing");
    assert_eq!(Counts { ok: 2, other: 1, ..Counts::default() }.in_words(), "2 ok, 1 other");
}
