//! Priority levels: requests by what became of them, seats, leaks.

use super::interval::{Interval, Relation, relate};
use super::item::{About, Item, Outcome, Ruling, SAME, Value, ruled};
use super::{Run, Sides};
use crate::apf::range::Range;
use crate::check::apf::facts::{ApfFacts, ApfLeak, ApfPhase, ApfServer};
use std::collections::BTreeMap;

/// What became of the verdict of each objective.
type Decided<'a> = BTreeMap<&'a str, Outcome>;

/// Counts, seats and leaks of every level.
pub(super) fn items(runs: &Sides<Run>, decided: &Decided) -> Vec<Item> {
    let names = runs.names(|run| run.apf.iter().map(|level| level.level.as_str()));
    names.into_iter().flat_map(|name| of_level(runs, name, decided)).collect()
}

fn about(subject: String, what: &str, unit: &str) -> About {
    About { area: "level", subject, what: what.to_owned(), unit: unit.to_owned() }
}

fn of_level(runs: &Sides<Run>, name: &str, decided: &Decided) -> Vec<Item> {
    let find = |run: &Run| run.apf.iter().position(|level| level.level == name);
    let Some(levels) = runs.present(|run| run.apf.get(find(run)?)) else {
        return vec![about(name.to_owned(), "level", "").missing(&runs.map(|run| find(run).is_some()))];
    };
    let loads = levels.names(|level| level.phases.iter().map(|phase| phase.name.as_str()));
    let mut items: Vec<Item> =
        loads.into_iter().flat_map(|load| of_load(&levels, load, decides(runs, load, decided))).collect();
    items.extend(others(&levels, name));
    items.extend(seats(&levels));
    items.extend(leaks(&levels));
    items
}

/// Requests on other levels, which the level is to leave alone, and whether both sides counted the same.
fn others(levels: &Sides<&ApfFacts>, name: &str) -> Vec<Item> {
    let refused = levels.map(|level| level.control.sent.saturating_sub(level.control.ok));
    let ruling = match relate(&refused.map(|count| Interval::exactly(*count))) {
        Relation::Equal => SAME,
        Relation::Overlapping => scattered(),
        Relation::Higher => ruled(Outcome::Worse, "requests that the level is to leave alone"),
        Relation::Lower => ruled(Outcome::Better, "requests that the level is to leave alone"),
    };
    let subject = format!("other levels than {name}");
    let values = refused.map(|count| Value::count(*count));
    let mut items = vec![about(subject, "not executed", "requests").item(values, ruling)];
    if !levels.agree(|level| level.accounting.holds) {
        let words = levels.map(|level| {
            Value::word(match level.accounting.holds {
                Some(true) => "agree",
                Some(false) => "differ",
                None => "unknown",
            })
        });
        let ruling = ruled(Outcome::Changed, "clients and API servers no longer count the same");
        items.push(about(name.to_owned(), "accounting", "").item(words, ruling));
    }
    items
}

/// What the verdicts on a load have become; none when no verdict changed, or one for the better and one for the worse.
fn decides(runs: &Sides<Run>, load: &str, decided: &Decided) -> Option<Outcome> {
    let objectives = runs.names(|run| run.judged_by.get(load).into_iter().flatten().map(String::as_str));
    let any = |wanted| objectives.iter().any(|name| decided.get(name) == Some(&wanted));
    match (any(Outcome::Worse), any(Outcome::Better)) {
        (true, false) => Some(Outcome::Worse),
        (false, true) => Some(Outcome::Better),
        _ => None,
    }
}

/// What more of a count means by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    /// Nothing.
    Neutral,
    /// It is worse where it is not what was predicted.
    Leak,
    /// It is worse: nobody predicts it.
    Harm,
}

/// A count of a load, and what is predicted of it.
#[derive(Clone, Copy)]
struct Count {
    what: &'static str,
    more: More,
    of: fn(&ApfPhase) -> u64,
    predicted: fn(&ApfPhase) -> Option<Range>,
}

impl Count {
    const fn neutral(
        what: &'static str,
        of: fn(&ApfPhase) -> u64,
        predicted: fn(&ApfPhase) -> Option<Range>,
    ) -> Self {
        Self { what, more: More::Neutral, of, predicted }
    }

    const fn harm(what: &'static str, of: fn(&ApfPhase) -> u64) -> Self {
        Self { what, more: More::Harm, of, predicted: |_| None }
    }
}

const COUNTS: [Count; 7] = [
    Count::neutral("sent", |load| load.sent, |_| None),
    Count::neutral("ok", |load| load.ok, |load| Some(load.predicted.as_ref()?.ok)),
    Count::neutral(
        "queueFull",
        |load| load.rejected.queue_full,
        |load| Some(load.predicted.as_ref()?.rejected.queue_full),
    ),
    Count::neutral(
        "timeOut",
        |load| load.rejected.time_out,
        |load| Some(load.predicted.as_ref()?.rejected.time_out),
    ),
    Count::neutral(
        "concurrencyLimit",
        |load| load.rejected.concurrency_limit,
        |load| Some(load.predicted.as_ref()?.rejected.concurrency_limit),
    ),
    Count::harm("other", |load| load.rejected.other),
    Count::harm("unanswered", |load| load.unanswered),
];

/// Executed while the level had no shares. What is executed once it was given some is no leak.
const LEAKED: Count = Count {
    what: "okWithoutShares",
    more: More::Leak,
    of: |load| load.ok.saturating_sub(load.ok_after_restore),
    predicted: |load| load.predicted.as_ref().filter(|_| load.ok_after_restore == 0).map(|known| known.ok),
};

fn of_load(levels: &Sides<&ApfFacts>, name: &str, decided: Option<Outcome>) -> Vec<Item> {
    let subject = subject(levels, name);
    let about = |what: &str, unit: &str| about(subject.clone(), what, unit);
    let find = |level: &ApfFacts| level.phases.iter().position(|load| load.name == name);
    let Some(loads) = levels.present(|level| level.phases.get(find(level)?)) else {
        return vec![about("load", "").missing(&levels.map(|level| find(level).is_some()))];
    };
    if !loads.agree(|load| (load.shares, &load.limit_response)) {
        let words = loads.map(|load| Value::word(format!("{}, {} shares", load.limit_response, load.shares)));
        let reason = "its level was not the same, so its requests can't be held against each other";
        return vec![about("load", "").item(words, ruled(Outcome::NotDistinguishable, reason))];
    }
    let leaks = loads.iter().all(|load| load.shares == 0).then_some(&LEAKED);
    COUNTS
        .iter()
        .chain(leaks)
        .map(|count| {
            let values = loads.map(|load| Value::count((count.of)(load)));
            about(count.what, "requests").item(values, of_count(&loads, count, decided))
        })
        .collect()
}

fn subject(levels: &Sides<&ApfFacts>, of: &str) -> String {
    let level = levels.a.first().map_or("", |level| level.level.as_str());
    format!("{of} on {level}")
}

fn of_count(loads: &Sides<&ApfPhase>, count: &Count, decided: Option<Outcome>) -> Ruling {
    let higher = match relate(&loads.map(|load| Interval::exactly((count.of)(load)))) {
        Relation::Equal => return SAME,
        Relation::Overlapping => return scattered(),
        Relation::Higher => true,
        Relation::Lower => false,
    };
    let predicted =
        |load: &&ApfPhase| (count.predicted)(load).is_some_and(|range| range.contains((count.of)(load)));
    if count.more == More::Harm {
        return ruled(for_worse(higher), "nobody predicts any");
    }
    if loads.iter().all(predicted) {
        return ruled(Outcome::NotDistinguishable, WITHIN);
    }
    if loads.iter().any(|load| load.predicted.is_none()) {
        return ruled(Outcome::Changed, "no objective judges this load on both sides");
    }
    match (decided, count.more) {
        (Some(outcome), _) => ruled(outcome, "as the verdict of its objective"),
        (None, More::Leak) => ruled(for_worse(higher), "what a level without shares lets through"),
        (None, _) => ruled(Outcome::Changed, "the count changed, no verdict on it did"),
    }
}

const WITHIN: &str = "as predicted on both sides";

fn for_worse(higher: bool) -> Outcome {
    if higher { Outcome::Worse } else { Outcome::Better }
}

fn scattered() -> Ruling {
    ruled(Outcome::NotDistinguishable, "neither side is above the other in all of its runs")
}

type Seats = (&'static str, fn(&ApfServer) -> Option<u64>);

const SEATS: [Seats; 4] = [
    ("nominal seats", |server| server.seats.nominal),
    ("lower seats", |server| server.seats.lower),
    ("upper seats", |server| server.seats.upper),
    ("current seats", |server| server.seats.current),
];

fn seats(levels: &Sides<&ApfFacts>) -> Vec<Item> {
    let names = levels.names(|level| level.servers.iter().map(|server| server.name.as_str()));
    names.into_iter().flat_map(|name| of_server(levels, name)).collect()
}

fn of_server(levels: &Sides<&ApfFacts>, name: &str) -> Vec<Item> {
    let subject = subject(levels, name);
    let find = |level: &ApfFacts| level.servers.iter().position(|server| server.name == name);
    let Some(servers) = levels.present(|level| level.servers.get(find(level)?)) else {
        let present = levels.map(|level| find(level).is_some());
        return vec![about(subject, "seats", "").missing(&present)];
    };
    SEATS
        .iter()
        .map(|(what, of)| {
            let values =
                servers.map(|server| of(server).map_or_else(|| Value::word("none shown"), Value::count));
            about(subject.clone(), what, "seats").item(values, of_seats(&servers.map(|server| of(server))))
        })
        .collect()
}

fn of_seats(shown: &Sides<Option<u64>>) -> Ruling {
    if shown.iter().all(Option::is_none) {
        return SAME;
    }
    let Some(seats) = shown.present(|seats| *seats) else {
        return ruled(Outcome::NotDistinguishable, "not every server shows it");
    };
    match relate(&seats.map(|seats| Interval::exactly(*seats))) {
        Relation::Equal => SAME,
        Relation::Overlapping => scattered(),
        Relation::Higher | Relation::Lower => {
            ruled(Outcome::Changed, "a limit is neither good nor bad by itself")
        }
    }
}

type Leak = (&'static str, More, fn(&ApfLeak) -> u64);

const LEAKS: [Leak; 4] = [
    ("sent while held", More::Neutral, |leak| leak.sent_while_held),
    ("admitted while held", More::Leak, |leak| leak.admitted_while_held),
    ("admitted after", More::Leak, |leak| leak.admitted_after),
    ("concurrent", More::Leak, |leak| leak.concurrent),
];

fn leaks(levels: &Sides<&ApfFacts>) -> Vec<Item> {
    let names = levels.names(|level| level.leak.iter().map(|leak| leak.server.as_str()));
    names.into_iter().flat_map(|name| of_leak(levels, name)).collect()
}

fn of_leak(levels: &Sides<&ApfFacts>, server: &str) -> Vec<Item> {
    let subject = subject(levels, server);
    let find = |level: &ApfFacts| level.leak.iter().any(|leak| leak.server == server);
    if !levels.iter().all(|level| find(level)) {
        return vec![about(subject, "leak", "").missing(&levels.map(|level| find(level)))];
    }
    LEAKS
        .iter()
        .map(|(what, more, of)| {
            // A server that was held more than once has an entry for each time.
            let on_server = |level: &&ApfFacts| {
                level.leak.iter().filter(|leak| leak.server == server).map(of).fold(0, u64::saturating_add)
            };
            let values = levels.map(on_server);
            let ruling = of_leaked(levels, &values, *more);
            about(subject.clone(), what, "requests").item(values.map(|n| Value::count(*n)), ruling)
        })
        .collect()
}

fn of_leaked(levels: &Sides<&ApfFacts>, leaked: &Sides<u64>, more: More) -> Ruling {
    let as_predicted =
        |level: &&ApfFacts| level.phases.iter().filter_map(|load| load.predicted.as_ref()).all(|p| p.holds);
    let relation = relate(&leaked.map(|n| Interval::exactly(*n)));
    match (relation, more) {
        (Relation::Equal, _) => SAME,
        (Relation::Overlapping, _) => scattered(),
        _ if levels.iter().all(as_predicted) => ruled(Outcome::NotDistinguishable, WITHIN),
        (_, More::Neutral) => ruled(Outcome::Changed, "not as many had the chance"),
        (relation, _) => {
            ruled(for_worse(relation == Relation::Higher), "what a level without seats lets through")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{load, run, sides};

    fn with(change: impl Fn(&mut ApfPhase)) -> Run {
        let mut run = run();
        change(&mut run.apf[0].phases[0]);
        run
    }

    fn rulings(a: Run, b: Run, decided: Option<Outcome>) -> BTreeMap<String, Outcome> {
        let decided = decided.map(|outcome| ("holds", outcome)).into_iter().collect();
        let found = items(&sides(a, b), &decided).into_iter().filter(|item| item.outcome != Outcome::Same);
        found.map(|item| (format!("{} {}", item.subject, item.what), item.outcome)).collect()
    }

    fn only(what: &str, outcome: Outcome) -> BTreeMap<String, Outcome> {
        [(what.to_owned(), outcome)].into()
    }

    #[test]
    fn counts_as_predicted_are_not_told_apart() {
        let a = with(|load| load.rejected.queue_full = 10);
        let b = with(|load| load.rejected.queue_full = 12);
        let found = rulings(a, b, Some(Outcome::Worse));
        assert_eq!(found, only("batch on jail queueFull", Outcome::NotDistinguishable));
    }

    #[test]
    fn the_verdict_says_what_a_count_beyond_its_prediction_means() {
        let there = |decided| rulings(run(), with(|load| load.rejected.queue_full = 99), decided)["batch on jail queueFull"];
        assert_eq!(there(None), Outcome::Changed);
        assert_eq!(there(Some(Outcome::NotDistinguishable)), Outcome::Changed);
        assert_eq!(there(Some(Outcome::Worse)), Outcome::Worse);
        assert_eq!(there(Some(Outcome::Better)), Outcome::Better);
    }

    #[test]
    fn a_level_without_shares_that_lets_more_through_is_worse_by_itself() {
        let leaking = || with(|load| load.ok += 5);
        assert_eq!(rulings(run(), leaking(), None)["batch on jail okWithoutShares"], Outcome::Worse);
        assert_eq!(rulings(leaking(), run(), None)["batch on jail okWithoutShares"], Outcome::Better);
    }

    #[test]
    fn what_is_executed_once_there_are_shares_is_no_leak() {
        let restored = |ok| {
            with(move |load| {
                (load.ok, load.ok_after_restore) = (ok, ok);
            })
        };
        let found = rulings(restored(44), restored(60), None);
        assert_eq!(found, only("batch on jail ok", Outcome::Changed));
        let leaking = with(|load| (load.ok, load.ok_after_restore) = (44, 40));
        let found = rulings(restored(44), leaking, None);
        assert_eq!(found, only("batch on jail okWithoutShares", Outcome::Worse));
    }

    #[test]
    fn a_load_that_no_objective_judges_makes_nothing_worse_by_what_comes_through() {
        let unjudged = |ok| {
            with(move |load| {
                (load.ok, load.predicted) = (ok, None);
            })
        };
        let found = rulings(unjudged(2), unjudged(3), None);
        assert!(found.values().all(|outcome| *outcome == Outcome::Changed), "{found:?}");
        assert!(!found.is_empty());
    }

    #[test]
    fn more_without_an_answer_is_worse_and_less_is_better() {
        let lost = || with(|load| load.unanswered = 1);
        assert_eq!(rulings(run(), lost(), None), only("batch on jail unanswered", Outcome::Worse));
        assert_eq!(rulings(lost(), run(), None), only("batch on jail unanswered", Outcome::Better));
        let other = with(|load| load.rejected.other = 1);
        assert_eq!(rulings(run(), other, None), only("batch on jail other", Outcome::Worse));
    }

    #[test]
    fn loads_on_levels_that_differ_are_not_held_against_each_other() {
        let found = rulings(run(), with(|load| load.shares = 5), None);
        assert_eq!(found, only("batch on jail load", Outcome::NotDistinguishable));
    }

    #[test]
    fn seats_that_differ_are_a_change_and_seats_that_only_one_side_shows_prove_nothing() {
        let seats = |current| {
            let mut run = run();
            run.apf[0].servers[0].seats.current = current;
            run
        };
        let what = "kube-apiserver-1 on jail current seats";
        assert_eq!(rulings(run(), seats(Some(7)), None), only(what, Outcome::Changed));
        assert_eq!(rulings(run(), seats(None), None), only(what, Outcome::NotDistinguishable));
        assert_eq!(rulings(seats(None), seats(None), None), BTreeMap::new());
    }

    #[test]
    fn a_leak_that_grew_is_worse_unless_it_was_predicted() {
        let leaking = |holds| {
            let mut run = run();
            run.apf[0].leak[0].admitted_while_held += 1;
            for predicted in run.apf[0].phases.iter_mut().filter_map(|load| load.predicted.as_mut()) {
                predicted.holds = holds;
            }
            run
        };
        let what = "kube-apiserver-1 on jail admitted while held";
        assert_eq!(rulings(run(), leaking(false), None), only(what, Outcome::Worse));
        assert_eq!(rulings(leaking(false), run(), None), only(what, Outcome::Better));
        assert_eq!(rulings(run(), leaking(true), None), only(what, Outcome::NotDistinguishable));
    }

    #[test]
    fn with_several_runs_a_side_only_what_all_of_them_show_counts() {
        let lost = |n| with(move |load| load.unanswered = n);
        let found = |b| items(&Sides { a: vec![lost(0), lost(1)], b }, &BTreeMap::new());
        let unanswered = |items: Vec<Item>| {
            items.into_iter().find(|item| item.what == "unanswered").map(|item| item.outcome)
        };
        assert_eq!(unanswered(found(vec![lost(2), lost(3)])), Some(Outcome::Worse));
        assert_eq!(unanswered(found(vec![lost(1), lost(3)])), Some(Outcome::NotDistinguishable));
    }

    #[test]
    fn a_load_of_one_side_only_is_not_the_same() {
        let mut more = run();
        more.apf[0].phases.push(load("second"));
        let found = rulings(run(), more, None);
        assert_eq!(found, only("second on jail load", Outcome::NotDistinguishable));
        let mut none = run();
        none.apf.clear();
        assert_eq!(rulings(run(), none, None), only("jail level", Outcome::NotDistinguishable));
    }
}
