//! Leases, leaders and consumers at the instants and figures that divide one finding from another.

use crate::holders::{
    LOST, agreement, deployments, election, failed, granted, keeper, leases, left, look, ok, one_leader,
    planned, predicted, stands, uid, with,
};
use crate::world::{Book, MS, World};
use crate::{finding, history};
use quakeproof::check::leaders::LeaderFacts;
use quakeproof::check::leases::{Granted, LeaseFacts};
use quakeproof::check::{Verdict, judge};
use quakeproof::clock::MonoNs;
use quakeproof::history::kind::ClientKind;
use quakeproof::history::record::LeaseAction::{Attach, Grant, KeepAlive, Revoke, TimeToLive};
use quakeproof::history::record::{Answer, Event, LeaseAction, Made, Op, Outcome, Record};
use quakeproof::journal::entry::{Entry, Fact, JournalEvent};
use quakeproof::plan::{Expected, Question};
use quakeproof::timeline::EvidenceInput;

// Leaders. The store is lost at 2610 and served again, verified, at 3210; the record ends at 6120.

fn leaders(input: &EvidenceInput) -> LeaderFacts {
    judge(input).etcd_restore.remove(0).leaders.remove(0)
}

fn before_and_after(facts: &LeaderFacts) -> (Option<&str>, Option<&str>) {
    (facts.holder_before.as_deref(), facts.holder_after.as_deref())
}

#[test]
fn one_led_at_the_fault_who_began_before_it_and_did_not_end_before_it() {
    let until = leaders(&election(&[("a", 1_000, Some(LOST)), ("b", 4_000, Some(6_000))]));
    assert_eq!(before_and_after(&until), (Some("a"), Some("b")));
    assert_eq!((until.transitions, until.reason), (Some(1), None));
    let facts = leaders(&election(&[("a", LOST, Some(4_000)), ("b", 4_000, Some(6_000))]));
    assert_eq!(before_and_after(&facts), (None, Some("b")));
    assert_eq!(
        (facts.transitions, facts.reason.as_deref()),
        (Some(2), Some("no candidate led at the fault"))
    );
    let both = leaders(&election(&[("a", 1_000, Some(3_000)), ("b", 2_000, Some(6_000))]));
    assert_eq!(before_and_after(&both), (Some("b"), Some("b")), "who began later");
}

#[test]
fn a_leader_from_the_fault_on_is_none_before_it_and_until_the_end_of_it_none_after_it() {
    let from = one_leader(&election(&[("a", LOST, Some(6_000))]));
    assert_eq!(from.verdict, Verdict::Inconclusive);
    assert!(from.reason.ends_with("no candidate of elector led before the fault"), "{}", from.reason);
    assert_eq!(one_leader(&election(&[("a", LOST - 1, Some(6_000))])).verdict, Verdict::Pass);
    let until = one_leader(&election(&[("a", 1_000, Some(3_210))]));
    assert_eq!(until.verdict, Verdict::Inconclusive);
    assert!(until.reason.ends_with("no candidate of elector led after the fault"), "{}", until.reason);
    assert_eq!(one_leader(&election(&[("a", 1_000, Some(3_211))])).verdict, Verdict::Pass);
    let two = one_leader(&election(&[("a", 1_000, Some(3_000)), ("b", 3_100, Some(6_000))]));
    assert_eq!((two.verdict, two.lower, two.upper), (Verdict::Pass, Some(0), Some(0)), "{}", two.reason);
}

#[test]
fn a_leader_that_gave_up_a_second_before_the_end_does_not_lead_at_the_end() {
    let end = World::honest().collect_at();
    let given_up = leaders(&election(&[("a", 1_000, Some(end - 1_000))]));
    assert_eq!(before_and_after(&given_up), (Some("a"), None));
    assert_eq!(given_up.reason.as_deref(), Some("no candidate led at the end of the record"));
    let holds = leaders(&election(&[("a", 1_000, Some(end - 999))]));
    assert_eq!(before_and_after(&holds), (Some("a"), Some("a")));
}

#[test]
fn several_clients_of_one_lease_are_one_election_that_ends_with_the_last_of_them() {
    let mut input = election(&[("a", 1_000, Some(4_500))]);
    stands(&mut input, "second", &[("b", 2_000, Some(2_005))], 4_100);
    predicted(&mut input, "second", Question::TwoLead, Expected::Yes);
    let judgement = judge(&input);
    let facts = &judgement.etcd_restore[0].leaders[0];
    assert_eq!(facts.clients, ["elector", "second"]);
    assert_eq!(before_and_after(facts), (Some("a"), None), "it gave up long before the other's record ends");
    assert_eq!(facts.overlap_ns, Some(5 * MS));
    assert_eq!(
        (agreement(&judgement, "elector", 0), agreement(&judgement, "second", 0)),
        (Some(false), Some(true))
    );
    let found = one_leader(&input);
    assert_eq!((found.verdict, found.upper), (Verdict::Fail, Some(5 * MS)));
    history(&mut input, "second").pop();
    let found = one_leader(&input);
    assert_eq!(
        (found.verdict, found.lower, found.upper),
        (Verdict::Fail, Some(5 * MS), None),
        "it may be more"
    );
}

#[test]
fn the_longest_of_several_overlaps_is_told_and_all_are_added_up() {
    let found = one_leader(&election(&[
        ("a", 1_000, Some(4_005)),
        ("b", 4_000, Some(6_000)),
        ("c", 5_000, Some(5_100)),
    ]));
    assert_eq!(found.observed, Some(105 * MS));
    assert_eq!(found.reason, "lease elector: b and c both believed so for 100.0 ms");
}

#[test]
fn two_that_lead_for_a_nanosecond_are_two() {
    let mut input = election(&[("a", 1_000, Some(4_000)), ("b", 4_000, Some(6_000))]);
    for record in history(&mut input, "elector") {
        if let Record::Event(event) = record
            && matches!(&event.event, Event::LeadingEnded { candidate, .. } if candidate == "a")
        {
            event.at_ns.0 += 1;
        }
    }
    let judgement = judge(&input);
    let found = finding(&judgement, "one-leader");
    assert_eq!((found.verdict, found.target, found.observed), (Verdict::Fail, Some(0), Some(1)));
    assert_eq!(agreement(&judgement, "elector", 0), Some(false));
}

#[test]
fn only_candidates_that_did_too_little_keep_an_election_from_being_judged() {
    let mut input = election(&[("a", 1_000, Some(6_000))]);
    let short = |input: &mut EvidenceInput, name: &str, before: u64| {
        input.plan.clients.iter_mut().find(|c| c.name == name).unwrap().minimum.before = before;
    };
    short(&mut input, "lister", 1_000);
    assert_eq!(one_leader(&input).verdict, Verdict::Pass);
    short(&mut input, "elector", 1_000);
    let found = one_leader(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Inconclusive, None));
    assert!(found.reason.contains("elector: "), "{}", found.reason);
}

/// A probe of a component's Lease; `None`: it was refused.
fn component(holders: &[(u64, Option<&str>)]) -> EvidenceInput {
    let mut input = World::honest().input();
    let mut book = Book::open("manager", ClientKind::LeaderLease);
    for (call, holder) in holders {
        let answer = |holder: &&str| ok(Answer { holder: Some((*holder).to_owned()), ..Answer::default() });
        let outcome = holder.as_ref().map_or_else(|| failed(None, "refused"), answer);
        book.did(*call, Op::Lease { name: "kube-controller-manager".to_owned() }, outcome);
    }
    input.plan.clients.push(planned("manager", ClientKind::LeaderLease, None, 200));
    input.histories.insert("manager".to_owned(), book.close(World::honest().collect_at()));
    input
}

#[test]
fn the_holder_of_a_component_s_lease_before_and_after_is_whoever_it_named() {
    let input = component(&[
        (1_000, Some("cm-0")),
        (1_200, Some("cm-1")),
        (2_700, None),
        (3_200, Some("")),
        (3_400, Some("cm-2")),
        (3_600, Some("cm-2")),
        (3_800, Some("cm-1")),
    ]);
    let facts = leaders(&input);
    assert_eq!(
        (facts.lease.as_str(), facts.clients.as_slice()),
        ("kube-controller-manager", ["manager".to_owned()].as_slice())
    );
    assert_eq!(before_and_after(&facts), (Some("cm-1"), Some("cm-1")));
    assert_eq!(facts.transitions, Some(2), "what changed before the fault is no matter");
    assert_eq!((facts.overlap_ns, facts.overlaps.len()), (None, 0));
    assert!(facts.reason.unwrap().starts_with("overlapNs: "));
    // An answer that arrived at the instant of the fault.
    let at = leaders(&component(&[(1_000, Some("cm-1")), (LOST - 1, Some("cm-2"))]));
    assert_eq!((before_and_after(&at), at.transitions), ((Some("cm-1"), Some("cm-2")), Some(1)));
    let first = leaders(&component(&[(3_400, Some("cm-1"))]));
    assert_eq!((before_and_after(&first), first.transitions), ((None, Some("cm-1")), Some(0)));
    // Without a fault there is nothing that anybody could lead after.
    let mut input = component(&[(1_000, Some("cm-1"))]);
    input
        .journal
        .retain(|e| !matches!(e.event, JournalEvent::Injecting { .. } | JournalEvent::Injected { .. }));
    let none = leaders(&input);
    assert_eq!((before_and_after(&none), none.transitions), ((Some("cm-1"), None), None));
}

// Leases. The snapshot is taken from 1810 to 1812 at revision 140, the store is lost at 2610 and restored at 3010.

fn lease_facts(ops: Vec<(u64, LeaseAction, &str, Outcome)>) -> Vec<LeaseFacts> {
    judge(&keeper(ops)).etcd_restore.remove(0).leases
}

fn done() -> Outcome {
    ok(Answer::default())
}

fn attached(revision: u64) -> Outcome {
    ok(Answer { revision: Some(revision), ..Answer::default() })
}

fn not_found() -> Outcome {
    failed(None, "lease-not-found")
}

#[test]
fn a_lease_granted_by_the_begin_of_the_snapshot_is_in_it_and_one_asked_for_at_its_end_is_not() {
    let granted_at = |call: u64| lease_facts(vec![(call, Grant, "a", granted("a"))]).remove(0).granted;
    assert_eq!(granted_at(1_809), Granted::BeforeSnapshot);
    assert_eq!(granted_at(1_810), Granted::Meanwhile);
    assert_eq!(granted_at(1_811), Granted::Meanwhile);
    assert_eq!(granted_at(1_812), Granted::AfterSnapshot);
}

#[test]
fn a_lease_that_was_written_to_at_the_revision_of_the_snapshot_is_in_it() {
    let written = |revision: u64| {
        let ops = vec![(1_811, Grant, "a", granted("a")), (1_812, Attach, "a", attached(revision))];
        lease_facts(ops).remove(0).granted
    };
    assert_eq!((written(140), written(141)), (Granted::BeforeSnapshot, Granted::Meanwhile));
}

#[test]
fn a_lease_given_back_by_the_begin_of_the_snapshot_is_of_interest_only_if_it_is_back() {
    let given_back = |call: u64, mut after: Vec<(u64, LeaseAction, &'static str, Outcome)>| {
        let mut ops = vec![(1_000, Grant, "a", granted("a")), (call, Revoke, "a", done())];
        ops.append(&mut after);
        lease_facts(ops)
    };
    assert_eq!(given_back(1_809, vec![]), []);
    let [later] = given_back(1_810, vec![]).try_into().unwrap();
    assert!(later.given_back_before_loss);
    assert_eq!((later.came_back_with_full_ttl, later.not_found), (None, None));
    assert_eq!(later.reason.as_deref(), Some("it had been given back and was not listed after the restore"));
    let [back] = given_back(1_809, vec![(3_300, TimeToLive, "a", left(20))]).try_into().unwrap();
    assert_eq!((back.given_back_before_loss, back.came_back_with_full_ttl), (true, Some(true)));
    // What is given back of the restored store was there until then.
    let [kept] = given_back(3_400, vec![]).try_into().unwrap();
    assert!(!kept.given_back_before_loss);
}

#[test]
fn a_lease_granted_as_the_store_is_restored_is_none_of_the_old_ones() {
    let count = |call: u64| lease_facts(vec![(call, Grant, "a", granted("a"))]).len();
    assert_eq!((count(3_008), count(3_009)), (1, 0));
}

/// A lease of 20 s with `before` seconds left at 2301 ms, and asked for again.
fn asked_again(before: Option<u64>, call: u64, after: u64) -> LeaseFacts {
    let mut ops = vec![(1_000, Grant, "a", granted("a"))];
    ops.extend(before.map(|seconds| (2_300, TimeToLive, "a", left(seconds))));
    ops.push((call, TimeToLive, "a", left(after)));
    lease_facts(ops).remove(0)
}

#[test]
fn a_lease_has_all_of_its_time_again_but_for_what_passed_since_and_for_rounding() {
    let full = |call, after| asked_again(Some(10), call, after).came_back_with_full_ttl;
    assert_eq!((full(3_300, 18), full(3_300, 17)), (Some(true), Some(false)));
    // A whole second after the restore.
    assert_eq!((full(4_009, 17), full(4_009, 16), full(4_008, 17)), (Some(true), Some(false), Some(false)));
}

#[test]
fn a_lease_has_gained_only_what_is_more_than_it_would_have_had() {
    // A second after it had 17 left it would have 16; 18 is no more than rounding.
    let full = |before, after| asked_again(before, 3_300, after).came_back_with_full_ttl;
    assert_eq!((full(Some(17), 18), full(Some(17), 19)), (Some(false), Some(true)));
    assert_eq!(full(None, 19), Some(true), "nothing says that it had as much before");
    let known = asked_again(Some(18), 3_300, 19);
    assert_eq!((known.came_back_with_full_ttl, known.not_found), (None, Some(false)));
    assert_eq!(known.reason.as_deref(), Some("it had all of its time before the loss too"));
    assert_eq!(full(Some(18), 17), Some(false), "whatever it had, it has not all of it");
}

#[test]
fn a_reading_counts_as_after_the_restore_from_the_instant_of_it_on() {
    let read = |call| {
        let facts = asked_again(None, call, 19);
        (facts.ttl_before_seconds, facts.ttl_after_seconds)
    };
    assert_eq!((read(3_009), read(3_010)), ((Some(19), None), (None, Some(19))));
}

#[test]
fn only_the_first_reading_that_nothing_had_renewed_shows_what_the_restore_did() {
    let after = |ops: Vec<(u64, LeaseAction, &'static str, Outcome)>| {
        let mut all = vec![(1_000, Grant, "a", granted("a"))];
        all.extend(ops);
        let facts = lease_facts(all).remove(0);
        (facts.ttl_before_seconds, facts.ttl_after_seconds, facts.not_found)
    };
    let first = vec![(3_300, TimeToLive, "a", left(9)), (3_400, TimeToLive, "a", left(8))];
    assert_eq!(after(first), (None, Some(9), Some(false)));
    let kept = vec![(3_300, KeepAlive, "a", left(20)), (3_400, TimeToLive, "a", left(19))];
    assert_eq!(after(kept), (None, None, None));
    let before = vec![(2_300, KeepAlive, "a", left(20))];
    assert_eq!(after(before), (Some(20), None, None));
    let gone = vec![(3_300, KeepAlive, "a", not_found()), (3_400, TimeToLive, "a", left(19))];
    assert_eq!(after(gone), (None, None, Some(true)));
    let then_gone = vec![(3_300, TimeToLive, "a", left(9)), (3_400, TimeToLive, "a", not_found())];
    assert_eq!(after(then_gone), (None, Some(9), Some(false)));
    let gone_before = vec![(2_300, TimeToLive, "a", not_found())];
    assert_eq!(after(gone_before), (None, None, None));
    let refused = vec![(3_300, TimeToLive, "a", failed(None, "refused"))];
    assert_eq!(after(refused), (None, None, None));
}

#[test]
fn the_grant_the_first_reading_and_the_first_denial_are_quoted() {
    let ops = vec![
        (1_000, Grant, "a", granted("a")),
        (2_300, TimeToLive, "a", left(10)),
        (3_300, KeepAlive, "a", not_found()),
        (3_400, KeepAlive, "a", not_found()),
    ];
    assert_eq!(lease_facts(ops)[0].evidence, ["histories/leases.jsonl#2", "histories/leases.jsonl#4"]);
}

#[test]
fn leases_that_nobody_gave_back_are_not_asked_to_come_back() {
    // `main` went on running down, as it should.
    assert_eq!(agreement(&judge(&leases(9)), "leases", 0), Some(true));
    let none = keeper(vec![(1_000, Grant, "a", granted("a")), (3_300, TimeToLive, "a", left(19))]);
    let judgement = judge(&none);
    assert_eq!((agreement(&judgement, "leases", 0), agreement(&judgement, "leases", 1)), (None, None));
}

// Snapshots.

#[test]
fn a_snapshot_of_another_name_is_not_the_one_that_was_restored() {
    let (deployed, book) = deployments(0);
    let mut input = with(deployed, book);
    let kept = leases(19);
    input.histories.insert("leases".to_owned(), kept.histories["leases"].clone());
    input.plan.clients.push(kept.plan.clients.last().unwrap().clone());
    let plain = judge(&input).etcd_restore.remove(0);
    let snapshot = |e: &Entry| matches!(&e.event, JournalEvent::Fact { fact: Fact::SnapshotTaken { .. } });
    let at = input.journal.iter().position(snapshot).unwrap();
    let mut other = input.journal[at].clone();
    if let JournalEvent::Fact { fact: Fact::SnapshotTaken { name, revision, call_ns, return_ns, .. } } =
        &mut other.event
    {
        *name = "other".to_owned();
        (*revision, *call_ns, *return_ns) = (160, MonoNs(2_200 * MS), MonoNs(2_202 * MS));
    }
    input.journal.insert(at + 1, other);
    let facts = judge(&input).etcd_restore.remove(0);
    assert_eq!(facts.snapshot, plain.snapshot);
    assert_eq!(facts.revisions_lost, plain.revisions_lost);
    assert_eq!((facts.leases, facts.consumers), (plain.leases, plain.consumers));
}

// Consumers.

fn consumer(input: &EvidenceInput) -> quakeproof::check::consumers::ConsumerFacts {
    judge(input).etcd_restore.remove(0).consumers.remove(0)
}

fn gone(book: &mut Book, at: u64, id: u64) {
    book.did(at, Op::Look { what: Made::Deployment, id }, failed(Some(404), "not-found"));
}

fn make(book: &mut Book, at: u64, id: u64) {
    book.did(at, Op::Make { what: Made::Deployment, id }, ok(uid(id)));
}

#[test]
fn what_was_made_by_the_begin_of_the_snapshot_and_is_gone_was_deleted() {
    let deleted = |made: u64| {
        let (input, mut book) = deployments(0);
        make(&mut book, made, 50);
        gone(&mut book, 5_000, 50);
        let facts = consumer(&with(input, book));
        (facts.lost, facts.deleted, facts.evidence.len())
    };
    assert_eq!(deleted(1_809), (1, 1, 1));
    assert_eq!(deleted(1_810), (1, 0, 0));
}

#[test]
fn without_its_snapshot_nothing_is_known_to_have_been_deleted() {
    let (input, mut book) = deployments(0);
    gone(&mut book, 5_000, 2);
    let mut input = with(input, book);
    input.journal.retain(|e| !matches!(&e.event, JournalEvent::Fact { fact: Fact::SnapshotTaken { .. } }));
    let facts = consumer(&input);
    assert_eq!((facts.lost, facts.deleted), (1, 0));
}

#[test]
fn what_was_gone_before_the_restore_was_not_lost_by_it() {
    let lost = |looked: u64| {
        let (input, mut book) = deployments(0);
        gone(&mut book, looked, 5);
        consumer(&with(input, book)).lost
    };
    assert_eq!((lost(3_009), lost(3_010)), (0, 1));
}

#[test]
fn the_slowest_before_the_fault_and_the_slowest_after_the_restore_are_told_apart() {
    let (input, mut book) = deployments(0);
    // Made at the instant of the fault, and acted upon for the first time long after it.
    make(&mut book, LOST - 1, 50);
    look(&mut book, 5_500, 50, true);
    let facts = consumer(&with(input, book));
    // Those before are looked at 12 ms after they were made. Of those after, 6 was made at 3201 and its
    // ReplicaSet found at 4303, and each one after it was made 100 ms and looked at 20 ms later.
    assert_eq!((facts.slowest_before_ns, facts.slowest_after_ns), (Some(12 * MS), Some(1_102 * MS)));
}

#[test]
fn the_first_action_on_a_lost_object_is_quoted() {
    let (input, mut book) = deployments(0);
    gone(&mut book, 5_000, 5);
    for at in [5_010, 5_020] {
        let owned = Op::Owned { id: 5, name: "d-5-x".to_owned() };
        book.did(at, owned, ok(Answer { acted: Some(true), ..Answer::default() }));
    }
    let mut input = with(input, book);
    let records = history(&mut input, "deployer");
    // The last line says that the record is closed; before it are these two.
    let first = format!("histories/deployer.jsonl#{}", records.len() - 2);
    assert_eq!(consumer(&input).evidence, [first]);
}

/// Deployments after the restore, those that are acted upon among them; the record ends at `end`.
fn after_the_restore(made: &[u64], acted: &[u64], end: u64) -> EvidenceInput {
    let mut input = World::honest().input();
    let mut book = Book::open("deployer", ClientKind::Deployer);
    for id in made {
        make(&mut book, 3_200 + id, *id);
    }
    for id in made {
        look(&mut book, 4_300 + id * 10, *id, acted.contains(id));
    }
    input.plan.clients.push(planned("deployer", ClientKind::Deployer, None, 1_000));
    predicted(&mut input, "deployer", Question::ActsOnAll, Expected::Yes);
    input.histories.insert("deployer".to_owned(), book.close(end));
    input
}

#[test]
fn that_all_are_acted_upon_is_contradicted_only_by_one_that_had_its_time() {
    let agrees = |made: &[u64], acted: &[u64], end: u64| {
        let input = after_the_restore(made, acted, end);
        let facts = consumer(&input);
        ((facts.made_after, facts.acted_after, facts.undecided), agreement(&judge(&input), "deployer", 0))
    };
    assert_eq!(agrees(&[1], &[1], 9_000), ((1, 1, 0), Some(true)));
    assert_eq!(agrees(&[1, 2], &[1, 2], 9_000), ((2, 2, 0), Some(true)));
    assert_eq!(agrees(&[1, 2], &[1], 9_000), ((2, 1, 0), Some(false)));
    assert_eq!(agrees(&[1, 2], &[1], 5_000), ((2, 1, 1), Some(true)), "made a moment before the end");
    assert_eq!(agrees(&[1, 2], &[], 5_000), ((2, 0, 2), None));
    assert_eq!(agrees(&[], &[], 9_000), ((0, 0, 0), None));
    let row = |input: &EvidenceInput| {
        judge(input).predictions.into_iter().find(|p| p.subject == "deployer").unwrap()
    };
    let none_made = row(&after_the_restore(&[], &[], 9_000));
    assert_eq!(none_made.observed, "unknown: nothing was made after the restore");
    // What may be either way is not contradicted.
    for acted in [&[1, 2][..], &[1]] {
        let mut input = after_the_restore(&[1, 2], acted, 9_000);
        input.plan.consumers.last_mut().unwrap().expected = Expected::Perhaps;
        assert_eq!(row(&input).agrees, Some(true));
    }
}

#[test]
fn the_facts_of_one_consumer_are_not_those_of_another() {
    let mut input = after_the_restore(&[1, 2], &[1, 2], 9_000);
    let other = after_the_restore(&[1, 2], &[1], 9_000);
    let mut records = other.histories["deployer"].clone();
    if let Record::Opened { client, .. } = &mut records[0] {
        *client = "idle".to_owned();
    }
    input.histories.insert("idle".to_owned(), records);
    input.plan.clients.push(planned("idle", ClientKind::Deployer, None, 1_000));
    predicted(&mut input, "idle", Question::ActsOnAll, Expected::No);
    let judgement = judge(&input);
    assert_eq!(
        (agreement(&judgement, "deployer", 0), agreement(&judgement, "idle", 0)),
        (Some(true), Some(true))
    );
}

#[test]
fn for_pods_nothing_is_made_that_could_belong_to_a_lost_one() {
    let mut input = World::honest().input();
    let mut book = Book::open("pods", ClientKind::PodCreator);
    let pod = |book: &mut Book, at, id| {
        book.did(at, Op::Make { what: Made::Pod, id }, ok(uid(id)));
        let answer = Answer { acted: Some(true), ..uid(id) };
        book.did(at + 10, Op::Look { what: Made::Pod, id }, ok(answer));
    };
    pod(&mut book, 1_000, 1);
    pod(&mut book, 3_200, 2);
    input.plan.clients.push(planned("pods", ClientKind::PodCreator, None, 1_000));
    input.histories.insert("pods".to_owned(), book.close(World::honest().collect_at()));
    let facts = consumer(&input);
    assert_eq!((facts.kind, facts.made_after, facts.acted_after), (ClientKind::PodCreator, 1, 1));
    assert_eq!(facts.acted_on_lost, None);
}

// Events.

#[test]
fn events_are_refused_for_their_lease_if_one_is_that_was_sent_after_the_restore() {
    let agrees = |events: &[(u64, Outcome)]| {
        let mut input = World::honest().input();
        let mut book = Book::open("events", ClientKind::EventWriter);
        for (id, (call, outcome)) in (0..).zip(events) {
            book.did(*call, Op::Make { what: Made::Event, id }, outcome.clone());
        }
        input.plan.clients.push(planned("events", ClientKind::EventWriter, None, 100));
        input.histories.insert("events".to_owned(), book.close(World::honest().collect_at()));
        predicted(&mut input, "events", Question::EventsRefused, Expected::Yes);
        agreement(&judge(&input), "events", 0)
    };
    let refused = || failed(Some(500), "lease-not-found");
    assert_eq!(agrees(&[(3_010, refused())]), Some(true));
    assert_eq!(agrees(&[(3_009, refused())]), None, "none was written after the restore");
    assert_eq!(agrees(&[(1_000, refused()), (3_200, done())]), Some(false));
    assert_eq!(agrees(&[(3_200, done()), (3_300, refused()), (3_400, done())]), Some(true));
    assert_eq!(agrees(&[(3_200, failed(Some(500), "server-error")), (3_300, done())]), Some(false));
    assert_eq!(agrees(&[(1_000, done()), (3_200, failed(Some(500), "server-error"))]), None);
}
