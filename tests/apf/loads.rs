//! Requests of loads by what became of them, and objectives that count them, at the edges of both.

use super::{facts, finding_by, found, judged_by, last_counts, other, queue, reject, requests, verdict_of};
use quakeproof::apf::answer::Class;
use quakeproof::check::apf::latency::Latency;
use quakeproof::check::apf::requests::{Counts, Kind, counts, fates};
use quakeproof::check::apf::success::SuccessRate;
use quakeproof::check::{Finding, Verdict};
use quakeproof::clock::MonoNs;
use quakeproof::drill;
use quakeproof::drill::parameters::ParameterValues;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Op, OpRecord, Record};
use quakeproof::journal::entry::Fact;
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::clients::ClientLog;
use std::time::Duration;

fn of_client<T>(input: &EvidenceInput, client: &str, read: impl Fn(&ClientLog) -> T) -> T {
    let boundaries = Boundaries::of(input);
    let logs = ClientLog::all(input, boundaries.boot.as_ref());
    read(logs.iter().find(|log| log.name() == client).unwrap())
}

fn counted(input: &EvidenceInput, client: &str) -> Counts {
    of_client(input, client, |log| counts(log, input))
}

/// Places are queued for in 15 s at most.
#[test]
fn a_refusal_is_told_by_how_much_of_its_wait_was_over() {
    let mut input = queue("v1.37.2");
    let mut after = |took_ns: u64| {
        let refused = requests(&mut input, "batch").swap_remove(0);
        let exchange = refused.exchange.as_mut().unwrap();
        exchange.class = Some(Class::FlowControl);
        refused.return_ns = exchange.sent_ns.unwrap().plus(took_ns);
        of_client(&input, "batch", |log| fates(log, &input)[0].kind)
    };
    assert_eq!(after(7_499_999_999), Kind::QueueFull);
    assert_eq!(after(7_500_000_000), Kind::Other);
    assert_eq!(after(14_949_999_999), Kind::Other);
    assert_eq!(after(14_950_000_000), Kind::TimeOut, "clocks of two processes differ by a little");
}

#[test]
fn what_was_answered_from_when_its_level_was_given_shares_came_after_that() {
    let mut input = queue("v1.37.2");
    let mut executed: Vec<MonoNs> = requests(&mut input, "batch")
        .into_iter()
        .filter(|op| op.exchange.as_ref().unwrap().class == Some(Class::Ok))
        .map(|op| op.return_ns)
        .collect();
    executed.sort();
    let after = |edit: &dyn Fn(&mut String, &mut u32, &mut MonoNs), client: &str| {
        let mut input = input.clone();
        for fact in facts(&mut input) {
            if let Fact::SharesChanged { level, shares, call_ns, .. } = fact {
                edit(level, shares, call_ns);
            }
        }
        counted(&input, client).ok_after_restore
    };
    assert_eq!(after(&|_, _, _| {}, "batch"), 44);
    assert_eq!(after(&|_, _, call| *call = executed[40], "batch"), 4);
    assert_eq!(after(&|_, _, call| *call = executed[40].plus(1), "batch"), 3);
    assert_eq!(after(&|_, shares, _| *shares = 1, "batch"), 44);
    assert_eq!(after(&|_, shares, _| *shares = 0, "batch"), 0, "none were given");
    assert_eq!(after(&|level, _, _| "another".clone_into(level), "batch"), 0);
    let at_once = |_: &mut String, _: &mut u32, call: &mut MonoNs| *call = MonoNs(0);
    assert_eq!(after(&at_once, "batch"), 44);
    assert_eq!(after(&at_once, "control"), 0, "it is on no level of the drill");
}

/// As if a request had been sent so late.
fn sent_after_due(op: &mut OpRecord, ns: u64) {
    let sent = op.due_ns.unwrap().plus(ns);
    let exchange = op.exchange.as_mut().unwrap();
    (exchange.sent_ns, exchange.first_byte_ns) = (Some(sent), Some(sent.plus(1_000_000)));
    op.return_ns = sent.plus(2_000_000);
}

#[test]
fn a_request_may_be_sent_as_late_as_the_bounds_allow() {
    let sent_late = |ns: u64| {
        let mut input = reject("v1.37.2");
        sent_after_due(requests(&mut input, "held-2")[2], ns);
        found(&input)
    };
    let in_time = sent_late(100_000_000);
    assert_eq!(in_time.verdict, Verdict::Pass, "{}", in_time.reason);
    let late = sent_late(100_000_001);
    assert_eq!(late.verdict, Verdict::Inconclusive);
    assert!(late.reason.contains("more than the 100ms of the bounds"), "{}", late.reason);
}

#[test]
fn an_operation_may_end_in_the_instant_in_which_it_began_and_not_before() {
    let begun = |before_its_end: bool| {
        let mut input = reject("v1.37.2");
        let op = requests(&mut input, "serial").swap_remove(3);
        op.call_ns = if before_its_end { op.return_ns } else { op.return_ns.plus(1) };
        found(&input)
    };
    assert_eq!(begun(true).verdict, Verdict::Pass);
    assert_eq!(begun(false).verdict, Verdict::Inconclusive);
    assert!(begun(false).reason.contains("do not follow one another"));
}

#[test]
fn a_holder_holds_from_before_the_first_request_until_after_the_last_answer() {
    let good = reject("v1.37.2");
    let (first, last) = {
        let mut input = good.clone();
        let held = requests(&mut input, "held-2");
        let sent = held.iter().filter_map(|op| op.exchange.as_ref()?.sent_ns).min().unwrap();
        (sent, held.iter().map(|op| op.return_ns).max().unwrap())
    };
    let held = |from: Option<MonoNs>, to: Option<MonoNs>| {
        let mut input = good.clone();
        let holder = requests(&mut input, "holder-2").swap_remove(0);
        let exchange = holder.exchange.as_mut().unwrap();
        if let Some(from) = from {
            (holder.due_ns, holder.call_ns, exchange.sent_ns) = (Some(from), from, Some(from));
        }
        if let Some(to) = to {
            (holder.return_ns, exchange.first_byte_ns) = (to, Some(to));
        }
        found(&input)
    };
    assert_eq!(held(Some(MonoNs(first.0 - 1)), Some(last.plus(1))).verdict, Verdict::Pass);
    for not_held in [held(Some(first), None), held(None, Some(last))] {
        assert_eq!(not_held.verdict, Verdict::Inconclusive);
        let said = "holder-2 did not hold the level for as long as held-2 took";
        assert!(not_held.reason.contains(said), "{}", not_held.reason);
    }
}

#[test]
fn a_load_of_no_level_of_the_drill_must_not_be_on_one_or_be_exempt() {
    let good = reject("v1.37.2");
    let named = |named: &dyn Fn(&str) -> bool| {
        let mut input = good.clone();
        let uids = facts(&mut input).find_map(|fact| match fact {
            Fact::FlowObjects { levels, .. } => levels.iter().find(|(_, name)| named(name)),
            _ => None,
        });
        let uid = uids.map(|(uid, _)| uid.clone());
        requests(&mut input, "control")[7].exchange.as_mut().unwrap().level =
            Some(uid.unwrap_or_else(|| "nobody's".to_owned()));
        verdict_of(&input, "nobody-else-is-limited")
    };
    assert_eq!(named(&|name| name == "catch-all").0, Verdict::Pass);
    for (level, said) in [
        ("exempt", "was sent to exempt (control)"),
        ("quakeproof-jail-f060f29a915f", "was sent to quakeproof-jail-f060f29a915f (control)"),
        ("not listed", "was sent to a level that nobody listed (control)"),
    ] {
        let (verdict, reason) = named(&|name| name == level);
        assert_eq!(verdict, Verdict::Inconclusive, "{level}");
        assert!(reason.contains(said), "{reason}");
    }
}

#[test]
fn a_request_that_was_not_sent_was_sent_to_no_level() {
    let mut input = reject("v1.37.2");
    requests(&mut input, "serial")[3].exchange = None;
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert!(finding.reason.contains("1 requests of serial got no answer"), "{}", finding.reason);
    assert!(!finding.reason.contains("was sent to"), "{}", finding.reason);
}

/// Takes refused attempts at one request away, by everybody's count.
fn with_refusals(input: &mut EvidenceInput, request: u64, left: usize) -> (Verdict, String) {
    let mut seen = 0;
    let history = input.histories.get_mut("like-kube").unwrap();
    let all = history.len();
    history.retain(|record| {
        let Record::Op(op) = record else { return true };
        let is_attempt = matches!(&op.op, Op::Request { of: Some(of), .. } if of.request == request);
        let refused = op.exchange.as_ref().is_some_and(|e| e.class == Some(Class::FlowControl));
        seen += usize::from(is_attempt && refused);
        !(is_attempt && refused) || seen <= left
    });
    let gone = (all - history.len()) as u64;
    assert!(seen >= left, "{seen} attempts were refused");
    let counts = last_counts(input, "kube-apiserver-1");
    *counts.get_mut("rejected:concurrency-limit").unwrap() -= gone;
    *counts.get_mut("waitsExecuteFalse").unwrap() -= gone;
    verdict_of(input, "hidden-by-kube")
}

#[test]
fn one_retry_hides_a_refusal_and_a_request_that_needed_none_hides_nothing() {
    let mut input = other("retry-storm");
    let (verdict, reason) = with_refusals(&mut input, 0, 1);
    assert_eq!(verdict, Verdict::Pass, "{reason}");
    let (verdict, reason) = with_refusals(&mut input, 0, 0);
    assert_eq!(verdict, Verdict::Fail, "{reason}");
    assert!(reason.starts_with("10 of 10 requests succeeded"), "{reason}");
}

/// As if a client had recorded so many requests only.
fn recorded(mut input: EvidenceInput, client: &str, count: usize) -> EvidenceInput {
    let mut left = count;
    input.histories.get_mut(client).unwrap().retain(|record| {
        let keep = !matches!(record, Record::Op(_)) || left > 0;
        left -= usize::from(matches!(record, Record::Op(_)) && keep);
        keep
    });
    input
}

fn all_succeed(client: &str) -> Objective {
    Objective::SuccessRate(SuccessRate {
        name: "another".to_owned(),
        client: client.to_owned(),
        at_least: Some("100%".parse().unwrap()),
        at_most: None,
    })
}

fn within(client: &str, percentile: u8, ns: u64) -> Objective {
    Objective::Latency(Latency {
        name: "another".to_owned(),
        client: client.to_owned(),
        percentile,
        within: Span(Duration::from_nanos(ns)),
    })
}

#[test]
fn one_request_shows_something_and_none_nothing() {
    for objective in [all_succeed("control"), within("control", 100, u64::MAX)] {
        let one = judged_by(&mut recorded(queue("v1.37.2"), "control", 1), objective.clone());
        assert_eq!(one.0, Verdict::Pass, "{}", one.1);
        let none = judged_by(&mut recorded(queue("v1.37.2"), "control", 0), objective);
        assert_eq!(none.0, Verdict::Inconclusive);
        assert!(none.1.contains("nothing was recorded"), "{}", none.1);
    }
}

#[test]
fn a_latency_is_met_up_to_its_limit_and_says_how_many_are_not_in_it() {
    let mut input = queue("v1.37.2");
    let mut judged = |client: &str, percentile: u8, ns: u64| -> Finding {
        finding_by(&mut input, within(client, percentile, ns))
    };
    let took = judged("batch", 9, u64::MAX).observed.unwrap();
    let at_the_limit = judged("batch", 9, took);
    assert_eq!(at_the_limit.verdict, Verdict::Pass);
    let said = "406 of 450 not at all or with a refusal";
    assert!(at_the_limit.reason.ends_with(said), "{}", at_the_limit.reason);
    assert_eq!(judged("batch", 9, took - 1).verdict, Verdict::Fail);
    let beyond = judged("batch", 10, took);
    assert_eq!(beyond.observed, None);
    assert_eq!(beyond.reason, "406 of 450 requests were refused or not answered");
}

#[test]
fn percentiles_go_from_1_to_100() {
    const SEED_450: &str = include_str!("../../scenarios/apf/seed-450.yaml");
    let replaced = "apfOutcomes: {name: nobody-else-is-limited, clients: [control]}";
    assert!(SEED_450.contains(replaced));
    let refused = |percentile: &str| {
        let latency =
            format!("latency: {{name: fast, client: control, percentile: {percentile}, within: 1s}}");
        let text = SEED_450.replace(replaced, &latency);
        let loaded = drill::load("drill.yaml", &text, &ParameterValues::default());
        loaded.err().map(|errors| errors.to_string())
    };
    assert_eq!(refused("1"), None);
    assert_eq!(refused("100"), None);
    for percentile in ["0", "101"] {
        let said = refused(percentile).unwrap();
        assert!(said.contains(&format!("`percentile: {percentile}` is out of range")), "{said}");
    }
}
