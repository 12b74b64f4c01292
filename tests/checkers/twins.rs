//! Twins: a good record with one line changed.

use crate::world::{MS, World};
use crate::{answer_of, finding, history, lost_timeline, op_at};
use quakeproof::check::{Judgement, Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::drill::spec::Objective;
use quakeproof::drill::values::Span;
use quakeproof::history::record::{Answer, Outcome, Record};

#[test]
fn one_id_missing_from_one_list_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let ids = answer_of(op_at(&mut input, "lister", world.judged_from() + 700)).ids.as_mut().unwrap();
    assert!(ids.0.remove(&1_000));
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
}

#[test]
fn without_the_ledger_nobody_knows_that_nothing_was_lost() {
    for emptied in [false, true] {
        let mut input = World::honest().input();
        assert!(judge(&input).etcd_restore[0].ledger.lost.is_some());
        if emptied {
            history(&mut input, "orders").clear();
        } else {
            input.histories.remove("orders");
        }
        let judgement = judge(&input);
        let ledger = &judgement.etcd_restore[0].ledger;
        assert_eq!((ledger.kept, ledger.lost, ledger.phantom), (None, None, None));
        let why = if emptied { "the history of orders is empty" } else { "orders left no history" };
        assert_eq!(ledger.reason.as_deref(), Some(why));
        let rpo = judgement.findings.iter().find(|f| f.kind == "rpo").unwrap();
        assert_eq!((rpo.verdict, rpo.observed), (Verdict::Inconclusive, None), "{}", rpo.reason);
        assert_eq!(rpo.reason, why);
    }
}

#[test]
fn one_list_of_another_revision_is_found() {
    let world = World::honest();
    let mut input = world.input();
    *answer_of(op_at(&mut input, "lister", world.judged_from() + 700)).revision.as_mut().unwrap() -= 1;
    assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
}

#[test]
fn one_event_left_out_of_a_stream_is_found() {
    for client in ["watch", "raw"] {
        let world = World::honest();
        let mut input = world.input();
        let records = history(&mut input, client);
        let at = records
            .iter()
            .position(|r| matches!(r, Record::Event(e) if e.at_ns.0 > (world.judged_from() + 300) * MS));
        records.remove(at.unwrap());
        let found = lost_timeline(&input);
        assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    }
}

#[test]
fn one_wrong_answer_to_a_get_is_found() {
    let world = World::honest();
    let mut input = world.input();
    let op = op_at(&mut input, "reader", world.judged_from() + 300);
    op.outcome = match op.outcome {
        Outcome::Ok(_) => Outcome::Failed { status: Some(404), reason: "not-found".to_owned() },
        _ => Outcome::Ok(Answer::default()),
    };
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    let mut input = world.input();
    op_at(&mut input, "reader", world.judged_from() + 300).outcome =
        Outcome::Ok(Answer { wrong_value: true, ..Answer::default() });
    assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
}

#[test]
fn one_object_missing_from_one_reading_of_etcd_makes_the_truth_unusable() {
    let world = World::honest();
    let mut input = world.input();
    answer_of(op_at(&mut input, "truth", world.judged_from() + 300)).objects.as_mut().unwrap().remove(3);
    let judgement = judge(&input);
    for name in ["no-client-on-lost-timeline", "lost-writes", "lists-right"] {
        let found = finding(&judgement, name);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{name}: {}", found.reason);
    }
    assert!(finding(&judgement, "lost-writes").reason.contains("contradict"));
}

#[test]
fn one_more_acknowledged_write_can_exceed_the_rpo() {
    let world = World::honest();
    let mut input = world.input();
    for planned in &mut input.plan.objectives {
        if let Objective::Rpo(rpo) = &mut planned.objective {
            rpo.within = Some(Span::secs(1));
            rpo.at_most_writes = Some(40);
        }
    }
    assert_eq!(finding(&judge(&input), "lost-writes").verdict, Verdict::Pass);
    op_at(&mut input, "orders", world.lost_at() + 300).outcome =
        Outcome::Ok(Answer { revision: Some(world.old_head() + 1), ..Answer::default() });
    let judgement = judge(&input);
    assert_eq!(finding(&judgement, "lost-writes").verdict, Verdict::Fail);
    assert_eq!(judgement.etcd_restore[0].ledger.lost, Some(41));
}

#[test]
fn a_write_that_hung_through_the_outage_is_not_the_last_one_before_it() {
    let world = World::honest();
    let mut input = world.input();
    let before = judge(&input);
    // Sent before the loss was felt; the restored etcd took it and answered.
    let hung = op_at(&mut input, "orders", world.serving_at());
    assert!(matches!(hung.outcome, Outcome::Ok(_)));
    hung.call_ns = MonoNs((world.lost_at() + 1) * MS);
    let after = judge(&input);
    let account = |judgement: &Judgement| judgement.etcd_restore[0].ledger.clone();
    assert_eq!(account(&after), account(&before));
    let (rpo, rpo_before) = (finding(&after, "lost-writes"), finding(&before, "lost-writes"));
    assert_eq!(
        (rpo.observed, rpo.lower, rpo.upper),
        (rpo_before.observed, rpo_before.lower, rpo_before.upper)
    );
    // Nor can anybody have been answered by the restored etcd before its data was in place.
    let rto = finding(&after, "writes-again");
    assert!(rto.lower >= Some((world.restored_at() - world.lost_at()) * MS), "{rto:?}");
}

#[test]
fn one_refused_write_moves_the_recovery_time() {
    let world = World::honest();
    let mut input = world.input();
    for planned in &mut input.plan.objectives {
        if let Objective::Rto(rto) = &mut planned.objective
            && rto.name == "writes-again"
        {
            rto.within = Span::millis(505);
        }
    }
    assert_eq!(finding(&judge(&input), "writes-again").verdict, Verdict::Pass);
    op_at(&mut input, "orders", world.serving_at() - 3).outcome =
        Outcome::Failed { status: Some(500), reason: "server-error".to_owned() };
    let judgement = judge(&input);
    let found = finding(&judgement, "writes-again");
    assert_eq!(found.verdict, Verdict::Inconclusive, "{}", found.reason);
    assert_eq!((found.lower, found.upper), (Some(492 * MS), Some(523 * MS)));
}
