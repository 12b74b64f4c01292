//! What real versions of etcd and Kubernetes do, in small.

use crate::world::{MS, Manner, WRITE_EVERY, World};
use crate::{finding, lost_timeline};
use quakeproof::check::seen::ObservedView;
use quakeproof::check::{Verdict, judge};

#[test]
fn an_honest_cluster_passes_with_its_lost_writes_stated() {
    let world = World::honest();
    let judgement = judge(&world.input());
    assert_eq!(judgement.verdict, Some(Verdict::Pass), "{:#?}", judgement.findings);
    let facts = &judgement.etcd_restore[0];
    assert_eq!(facts.ledger.kept, Some(40));
    assert_eq!(facts.ledger.lost, Some(40));
    assert_eq!(facts.lost_ids, "41-80");
    assert_eq!(facts.ledger.acked, 80 + 150);
    assert_eq!(facts.ledger.phantom, Some(0));
    assert_eq!(facts.ledger.applied, Some(0));
    assert_eq!(facts.ledger.not_applied, Some(facts.ledger.indeterminate));
    assert!(facts.ledger.indeterminate > 0);
    assert_eq!(facts.revisions_lost, Some(40));
    let watch = facts.clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!((watch.gone410, watch.relists), (1, 1));
    assert_eq!((watch.events_missed, watch.phantom_objects), (Some(0), Some(0)));
    assert_eq!(watch.phases[0].observed, ObservedView::NotApplicable);
    assert!(watch.converged_after_ns.unwrap() <= 500 * MS);
    assert_eq!(judgement.recorder.lost, Some(0));
    let rpo = finding(&judgement, "lost-writes");
    assert_eq!(rpo.observed, Some(40 * WRITE_EVERY * MS));
    assert_eq!((rpo.lower, rpo.upper), (Some((800 - 6) * MS), Some((800 + 6) * MS)));
    let rto = finding(&judgement, "writes-again");
    assert_eq!(rto.upper, Some(503 * MS));
    assert!(
        judgement.predictions.iter().any(|p| p.agrees == Some(false)),
        "predicted otherwise, and said so"
    );
}

#[test]
fn an_api_server_kept_through_a_restore_without_bump_fails_in_both_phases() {
    let world = World::api_server_kept();
    let judgement = judge(&world.input());
    assert_eq!(judgement.verdict, Some(Verdict::Fail));
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(3)), "{}", found.reason);
    let facts = &judgement.etcd_restore[0];
    for name in ["lister", "watch", "raw"] {
        let client = facts.clients.iter().find(|c| c.name == name).unwrap();
        assert!(client.phases.iter().all(|p| p.observed == ObservedView::LostTimeline), "{client:#?}");
        // 40 lost objects still shown, 40 new ones skipped, and for good.
        assert_eq!(client.phantom_objects, Some(40));
        assert_eq!(client.absent_objects, Some(40));
        assert_eq!(client.phases[1].absent_at_end, Some(40));
        assert_eq!(client.converged_after_ns, None);
    }
    let watch = facts.clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!(watch.events_missed, Some(40));
    let silent = watch.silent_for_ns.unwrap() / MS;
    assert!((700..900).contains(&silent), "silent only until the revision is passed: {silent} ms");
    let lister = facts.clients.iter().find(|c| c.name == "lister").unwrap();
    assert!(lister.get_list_disagreements.unwrap() > 0);
    let reader = facts.clients.iter().find(|c| c.name == "reader").unwrap();
    assert_eq!(reader.stale_reads, Some(0), "a quorum GET shows what is");
    assert!(reader.get_list_disagreements.unwrap() > 0);
    assert!(judgement.predictions.iter().all(|p| p.agrees == Some(true)), "{:#?}", judgement.predictions);
    assert_eq!(finding(&judgement, "lists-right").verdict, Verdict::Fail);
    assert_eq!(finding(&judgement, "writes-again").verdict, Verdict::Pass);
}

#[test]
fn one_kind_of_client_on_the_lost_timeline_is_enough() {
    let worlds = [
        World { list: Manner::Frozen, bump: None, ..World::honest() },
        World { watch: Manner::Frozen, bump: None, ..World::honest() },
        World { etcd_watch: Manner::Frozen, bump: None, ..World::honest() },
        World { get_lies: true, bump: None, ..World::honest() },
    ];
    for world in worlds {
        let found = lost_timeline(&world.input());
        assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{world:?}: {}", found.reason);
    }
}

#[test]
fn a_watch_that_goes_quiet_is_stale_though_its_view_once_was_true() {
    let quiet_from = World::honest().judged_from() + 400;
    let world = World { watch: Manner::Stalls(quiet_from), ..World::honest() };
    let judgement = judge(&world.input());
    let found = finding(&judgement, "no-client-on-lost-timeline");
    assert_eq!((found.verdict, found.observed), (Verdict::Fail, Some(1)), "{}", found.reason);
    let watch = judgement.etcd_restore[0].clients.iter().find(|c| c.name == "watch").unwrap();
    assert_eq!(watch.phases[1].observed, ObservedView::Stale);
}

#[test]
fn of_a_restore_with_two_phases_none_is_said_to_be_missing() {
    let found = lost_timeline(&World { bump: None, ..World::honest() }.input());
    assert_eq!(found.verdict, Verdict::Pass, "{}", found.reason);
    assert!(!found.reason.contains("one phase only"), "{}", found.reason);
    let bumped = lost_timeline(&World::honest().input());
    assert!(bumped.reason.contains("; one phase only: the restored timeline starts at"), "{}", bumped.reason);
}
