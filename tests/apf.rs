//! Flow control judged on runs that were recorded on real clusters of both versions, and on twins of them.

#[path = "apf/accounting.rs"]
mod accounting;
#[path = "apf/fill.rs"]
mod fill;
#[path = "apf/lease.rs"]
mod lease;
#[path = "apf/loads.rs"]
mod loads;
#[path = "support/recorded_run.rs"]
mod recorded_run;
#[path = "apf/watch.rs"]
mod watch;

use quakeproof::apf::answer::Class;
use quakeproof::check::apf::fill::queue_fills;
use quakeproof::check::apf::latency::Latency;
use quakeproof::check::apf::success::SuccessRate;
use quakeproof::check::{Finding, Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Event, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent};
use quakeproof::plan::PlannedObjective;
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use quakeproof::timeline::clients::ClientLog;
use recorded_run::recorded_run;

const VERSIONS: [&str; 2] = ["v1.30.4", "v1.37.2"];

fn reject(version: &str) -> EvidenceInput {
    recorded_run("apf", &format!("zero-seat-reject-{version}"))
}

fn queue(version: &str) -> EvidenceInput {
    recorded_run("apf", &format!("seed-450-{version}"))
}

fn found(input: &EvidenceInput) -> Finding {
    judge(input).findings.remove(0)
}

/// Requests of a client, in the order of recording.
fn requests<'a>(input: &'a mut EvidenceInput, client: &str) -> Vec<&'a mut OpRecord> {
    let records = input.histories.get_mut(client).unwrap().iter_mut();
    records.filter_map(|record| if let Record::Op(op) = record { Some(op) } else { None }).collect()
}

/// The level that a reading is of.
fn level_is(fact: &mut Fact) -> Option<&mut String> {
    match fact {
        Fact::FlowMetrics { level_is, .. } => level_is.as_mut(),
        _ => None,
    }
}

/// What the last reading is of has another generation.
fn change_last(
    input: &mut EvidenceInput,
    identity: impl Fn(&mut Fact) -> Option<&mut String>,
    generation: &str,
) {
    let last = facts(input).filter_map(identity).last().unwrap();
    *last = last.rsplit_once('/').unwrap().0.to_owned() + generation;
}

fn facts(input: &mut EvidenceInput) -> impl Iterator<Item = &mut Fact> {
    input.journal.iter_mut().filter_map(|entry| match &mut entry.event {
        JournalEvent::Fact { fact } => Some(fact),
        _ => None,
    })
}

/// The last reading of each API server.
fn last_counts<'a>(
    input: &'a mut EvidenceInput,
    server: &str,
) -> &'a mut std::collections::BTreeMap<String, u64> {
    let readings = facts(input).filter_map(|fact| match fact {
        Fact::FlowMetrics { server: of, requests, .. } if of.0 == server => Some(requests),
        _ => None,
    });
    readings.last().unwrap()
}

/// As if it had been executed; by the server's count too.
fn let_through(input: &mut EvidenceInput, client: &str, index: usize, server: &str, reason: &str) {
    let mut all = requests(input, client);
    all[index].exchange.as_mut().unwrap().class = Some(Class::Ok);
    all[index].outcome = Outcome::Ok(Default::default());
    let counts = last_counts(input, server);
    *counts.get_mut("dispatched").unwrap() += 1;
    *counts.get_mut("waitsExecuteTrue").unwrap() += 1;
    *counts.get_mut("waitsExecuteFalse").unwrap() -= 1;
    *counts.get_mut(reason).unwrap() -= 1;
}

#[test]
fn what_real_clusters_did_is_what_was_predicted() {
    for version in VERSIONS {
        for input in [reject(version), queue(version)] {
            let judgement = judge(&input);
            for finding in &judgement.findings {
                assert_eq!(finding.verdict, Verdict::Pass, "{version}: {}", finding.reason);
            }
            assert!(judgement.apf.iter().all(|facts| facts.accounting.holds == Some(true)), "{version}");
        }
    }
}

#[test]
fn the_figures_of_the_article_and_of_the_leak_are_in_the_facts() {
    for version in VERSIONS {
        let batch = judge(&queue(version)).apf.remove(0).phases.remove(0);
        assert_eq!((batch.sent, batch.ok, batch.ok_after_restore), (450, 44, 44), "{version}");
        assert_eq!((batch.rejected.queue_full, batch.rejected.time_out), (400, 6), "{version}");
        let facts = judge(&reject(version)).apf.remove(0);
        let leaks: Vec<(u64, u64, u64)> = facts
            .leak
            .iter()
            .map(|leak| (leak.admitted_while_held, leak.sent_while_held, leak.admitted_after))
            .collect();
        assert_eq!(leaks, [(0, 20, 3), (0, 20, 3)], "{version}");
        let seats: Vec<Option<u64>> = facts.servers.iter().map(|server| server.seats.upper).collect();
        assert_eq!(seats, [Some(0), Some(0)], "{version}");
    }
}

type Twin = (&'static str, fn(&mut EvidenceInput), Verdict, &'static str);

/// One thing changed in a good run of `zero-seat-reject`, what that makes of the verdict, and what is said of it.
const REJECT_TWINS: [Twin; 18] = [
    (
        "two at a time, by everybody's count",
        |input| let_through(input, "held-1", 7, "kube-apiserver-1", "rejected:concurrency-limit"),
        Verdict::Fail,
        "19 concurrencyLimit, predicted 20 concurrencyLimit",
    ),
    (
        "one that the client saw executed and the server refused",
        |input| requests(input, "held-1")[7].exchange.as_mut().unwrap().class = Some(Class::Ok),
        Verdict::Inconclusive,
        "does not hold",
    ),
    (
        "an answer that is neither success nor flow control's",
        |input| requests(input, "after-2")[1].exchange.as_mut().unwrap().class = Some(Class::Other),
        Verdict::Fail,
        "1 other",
    ),
    (
        "an answer from another level",
        |input| requests(input, "serial")[3].exchange.as_mut().unwrap().level = Some("elsewhere".to_owned()),
        Verdict::Inconclusive,
        "was sent to a level that nobody listed",
    ),
    (
        "an answer that names no level",
        |input| requests(input, "serial")[3].exchange.as_mut().unwrap().level = None,
        Verdict::Inconclusive,
        "name no level",
    ),
    (
        "a request without an answer",
        |input| requests(input, "after-1")[0].exchange.as_mut().unwrap().class = None,
        Verdict::Inconclusive,
        "got no answer",
    ),
    (
        "a request too few",
        |input| {
            input.histories.get_mut("serial").unwrap().remove(4);
        },
        Verdict::Inconclusive,
        "recorded 19 of 20 requests",
    ),
    (
        "a request that was sent late",
        |input| {
            let late = requests(input, "held-2").swap_remove(2);
            let exchange = late.exchange.as_mut().unwrap();
            exchange.sent_ns = exchange.sent_ns.map(|sent| sent.plus(200_000_000));
        },
        Verdict::Inconclusive,
        "after it was due",
    ),
    (
        "a holder that let go too early",
        |input| {
            let holder = requests(input, "holder-2").remove(0);
            holder.return_ns = holder.exchange.as_ref().unwrap().sent_ns.unwrap().plus(700_000_000);
        },
        Verdict::Inconclusive,
        "did not hold the level for as long as held-2 took",
    ),
    (
        "an API server that was started again",
        |input| {
            let start = facts(input).filter_map(|fact| match fact {
                Fact::FlowMetrics { process_start_ns, .. } => Some(process_start_ns),
                _ => None,
            });
            *start.last().unwrap() = Some(1);
        },
        Verdict::Inconclusive,
        "was started again",
    ),
    (
        "somebody else's change of the level",
        |input| change_last(input, level_is, "/2"),
        Verdict::Inconclusive,
        "somebody else changed the level",
    ),
    (
        "a level that is an older one than at the beginning",
        |input| change_last(input, level_is, "/0"),
        Verdict::Inconclusive,
        "somebody else changed the level",
    ),
    (
        "somebody else's change of the schema",
        |input| {
            change_last(
                input,
                |fact| match fact {
                    Fact::FlowMetrics { schema_is, .. } => schema_is.as_mut(),
                    _ => None,
                },
                "/2",
            )
        },
        Verdict::Inconclusive,
        "somebody else changed the schema",
    ),
    (
        "seats that a level of no shares does not have",
        |input| {
            let seats = facts(input).filter_map(|fact| match fact {
                Fact::FlowMetrics { seats, .. } => Some(seats),
                _ => None,
            });
            seats.last().unwrap().insert("upper".to_owned(), 600);
        },
        Verdict::Inconclusive,
        "counts with 0 nominal and 600 upper seats",
    ),
    (
        "refusals that the server counts for another reason",
        |input| {
            let counts = last_counts(input, "kube-apiserver-1");
            let refused = counts.remove("rejected:concurrency-limit").unwrap();
            counts.insert("rejected:queue-full".to_owned(), refused);
        },
        Verdict::Inconclusive,
        "rejected as queue-full = refused at once does not hold",
    ),
    (
        "an answer that was there before its request",
        |input| {
            let answered = requests(input, "after-1").swap_remove(1);
            let exchange = answered.exchange.as_mut().unwrap();
            exchange.first_byte_ns = Some(MonoNs(1));
        },
        Verdict::Inconclusive,
        "do not follow one another",
    ),
    (
        "an operation that is there twice",
        |input| requests(input, "serial")[4].seq = 3,
        Verdict::Inconclusive,
        "counts an operation again",
    ),
    (
        "bounds that would hold without the leak too",
        |input| {
            for flow in &mut input.plan.flow {
                flow.alternatives.insert("no-leak".to_owned(), flow.expected);
            }
        },
        Verdict::Inconclusive,
        "the bounds do not exclude no-leak",
    ),
];

#[test]
fn every_twin_of_a_good_run_is_told_apart_from_it() {
    for (what, change, verdict, said) in REJECT_TWINS {
        let mut input = reject("v1.37.2");
        change(&mut input);
        let finding = found(&input);
        assert_eq!(finding.verdict, verdict, "{what}: {}", finding.reason);
        assert!(finding.reason.contains(said), "{what}: {}", finding.reason);
    }
}

#[test]
fn a_queue_that_lets_more_through_than_waited_is_a_miss() {
    let mut input = queue("v1.37.2");
    let refused: Vec<usize> = {
        let all = requests(&mut input, "batch");
        let at_once = |op: &OpRecord| {
            op.exchange.as_ref().unwrap().class == Some(Class::FlowControl)
                && op.return_ns.since(op.call_ns) < 1_000_000_000
        };
        all.iter().enumerate().filter(|(_, op)| at_once(op)).map(|(index, _)| index).take(20).collect()
    };
    for index in refused {
        let_through(&mut input, "batch", index, "kube-apiserver-1", "rejected:queue-full");
    }
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.reason);
    assert!(finding.reason.contains("64 ok, 380 queueFull, 6 timeOut"), "{}", finding.reason);
}

/// Waits are measured by the server from when it has the request, so nobody sees one end early.
#[test]
fn a_wait_that_ends_before_its_limit_is_no_time_out() {
    let mut input = queue("v1.37.2");
    let waited = |op: &&mut OpRecord| {
        op.exchange.as_ref().unwrap().class == Some(Class::FlowControl)
            && op.return_ns.since(op.call_ns) > 14_000_000_000
    };
    let early = requests(&mut input, "batch").into_iter().find(waited).unwrap();
    early.return_ns = early.call_ns.plus(8_000_000_000);
    early.exchange.as_mut().unwrap().first_byte_ns = Some(early.return_ns);
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.reason);
    assert!(finding.reason.contains("5 timeOut, 1 other"), "{}", finding.reason);
}

#[test]
fn without_the_servers_own_counters_nothing_is_proven() {
    let mut input = queue("v1.30.4");
    input
        .journal
        .retain(|entry| !matches!(entry.event, JournalEvent::Fact { fact: Fact::FlowMetrics { .. } }));
    let finding = found(&input);
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert!(finding.reason.contains("was not read"), "{}", finding.reason);
}

fn other(scenario: &str) -> EvidenceInput {
    recorded_run("apf", &format!("{scenario}-v1.37.2"))
}

fn verdict_of(input: &EvidenceInput, name: &str) -> (Verdict, String) {
    let finding = judge(input).findings.into_iter().find(|finding| finding.name == name).unwrap();
    (finding.verdict, finding.reason)
}

/// The instant of the journal at which the level was seen in force.
fn in_force(input: &EvidenceInput) -> MonoNs {
    let seen = input.journal.iter().find(|e| matches!(e.event, JournalEvent::InjectionVerified { .. }));
    seen.unwrap().mono_ns
}

#[test]
fn an_open_watch_that_misses_a_write_or_is_opened_again_does_not_go_on() {
    let good = other("jailed-watch");
    assert_eq!(verdict_of(&good, "open-watch-goes-on").0, Verdict::Pass);
    assert_eq!(verdict_of(&good, "no-new-watch").0, Verdict::Pass);
    let begin = in_force(&good).plus(2_000_000_000);
    let delivered = |record: &Record| matches!(record, Record::Event(e) if e.at_ns > begin && matches!(e.event, Event::Put { .. }));
    let mut missing = good.clone();
    let history = missing.histories.get_mut("open-watch").unwrap();
    let at = history.iter().position(delivered).unwrap();
    history.remove(at);
    let (verdict, reason) = verdict_of(&missing, "open-watch-goes-on");
    assert_eq!(verdict, Verdict::Fail, "{reason}");
    assert!(reason.contains("278 of 279"), "{reason}");

    let mut ended = good.clone();
    let history = ended.histories.get_mut("open-watch").unwrap();
    if let Some(Record::Event(event)) = history.iter_mut().filter(|record| delivered(record)).nth(30) {
        event.event = Event::Ended { reason: "eof".to_owned() };
    }
    let (verdict, reason) = verdict_of(&ended, "open-watch-goes-on");
    assert_eq!(verdict, Verdict::Fail, "{reason}");
    assert!(reason.ends_with("the watch was ended or opened 1 times"), "{reason}");

    let mut silent = good;
    silent.histories.get_mut("orders").unwrap().truncate(10);
    assert_eq!(verdict_of(&silent, "open-watch-goes-on").0, Verdict::Inconclusive, "nothing was written");
}

#[test]
fn a_leader_that_stops_at_another_time_than_its_rules_say_is_a_miss() {
    let good = other("jailed-leader");
    assert_eq!(verdict_of(&good, "jailed-loses-the-lease").0, Verdict::Pass);
    let shifted = |by: i64| {
        let mut input = good.clone();
        let ends = input.histories.get_mut("jailed").unwrap().iter_mut().filter_map(|record| match record {
            Record::Event(e) if matches!(e.event, Event::LeadingEnded { .. }) => Some(&mut e.at_ns),
            _ => None,
        });
        let at = ends.into_iter().next().unwrap();
        *at = MonoNs(at.0.checked_add_signed(by).unwrap());
        verdict_of(&input, "jailed-loses-the-lease")
    };
    assert_eq!(shifted(500_000_000).0, Verdict::Pass);
    assert_eq!(shifted(4_000_000_000).0, Verdict::Fail, "{}", shifted(4_000_000_000).1);
    assert_eq!(shifted(-3_000_000_000).0, Verdict::Fail, "{}", shifted(-3_000_000_000).1);
    let mut never = good.clone();
    never.histories.get_mut("jailed").unwrap().retain(
        |record| !matches!(record, Record::Event(e) if matches!(e.event, Event::LeadingEnded { .. })),
    );
    let (verdict, reason) = verdict_of(&never, "jailed-loses-the-lease");
    assert_eq!(verdict, Verdict::Fail, "{reason}");
    assert!(reason.contains("led on"), "{reason}");
}

#[test]
fn a_retry_that_was_not_needed_or_did_not_help_is_not_hidden() {
    let good = other("retry-storm");
    for name in ["hidden-by-client-go", "hidden-by-kube", "refused-without-retries"] {
        assert_eq!(verdict_of(&good, name).0, Verdict::Pass);
    }
    let mut seen = good.clone();
    let last = requests(&mut seen, "like-kube").pop().unwrap();
    last.exchange.as_mut().unwrap().class = Some(Class::FlowControl);
    *last_counts(&mut seen, "kube-apiserver-1").get_mut("dispatched").unwrap() -= 1;
    *last_counts(&mut seen, "kube-apiserver-1").get_mut("waitsExecuteTrue").unwrap() -= 1;
    *last_counts(&mut seen, "kube-apiserver-1").get_mut("waitsExecuteFalse").unwrap() += 1;
    *last_counts(&mut seen, "kube-apiserver-1").get_mut("rejected:concurrency-limit").unwrap() += 1;
    let (verdict, reason) = verdict_of(&seen, "hidden-by-kube");
    assert_eq!(verdict, Verdict::Fail, "{reason}");
    assert!(reason.starts_with("9 of 10 requests succeeded"), "{reason}");
    let mut lost = good;
    let history = lost.histories.get_mut("like-client-go").unwrap();
    let first = |record: &Record| matches!(record, Record::Op(op) if matches!(op.op, Op::Request { .. }));
    let at = history.iter().position(first).unwrap();
    history.remove(at);
    let (verdict, reason) = verdict_of(&lost, "hidden-by-client-go");
    assert_eq!(verdict, Verdict::Inconclusive, "the server counted it: {reason}");
}

/// Judges a recorded run by another objective.
fn finding_by(input: &mut EvidenceInput, objective: Objective) -> Finding {
    input.plan.objectives = vec![PlannedObjective { name: "another".to_owned(), objective, predicted: None }];
    found(input)
}

fn judged_by(input: &mut EvidenceInput, objective: Objective) -> (Verdict, String) {
    let finding = finding_by(input, objective);
    (finding.verdict, finding.reason)
}

#[test]
fn a_success_rate_counts_exactly_up_to_its_limit() {
    let mut input = queue("v1.37.2");
    let rate = |at_least: Option<&str>, at_most: Option<&str>, client: &str| {
        let percent = |text: &str| text.parse().unwrap();
        Objective::SuccessRate(SuccessRate {
            name: "another".to_owned(),
            client: client.to_owned(),
            at_least: at_least.map(percent),
            at_most: at_most.map(percent),
        })
    };
    let mut verdict = |at_least, at_most, client| judged_by(&mut input, rate(at_least, at_most, client)).0;
    // 44 of 450 are 9.78 %.
    assert_eq!(verdict(Some("9.777%"), None, "batch"), Verdict::Pass);
    assert_eq!(verdict(Some("9.778%"), None, "batch"), Verdict::Fail);
    assert_eq!(verdict(None, Some("9.778%"), "batch"), Verdict::Pass);
    assert_eq!(verdict(None, Some("9.777%"), "batch"), Verdict::Fail);
    assert_eq!(verdict(Some("100%"), None, "control"), Verdict::Pass);
    let lost = requests(&mut input, "control").pop().unwrap();
    lost.exchange.as_mut().unwrap().class = None;
    lost.outcome = Outcome::Unknown { reason: "timeout".to_owned() };
    let (verdict, reason) = judged_by(&mut input, rate(Some("100%"), None, "control"));
    assert_eq!(verdict, Verdict::Fail, "what was not answered is no success: {reason}");
    input.histories.get_mut("control").unwrap().pop();
    let (verdict, reason) = judged_by(&mut input, rate(Some("1%"), None, "control"));
    assert_eq!(verdict, Verdict::Inconclusive, "the record is cut: {reason}");
}

/// Who reads "pass" may take the level for a wall.
#[test]
fn a_pass_by_a_leak_that_was_predicted_says_so() {
    let input = reject("v1.37.2");
    let prepared = quakeproof::report::prepare(&input, "head");
    let summary = prepared.report.summary;
    assert!(
        summary.contains("no shares and executed 31 requests all the same, as was predicted"),
        "{summary}"
    );
    let summary = quakeproof::report::prepare(&queue("v1.37.2"), "head").report.summary;
    assert!(!summary.contains("all the same"), "{summary}");
}

/// The model's queue beside what the API server said of it once a second.
#[test]
fn a_queue_fills_up_to_its_room_and_never_beyond_by_model_and_by_server() {
    for version in VERSIONS {
        let input = queue(version);
        let boundaries = Boundaries::of(&input);
        let logs = ClientLog::all(&input, boundaries.boot.as_ref());
        let [fill] = queue_fills(&input, &logs).try_into().unwrap();
        assert_eq!((fill.level.as_str(), fill.server.0.as_str()), ("jail", "kube-apiserver-1"));
        let most = |waiting: &mut dyn Iterator<Item = u64>| waiting.max();
        assert_eq!(most(&mut fill.model.iter().map(|(_, n)| *n)), Some(50), "{version}");
        assert_eq!(most(&mut fill.seen.iter().map(|(_, _, n)| *n)), Some(50), "{version}");
        assert_eq!(fill.model.last().map(|(_, n)| *n), Some(0), "every wait ends");
        assert!(fill.seen.len() >= 14 && fill.model.is_sorted_by_key(|(at, _)| *at));
        let model = |at: MonoNs| fill.model.iter().rev().find(|(from, _)| *from <= at).map_or(0, |(_, n)| *n);
        for (call, ret, seen) in &fill.seen {
            let (low, high) = (model(*call).min(model(*ret)), model(*call).max(model(*ret)));
            assert!(
                low.saturating_sub(2) <= *seen && *seen <= high + 2,
                "{version}: {seen}, {low} to {high}"
            );
        }
    }
}

#[test]
fn latency_counts_what_was_refused_as_late() {
    let mut input = queue("v1.37.2");
    let within = |input: &mut EvidenceInput, client: &str, percentile: u8, ms: u64| {
        let objective = Latency {
            name: "another".to_owned(),
            client: client.to_owned(),
            percentile,
            within: Span::millis(ms),
        };
        judged_by(input, Objective::Latency(objective))
    };
    assert_eq!(within(&mut input, "control", 99, 1000).0, Verdict::Pass);
    assert_eq!(within(&mut input, "control", 99, 1).0, Verdict::Fail);
    // 44 of 450 were executed, each after seconds in the queue.
    assert_eq!(within(&mut input, "batch", 99, 60_000).0, Verdict::Fail);
    assert_eq!(within(&mut input, "batch", 9, 60_000).0, Verdict::Pass);
    assert_eq!(within(&mut input, "batch", 10, 60_000).0, Verdict::Fail);
}
