//! Brings a started cluster to the point where it can be used: every API server
//! ready, the harness's own objects written, controllers leading.

use crate::component::network::{Identity, OBSERVER_USER};
use crate::component::{ComponentControl, ComponentId, ComponentState, Role};
use crate::provider::{Cluster, ProviderError};
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure};
use futures::future::try_join_all;
use hyper::Method;
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// How long a cluster may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks at a condition that can't be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// How long one request may take.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// Group of a person who administers a cluster, as kubeadm names it.
pub const ADMIN_GROUP: &str = "kubeadm:cluster-admins";

/// Returns once every API server is ready, the bootstrap objects are written,
/// and every kind of controller in `roles` has a leader.
///
/// # Errors
/// Names the component that did not become ready, with the end of its log.
pub async fn bring_up(
    cluster: &dyn Cluster,
    components: &[(ComponentId, Role)],
    bootstrap: &Identity,
) -> Result<(), ProviderError> {
    let control = cluster.control();
    let work = async {
        let servers: Vec<&ComponentId> =
            components.iter().filter(|(_, role)| *role == Role::KubeApiserver).map(|(id, _)| id).collect();
        try_join_all(servers.iter().map(|server| await_readyz(cluster, server, bootstrap))).await?;
        let first = servers.first().ok_or_else(|| not_ready("kube-apiserver", "the cluster has none"))?;
        write_bootstrap_objects(cluster, first, bootstrap).await?;
        let has = |role: Role| components.iter().any(|(_, r)| *r == role);
        let leases = [
            (Role::KubeControllerManager, "kube-controller-manager"),
            (Role::KubeScheduler, "kube-scheduler"),
        ];
        try_join_all(
            leases
                .into_iter()
                .filter(|(role, _)| has(*role))
                .map(|(_, l)| await_lease(cluster, first, l, bootstrap)),
        )
        .await?;
        Ok(())
    };
    tokio::select! {
        done = tokio::time::timeout(PATIENCE, work) => {
            done.unwrap_or_else(|_| Err(not_ready("the cluster", "not within 120 s; see `quakeproof cluster logs`")))
        }
        failed = first_exit(control.as_ref()) => Err(failed),
    }
}

/// Returns when a component has ended by itself.
async fn first_exit(control: &dyn ComponentControl) -> ProviderError {
    loop {
        match control.list().await {
            Ok(components) => {
                for status in components {
                    if let ComponentState::Exited { how } = status.state {
                        return not_ready(&status.component.0, &how);
                    }
                }
            }
            Err(error) => return error.into(),
        }
        tokio::time::sleep(LOOK_EVERY * 5).await;
    }
}

async fn await_readyz(
    cluster: &dyn Cluster,
    server: &ComponentId,
    identity: &Identity,
) -> Result<(), ProviderError> {
    let ready = |answer: &HttpAnswer| answer.status == 200 && answer.body.as_ref() == b"ok";
    until(client(cluster, server, identity)?, "/readyz", ready).await;
    Ok(())
}

async fn await_lease(
    cluster: &dyn Cluster,
    server: &ComponentId,
    lease: &str,
    identity: &Identity,
) -> Result<(), ProviderError> {
    let held = |answer: &HttpAnswer| {
        json_of(answer)["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty())
    };
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}");
    until(client(cluster, server, identity)?, &path, held).await;
    Ok(())
}

/// Looks again until the answer is good; no answer only means "not yet".
async fn until(mut http: HttpClient, path: &str, good: impl Fn(&HttpAnswer) -> bool) {
    loop {
        if http.send(Method::GET, path, None, DEADLINE).await.is_ok_and(|answer| good(&answer)) {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn write_bootstrap_objects(
    cluster: &dyn Cluster,
    server: &ComponentId,
    identity: &Identity,
) -> Result<(), ProviderError> {
    let mut http = client(cluster, server, identity)?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let objects = [
        (bindings, cluster_admin("kubeadm:cluster-admins", "Group", ADMIN_GROUP)),
        (bindings, cluster_admin(OBSERVER_USER, "User", OBSERVER_USER)),
        (schemas, observer_flow_schema()),
    ];
    for (path, object) in objects {
        let what = || format!("create {} {}", object["kind"], object["metadata"]["name"]);
        let answer = http.send(Method::POST, path, Some(Bytes::from(object.to_string())), DEADLINE).await;
        // 409: an earlier answer was lost and the object is there.
        let written = answer.as_ref().is_ok_and(|a| a.is_success() || a.status == 409);
        if !written {
            return Err(not_ready("kube-apiserver", &format!("{}: {}", what(), explain(&answer))));
        }
    }
    Ok(())
}

/// What a request that did not succeed met.
pub fn explain(answer: &Result<HttpAnswer, HttpFailure>) -> String {
    match answer {
        Ok(answer) => format!("HTTP {} ({})", answer.status, answer.refusal()),
        Err(failure) => failure.class().to_string(),
    }
}

/// The body as JSON; `Null` when it is none.
pub fn json_of(answer: &HttpAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}

fn cluster_admin(name: &str, kind: &str, subject: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": subject }],
    })
}

/// Puts the observer on the level `exempt`, so that no fault can keep the undo out.
fn observer_flow_schema() -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": "quakeproof-observer" },
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": { "name": "exempt" },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": OBSERVER_USER } }],
                "resourceRules": [{
                    "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"], "clusterScope": true,
                }],
                "nonResourceRules": [{ "nonResourceURLs": ["*"], "verbs": ["*"] }],
            }],
        },
    })
}

/// Asks `component` from the clients' host, one request after the other.
///
/// # Errors
/// When its endpoint is unknown or a certificate can't be read.
pub fn client(
    cluster: &dyn Cluster,
    component: &ComponentId,
    identity: &Identity,
) -> Result<HttpClient, ProviderError> {
    let endpoint = cluster.endpoint(component)?;
    HttpClient::new(cluster.dialer(), &endpoint, identity).map_err(|error| ProviderError::Io {
        what: format!("connect to {component}"),
        source: io::Error::other(error),
    })
}

fn not_ready(component: &str, reason: &str) -> ProviderError {
    ProviderError::NotReady { component: component.to_owned(), reason: reason.to_owned() }
}
