//! When a leader that is held up stops leading, at the edges of its bounds.

use super::{finding_by, other};
use quakeproof::check::apf::lease::LosesLease;
use quakeproof::check::{Finding, Verdict};
use quakeproof::clock::MonoNs;
use quakeproof::drill;
use quakeproof::drill::parameters::ParameterValues;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Event, EventRecord, Record};
use quakeproof::timeline::EvidenceInput;
use quakeproof::timeline::boundaries::Boundaries;
use std::time::Duration;

const S: u64 = 1_000_000_000;

fn good() -> EvidenceInput {
    other("jailed-leader")
}

fn judged(input: &EvidenceInput, slack_ns: u64) -> Finding {
    let objective = LosesLease {
        name: "another".to_owned(),
        client: "jailed".to_owned(),
        slack: Span(Duration::from_nanos(slack_ns)),
    };
    finding_by(&mut input.clone(), Objective::LosesLease(objective))
}

/// When the injection began, when the level was seen in force, and when it was ended.
fn level(input: &EvidenceInput) -> (MonoNs, MonoNs, MonoNs) {
    let fault = Boundaries::of(input).faults.remove(0);
    (fault.injecting.unwrap().mono_ns, fault.verified.unwrap().mono_ns, fault.ended.unwrap().mono_ns)
}

/// The first event of its kind that the jailed elector recorded.
fn first(input: &mut EvidenceInput, is: impl Fn(&Event) -> bool) -> &mut EventRecord {
    let mut events =
        input.histories.get_mut("jailed").unwrap().iter_mut().filter_map(|record| match record {
            Record::Event(event) => Some(event),
            _ => None,
        });
    events.find(|event| is(&event.event)).unwrap()
}

fn begins(event: &Event) -> bool {
    matches!(event, Event::Leading { .. })
}

fn ends(event: &Event) -> bool {
    matches!(event, Event::LeadingEnded { .. })
}

/// As if the leader had begun or stopped at another instant.
fn at(instant: MonoNs, which: fn(&Event) -> bool) -> EvidenceInput {
    let mut input = good();
    first(&mut input, which).at_ns = instant;
    input
}

fn before(instant: MonoNs) -> MonoNs {
    MonoNs(instant.0 - 1)
}

/// `renewDeadline` is 10 s, `retryPeriod` 2 s.
#[test]
fn the_bounds_of_the_loss_belong_to_it() {
    let (begun, seen, _) = level(&good());
    let stopped = |instant: MonoNs| judged(&at(instant, ends), S).verdict;
    let (earliest, latest) = (begun.plus(9 * S), seen.plus(13 * S));
    assert_eq!(stopped(before(earliest)), Verdict::Fail);
    assert_eq!(stopped(earliest), Verdict::Pass);
    assert_eq!(stopped(latest), Verdict::Pass);
    assert_eq!(stopped(latest.plus(1)), Verdict::Fail);
}

#[test]
fn a_level_that_is_ended_in_the_last_possible_instant_was_in_force_for_long_enough() {
    let (_, seen, ended) = level(&good());
    let slack = ended.since(seen) - 12 * S;
    assert_eq!(judged(&good(), slack).verdict, Verdict::Pass);
    let longer = judged(&good(), slack + 1);
    assert_eq!(longer.verdict, Verdict::Inconclusive);
    assert!(longer.reason.contains("not in force for as long as that takes"), "{}", longer.reason);
    let in_that_instant = judged(&at(ended, ends), slack);
    assert_eq!(in_that_instant.verdict, Verdict::Pass, "{}", in_that_instant.reason);
    assert_eq!(in_that_instant.observed, Some(ended.since(seen)));
    let later = judged(&at(ended.plus(1), ends), slack);
    assert_eq!((later.verdict, later.observed), (Verdict::Fail, None));
    assert!(later.reason.contains("led on while its level was in force"), "{}", later.reason);
}

#[test]
fn who_leads_in_the_instant_of_the_injection_led_when_the_level_was_made() {
    let (begun, ..) = level(&good());
    assert_eq!(judged(&at(begun, begins), S).verdict, Verdict::Pass);
    let too_late = judged(&at(begun.plus(1), begins), S);
    assert_eq!(too_late.verdict, Verdict::Inconclusive);
    assert!(too_late.reason.contains("did not lead when its level was made"), "{}", too_late.reason);
    assert_eq!(judged(&at(begun, ends), S).verdict, Verdict::Fail, "before its rules say so");
    assert_eq!(judged(&at(before(begun), ends), S).verdict, Verdict::Inconclusive);
}

#[test]
fn a_time_as_leader_that_was_over_before_is_not_what_the_level_ended() {
    let mut input = good();
    let (mut begin, mut end) = (first(&mut input, begins).clone(), first(&mut input, ends).clone());
    end.at_ns = before(begin.at_ns);
    begin.at_ns = before(end.at_ns);
    input.histories.get_mut("jailed").unwrap().splice(1..1, [Record::Event(begin), Record::Event(end)]);
    let finding = judged(&input, S);
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.reason);
    assert_eq!(finding.observed, judged(&good(), S).observed);
}

/// It holds for 10 s what takes up to 13 s.
const TOO_BRIEFLY: &str = include_str!("../data/drill/lease-held-up-too-briefly.yaml");

fn refused(from: &str, to: &str) -> Option<String> {
    assert!(TOO_BRIEFLY.contains(from));
    let text = TOO_BRIEFLY.replace(from, to);
    drill::load("drill.yaml", &text, &ParameterValues::default()).err().map(|errors| errors.to_string())
}

#[test]
fn a_drill_holds_a_leader_up_until_it_surely_lost_its_lease() {
    assert_eq!(refused("hold: {for: 10s}", "hold: {for: 13s}"), None);
    let said = refused("hold: {for: 10s}", "hold: {for: 12999ms}").unwrap();
    assert!(said.contains("up to 13s after its level is in force, which is for 12"), "{said}");
    let looked = "observe: {until: apiReady, atMost: 30s, then: 1s}";
    let with_look = format!("hold: {{for: 1s}}\n    - {looked}");
    assert_eq!(refused("hold: {for: 10s}", &with_look), None, "an observation lasts as long as it lasts");
}

#[test]
fn the_first_level_that_holds_a_leader_up_is_the_one_that_counts() {
    let end = "    - end: {fault: apfLevel}\n";
    let level = "apfLevel: {name: again, shares: 0, limitResponse: {queue: {}}, clients: [jailed]}";
    let twice = format!("{end}    - {level}\n    - hold: {{for: 30s}}\n{end}");
    let said = refused(end, &twice).unwrap();
    assert!(said.contains("up to 13s after its level is in force, which is for 10s"), "{said}");
}
