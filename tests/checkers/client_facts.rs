//! Figures of a restore and of each client: what counts as after the fault, what is none and what is not known.

use crate::view_clients;
use crate::world::{BOOT, LOOK_EVERY, MS, Manner, World};
use crate::{answer_of, finding, history, instant, lost_timeline, op_at};
use quakeproof::check::restore_facts::{ClientFacts, EtcdRestoreFacts};
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Verdict, judge};
use quakeproof::clock::{BootId, MonoNs, WallTime};
use quakeproof::component::{ComponentId, HostId, Role, StopMethod};
use quakeproof::history::record::{Event, Op, OpRecord, Outcome, Record};
use quakeproof::journal::entry::{Fact, JournalEvent};
use quakeproof::plan::PlannedComponent;
use quakeproof::timeline::EvidenceInput;
use std::collections::BTreeMap;

fn facts(input: &EvidenceInput) -> EtcdRestoreFacts {
    judge(input).etcd_restore.remove(0)
}

pub fn client(input: &EvidenceInput, name: &str) -> ClientFacts {
    view_clients::client(&judge(input), name).clone()
}

fn event_of<'a>(
    input: &'a mut EvidenceInput,
    client: &str,
    wanted: impl Fn(&Event) -> bool,
) -> &'a mut MonoNs {
    let all = history(input, client).iter_mut().filter_map(|record| match record {
        Record::Event(event) if wanted(&event.event) => Some(&mut event.at_ns),
        _ => None,
    });
    all.into_iter().next().unwrap()
}

// The restore.

#[test]
fn what_the_journal_does_not_tell_of_a_restore_is_named() {
    let reason = |change: &dyn Fn(&mut EvidenceInput)| {
        let mut input = World::honest().input();
        change(&mut input);
        facts(&input).reason
    };
    let without = |input: &mut EvidenceInput, fact: fn(&Fact) -> bool| {
        input.journal.retain(|e| !matches!(&e.event, JournalEvent::Fact { fact: of } if fact(of)));
    };
    let snapshot = |fact: &Fact| matches!(fact, Fact::SnapshotTaken { .. });
    let revision = |fact: &Fact| matches!(fact, Fact::RevisionBefore { .. });
    assert_eq!(reason(&|_| ()), None);
    let untold = "the journal does not tell of snapshot `backup`";
    let unread = "the revision was not read before the loss";
    assert_eq!(reason(&|input| without(input, snapshot)).as_deref(), Some(untold));
    assert_eq!(reason(&|input| without(input, revision)).as_deref(), Some(unread));
    let both = reason(&|input| {
        without(input, snapshot);
        without(input, revision);
    });
    assert_eq!(both, Some(format!("{untold}; {unread}")));
    let undated = reason(&|input| {
        input.journal.iter_mut().for_each(|e| e.at = WallTime("at some time".to_owned()));
    });
    assert_eq!(undated.as_deref(), Some("no journal line gives the wall time of the snapshot"));
}

#[test]
fn the_api_servers_were_restarted_if_there_are_any_and_all_of_them_were() {
    let restarted = |components: &[(&str, Role)], stopped: &[&str]| {
        let mut input = World::honest().input();
        input.plan.cluster.components = components
            .iter()
            .map(|(name, role)| PlannedComponent {
                component: ComponentId((*name).to_owned()),
                role: *role,
                host: HostId("host-1".to_owned()),
            })
            .collect();
        for entry in &mut input.journal {
            if let JournalEvent::Fact { fact: Fact::Restored { restarted, .. } } = &mut entry.event {
                let by = |name: &&str| (ComponentId((*name).to_owned()), StopMethod::Kill);
                *restarted = stopped.iter().map(by).collect();
            }
        }
        facts(&input).api_servers_restarted
    };
    let two = [("etcd-1", Role::Etcd), ("api-1", Role::KubeApiserver), ("api-2", Role::KubeApiserver)];
    assert!(restarted(&two, &["api-1", "api-2"]));
    assert!(!restarted(&two, &["api-1", "etcd-1"]));
    assert!(!restarted(&two, &["etcd-1"]));
    assert!(!restarted(&two[..1], &["etcd-1"]));
}

#[test]
fn a_timeline_that_begins_past_the_old_revision_does_not_pass_it() {
    let passed = |bump| facts(&World { bump, ..World::honest() }.input()).passed_ns;
    assert!(passed(None).is_some());
    assert!(passed(Some(39)).is_some());
    assert_eq!((passed(Some(40)), passed(Some(1_000_000))), (None, None));
}

// A client's view over both phases.

#[test]
fn what_is_wrong_in_one_phase_is_wrong_and_only_what_is_known_in_all_is_true() {
    use ObservedView::{LostTimeline, NotApplicable, Stale, True, Unknown};
    let mut client = client(&World::honest().input(), "lister");
    let mut seen = |before, after, updates| {
        (client.phases[0].observed, client.phases[1].observed) = (before, after);
        client.cas_on_lost_state = updates;
        (client.view(), client.on_lost_timeline())
    };
    for (before, after, view, lost) in [
        (True, True, True, Some(false)),
        (NotApplicable, True, True, Some(false)),
        (True, Unknown, Unknown, None),
        (Unknown, Stale, Stale, Some(true)),
        (Stale, True, Stale, Some(true)),
        (Stale, LostTimeline, LostTimeline, Some(true)),
        (LostTimeline, Unknown, LostTimeline, Some(true)),
        (NotApplicable, NotApplicable, NotApplicable, None),
    ] {
        assert_eq!(seen(before, after, None), (view, lost), "{before:?}, {after:?}");
    }
    assert_eq!(seen(True, True, Some(0)), (True, Some(false)));
    assert_eq!(seen(True, True, Some(1)), (LostTimeline, Some(true)));
}

#[test]
fn figures_of_both_phases_are_the_worst_of_either() {
    let world = World { bump: None, ..World::honest() };
    let mut input = world.input();
    answer_of(op_at(&mut input, "lister", world.judged_from()))
        .ids
        .as_mut()
        .unwrap()
        .0
        .extend([9_998, 9_999]);
    let lister = client(&input, "lister");
    assert_eq!((lister.phases[0].phantom_objects, lister.phases[1].phantom_objects), (Some(2), Some(0)));
    assert_eq!((lister.phantom_objects, lister.absent_objects), (Some(2), Some(0)));
}

#[test]
fn figures_that_do_not_apply_to_a_kind_are_null() {
    let facts = facts(&World::honest().input());
    let of = |name: &str| facts.clients.iter().find(|c| c.name == name).unwrap();
    let (reader, lister, watch, orders) = (of("reader"), of("lister"), of("watch"), of("orders"));
    assert_eq!((reader.stale_reads, lister.stale_reads, watch.stale_reads), (Some(0), None, None));
    assert_eq!((reader.get_list_disagreements, lister.get_list_disagreements), (Some(0), Some(0)));
    assert_eq!((watch.get_list_disagreements, orders.get_list_disagreements), (None, None));
    assert_eq!((lister.events_missed, watch.events_missed), (None, Some(0)));
    assert_eq!((lister.silent_for_ns, lister.relists, watch.relists), (None, 0, 1));
    assert!(watch.silent_for_ns.is_some());
    let reason = |client: &ClientFacts| client.reason.clone().unwrap();
    assert!(reason(orders).starts_with("it neither reads nor watches the ledger; "), "{}", reason(orders));
    let one_phase = "the restored timeline starts at revision 1000140, the lost one ended at 180";
    assert!(
        reason(lister)
            .starts_with(&format!("it is no watch: no silence, no events; it does not GET; {one_phase}")),
        "{}",
        reason(lister)
    );
    let kept = World { bump: None, ..World::honest() }.input();
    let of_list = client(&kept, "lister").reason.unwrap();
    assert!(!of_list.contains("revision"), "both phases were seen: {of_list}");
}

#[test]
fn without_both_gets_and_lists_they_cannot_disagree() {
    let mut input = World::honest().input();
    history(&mut input, "lister").retain(|r| !matches!(r, Record::Op(_)));
    assert_eq!(client(&input, "reader").get_list_disagreements, None);
    let mut input = World::honest().input();
    history(&mut input, "reader").retain(|r| !matches!(r, Record::Op(_)));
    assert_eq!(client(&input, "lister").get_list_disagreements, None);
}

#[test]
fn a_get_disagrees_with_lists_if_it_contradicts_the_last_before_it_and_the_first_after_it() {
    let world = World::honest();
    let from = world.judged_from() + 400;
    // Of four lists the two in the middle lack object 3. A GET between them finds it.
    let disagreements = |call: i64, ret: i64, lacking: std::ops::Range<u64>| {
        let mut input = world.input();
        let before = op_at(&mut input, "lister", from + LOOK_EVERY).return_ns;
        let after = op_at(&mut input, "lister", from + 2 * LOOK_EVERY).call_ns;
        for nth in lacking {
            let list = op_at(&mut input, "lister", from + nth * LOOK_EVERY);
            assert!(answer_of(list).ids.as_mut().unwrap().0.remove(&3));
        }
        let get = op_at(&mut input, "reader", from + LOOK_EVERY + 20);
        get.op = Op::Get { id: 3 };
        get.outcome = Outcome::Ok(Default::default());
        (get.call_ns.0, get.return_ns.0) =
            (before.0.checked_add_signed(call).unwrap(), after.0.checked_add_signed(ret).unwrap());
        let facts = facts(&input);
        let of = |name: &str| facts.clients.iter().find(|c| c.name == name).unwrap().get_list_disagreements;
        assert_eq!(of("reader"), of("lister"));
        of("reader").unwrap()
    };
    assert_eq!(disagreements(0, 0, 1..3), 1);
    assert_eq!(disagreements(-1, 0, 1..3), 0, "held against the list before that one");
    assert_eq!(disagreements(0, 1, 1..3), 0, "held against the list after that one");
    assert_eq!(disagreements(0, 0, 1..2), 0, "it may have been made in between");
    assert_eq!(disagreements(0, 0, 2..3), 0);
}

#[test]
fn a_watch_is_silent_from_the_first_write_after_its_last_event() {
    let world = World { watch: Manner::Stalls(4_000), ..World::honest() };
    let mut input = world.input();
    let end = world.end();
    // The last event, of the write of 3990, arrived at 3992; that write was acknowledged a millisecond later.
    assert_eq!(client(&input, "watch").silent_for_ns, Some((end - 3_993) * MS));
    let last = history(&mut input, "watch").iter_mut().rev().find_map(|r| match r {
        Record::Event(event) => Some(&mut event.at_ns),
        _ => None,
    });
    let last = last.unwrap();
    assert_eq!(*last, MonoNs(3_992 * MS));
    *last = MonoNs(3_993 * MS);
    assert_eq!(client(&input, "watch").silent_for_ns, Some((end - 3_993) * MS));
    *event_of(&mut input, "watch", |e| matches!(e, Event::Put { id: 1_044, .. })) = MonoNs(3_993 * MS + 1);
    assert_eq!(client(&input, "watch").silent_for_ns, Some((end - 4_013) * MS));
}

#[test]
fn a_watch_is_silent_only_about_writes_that_were_acknowledged_while_it_was_recorded() {
    let silent = |writes: u64, closed_at: Option<u64>| {
        let world = World { writes: [40, 40, writes], ..World::honest() };
        let mut input = world.input();
        if let Some(at) = closed_at {
            let records = history(&mut input, "watch");
            records.retain(|record| instant(record) < at);
            records.push(Record::Closed {
                mono_ns: MonoNs(at * MS),
                boot: BootId(BOOT.to_owned()),
                scheduled: 0,
                recorded: 0,
                late: 0,
                lost: 0,
            });
        }
        client(&input, "watch").silent_for_ns
    };
    assert_eq!(silent(0, None), None, "nothing was written after the restore");
    // The first write of the restored timeline is acknowledged at 3113.
    assert_eq!(World::honest().serving_at(), 3_110);
    assert_eq!(silent(150, Some(3_112)), Some(0));
    assert_eq!(silent(150, Some(3_120)), Some(7 * MS));
}

// From the fault on.

#[test]
fn the_end_of_a_watch_at_the_instant_of_the_fault_was_since_the_fault() {
    let world = World::honest();
    let fault = world.lost_at() * MS;
    for (at, gone) in [(fault, 1), (fault - 1, 0)] {
        let mut input = world.input();
        *event_of(&mut input, "watch", |e| matches!(e, Event::Error { code: 410, .. })) = MonoNs(at);
        let watch = client(&input, "watch");
        assert_eq!((watch.gone410, watch.errors.get("error-410").copied()), (gone, (gone > 0).then_some(1)));
    }
    let ended = |event: Event| {
        let mut input = world.input();
        for record in history(&mut input, "raw") {
            if let Record::Event(old) = record
                && matches!(old.event, Event::Error { .. })
            {
                old.event = event.clone();
            }
        }
        let raw = client(&input, "raw");
        (raw.gone410, raw.errors)
    };
    let one = |class: &str| BTreeMap::from([(class.to_owned(), 1)]);
    let because = |reason: &str| Event::Ended { reason: reason.to_owned() };
    assert_eq!(ended(because("compacted")), (1, one("ended-compacted")));
    assert_eq!(ended(because("eof")), (0, one("ended-eof")));
    assert_eq!(ended(because("stopped")), (0, BTreeMap::new()));
    assert_eq!(ended(because("as-asked")), (0, BTreeMap::new()));
    assert_eq!(ended(Event::Error { code: 500, message: String::new() }), (0, one("error-500")));
}

#[test]
fn a_watch_that_is_refused_as_gone_is_gone() {
    let world = World::honest();
    for (at, gone) in [(world.lost_at() * MS, 1), (world.lost_at() * MS - 1, 0)] {
        let mut input = world.input();
        history(&mut input, "watch")
            .retain(|r| !matches!(r, Record::Event(e) if matches!(e.event, Event::Error { .. })));
        let watch = history(&mut input, "watch").iter_mut().rev().find_map(|r| match r {
            Record::Op(op) if matches!(op.op, Op::Watch { .. }) => Some(op),
            _ => None,
        });
        let watch = watch.unwrap();
        watch.outcome = Outcome::Failed { status: Some(410), reason: "gone".to_owned() };
        watch.return_ns = MonoNs(at);
        assert_eq!(client(&input, "watch").gone410, gone);
    }
}

#[test]
fn lists_and_ranges_of_a_watcher_count_if_asked_for_since_the_fault_and_answered() {
    let world = World::honest();
    let fault = world.lost_at() * MS;
    let relist = |op: &Op| matches!(op, Op::List { .. } | Op::EtcdRange { .. });
    for name in ["watch", "raw"] {
        let relists = |change: &dyn Fn(&mut OpRecord)| {
            let mut input = world.input();
            let last = history(&mut input, name).iter_mut().rev().find_map(|r| match r {
                Record::Op(op) if relist(&op.op) => Some(op),
                _ => None,
            });
            change(last.unwrap());
            client(&input, name).relists
        };
        assert_eq!(relists(&|op| op.call_ns = MonoNs(fault)), 1, "{name}");
        assert_eq!(relists(&|op| op.call_ns = MonoNs(fault - 1)), 0, "{name}");
        let refused = || Outcome::Failed { status: None, reason: "refused".to_owned() };
        assert_eq!(relists(&|op| op.outcome = refused()), 0, "{name}");
    }
}

#[test]
fn operations_that_failed_since_the_fault_are_counted_by_class() {
    let world = World::honest();
    let fault = world.lost_at() * MS;
    let mut input = world.input();
    let of = |input: &EvidenceInput, name: &str| client(input, name).errors;
    // Every 100 ms from 2705 to 3105 at the latest.
    assert_eq!(of(&input, "lister"), BTreeMap::from([("reinitializing".to_owned(), 5)]));
    op_at(&mut input, "lister", world.lost_at()).return_ns = MonoNs(fault);
    assert_eq!(of(&input, "lister")["reinitializing"], 5);
    op_at(&mut input, "lister", world.lost_at()).return_ns = MonoNs(fault - 1);
    assert_eq!(of(&input, "lister")["reinitializing"], 4);
    // Not there is an answer, and a client that is told to stop has not failed.
    let refused = of(&input, "reader");
    assert_eq!(refused.keys().collect::<Vec<_>>(), ["refused"]);
    op_at(&mut input, "reader", world.judged_from()).outcome =
        Outcome::Unknown { reason: "stopped".to_owned() };
    assert_eq!(of(&input, "reader"), refused);
    op_at(&mut input, "reader", world.judged_from()).outcome =
        Outcome::Unknown { reason: "timeout".to_owned() };
    assert_eq!(of(&input, "reader")["timeout"], 1);
    op_at(&mut input, "orders", world.judged_from()).outcome =
        Outcome::Failed { status: Some(404), reason: "not-found".to_owned() };
    assert_eq!(of(&input, "orders")["not-found"], 1, "of a write it is a failure");
}

#[test]
fn without_a_fault_nothing_happened_since_it() {
    let mut input = World::honest().input();
    for record in history(&mut input, "watch") {
        if let Record::Op(OpRecord { op: Op::Watch { .. }, outcome, .. }) = record {
            *outcome = Outcome::Failed { status: Some(410), reason: "gone".to_owned() };
        }
    }
    assert_ne!(client(&input, "watch").gone410, 0, "with a fault they count");
    input
        .journal
        .retain(|e| !matches!(e.event, JournalEvent::Injecting { .. } | JournalEvent::Injected { .. }));
    for client in facts(&input).clients {
        assert_eq!(
            (client.gone410, client.relists, client.errors),
            (0, 0, BTreeMap::new()),
            "{}",
            client.name
        );
    }
}

// Predictions.

#[test]
fn that_a_watch_does_not_end_is_known_only_of_a_whole_history() {
    let told = |closed: bool, gone: bool| {
        let world = World { watch: Manner::Frozen, bump: None, ..World::honest() };
        let mut input = if gone { World::honest().input() } else { world.input() };
        if !closed {
            history(&mut input, "watch").pop();
        }
        let judgement = judge(&input);
        let row =
            judgement.predictions.iter().find(|p| p.what == "watch at the old revision").unwrap().clone();
        (row.agrees, row.observed)
    };
    assert_eq!(told(true, false), (Some(true), "does not end with 410".to_owned()));
    assert_eq!(told(true, true), (Some(false), "ends with 410".to_owned()));
    assert_eq!(told(false, true), (Some(false), "ends with 410".to_owned()));
    let (agrees, observed) = told(false, false);
    assert_eq!(agrees, None);
    assert!(observed.starts_with("unknown: "), "{observed}");
}

#[test]
fn a_view_that_was_not_seen_neither_agrees_nor_disagrees_with_what_was_predicted() {
    let world = World::api_server_kept();
    let mut input = world.input();
    history(&mut input, "watch").pop();
    let judgement = judge(&input);
    let views: Vec<_> = judgement.predictions.iter().filter(|p| p.what.starts_with("view ")).collect();
    assert_eq!(
        views.iter().map(|p| p.agrees).collect::<Vec<_>>(),
        [Some(true), Some(true)],
        "proven all the same"
    );
    let quiet = world.judged_from()..world.end();
    history(&mut input, "truth").retain(|r| !quiet.contains(&instant(r)));
    input.histories.remove("truth");
    let judgement = judge(&input);
    for row in judgement.predictions.iter().filter(|p| p.what.starts_with("view ")) {
        assert_eq!(row.agrees, None);
        assert!(row.observed.starts_with("unknown: "), "{}", row.observed);
    }
}

#[test]
fn of_a_client_of_which_nothing_could_be_compared_it_is_said_why_for_each_of_its_figures() {
    let mut input = World::honest().input();
    history(&mut input, "lister").retain(|record| !matches!(record, Record::Op(_)));
    let reason = client(&input, "lister").reason.unwrap();
    let first = "the restored timeline starts at revision 1000140, the lost one ended at 180";
    assert!(reason.contains(first), "{reason}");
    assert!(reason.contains("; no view after the restore could be compared"), "{reason}");
}

// What the objective says of them.

#[test]
fn one_client_with_a_view_is_enough_to_judge() {
    let mut input = World::honest().input();
    input.plan.clients.retain(|c| ["orders", "lister", "truth"].contains(&c.name.as_str()));
    let found = lost_timeline(&input);
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert!(found.reason.starts_with("every view of 1 clients was etcd's state"), "{}", found.reason);
    input.plan.clients.retain(|c| c.name != "lister");
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Inconclusive, None));
    assert_eq!(found.reason, "no client of the drill reads or watches the ledger");
}

#[test]
fn of_several_clients_or_phases_that_are_unknown_the_first_is_named() {
    let mut input = World { bump: None, ..World::honest() }.input();
    for name in ["lister", "reader"] {
        history(&mut input, name).retain(|r| !matches!(r, Record::Op(_)));
    }
    let found = lost_timeline(&input);
    assert_eq!((found.verdict, found.observed), (Verdict::Inconclusive, None));
    assert_eq!((found.lower, found.upper), (Some(0), Some(2)));
    let words = "2 of 4 clients can't be judged: reader before the old revision was passed: ";
    assert!(found.reason.starts_with(words), "{}", found.reason);
}

#[test]
fn clients_that_are_wrong_are_counted_beside_those_that_are_unknown() {
    let world = World { watch: Manner::Frozen, bump: None, ..World::honest() };
    let mut input = world.input();
    history(&mut input, "reader").pop();
    let found = finding(&judge(&input), "no-client-on-lost-timeline").clone();
    assert_eq!(found.verdict, Verdict::Fail);
    assert_eq!((found.lower, found.observed, found.upper), (Some(1), Some(1), Some(2)));
    assert_eq!(found.target, Some(0));
    assert!(found.reason.starts_with("1 of 4 clients: watch (in both phases; "), "{}", found.reason);
}
