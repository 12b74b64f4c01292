//! That an update can be accepted on a state that its client never saw is no theory.

use super::bare_cluster::{BareCluster, eventually};
use hyper::Method;
use quakeproof::wire::http::{HttpAnswer, HttpClient};
use std::time::Duration;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Writes `value` to the object, from a resourceVersion or whatever is there.
async fn put(http: &mut HttpClient, value: &str, held: Option<u64>) -> Option<HttpAnswer> {
    let mut metadata = serde_json::json!({"name": "shared"});
    if let Some(held) = held {
        metadata["resourceVersion"] = held.to_string().into();
    }
    let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                                  "data": {"value": value}});
    let (method, path) = match (value, held) {
        ("first", None) => (Method::POST, MAPS.to_owned()),
        _ => (Method::PUT, format!("{MAPS}/shared")),
    };
    http.send(method, &path, Some(body.to_string().into()), Duration::from_secs(5)).await.ok()
}

fn revision(answer: &HttpAnswer) -> u64 {
    let object: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_version_of_the_lost_timeline_is_accepted_once_the_restored_one_has_got_there() {
    let cluster = BareCluster::start("v1.37.2", "v3.7.3").await;
    let mut http = cluster.http();
    let first = put(&mut http, "first", None).await.unwrap();
    assert_eq!(first.status, 201);
    cluster.save_snapshot("backup.db");
    // Somebody holds one of these, with the content that goes with it.
    let mut held = Vec::new();
    for n in 0..30 {
        held.push(revision(&put(&mut http, &format!("lost-{n}"), None).await.unwrap()));
    }
    cluster.kill_etcd();
    cluster.restore_snapshot("backup.db", "restored", None);
    cluster.start_etcd("restored").await;
    let last = *held.last().unwrap();
    eventually("writes are accepted again", Duration::from_secs(30), async || {
        put(&mut cluster.http(), "restored", None).await.is_some_and(|answer| answer.is_success())
    })
    .await;
    let refused = put(&mut http, "mine", Some(last)).await;
    assert!(refused.is_none_or(|answer| answer.status == 409), "it is not there yet");
    let mut http = cluster.http();
    // Each with a value of its own: an update that changes nothing is not written.
    let mut n = 0;
    let reached = loop {
        n += 1;
        let now = revision(&put(&mut http, &format!("theirs-{n}"), None).await.unwrap());
        // Other components write too, so that not every revision is this object's.
        if held.contains(&now) {
            break now;
        }
        assert!(now < last, "none of {held:?} was reached");
    };
    let accepted = put(&mut http, "mine", Some(reached)).await.unwrap();
    assert_eq!(accepted.status, 200, "`theirs` is overwritten by somebody who never saw it");
    assert_eq!(put(&mut http, "mine", Some(reached)).await.unwrap().status, 409);
}
