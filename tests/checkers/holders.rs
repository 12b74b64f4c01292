//! Leases, leaders and consumers: a good record of each, and twins that differ in one thing.

use crate::world::{Book, MS, World};
use crate::{finding, history};
use quakeproof::check::leases::Granted;
use quakeproof::check::rto::{Rto, RtoFrom, RtoTo};
use quakeproof::check::two_leaders::NoTwoLeaders;
use quakeproof::check::{Finding, Judgement, Verdict, judge};
use quakeproof::client::leader_elector::LeaderElector;
use quakeproof::component::ComponentId;
use quakeproof::drill::spec::{Client, Objective};
use quakeproof::drill::values::Span;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::{Answer, Event, LeaseAction, Made, Op, Outcome, Record};
use quakeproof::plan::{
    ConsumerPrediction, Expected, MinimumOperations, PlannedClient, PlannedObjective, Question,
};
use quakeproof::timeline::EvidenceInput;

pub fn ok(answer: Answer) -> Outcome {
    Outcome::Ok(answer)
}

pub fn failed(status: Option<u16>, reason: &str) -> Outcome {
    Outcome::Failed { status, reason: reason.to_owned() }
}

pub fn planned(name: &str, kind: ClientKind, spec: Option<Client>, every_ms: u64) -> PlannedClient {
    PlannedClient {
        name: name.to_owned(),
        kind,
        target: ComponentId("kube-apiserver-1".to_owned()),
        identity: "client".to_owned(),
        spec,
        every_ns: Some(every_ms * MS),
        minimum: MinimumOperations { before: 2, during: 0, after: 2 },
    }
}

fn objective(input: &mut EvidenceInput, name: &str, objective: Objective) {
    input.plan.objectives.push(PlannedObjective { name: name.to_owned(), objective, predicted: None });
}

pub fn predicted(input: &mut EvidenceInput, client: &str, question: Question, expected: Expected) {
    let source = "tests".to_owned();
    input.plan.consumers.push(ConsumerPrediction { client: client.to_owned(), question, expected, source });
}

pub fn agreement(judgement: &Judgement, subject: &str, nth: usize) -> Option<bool> {
    judgement.predictions.iter().filter(|p| p.subject == subject).nth(nth).unwrap().agrees
}

// Leaders.

pub const LOST: u64 = 2_610;

fn elector(name: &str) -> Client {
    Client::LeaderElector(LeaderElector {
        name: name.to_owned(),
        lease: Some("elector".to_owned()),
        candidates: 2,
        lease_duration: Span::secs(15),
        renew_deadline: Span::secs(10),
        retry_period: Span::secs(2),
        hand_over: None,
        stands_after: None,
    })
}

/// Beliefs as `(candidate, from, to)`; `None`: until the recorder was closed without a word.
pub fn election(beliefs: &[(&str, u64, Option<u64>)]) -> EvidenceInput {
    let world = World::honest();
    assert_eq!(world.lost_at(), LOST);
    let mut input = world.input();
    stands(&mut input, "elector", beliefs, world.collect_at());
    objective(
        &mut input,
        "one-leader",
        Objective::NoTwoLeaders(NoTwoLeaders { name: "one-leader".to_owned() }),
    );
    predicted(&mut input, "elector", Question::TwoLead, Expected::No);
    input
}

/// A client whose candidates stand for the Lease, and whose recorder is closed at `end`.
pub fn stands(input: &mut EvidenceInput, name: &str, beliefs: &[(&str, u64, Option<u64>)], end: u64) {
    let mut book = Book::open(name, ClientKind::LeaderElector);
    let mut at: Vec<(u64, usize, bool)> = Vec::new();
    for (i, (_, from, to)) in beliefs.iter().enumerate() {
        at.push((*from, i, true));
        at.extend(to.map(|to| (to, i, false)));
    }
    at.sort_unstable();
    for call in (1_000..end).step_by(200) {
        let op = Op::Elect {
            candidate: "a".to_owned(),
            lease: "elector".to_owned(),
            action: quakeproof::history::record::ElectAction::Get,
        };
        book.did(call, op, ok(Answer::default()));
    }
    for (at, i, begins) in at {
        let candidate = beliefs[i].0.to_owned();
        let event = if begins {
            Event::Leading { candidate, revision: 1, transitions: 0 }
        } else {
            Event::LeadingEnded { candidate, reason: "renew-deadline".to_owned() }
        };
        book.stream = i as u64;
        book.event(at, event);
    }
    input.plan.clients.push(planned(name, ClientKind::LeaderElector, Some(elector(name)), 200));
    input.histories.insert(name.to_owned(), book.close(end));
}

pub fn one_leader(input: &EvidenceInput) -> Finding {
    finding(&judge(input), "one-leader").clone()
}

#[test]
fn a_leader_that_takes_over_after_the_other_gave_up_is_the_only_one() {
    let input = election(&[("a", 1_000, Some(4_000)), ("b", 4_000, Some(6_000))]);
    let judgement = judge(&input);
    let found = finding(&judgement, "one-leader");
    assert_eq!((found.verdict, found.observed), (Verdict::Pass, Some(0)), "{}", found.reason);
    let leaders = &judgement.etcd_restore[0].leaders[0];
    assert_eq!(leaders.holder_before.as_deref(), Some("a"));
    assert_eq!(leaders.holder_after.as_deref(), Some("b"));
    assert_eq!((leaders.transitions, leaders.overlap_ns), (Some(1), Some(0)));
    assert_eq!(agreement(&judgement, "elector", 0), Some(true));
}

#[test]
fn a_twin_in_which_the_first_gives_up_a_millisecond_later_fails_and_says_who() {
    let input = election(&[("a", 1_000, Some(4_001)), ("b", 4_000, Some(6_000))]);
    let judgement = judge(&input);
    let found = finding(&judgement, "one-leader");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(MS)), "{}", found.reason);
    assert!(found.reason.contains('a') && found.reason.contains('b'), "{}", found.reason);
    assert_eq!(found.evidence.len(), 4);
    assert_eq!(judgement.etcd_restore[0].leaders[0].overlaps.len(), 1);
    assert_eq!(agreement(&judgement, "elector", 0), Some(false));
}

#[test]
fn who_led_before_or_after_must_be_known_for_a_pass() {
    let nobody = one_leader(&election(&[]));
    assert_eq!(nobody.verdict, Verdict::Inconclusive, "{}", nobody.reason);
    assert!(nobody.reason.contains("no candidate of elector ever led"), "{}", nobody.reason);
    let none_after = one_leader(&election(&[("a", 1_000, Some(LOST))]));
    assert_eq!(none_after.verdict, Verdict::Inconclusive, "{}", none_after.reason);
    assert!(none_after.reason.contains("after the fault"), "{}", none_after.reason);
    let none_before = one_leader(&election(&[("a", 4_000, Some(6_000))]));
    assert!(none_before.reason.contains("before the fault"), "{}", none_before.reason);
}

#[test]
fn a_record_that_breaks_off_proves_an_overlap_but_not_that_there_is_none() {
    let cut = |beliefs| {
        let mut input = election(beliefs);
        history(&mut input, "elector").pop();
        one_leader(&input)
    };
    let open = cut(&[("a", 1_000, Some(4_000)), ("b", 4_000, None)]);
    assert_eq!((open.verdict, open.observed), (Verdict::Inconclusive, None), "{}", open.reason);
    let proven = cut(&[("a", 1_000, None), ("b", 4_000, Some(4_500))]);
    assert_eq!(proven.verdict, Verdict::Fail, "{}", proven.reason);
}

#[test]
fn a_drill_without_candidates_proves_nothing() {
    let mut input = World::honest().input();
    objective(
        &mut input,
        "one-leader",
        Objective::NoTwoLeaders(NoTwoLeaders { name: "one-leader".to_owned() }),
    );
    assert_eq!(one_leader(&input).verdict, Verdict::Inconclusive);
}

// Leases. The snapshot is taken at 1810, the store is lost at 2610 and restored at 3010.

pub fn lease(action: LeaseAction, id: &str) -> Op {
    let lease = (action != LeaseAction::Grant).then(|| id.to_owned());
    Op::EtcdLease { action, lease, ttl_seconds: None }
}

pub fn granted(id: &str) -> Outcome {
    ok(Answer {
        lease: Some(id.to_owned()),
        ttl_seconds: Some(20),
        granted_ttl_seconds: Some(20),
        ..Answer::default()
    })
}

pub fn left(seconds: u64) -> Outcome {
    ok(Answer { ttl_seconds: Some(seconds), granted_ttl_seconds: Some(20), ..Answer::default() })
}

pub fn leases(main_after: u64) -> EvidenceInput {
    use LeaseAction::{Grant, KeepAlive, Revoke, TimeToLive};
    keeper(vec![
        (1_000, Grant, "main", granted("main")),
        (1_100, Grant, "back", granted("back")),
        (1_200, Grant, "over", granted("over")),
        (1_300, Revoke, "over", ok(Answer::default())),
        (2_000, Revoke, "back", ok(Answer::default())),
        (2_100, Grant, "young", granted("young")),
        (2_500, TimeToLive, "main", left(10)),
        (3_300, TimeToLive, "main", left(main_after)),
        (3_310, TimeToLive, "back", left(19)),
        (3_320, KeepAlive, "young", failed(None, "lease-not-found")),
    ])
}

/// What a keeper of leases did, as `(call, action, lease, outcome)`.
pub fn keeper(ops: Vec<(u64, LeaseAction, &str, Outcome)>) -> EvidenceInput {
    let world = World::honest();
    let mut input = world.input();
    let mut book = Book::open("leases", ClientKind::LeaseKeeper);
    for (call, action, id, outcome) in ops {
        book.did(call, lease(action, id), outcome);
    }
    input.plan.clients.push(planned("leases", ClientKind::LeaseKeeper, None, 200));
    input.histories.insert("leases".to_owned(), book.close(world.collect_at()));
    predicted(&mut input, "leases", Question::LeasesComeBack, Expected::Yes);
    predicted(&mut input, "leases", Question::LeasesAreGone, Expected::Yes);
    input
}

#[test]
fn leases_come_back_with_all_of_their_time_or_are_gone() {
    let judgement = judge(&leases(19));
    let facts = &judgement.etcd_restore[0].leases;
    let ids: Vec<&str> = facts.iter().map(|l| l.id.as_str()).collect();
    assert_eq!(ids, ["main", "back", "young"], "one given back before the snapshot is of no interest");
    let [main, back, young] = facts.as_slice() else { panic!() };
    assert_eq!((main.ttl_before_seconds, main.ttl_after_seconds), (Some(10), Some(19)));
    assert_eq!((main.came_back_with_full_ttl, main.not_found), (Some(true), Some(false)));
    assert!(back.given_back_before_loss && back.came_back_with_full_ttl == Some(true));
    assert_eq!((young.granted, young.not_found), (Granted::AfterSnapshot, Some(true)));
    assert_eq!(young.came_back_with_full_ttl, Some(false), "it is gone");
    let rows: Vec<[&str; 3]> = judgement
        .predictions
        .iter()
        .filter(|p| p.subject == "leases")
        .map(|p| [p.what.as_str(), &p.predicted, &p.observed])
        .collect();
    let all = "back with all of their time";
    assert_eq!(
        rows,
        [
            ["etcd leases given back after the snapshot", all, all],
            ["etcd leases granted after the snapshot", "not found", "not found"],
        ]
    );
    assert_eq!(
        (agreement(&judgement, "leases", 0), agreement(&judgement, "leases", 1)),
        (Some(true), Some(true))
    );
}

#[test]
fn a_twin_whose_lease_went_on_running_down_has_not_got_its_time_back() {
    let judgement = judge(&leases(9));
    let main = &judgement.etcd_restore[0].leases[0];
    assert_eq!(main.came_back_with_full_ttl, Some(false));
}

#[test]
fn a_twin_in_which_a_young_lease_is_still_there_contradicts_the_prediction() {
    let mut input = leases(19);
    let records = history(&mut input, "leases");
    for record in records.iter_mut() {
        if let Record::Op(op) = record
            && matches!(&op.op, Op::EtcdLease { action: LeaseAction::KeepAlive, .. })
        {
            op.op = lease(LeaseAction::TimeToLive, "young");
            op.outcome = left(19);
        }
    }
    assert_eq!(agreement(&judge(&input), "leases", 1), Some(false));
}

#[test]
fn a_lease_that_was_not_asked_for_after_the_restore_is_unknown() {
    let mut input = leases(19);
    history(&mut input, "leases").retain(|r| match r {
        Record::Op(op) => op.call_ns.0 < 3_000 * MS,
        _ => true,
    });
    let judgement = judge(&input);
    let main = &judgement.etcd_restore[0].leases[0];
    assert_eq!((main.came_back_with_full_ttl, main.not_found), (None, None));
    assert_eq!(main.reason.as_deref(), Some("it was not asked for after the restore"));
    assert_eq!(agreement(&judgement, "leases", 1), None);
}

// Consumers.

pub fn uid(id: u64) -> Answer {
    Answer { uid: Some(format!("uid-{id}")), ..Answer::default() }
}

pub fn look(book: &mut Book, at: u64, id: u64, acted: bool) {
    let op = Op::Look { what: Made::Deployment, id };
    let replica_set = acted.then(|| format!("d-{id}-x"));
    book.did(at, op, ok(Answer { acted: (!acted).then_some(false), replica_set, ..uid(id) }));
    if acted {
        let op = Op::Owned { id, name: format!("d-{id}-x") };
        book.did(at + 2, op, ok(Answer { acted: Some(true), ..Answer::default() }));
    }
}

/// Deployments 1 to 4 every 200 ms from 1000 on, 5 after the snapshot and lost, 6 to 15 after
/// the restore, of which those before `acts_from` are looked at in vain.
pub fn deployments(acts_from: u64) -> (EvidenceInput, Book) {
    let world = World::honest();
    let mut input = world.input();
    let mut book = Book::open("deployer", ClientKind::Deployer);
    let make = |book: &mut Book, at, id| book.did(at, Op::Make { what: Made::Deployment, id }, ok(uid(id)));
    for id in 1..=5 {
        let at = if id == 5 { 2_000 } else { 800 + id * 200 };
        make(&mut book, at, id);
        look(&mut book, at + 10, id, true);
    }
    book.did(2_700, Op::Make { what: Made::Deployment, id: 99 }, failed(None, "refused"));
    for id in 6..=15 {
        let at = 3_200 + (id - 6) * 100;
        make(&mut book, at, id);
    }
    for at in (4_300..acts_from).step_by(50) {
        look(&mut book, at, 6, false);
    }
    for id in 6..=15 {
        look(&mut book, acts_from.max(4_300) + (id - 6) * 20, id, true);
    }
    input.plan.clients.push(planned("deployer", ClientKind::Deployer, None, 1_000));
    let within = Span::millis(2_000);
    let rto = Rto { name: "act".to_owned(), from: RtoFrom::Fault, to: RtoTo::ControllersAct, within };
    objective(&mut input, "act", Objective::Rto(rto));
    predicted(&mut input, "deployer", Question::ActsOnAll, Expected::Yes);
    (input, book)
}

pub fn with(mut input: EvidenceInput, book: Book) -> EvidenceInput {
    input.histories.insert("deployer".to_owned(), book.close(World::honest().collect_at()));
    input
}

#[test]
fn a_controller_manager_that_acts_is_dated_by_the_first_thing_it_did() {
    let (input, book) = deployments(0);
    let judgement = judge(&with(input, book));
    let found = finding(&judgement, "act");
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert_eq!(found.upper, Some((4_303 - LOST) * MS), "{}", found.reason);
    let facts = &judgement.etcd_restore[0].consumers[0];
    assert_eq!((facts.made_after, facts.acted_after, facts.lost), (10, 10, 0));
    assert_eq!((facts.acted_on_lost, facts.deleted), (Some(0), 0));
    assert_eq!(agreement(&judgement, "deployer", 0), Some(true));
}

#[test]
fn a_twin_that_acts_a_second_later_misses_its_time() {
    let (input, book) = deployments(5_300);
    let found = finding(&judge(&with(input, book)), "act").clone();
    assert_eq!(found.verdict, Verdict::Fail, "{}", found.reason);
    // From the end of the fault's own interval to the last look in vain.
    assert_eq!(found.lower, Some((5_250 - (LOST + 5)) * MS));
}

#[test]
fn a_replica_set_of_a_deployment_that_is_gone_is_an_action_on_a_lost_object() {
    let gone = |owned: Option<bool>| {
        let (input, mut book) = deployments(0);
        let look = Op::Look { what: Made::Deployment, id: 5 };
        book.did(5_000, look, failed(Some(404), "not-found"));
        let outcome = match owned {
            None => failed(Some(404), "not-found"),
            acted => ok(Answer { acted, ..Answer::default() }),
        };
        book.did(5_010, Op::Owned { id: 5, name: "d-5-x".to_owned() }, outcome);
        judge(&with(input, book)).etcd_restore[0].consumers[0].clone()
    };
    let lost = gone(None);
    assert_eq!((lost.lost, lost.acted_on_lost, lost.deleted), (1, Some(0), 0));
    assert_eq!(gone(Some(false)).acted_on_lost, Some(0), "another Deployment's under the same name");
    let acted = gone(Some(true));
    assert_eq!(acted.acted_on_lost, Some(1));
    assert_eq!(acted.evidence.len(), 1);
}

#[test]
fn a_deployment_that_the_snapshot_held_and_that_is_gone_was_deleted_by_somebody() {
    let (input, mut book) = deployments(0);
    book.did(5_000, Op::Look { what: Made::Deployment, id: 2 }, failed(Some(404), "not-found"));
    let facts = judge(&with(input, book)).etcd_restore[0].consumers[0].clone();
    assert_eq!((facts.lost, facts.deleted), (1, 1));
}

#[test]
fn a_deployment_under_another_uid_is_another_one() {
    let (input, mut book) = deployments(0);
    book.did(5_000, Op::Look { what: Made::Deployment, id: 5 }, ok(uid(77)));
    let facts = judge(&with(input, book)).etcd_restore[0].consumers[0].clone();
    assert_eq!(facts.lost, 1);
}
