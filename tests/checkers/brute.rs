//! The checkers against brute force, and against records with one line less.

use crate::world::{MAX_LAG, MS, Manner, WRITE_EVERY, World};
use crate::{finding, history, instant, lost_timeline};
use proptest::prelude::*;
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Verdict, judge};
use quakeproof::history::record::{Event, Op, OpRecord, Outcome, Record};
use quakeproof::timeline::EvidenceInput;
use std::collections::BTreeSet;

/// Clients that are wrong between settling and collecting, found by comparing
/// every view with the world itself.
fn brute_force(world: &World, input: &EvidenceInput) -> BTreeSet<&'static str> {
    let (from, to) = (world.judged_from(), world.collect_at());
    let state = |revision: u64| -> BTreeSet<u64> {
        world.restored().into_iter().filter(|(_, _, r)| *r <= revision).map(|(_, id, _)| id).collect()
    };
    let is_wrong = |ids: &BTreeSet<u64>, revision: u64, call: u64, ret: u64| {
        if revision > world.now(ret).0 {
            let (must, may) = (world.now(call - 5).1, world.now(ret).1);
            return !ids.is_subset(&may) || !must.is_subset(ids);
        }
        let stale = world
            .restored()
            .into_iter()
            .any(|(when, _, r)| when > 0 && when + 3 + MAX_LAG <= call && r > revision);
        *ids != state(revision) || stale
    };
    let mut wrong = BTreeSet::new();
    for record in &input.histories["lister"] {
        let Record::Op(OpRecord { call_ns, return_ns, outcome: Outcome::Ok(answer), .. }) = record else {
            continue;
        };
        let (call, ret) = (call_ns.0 / MS, return_ns.0 / MS);
        if (from..to).contains(&call)
            && is_wrong(&answer.ids.as_ref().unwrap().0, answer.revision.unwrap(), call, ret)
        {
            wrong.insert("lister");
        }
    }
    for record in &input.histories["reader"] {
        let Record::Op(OpRecord { call_ns, op: Op::Get { id }, outcome, .. }) = record else { continue };
        let call = call_ns.0 / MS;
        if (from..to).contains(&call) && world.now(call).1.contains(id) != matches!(outcome, Outcome::Ok(_)) {
            wrong.insert("reader");
        }
    }
    for client in ["watch", "raw"] {
        for look in input.histories["truth"].iter().filter_map(|r| match r {
            Record::Op(op) => Some(op.call_ns.0 / MS),
            _ => None,
        }) {
            if !(from..to).contains(&look) {
                continue;
            }
            let (ids, revision) = fold_until(&input.histories[client], look);
            if is_wrong(&ids, revision, look, look) {
                wrong.insert(if client == "watch" { "watch" } else { "raw" });
            }
        }
    }
    wrong
}

fn fold_until(records: &[Record], until: u64) -> (BTreeSet<u64>, u64) {
    let (mut ids, mut revision) = (BTreeSet::new(), 0);
    for record in records.iter().filter(|r| instant(r) <= until) {
        match record {
            Record::Op(OpRecord { outcome: Outcome::Ok(answer), op, .. })
                if !matches!(op, Op::Watch { .. }) =>
            {
                ids = match (&answer.ids, &answer.objects) {
                    (Some(ids), _) => ids.0.clone(),
                    (_, Some(objects)) => objects.iter().map(|(id, _)| *id).collect(),
                    _ => unreachable!("a list or a range"),
                };
                revision = answer.revision.unwrap();
            }
            Record::Event(event) => {
                if let Event::Put { id, revision: at } = event.event {
                    ids.insert(id);
                    revision = at;
                }
            }
            _ => {}
        }
    }
    (ids, revision)
}

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        4 => Just(Manner::Honest),
        2 => Just(Manner::Frozen),
        1 => (2_000u64..5_500).prop_map(Manner::Omits),
        1 => (2_000u64..5_500).prop_map(Manner::Invents),
        1 => (3_500u64..5_500).prop_map(Manner::Stalls),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_finds_exactly_the_clients_that_brute_force_finds(
        before in 12u64..40,
        lost in 0u64..60,
        after in 60u64..120,
        bump in prop_oneof![Just(None), Just(Some(3)), Just(Some(1_000_000))],
        list in manner(),
        watch in manner(),
        etcd_watch in manner(),
        get_lies in proptest::bool::weighted(0.2),
    ) {
        let world = World { writes: [before, lost, after], bump, list, watch, etcd_watch, get_lies };
        let input = world.input();
        let expected = brute_force(&world, &input);
        let judgement = judge(&input);
        let found = finding(&judgement, "no-client-on-lost-timeline");
        let wrong: BTreeSet<&str> = judgement.etcd_restore[0]
            .clients
            .iter()
            .filter(|c| c.phases.iter().any(|p| p.is_wrong()))
            .map(|c| c.name.as_str())
            .collect();
        prop_assert_eq!(&wrong, &expected, "{}", found.reason);
        prop_assert_eq!(found.lower, Some(expected.len() as u64));
        if expected.is_empty() {
            prop_assert_ne!(found.verdict, Verdict::Fail);
            // Where both phases could be observed, nothing stands against passing.
            let facts = &judgement.etcd_restore[0];
            let all_known = facts.clients.iter().flat_map(|c| &c.phases).all(|p| p.observed != ObservedView::Unknown);
            prop_assert_eq!(found.verdict == Verdict::Pass, all_known, "{}", found.reason);
            if bump == Some(1_000_000) {
                prop_assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
            }
        } else {
            prop_assert_eq!(found.verdict, Verdict::Fail);
        }
        let ledger = &judgement.etcd_restore[0].ledger;
        prop_assert_eq!(ledger.kept, Some(before));
        prop_assert_eq!(ledger.lost, Some(lost));
        prop_assert_eq!(ledger.acked_after_restore, after);
        let rpo = finding(&judgement, "lost-writes");
        prop_assert_eq!(rpo.observed, Some(lost * WRITE_EVERY * MS));
    }

    #[test]
    fn one_record_gone_from_anywhere_never_makes_a_missed_objective_pass(
        client in prop_oneof![Just("lister"), Just("watch"), Just("raw"), Just("truth"), Just("orders"), Just("reader")],
        at in 0usize..200,
    ) {
        let mut input = World::api_server_kept().input();
        let records = history(&mut input, client);
        let at = at % records.len();
        records.remove(at);
        prop_assert_eq!(lost_timeline(&input).verdict, Verdict::Fail);
    }
}
