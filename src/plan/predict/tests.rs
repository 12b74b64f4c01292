use super::super::resolve::{ResolveInput, resolve};
use super::super::{Expected, Plan, PredictedView, Question};
use super::*;

const WITHOUT_BUMP: &str = include_str!("../../../scenarios/etcd/restore-without-bump.yaml");
const BUMP_AND_MARK: &str = include_str!("../../../scenarios/etcd/restore-bump-and-mark.yaml");

/// Clients of both scenarios that go on from where a watch was.
const WATCHES: [&str; 5] = ["watch", "watch-bookmarks", "watch-list", "reflector", "etcd-watch"];

fn plan(text: &str, kubernetes: &str) -> Plan {
    let input =
        ResolveInput { kubernetes: Some(kubernetes.to_owned()), ..ResolveInput::plain("d.yaml", text) };
    resolve(input).unwrap()
}

fn lying(plan: &Plan) -> Vec<&str> {
    let lies = |p: &&Prediction| {
        assert_eq!(p.before_passing, p.after_passing, "{} differs between phases", p.client);
        p.after_passing == PredictedView::LostTimeline
    };
    plan.predictions.iter().filter(lies).map(|p| p.client.as_str()).collect()
}

#[test]
fn without_bump_under_a_running_api_server_the_newer_version_lies_to_every_list() {
    let lists = ["lister", "lister-cached", "lister-paged", "lister-last-seen"];
    assert_eq!(lying(&plan(WITHOUT_BUMP, "v1.37.2")), [lists.as_slice(), &WATCHES].concat());
    let cached = ["lister-cached", "lister-last-seen"];
    assert_eq!(lying(&plan(WITHOUT_BUMP, "v1.30.4")), [cached.as_slice(), &WATCHES].concat());
}

#[test]
fn what_clients_are_refused_depends_on_version_and_procedure() {
    let refusals = |text: &str, version: &str, client: &str| {
        let plan = plan(text, version);
        let found = plan.predictions.into_iter().find(|p| p.client == client).unwrap();
        found.refusals.into_iter().collect::<Vec<_>>()
    };
    let one = |class: &str, met| vec![(class.to_owned(), met)];
    assert_eq!(refusals(WITHOUT_BUMP, "v1.30.4", "watch-list"), one("invalid", true));
    assert_eq!(refusals(WITHOUT_BUMP, "v1.37.2", "watch-list"), one("invalid", false));
    let too_large = |met| one("too-large-resource-version", met);
    assert_eq!(refusals(WITHOUT_BUMP, "v1.37.2", "lister-last-seen"), too_large(false));
    let paged = WITHOUT_BUMP.replace("resourceVersion: lastSeen", "resourceVersion: lastSeen, limit: 500");
    assert_eq!(refusals(&paged, "v1.30.4", "lister-last-seen"), too_large(true));
    assert_eq!(refusals(&paged, "v1.37.2", "lister-last-seen"), too_large(false));
    let restarted = WITHOUT_BUMP.replace("apiServers: false", "apiServers: true");
    assert_eq!(refusals(&restarted, "v1.37.2", "lister-last-seen"), [], "it may get there while it waits");
    assert_eq!(refusals(BUMP_AND_MARK, "v1.30.4", "swapper"), one("conflict", true));
    let slow = BUMP_AND_MARK.replace("every: 100ms, objects: 5", "every: 10s, objects: 5");
    assert_eq!(refusals(&slow, "v1.30.4", "swapper"), [], "what it holds may be of before the snapshot");
}

#[test]
fn initial_events_are_on_where_the_gate_is() {
    let on = ["v1.32.0", "v1.34.1", "v1.37.2", "unreadable"];
    assert!(on.into_iter().all(watch_list));
    assert!(!["v1.30.4", "v1.31.9", "v1.33.2"].into_iter().any(watch_list));
}

#[test]
fn without_bump_a_restarted_api_server_lies_to_watches_only() {
    let text = WITHOUT_BUMP.replace("apiServers: false", "apiServers: true");
    for version in ["v1.37.2", "v1.30.4"] {
        assert_eq!(lying(&plan(&text, version)), WATCHES);
    }
}

#[test]
fn a_bump_past_the_old_revision_ends_watches_and_leaves_nobody_behind() {
    let plan = plan(BUMP_AND_MARK, "v1.37.2");
    for p in &plan.predictions {
        assert_eq!(p.before_passing, PredictedView::NotApplicable, "{}", p.client);
        assert_eq!(p.after_passing, PredictedView::True, "{}", p.client);
        assert_eq!(p.gone_410, WATCHES.contains(&p.client.as_str()), "{}", p.client);
    }
}

#[test]
fn a_bump_near_the_number_of_lost_revisions_says_both_outcomes() {
    let text = BUMP_AND_MARK.replace("bumpRevision: auto", "bumpRevision: 450");
    let plan = plan(&text, "v1.37.2");
    let watch = plan.predictions.iter().find(|p| p.client == "watch").unwrap();
    assert_eq!(watch.after_passing, PredictedView::LostTimeline);
    assert!(watch.source.contains("410") && watch.source.contains("as without a bump"), "{}", watch.source);
}

#[test]
fn the_reach_of_a_bump_is_decided_only_where_it_is_certain() {
    assert_eq!(reaches(None, 0), Past::No);
    assert_eq!(reaches(Some(1), 0), Past::Perhaps);
    assert_eq!(reaches(Some(100), 450), Past::No);
    assert_eq!(reaches(Some(450), 450), Past::Perhaps);
    assert_eq!(reaches(Some(1_000_000_000), 450), Past::Yes);
    assert_eq!(reaches(Some(u64::MAX), u64::MAX), Past::Yes);
}

#[test]
fn objectives_follow_from_what_clients_are_predicted_to_see() {
    let of = |plan: &Plan, name: &str| {
        plan.objectives.iter().find(|o| o.name == name).and_then(|o| o.predicted.clone()).unwrap()
    };
    let (new, old) = (plan(WITHOUT_BUMP, "v1.37.2"), plan(WITHOUT_BUMP, "v1.30.4"));
    assert!(of(&new, "lists-true-again").starts_with("missed"));
    assert!(of(&old, "lists-true-again").starts_with("met"));
    assert!(of(&new, "no-client-on-lost-timeline").starts_with("missed: lister, "));
    assert!(of(&plan(BUMP_AND_MARK, "v1.37.2"), "no-client-on-lost-timeline").starts_with("met"));
    assert!(of(&new, "lost-writes").contains("about 400 writes"));
}

const BUMP_TOO_SMALL: &str = include_str!("../../../scenarios/etcd/restore-bump-too-small.yaml");
const OFFICIAL_NO_BUMP: &str =
    include_str!("../../../scenarios/etcd/restore-official-procedure-no-bump.yaml");
const CONTROLLERS_KEPT: &str = include_str!("../../../scenarios/etcd/restore-controllers-kept.yaml");
const THREE_MEMBERS: &str = include_str!("../../../scenarios/etcd/restore-three-members.yaml");

#[test]
fn a_bump_that_does_not_lead_past_what_was_seen_is_as_good_as_none() {
    let without = BUMP_TOO_SMALL.replace("bumpRevision: 20", "bumpRevision: none");
    assert_eq!(lying(&plan(BUMP_TOO_SMALL, "v1.37.2")), lying(&plan(&without, "v1.37.2")));
}

#[test]
fn whom_nobody_restarts_is_left_behind_by_a_restart_of_the_control_plane() {
    let watches = ["watch", "watch-bookmarks", "watch-list", "reflector", "etcd-watch"];
    assert_eq!(lying(&plan(OFFICIAL_NO_BUMP, "v1.37.2")), watches);
}

#[test]
fn a_client_of_an_api_server_that_is_kept_is_told_from_one_that_is_restarted() {
    let text = THREE_MEMBERS
        .replace("bumpRevision: auto", "bumpRevision: none")
        .replace("settle: 10s", "settle: 2s")
        .replace("apiServers: false", "apiServers: [kube-apiserver-1]");
    let plan = plan(&text, "v1.37.2");
    let target = |name: &str| plan.clients.iter().find(|c| c.name == name).unwrap().target.0.clone();
    let listers = ["lister", "lister-cached", "lister-paged"];
    let kept: Vec<&str> = listers.into_iter().filter(|name| target(name) == "kube-apiserver-2").collect();
    let lying: Vec<&str> = lying(&plan).into_iter().filter(|name| listers.contains(name)).collect();
    assert!(!kept.is_empty() && kept.len() < listers.len(), "{kept:?}");
    assert_eq!(lying, kept);
}

fn expected(plan: &Plan, client: &str) -> Vec<(Question, Expected)> {
    plan.consumers.iter().filter(|p| p.client == client).map(|p| (p.question, p.expected)).collect()
}

#[test]
fn consumers_share_the_fate_of_watches_and_leases_that_of_the_snapshot() {
    let bumped = plan(BUMP_AND_MARK, "v1.37.2");
    assert_eq!(
        expected(&bumped, "leases"),
        [(Question::LeasesComeBack, Expected::Yes), (Question::LeasesAreGone, Expected::Yes)]
    );
    let controllers = plan(CONTROLLERS_KEPT, "v1.37.2");
    assert_eq!(expected(&controllers, "deployer"), [(Question::ActsOnAll, Expected::Yes)]);
    assert_eq!(expected(&controllers, "pods"), [(Question::ActsOnAll, Expected::Yes)]);
    assert_eq!(expected(&bumped, "events"), [(Question::EventsRefused, Expected::Perhaps)]);
    let no_bump = CONTROLLERS_KEPT
        .replace("bumpRevision: auto", "bumpRevision: none")
        .replace("settle: 10s", "settle: 2s");
    let refused_at_start = plan(&no_bump, "v1.37.2");
    assert_eq!(expected(&refused_at_start, "deployer"), [(Question::ActsOnAll, Expected::Perhaps)]);
    let kept = plan(&no_bump.replace("apiServers: true", "apiServers: false"), "v1.30.4");
    assert_eq!(expected(&kept, "deployer"), [(Question::ActsOnAll, Expected::No)]);
    let restarted = plan(&BUMP_AND_MARK.replace("apiServers: false", "apiServers: true"), "v1.37.2");
    assert_eq!(expected(&restarted, "events"), [(Question::EventsRefused, Expected::No)]);
}

#[test]
fn two_leaders_are_predicted_only_where_the_lease_is_handed_over() {
    assert_eq!(expected(&plan(BUMP_AND_MARK, "v1.37.2"), "elector"), [(Question::TwoLead, Expected::No)]);
    let two = plan(include_str!("../../../scenarios/etcd/restore-two-leaders.yaml"), "v1.37.2");
    assert_eq!(expected(&two, "elector"), [(Question::TwoLead, Expected::Perhaps)]);
    let objective = two.objectives.iter().find(|o| o.name == "one-leader").unwrap();
    assert!(objective.predicted.as_ref().unwrap().contains("stepped down"), "{objective:?}");
}

const MEMBER_LOSS: &str = include_str!("../../../scenarios/etcd/member-loss.yaml");
const QUORUM_LOSS: &str = include_str!("../../../scenarios/etcd/quorum-loss.yaml");

#[test]
fn every_objective_of_a_loss_without_a_restore_has_its_prediction() {
    for (text, words) in [(MEMBER_LOSS, "elect a leader"), (QUORUM_LOSS, "the quorum is gone for at least")] {
        let plan = plan(text, "v1.37.2");
        for objective in &plan.objectives {
            let predicted = objective.predicted.as_deref().unwrap_or_else(|| panic!("{}", objective.name));
            assert!(predicted.starts_with("met"), "{predicted}");
        }
        assert!(plan.objectives.iter().any(|o| o.predicted.as_deref().is_some_and(|p| p.contains(words))));
    }
}
