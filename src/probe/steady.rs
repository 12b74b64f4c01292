//! The steady-state conditions, looked at once; preflight decides on them.

use crate::component::{ComponentId, Role};
use crate::provider::{Cluster, observer};
use crate::wire::http::{HttpAnswer, HttpFailure};
use hyper::Method;
use hyper::body::Bytes;
use std::time::Duration;

/// Every API server answers `/readyz` with ok within `within`. Returns what was seen.
///
/// # Errors
/// The first API server that doesn't, and why.
pub async fn check_api_ready(cluster: &dyn Cluster, within: Duration) -> Result<String, String> {
    let servers = api_servers(cluster).await?;
    for server in &servers {
        let answer = observer::http(cluster, server)?.send(Method::GET, "/readyz", None, within).await;
        success(answer, within).map_err(|why| format!("{server} is not ready: {why}"))?;
    }
    Ok(format!("{} ready", names(&servers)))
}

/// A ConfigMap created in `namespace` through every API server is acknowledged
/// within `within`; it is deleted again. Returns what was seen.
///
/// # Errors
/// The first API server that doesn't, and why.
pub async fn check_write_succeeds(
    cluster: &dyn Cluster,
    namespace: &str,
    within: Duration,
) -> Result<String, String> {
    let servers = api_servers(cluster).await?;
    let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
    for server in &servers {
        let mut http = observer::http(cluster, server)?;
        // Unique, so that what an earlier check left behind can't be mistaken for this write.
        let name = format!("preflight-{}", uuid::Uuid::now_v7());
        let body = serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
        });
        let body = Some(Bytes::from(body.to_string()));
        let created = http.send(Method::POST, &collection, body, within).await;
        success(created, within).map_err(|why| format!("a write through {server} failed: {why}"))?;
        let deleted = http.send(Method::DELETE, &format!("{collection}/{name}"), None, within).await;
        success(deleted, within).map_err(|why| format!("a delete through {server} failed: {why}"))?;
    }
    Ok(format!("a write through {} was acknowledged", names(&servers)))
}

async fn api_servers(cluster: &dyn Cluster) -> Result<Vec<ComponentId>, String> {
    let components = cluster.control().list().await.map_err(|e| e.to_string())?;
    let servers: Vec<_> =
        components.into_iter().filter(|c| c.role == Role::KubeApiserver).map(|c| c.component).collect();
    if servers.is_empty() {
        return Err(format!("cluster `{}` has no API server", cluster.name()));
    }
    Ok(servers)
}

fn success(answer: Result<HttpAnswer, HttpFailure>, within: Duration) -> Result<(), String> {
    match answer {
        Ok(answer) if answer.is_success() => Ok(()),
        Ok(answer) => Err(answer.in_words()),
        Err(failure) => Err(format!("{} (limit {})", failure.class(), humantime::format_duration(within))),
    }
}

fn names(servers: &[ComponentId]) -> String {
    servers.iter().map(|s| s.0.as_str()).collect::<Vec<_>>().join(", ")
}
