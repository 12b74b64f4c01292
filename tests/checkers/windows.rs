//! When views are judged, to the instant, and how old or how far apart they may be.

use crate::client_facts::client;
use crate::world::{LOOK_EVERY, MAX_LAG, MS, World};
use crate::{answer_of, finding, history, instant, lost_timeline, op_at};
use quakeproof::check::seen::ObservedView;
use quakeproof::check::window::{Window, Windows};
use quakeproof::check::{Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent, Phase};
use quakeproof::timeline::{EvidenceInput, Timeline, marks};
use std::time::Duration;

fn windows(input: &EvidenceInput, settle_ns: u64) -> Windows {
    let timeline = Timeline::of(input);
    Windows::of(&timeline, &timeline.clients(input), settle_ns)
}

fn of(from: u64, to: u64) -> Window {
    Window::Of(MonoNs(from), MonoNs(to))
}

/// Sets when collecting begins.
fn collect_at(input: &mut EvidenceInput, at: MonoNs) {
    let collecting = JournalEvent::Phase { phase: Phase::Collect };
    input.journal.iter_mut().find(|e| e.event == collecting).unwrap().mono_ns = at;
}

fn settle(input: &mut EvidenceInput, ns: u64, max_lag_ms: u64) {
    for planned in &mut input.plan.objectives {
        if let Objective::NoClientOnLostTimeline(objective) = &mut planned.objective {
            (objective.settle, objective.max_lag) =
                (Span(Duration::from_nanos(ns)), Span::millis(max_lag_ms));
        }
    }
}

/// A list of the restored timeline, from some time after clients have settled.
fn a_list<'a>(input: &'a mut EvidenceInput, world: &World) -> &'a mut OpRecord {
    op_at(input, "lister", world.judged_from() + 700)
}

fn invent(op: &mut OpRecord) {
    answer_of(op).ids.as_mut().unwrap().0.insert(9_999);
}

// Windows.

#[test]
fn a_window_begins_when_clients_have_settled_since_etcd_was_seen_to_serve() {
    let world = World::honest();
    let mut input = world.input();
    let (ended, collected) = (world.verified_at() * MS, world.collect_at() * MS);
    assert_eq!(windows(&input, 7).after, of(ended + 7, collected));
    // The restore came late: nobody can have settled before.
    for entry in &mut input.journal {
        if let JournalEvent::Fact { fact: Fact::Restored { restored_ns, .. } } = &mut entry.event {
            *restored_ns = MonoNs(ended + 50 * MS);
        }
    }
    assert_eq!(windows(&input, 7).after, of(ended + 50 * MS + 7, collected));
}

#[test]
fn a_window_that_would_end_as_it_begins_was_not_observed() {
    let world = World::honest();
    let input = world.input();
    let most = (world.collect_at() - world.verified_at()) * MS;
    let Window::Unknown(why) = windows(&input, most).after else { panic!("no time is left") };
    assert_eq!(why, "the record ends before clients had time to settle");
    let collected = world.collect_at() * MS;
    assert_eq!(windows(&input, most - 1).after, of(collected - 1, collected));
}

#[test]
fn a_restored_timeline_that_begins_where_the_lost_one_ended_has_one_phase() {
    let bumped = |by| windows(&World { bump: Some(by), ..World::honest() }.input(), 0).before;
    let Window::NotApplicable(why) = bumped(40) else { panic!("nothing is left to pass") };
    assert_eq!(why, "the restored timeline starts at revision 180, the lost one ended at 180");
    let one_left = bumped(39);
    assert!(matches!(&one_left, Window::Unknown(why) if why.contains("a longer hold")), "{one_left:?}");
}

#[test]
fn the_phase_under_way_lasts_until_the_old_revision_has_certainly_been_passed() {
    let world = World { bump: None, ..World::honest() };
    let mut input = world.input();
    let passed = Timeline::of(&input).marks.get(marks::REVISION_PASSED).unwrap();
    assert!(passed.lower < passed.upper);
    let (ended, collected) = (world.verified_at() * MS, world.collect_at() * MS);
    let both = windows(&input, 0);
    assert_eq!((both.before, both.after), (of(ended, passed.upper.0), of(passed.upper.0, collected)));
    // Clients that settle only as it may be passed can't be judged before.
    let settled = passed.lower.0 - ended;
    assert_eq!(windows(&input, settled - 1).before, of(passed.lower.0 - 1, passed.upper.0));
    let late = windows(&input, settled);
    assert!(matches!(&late.before, Window::Unknown(why) if why.contains("a longer hold")), "{late:?}");
    assert_eq!(late.after, of(passed.lower.0, collected));
    // A record that ends as it is passed.
    collect_at(&mut input, MonoNs(passed.upper.0 + 1));
    assert_eq!(windows(&input, 0).after, of(passed.upper.0, passed.upper.0 + 1));
    for end in [passed.upper.0, passed.upper.0 - 1] {
        collect_at(&mut input, MonoNs(end));
        let cut = windows(&input, 0);
        assert_eq!(cut.before, of(ended, end));
        assert!(matches!(&cut.after, Window::Unknown(why) if why.contains("as the old revision is passed")));
    }
}

#[test]
fn a_run_that_did_not_get_to_collecting_was_observed_until_its_last_record() {
    let world = World::honest();
    let mut input = world.input();
    input.journal.retain(|e| e.event != JournalEvent::Phase { phase: Phase::Collect });
    let Window::Of(_, to) = windows(&input, 0).after else { panic!("not observed") };
    assert_eq!(to, MonoNs((world.end() + 20) * MS), "of the journal");
    input.journal.retain(|e| e.mono_ns.0 <= world.collect_at() * MS);
    let Window::Of(_, to) = windows(&input, 0).after else { panic!("not observed") };
    assert_eq!(to, MonoNs((world.end() + 2) * MS), "of the histories");
}

// Views in a window.

#[test]
fn a_view_asked_for_in_the_first_instant_of_a_window_counts_and_in_the_last_does_not() {
    let world = World::honest();
    let mut input = world.input();
    let list = a_list(&mut input, &world);
    let call = list.call_ns;
    invent(list);
    let settled = call.0 - world.verified_at() * MS;
    settle(&mut input, settled, MAX_LAG);
    let first = lost_timeline(&input);
    assert_eq!((first.verdict, first.observed), (Verdict::Fail, Some(1)), "{}", first.reason);
    assert!(
        first.reason.contains("up to 1 objects that etcd does not have, up to 0 missing"),
        "{}",
        first.reason
    );
    settle(&mut input, settled + 1, MAX_LAG);
    assert_eq!(lost_timeline(&input).verdict, Verdict::Pass, "still converging");

    settle(&mut input, 300 * MS, MAX_LAG);
    collect_at(&mut input, call);
    assert_eq!(lost_timeline(&input).verdict, Verdict::Pass, "the harness was collecting already");
    collect_at(&mut input, MonoNs(call.0 + 1));
    assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
}

#[test]
fn a_view_is_stale_once_a_newer_write_was_acknowledged_so_long_before() {
    let world = World::honest();
    // Of the revision `back` before the newest one that was acknowledged `MAX_LAG` before the list.
    let lagging = |back: u64, early: u64| {
        let mut input = world.input();
        let list = a_list(&mut input, &world);
        let long_ago = list.call_ns.0 / MS - MAX_LAG - early;
        let old: Vec<_> =
            world.restored().into_iter().filter(|(at, _, _)| *at == 0 || at + 3 <= long_ago).collect();
        let revision = old.iter().map(|(_, _, r)| *r).max().unwrap() - back;
        let answer = answer_of(list);
        answer.revision = Some(revision);
        answer.ids = Some(old.iter().filter(|(_, _, r)| *r <= revision).map(|(_, id, _)| *id).collect());
        input
    };
    assert_eq!(lost_timeline(&lagging(0, 0)).verdict, Verdict::Pass);
    let input = lagging(1, 0);
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    assert!(
        found.reason.contains("1 views lacked writes acknowledged more than 500.0 ms earlier"),
        "{}",
        found.reason
    );
    assert_eq!(found.evidence.len(), 1);
    let phase = &client(&input, "lister").phases[1];
    assert_eq!((phase.observed, phase.stale_views, phase.false_views), (ObservedView::Stale, 1, 0));
}

#[test]
fn a_time_without_a_look_is_tolerated_up_to_the_lag_or_three_intervals() {
    let world = World::honest();
    let first = a_list(&mut world.input(), &world).call_ns.0 / MS;
    let without = |lists: u64, max_lag: u64| {
        let mut input = world.input();
        settle(&mut input, 300 * MS, max_lag);
        let quiet = first..first + lists * LOOK_EVERY;
        history(&mut input, "lister").retain(|r| !quiet.contains(&instant(r)));
        lost_timeline(&input)
    };
    assert_eq!(without(4, MAX_LAG).verdict, Verdict::Pass, "500 ms from look to look");
    let longer = without(5, MAX_LAG);
    assert_eq!(longer.verdict, Verdict::Inconclusive);
    assert!(longer.reason.contains("no view could be compared for 600.0 ms"), "{}", longer.reason);
    assert_eq!(without(2, 150).verdict, Verdict::Pass, "three intervals");
    assert_eq!(without(3, 150).verdict, Verdict::Inconclusive, "four intervals");
}

#[test]
fn a_time_without_a_look_counts_from_the_begin_of_a_window_and_up_to_its_end() {
    let world = World::honest();
    for (from, to) in [
        (world.judged_from(), world.judged_from() + MAX_LAG + LOOK_EVERY),
        (world.collect_at() - MAX_LAG - LOOK_EVERY, world.collect_at()),
    ] {
        let mut input = world.input();
        history(&mut input, "lister").retain(|r| !(from..to).contains(&instant(r)));
        let found = lost_timeline(&input);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{from} to {to}: {}", found.reason);
    }
}

#[test]
fn a_history_that_was_not_closed_leaves_the_phase_open_in_which_it_broke_off() {
    let world = World { bump: None, ..World::honest() };
    let mut input = world.input();
    assert_eq!(lost_timeline(&input).verdict, Verdict::Pass);
    history(&mut input, "lister").pop();
    let phases = client(&input, "lister").phases;
    assert_eq!(phases[0].observed, ObservedView::True);
    assert_eq!(phases[1].observed, ObservedView::Unknown);
    assert!(phases[1].reason.as_ref().unwrap().contains("not closed in order"), "{:?}", phases[1].reason);
    assert_eq!(lost_timeline(&input).verdict, Verdict::Inconclusive);
}

#[test]
fn what_could_not_be_compared_is_counted_and_says_why() {
    let world = World::honest();
    let mut input = world.input();
    let from = world.judged_from();
    // Half of the lists lack their revision, the others are refused; GETs get no answer.
    for (n, record) in (0..).zip(history(&mut input, "lister").iter_mut().filter(|r| instant(r) >= from)) {
        if let Record::Op(op) = record {
            if n % 2 == 0 {
                answer_of(op).revision = None;
            } else {
                op.outcome = Outcome::Failed { status: Some(429), reason: "too-many".to_owned() };
            }
        }
    }
    for record in history(&mut input, "reader").iter_mut().filter(|r| instant(r) >= from) {
        if let Record::Op(op) = record {
            op.outcome = Outcome::Unknown { reason: "timeout".to_owned() };
        }
    }
    let lists = (from..world.collect_at()).filter(|at| at % LOOK_EVERY == 5).count() as u64;
    let lister = client(&input, "lister");
    let phase = &lister.phases[1];
    assert_eq!((phase.observed, phase.compared), (ObservedView::Unknown, 0));
    assert_eq!(phase.unjudged, lists.div_ceil(2));
    assert!(phase.reason.as_ref().unwrap().ends_with("a page lacks its revision or its ids"), "{phase:?}");
    let reader = client(&input, "reader");
    assert_eq!((reader.phases[1].compared, reader.phases[1].unjudged), (0, 0));
    assert_eq!((reader.phases[1].stale_reads, reader.stale_reads), (None, None), "not measured as none");
    assert!(
        reader.phases[1].reason.as_ref().unwrap().ends_with("no answer (timeout)"),
        "{:?}",
        reader.phases[1]
    );
}

#[test]
fn every_look_in_a_window_is_counted_once_as_what_it_was() {
    let world = World::honest();
    let mut input = world.input();
    let from = world.judged_from();
    let looks = |first: u64, every: usize| {
        (first..world.collect_at()).step_by(every).filter(|at| *at >= from).count() as u64
    };
    let (lists, gets) = (looks(1_005, 100), looks(1_040, 50));
    assert_eq!(client(&input, "lister").phases[1].compared, lists);
    let of_gets = |input: &EvidenceInput| {
        let seen = client(input, "reader").phases.remove(1);
        (seen.compared, seen.false_views, seen.unjudged, seen.stale_reads)
    };
    assert_eq!(of_gets(&input), (gets, 0, 0, Some(0)));
    let not_found = || Outcome::Failed { status: Some(404), reason: "not-found".to_owned() };
    let wrong = op_at(&mut input, "reader", from + 300);
    (wrong.op, wrong.outcome) = (Op::Get { id: 7 }, not_found());
    assert_eq!(of_gets(&input), (gets, 1, 0, Some(1)));
    let reason = client(&input, "reader").phases.remove(1).reason;
    assert_eq!(reason, Some(format!("1 of {gets} answers contradict etcd's state")));
    // The last object of all was not there yet.
    let early = op_at(&mut input, "reader", from + 600);
    (early.op, early.outcome) = (Op::Get { id: 1_149 }, not_found());
    assert_eq!(of_gets(&input), (gets - 1, 1, 1, Some(1)));
    let one = op_at(&mut input, "reader", from + 900).call_ns;
    for record in history(&mut input, "reader").iter_mut() {
        if let Record::Op(op) = record
            && op.call_ns.0 >= from * MS
            && op.call_ns != one
        {
            op.outcome = Outcome::Unknown { reason: "timeout".to_owned() };
        }
    }
    assert_eq!(of_gets(&input), (1, 0, 0, Some(0)), "one answer is a measurement");
}

// Convergence.

#[test]
fn a_client_has_converged_with_the_first_right_view_after_its_last_wrong_one() {
    let world = World::honest();
    let mut input = world.input();
    let since_command = |ret: MonoNs| Some(ret.0 - world.command_at() * MS);
    let first = op_at(&mut input, "lister", world.serving_at()).return_ns;
    assert_eq!(client(&input, "lister").converged_after_ns, since_command(first));
    let wrong = world.judged_from() + 400;
    for at in [wrong, wrong + 2 * LOOK_EVERY] {
        invent(op_at(&mut input, "lister", at));
    }
    let then = op_at(&mut input, "lister", wrong + 3 * LOOK_EVERY).return_ns;
    let lister = client(&input, "lister");
    assert_eq!(lister.converged_after_ns, since_command(then));
    let phase = &lister.phases[1];
    assert_eq!((phase.false_views, phase.phantom_objects, phase.phantom_at_end), (2, Some(1), Some(0)));
    let last = history(&mut input, "lister").iter_mut().rev().find_map(|r| match r {
        Record::Op(op) => Some(op),
        _ => None,
    });
    invent(last.unwrap());
    let lister = client(&input, "lister");
    assert_eq!((lister.converged_after_ns, lister.phases[1].phantom_at_end), (None, Some(1)));
    assert!(lister.reason.unwrap().contains("its last view was still not etcd's state"));
}

#[test]
fn of_several_wrong_views_the_worst_figures_are_kept_and_the_first_is_quoted() {
    let world = World::honest();
    let mut input = world.input();
    let at = world.judged_from() + 400;
    let first = op_at(&mut input, "lister", at).seq;
    for (nth, phantoms, absent) in [(0, 1, 2), (1, 3, 1), (2, 2, 3)] {
        let ids = &mut answer_of(op_at(&mut input, "lister", at + nth * LOOK_EVERY)).ids.as_mut().unwrap().0;
        ids.extend(9_000..9_000 + phantoms);
        (1_000..1_000 + absent).for_each(|id| assert!(ids.remove(&id)));
    }
    let phase = client(&input, "lister").phases.remove(1);
    assert_eq!(
        (phase.phantom_objects, phase.absent_objects, phase.events_missed),
        (Some(3), Some(3), Some(3))
    );
    assert_eq!(phase.first_wrong, Some(format!("histories/lister.jsonl#{}", first + 2)));
    assert_eq!(finding(&judge(&input), "no-client-on-lost-timeline").evidence, [phase.first_wrong.unwrap()]);
}
