use super::super::digest::{canonical_bytes, plan_digest};
use super::super::{MinimumOperations, Plan};
use super::*;
use crate::agent::undo::OnLapse;
use crate::history::kind::ClientKind;
use proptest::prelude::*;

const DRILL: &str = include_str!("../../../scenarios/etcd/restore-without-bump.yaml");

fn input() -> ResolveInput<'static> {
    ResolveInput::plain("d.yaml", DRILL)
}

fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn client<'p>(plan: &'p Plan, name: &str) -> &'p super::super::PlannedClient {
    plan.clients.iter().find(|c| c.name == name).unwrap()
}

#[test]
fn the_same_input_gives_the_same_bytes_and_any_override_another_digest() {
    let plain = plan_digest(&resolve(input()).unwrap());
    assert_eq!(plain, plan_digest(&resolve(input()).unwrap()));
    let others = [
        ResolveInput { set: set(&[("hold", "9s")]), ..input() },
        ResolveInput { set: set(&[("cluster.topology.etcd", "3")]), ..input() },
        ResolveInput { kubernetes: Some("v1.30.4".to_owned()), ..input() },
        ResolveInput { profile: Some("fast".to_owned()), ..input() },
        ResolveInput { seed: Some(1), ..input() },
    ];
    let mut seen = BTreeSet::from([plain]);
    for other in others {
        assert!(seen.insert(plan_digest(&resolve(other).unwrap())));
    }
}

#[test]
fn a_plan_survives_the_round_trip_through_its_file() {
    let plan = resolve(input()).unwrap();
    let back: Plan = serde_json::from_slice(&canonical_bytes(&plan)).unwrap();
    assert_eq!(back, plan);
    assert_eq!(canonical_bytes(&back), canonical_bytes(&plan));
}

#[test]
fn nothing_is_left_open() {
    let plan = resolve(input()).unwrap();
    let cluster = &plan.drill.spec.cluster;
    assert_eq!(cluster.kubernetes.as_deref(), Some(plan.cluster.versions.kubernetes.as_str()));
    assert_eq!(cluster.etcd.as_deref(), Some(plan.cluster.versions.etcd.as_str()));
    let json = String::from_utf8(canonical_bytes(&plan)).unwrap();
    assert!(!json.contains("$("), "a parameter is left open");
    assert!(json.contains("\"sustained\"") && json.contains("\"maxLag\""), "defaults are written out");
    assert!(plan.seed < 1 << 53);
}

#[test]
fn set_wins_over_the_profile_and_both_are_listed() {
    let input = ResolveInput { profile: Some("fast".to_owned()), set: set(&[("hold", "11s")]), ..input() };
    let plan = resolve(input).unwrap();
    assert_eq!(plan.parameters["hold"], "11s");
    assert_eq!(plan.overrides, set(&[("hold", "11s"), ("profile", "fast")]));
    let plan = resolve(ResolveInput { profile: Some("fast".to_owned()), ..self::input() }).unwrap();
    assert_eq!(plan.parameters["hold"], "5s");
}

#[test]
fn objectives_and_limits_are_never_overridden() {
    for key in ["limits.maxDuration", "objectives.0.within", "spec.limits.deadMan", "cluster.topology.nodes"]
    {
        let error = resolve(ResolveInput { set: set(&[(key, "1h")]), ..input() }).unwrap_err();
        assert!(matches!(error, PlanError::Override { .. }), "{key}: {error}");
        assert_eq!(error.exit_code(), ExitCode::Usage);
    }
    let error = resolve(ResolveInput { set: set(&[("hlod", "1s")]), ..input() }).unwrap_err().to_string();
    assert!(error.contains("did you mean `hold`"), "{error}");
}

#[test]
fn an_override_is_linted_like_the_file() {
    let error = resolve(ResolveInput { set: set(&[("cluster.topology.etcd", "2")]), ..input() }).unwrap_err();
    assert!(error.to_string().contains("`etcd: 2` is out of range"), "{error}");
    let both = ResolveInput {
        set: set(&[("cluster.kubernetes", "v1.37.2")]),
        kubernetes: Some("v1.30.4".to_owned()),
        ..input()
    };
    assert!(resolve(both).unwrap_err().to_string().contains("differ"));
}

#[test]
fn a_restore_without_the_key_of_its_secrets_is_refused_unless_that_is_the_drill() {
    let declared = include_str!("../../../scenarios/etcd/restore-missing-encryption-key.yaml");
    let undeclared = declared.replace("        encryptionKey: missing\n", "");
    let refused = resolve(ResolveInput::plain("d.yaml", &undeclared)).unwrap_err();
    assert_eq!(refused.exit_code(), ExitCode::Refused);
    let text = refused.to_string();
    assert!(text.contains("step 5") && text.contains("keyBackup: present"), "{text}");
    assert!(resolve(ResolveInput::plain("d.yaml", declared)).is_ok());
    let kept = undeclared.replace("keyBackup: missing", "keyBackup: present");
    assert!(resolve(ResolveInput::plain("d.yaml", &kept)).is_ok());
}

#[test]
fn a_missing_capability_is_refused_and_says_who_needs_it() {
    let offered = BTreeSet::from([Capability::AddressApiServers, Capability::ControlComponents]);
    let error = resolve(ResolveInput { capabilities: Some(offered), ..input() }).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Refused);
    let text = error.to_string();
    assert!(text.contains("`loseEtcd`") && text.contains("client `etcd-watch`"), "{text}");
}

#[test]
fn probes_come_first_and_clients_spread_over_api_servers() {
    let plan =
        resolve(ResolveInput { set: set(&[("cluster.topology.apiServers", "2")]), ..input() }).unwrap();
    let names: Vec<&str> = plan.clients.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "etcd-truth",
            "ready-kube-apiserver-1",
            "ready-kube-apiserver-2",
            "leader-kube-controller-manager",
            "leader-kube-scheduler",
            "orders",
            "reader",
            "lister",
            "lister-cached",
            "lister-paged",
            "lister-last-seen",
            "watch",
            "watch-bookmarks",
            "watch-list",
            "reflector",
            "etcd-watch",
            "swapper",
            "elector",
            "events"
        ]
    );
    assert_eq!(client(&plan, "orders").target.0, "kube-apiserver-1");
    assert_eq!(client(&plan, "reader").target.0, "kube-apiserver-2");
    assert_eq!(client(&plan, "etcd-watch").target.0, "etcd-1");
    assert_eq!(client(&plan, "ready-kube-apiserver-2").target.0, "kube-apiserver-2");
    for c in &plan.clients {
        let expected = match c.kind {
            ClientKind::EtcdTruth => "quakeproof:observer".to_owned(),
            _ => format!("quakeproof:client:{}", c.name),
        };
        assert_eq!(c.identity, expected);
    }
}

#[test]
fn minimum_operations_follow_from_pace_and_known_durations() {
    let plan = resolve(input()).unwrap();
    // 1 s baseline + 3 s + 8 s held before the fault, 3 s observed after it.
    let minimum = |before, during, after| MinimumOperations { before, during, after };
    assert_eq!(client(&plan, "orders").minimum, minimum(300, 0, 15));
    assert_eq!(client(&plan, "lister").minimum, minimum(30, 0, 2));
    assert_eq!(client(&plan, "watch").minimum, minimum(300, 0, 0));
    assert_eq!(client(&plan, "etcd-truth").minimum, minimum(12, 0, 1));
}

#[test]
fn a_fault_names_its_harm_its_end_and_its_undo() {
    let plan = resolve(ResolveInput { set: set(&[("cluster.topology.etcd", "3")]), ..input() }).unwrap();
    let fault = plan.steps[3].fault.as_ref().unwrap();
    assert_eq!(fault.closed_by, Some(4));
    assert_eq!(fault.on_lapse, OnLapse::Revert);
    assert_eq!(fault.undo_within_ns, 60_000_000_000);
    assert!(fault.blast_radius.contains("etcd-1, etcd-2, etcd-3"), "{}", fault.blast_radius);
    assert_eq!(plan.steps[3].targets.len(), 3);
    assert_eq!(plan.steps[1].targets.len(), 1, "a snapshot is taken from one member");
    assert!(plan.steps[0].targets.is_empty() && plan.steps[5].targets.is_empty());
    assert_eq!(plan.steps.iter().filter(|s| s.fault.is_some()).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn resolving_is_a_function_of_its_input(hold in 3u64..60, seed: u64, etcd in prop::sample::select(vec!["1", "3"])) {
        let make = || resolve(ResolveInput {
            set: set(&[("hold", &format!("{hold}s")), ("cluster.topology.etcd", etcd)]),
            seed: Some(seed),
            ..input()
        });
        let (a, b) = (make().unwrap(), make().unwrap());
        prop_assert_eq!(plan_digest(&a), plan_digest(&b));
        prop_assert_eq!(a.seed, seed);
    }
}

#[test]
fn a_version_that_makes_something_else_of_no_shares_is_refused_before_it_runs() {
    const JAIL: &str = include_str!("../../../scenarios/apf/zero-seat-queue.yaml");
    let drill = resolve(ResolveInput::plain("d.yaml", JAIL)).unwrap().drill;
    assert!(zero_is_taken(&drill, "v1.30.0").is_ok());
    for (version, said) in [("v1.29.4", "refuses to make such a level"), ("v1.28.1", "makes it 30")] {
        let error = zero_is_taken(&drill, version).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Refused);
        assert!(error.to_string().contains(said), "{error}");
    }
}
