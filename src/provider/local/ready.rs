//! Brings a started cluster to the point where it can be used: every API server
//! ready, the harness's own objects written, controllers leading.

use super::http::{Asker, Reply};
use super::pki::{ADMIN_GROUP, OBSERVER_USER};
use crate::provider::component::{ComponentControl, ComponentId, ComponentState, Role};
use crate::provider::network::{CLIENT_HOST, Identity};
use crate::provider::{Cluster, ProviderError, component::HostId};
use futures::future::try_join_all;
use serde_json::{Value, json};
use std::future::Future;
use std::io;
use std::time::Duration;

/// How long a cluster may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks at a condition that can't be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(40);

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
    let dialer = cluster.dialer();
    let asker = asker(cluster, dialer.as_ref(), server, identity)?;
    until(|| async {
        let reply = asker.get("/readyz").await?;
        Ok((reply.status == 200 && reply.body.as_ref() == b"ok").then_some(()))
    })
    .await;
    Ok(())
}

async fn await_lease(
    cluster: &dyn Cluster,
    server: &ComponentId,
    lease: &str,
    identity: &Identity,
) -> Result<(), ProviderError> {
    let dialer = cluster.dialer();
    let asker = asker(cluster, dialer.as_ref(), server, identity)?;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}");
    until(|| async {
        let reply = asker.get(&path).await?;
        let held = reply.json()["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        Ok((reply.status == 200 && held).then_some(()))
    })
    .await;
    Ok(())
}

/// Asks again until there is an answer; errors only mean "not yet".
async fn until<T, F: Future<Output = io::Result<Option<T>>>>(ask: impl Fn() -> F) -> T {
    loop {
        if let Ok(Some(answer)) = ask().await {
            return answer;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn write_bootstrap_objects(
    cluster: &dyn Cluster,
    server: &ComponentId,
    identity: &Identity,
) -> Result<(), ProviderError> {
    let dialer = cluster.dialer();
    let asker = asker(cluster, dialer.as_ref(), server, identity)?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let objects = [
        (bindings, cluster_admin("kubeadm:cluster-admins", "Group", ADMIN_GROUP)),
        (bindings, cluster_admin("quakeproof:observer", "User", OBSERVER_USER)),
        (schemas, observer_flow_schema()),
    ];
    try_join_all(objects.iter().map(|(path, object)| write(&asker, path, object))).await?;
    Ok(())
}

async fn write(asker: &Asker<'_>, path: &str, object: &Value) -> Result<(), ProviderError> {
    let what = || format!("create {} {}", object["kind"], object["metadata"]["name"]);
    let reply =
        asker.create(path, object).await.map_err(|source| ProviderError::Io { what: what(), source })?;
    // 409: a first answer was lost and the object is there.
    if matches!(reply.status, 200 | 201 | 409) {
        return Ok(());
    }
    Err(not_ready("kube-apiserver", &format!("{}: {}", what(), explain(&reply))))
}

fn explain(reply: &Reply) -> String {
    let message = reply.json()["message"].as_str().unwrap_or_default().replace(char::is_control, " ");
    format!("HTTP {} {message}", reply.status)
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

/// Asks `component` from the clients' host.
///
/// # Errors
/// When its endpoint is unknown or a certificate can't be parsed.
pub fn asker<'a>(
    cluster: &dyn Cluster,
    dialer: &'a dyn crate::provider::network::Dialer,
    component: &ComponentId,
    identity: &Identity,
) -> Result<Asker<'a>, ProviderError> {
    let endpoint = cluster.endpoint(component)?;
    Asker::new(dialer, HostId(CLIENT_HOST.to_owned()), endpoint, identity)
        .map_err(|source| ProviderError::Io { what: format!("connect to {component}"), source })
}

fn not_ready(component: &str, reason: &str) -> ProviderError {
    ProviderError::NotReady { component: component.to_owned(), reason: reason.to_owned() }
}
