//! Objects of the API that a run has made or changed, under their undo.

use crate::fake_provider::api::FakeApi;
use crate::fake_provider::guard_token;
use crate::{StaticPods, WITHIN_NS, injection};
use quakeproof::agent::execute::{UndoOps, execute};
use quakeproof::agent::objects::{RUN_LABEL, as_written};
use quakeproof::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use quakeproof::clock::SystemClock;
use quakeproof::component::ComponentId;
use quakeproof::fault::apf_level::{ApfLevel, Borrowing, Existing, LimitResponse};
use quakeproof::fault::{Fault, FaultContext, FaultError, Injection};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A level and its schema, as a run has made them, and what is not the run's.
fn flow_objects(run: &str) -> FakeApi {
    let own = serde_json::json!({"metadata": {"labels": {RUN_LABEL: run}}});
    let others = serde_json::json!({"metadata": {"labels": {RUN_LABEL: "another"}}});
    let [schema, level] = jail(None).own_paths(run).try_into().unwrap();
    let objects = [(schema, own.clone()), (level, own), (SOMEBODY_ELSES.to_owned(), others)];
    FakeApi { objects: Mutex::new(objects.into()), ..FakeApi::default() }
}

const SOMEBODY_ELSES: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/quakeproof-theirs";

#[tokio::test]
async fn an_undo_removes_what_the_run_made_through_whichever_server_answers_and_nothing_else() {
    let node = StaticPods::new();
    let api =
        Arc::new(FakeApi { down: vec![ComponentId("kube-apiserver-1".to_owned())], ..flow_objects("r") });
    let ops = UndoOps { api: api.clone(), ..node.ops };
    let mut paths = jail(None).own_paths("r");
    paths.push(SOMEBODY_ELSES.to_owned());
    let servers = ["kube-apiserver-1", "kube-apiserver-2"].map(|name| ComponentId(name.to_owned())).to_vec();
    let remove = UndoOp::RemoveObjects { servers, run: "r".to_owned(), paths };
    let injection = InjectionId("0-apfLevel".to_owned());
    let undo = Undo { injection, on_lapse: OnLapse::Revert, ops: vec![remove], within_ns: WITHIN_NS };
    // Twice: an undo that was begun is begun again.
    for _ in 0..2 {
        execute(&undo, &ops, &SystemClock::new()).await.unwrap();
        let left: Vec<String> = api.objects.lock().unwrap().keys().cloned().collect();
        assert_eq!(left, [SOMEBODY_ELSES]);
    }
    let asked = api.asked.lock().unwrap();
    let deleted: Vec<&String> = asked.iter().filter(|line| line.contains("DELETE")).collect();
    // The schema first: without its level it would be passed over, and its requests go elsewhere.
    assert!(deleted.len() == 2 && deleted[0].contains("flowschemas"), "{deleted:?}");
}

/// A level without seats.
fn jail(existing: Option<Existing>) -> ApfLevel {
    ApfLevel {
        name: "jail".to_owned(),
        shares: 0,
        limit_response: LimitResponse::Reject {},
        lendable_percent: 0,
        borrowing_limit_percent: Borrowing::Percent(0),
        clients: vec!["jailed".to_owned()],
        existing,
        precedence: 400,
    }
}

const WORKLOAD_LOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/workload-low";

fn workload_low(uid: &str) -> Value {
    serde_json::json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {
            "name": "workload-low", "uid": uid, "resourceVersion": "7",
            "annotations": {"apf.kubernetes.io/autoupdate-spec": "true", "owner": "somebody"},
        },
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 100, "lendablePercent": 90}},
    })
}

/// What is left of a level of the cluster that a run changed, once somebody has had `meanwhile` with it and it was undone.
async fn undone_after(meanwhile: impl Fn(&mut Value)) -> (Value, Result<String, FaultError>) {
    let node = StaticPods::new();
    let down = vec![ComponentId("kube-apiserver-1".to_owned())];
    let metrics = r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245"#;
    let objects = [
        (WORKLOAD_LOW.to_owned(), workload_low("original")),
        ("/metrics".to_owned(), Value::String(format!("{metrics}\n"))),
    ];
    let objects = Mutex::new(objects.into());
    let api = Arc::new(FakeApi { objects, ..FakeApi::default() });
    let context = FaultContext { api: &*api, ..node.context() };
    let fault = jail(Some(Existing { level: "workload-low".to_owned(), confirm: "workload-low".to_owned() }));
    let servers = ["kube-apiserver-1", "kube-apiserver-2"].map(|name| ComponentId(name.to_owned()));
    let before = fault.before(context, &servers).await.unwrap();
    let id = InjectionId("0-apfLevel".to_owned());
    let injection = Injection { before: &before, ..injection("r", &id, &servers, &[]) };
    let undo = fault.undo(&injection, WITHIN_NS);
    let guard = guard_token("r", &node.pods).await;
    fault.inject(context, &guard, injection).await.unwrap();
    let changed = api.objects.lock().unwrap()[WORKLOAD_LOW].clone();
    assert_eq!(changed["spec"]["limited"]["nominalConcurrencyShares"], 0);
    assert_eq!(changed["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"], "false");
    assert!(fault.before(context, &servers).await.is_err(), "it is changed, so it is not what was before");
    meanwhile(api.objects.lock().unwrap().get_mut(WORKLOAD_LOW).unwrap());
    let objects = Mutex::new(api.objects.lock().unwrap().clone());
    let api = Arc::new(FakeApi { objects, down, ..FakeApi::default() });
    let ops = UndoOps { api: api.clone(), ..node.ops };
    // Twice: an undo that was begun is begun again.
    for _ in 0..2 {
        execute(&undo, &ops, &SystemClock::new()).await.unwrap();
    }
    let all_up = FakeApi { objects: Mutex::new(api.objects.lock().unwrap().clone()), ..FakeApi::default() };
    assert_eq!(all_up.objects.lock().unwrap().len(), 2, "the schema is gone");
    let pods = StaticPods::new();
    let ended = fault.verify_ended(FaultContext { api: &all_up, ..pods.context() }, injection).await;
    (all_up.objects.lock().unwrap()[WORKLOAD_LOW].clone(), ended)
}

#[tokio::test]
async fn a_level_of_the_cluster_is_put_back_as_it_was_annotations_included() {
    let edit = |level: &mut Value| level["spec"]["limited"]["nominalConcurrencyShares"] = 3.into();
    let nothing = |_: &mut Value| {};
    for (back, ended) in [undone_after(nothing).await, undone_after(edit).await] {
        assert_eq!(as_written(&back), as_written(&workload_low("original")));
        ended.unwrap();
    }
}

#[tokio::test]
async fn a_level_that_took_the_name_meanwhile_is_left_alone_and_not_taken_for_the_original() {
    let (left, ended) = undone_after(|level| *level = workload_low("another")).await;
    assert_eq!(left, workload_low("another"));
    assert!(matches!(ended, Err(FaultError::NotSeen { .. })), "{ended:?}");
}
