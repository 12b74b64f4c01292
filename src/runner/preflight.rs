//! Before anything is harmed: is the cluster healthy, is what the faults change there, and is there a place for
//! the clients?

use crate::agent::view::ClusterView;
use crate::component::Role;
use crate::component::network::CLIENT_GROUP;
use crate::dispatch::dispatcher::Journalist;
use crate::drill::spec::SteadyState;
use crate::fault::{FaultContext, FaultError};
use crate::journal::JournalError;
use crate::journal::entry::JournalEvent;
use crate::plan::Plan;
use crate::probe;
use crate::provider::live_api::LiveApi;
use crate::provider::{Cluster, ProviderError, observer};
use crate::wire::http::HttpClient;
use hyper::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How long one call of the set-up may take.
const CALL_WITHIN: Duration = Duration::from_secs(10);

/// Why a run is refused before anything is harmed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PreflightError {
    /// The cluster is not healthy.
    #[error(
        "the cluster is not healthy before the fault: {condition}: {detail}; a drill needs a cluster that works"
    )]
    Unhealthy {
        /// Condition of the steady state.
        condition: String,
        /// What was seen.
        detail: String,
    },
    /// A fault would have no effect on this cluster, or has nothing to change.
    #[error("step {step} ({kind}) does not fit the cluster: {error}; nothing was changed")]
    Unfit {
        /// Index of the step.
        step: usize,
        /// Kind of fault.
        kind: &'static str,
        /// Why.
        error: FaultError,
    },
    /// The place for the clients' objects could not be made.
    #[error("the drill's namespace could not be set up: {0}")]
    Setup(String),
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Checks every condition of the steady state, journals what was seen, has every fault look at what it is going to
/// change, and makes the drill's namespace as soon as no condition is left that needs none: where nothing answers,
/// the failing condition says more than a namespace that can't be made.
///
/// # Errors
/// [`PreflightError::Unhealthy`] for the first condition that does not hold, [`PreflightError::Unfit`] for the first
/// fault that refuses the cluster, [`PreflightError::Setup`] with the server's answer.
pub async fn examine(
    plan: &Plan,
    cluster: &Arc<dyn Cluster>,
    view: &dyn ClusterView,
    namespace: &str,
    journalist: &Journalist,
) -> Result<(), PreflightError> {
    let api = LiveApi::new(Arc::clone(cluster));
    let cluster = cluster.as_ref();
    let (reading, writing): (Vec<_>, Vec<_>) =
        plan.steady_state.iter().partition(|condition| matches!(condition, SteadyState::ApiReady(_)));
    steady_state(&reading, cluster, namespace, journalist).await?;
    let control = cluster.control();
    faults_fit(plan, FaultContext { control: control.as_ref(), view, api: &api }).await?;
    make_namespace(plan, cluster, namespace).await?;
    steady_state(&writing, cluster, namespace, journalist).await
}

/// A fault looks once more when its step has come; here it refuses before anybody has waited for it.
async fn faults_fit(plan: &Plan, context: FaultContext<'_>) -> Result<(), PreflightError> {
    for planned in &plan.steps {
        let Some(fault) = planned.step.kind().fault() else { continue };
        if let Err(error) = fault.before(context, &planned.targets).await {
            return Err(PreflightError::Unfit { step: planned.index, kind: fault.kind(), error });
        }
    }
    Ok(())
}

async fn steady_state(
    conditions: &[&SteadyState],
    cluster: &dyn Cluster,
    namespace: &str,
    journalist: &Journalist,
) -> Result<(), PreflightError> {
    for condition in conditions {
        let (name, seen) = match condition {
            SteadyState::ApiReady(spec) => {
                ("apiReady", probe::steady::check_api_ready(cluster, spec.within.0).await)
            }
            SteadyState::WriteSucceeds(spec) => (
                "writeSucceeds",
                probe::steady::check_write_succeeds(cluster, namespace, spec.within.0).await,
            ),
        };
        let held = seen.is_ok();
        let detail = seen.unwrap_or_else(|why| why);
        let condition = name.to_owned();
        let entry = JournalEvent::SteadyState { condition: condition.clone(), held, detail: detail.clone() };
        journalist.record(entry).await?;
        if !held {
            return Err(PreflightError::Unhealthy { condition, detail });
        }
    }
    Ok(())
}

/// Makes the drill's namespace and lets the clients, and nobody else, work in it.
async fn make_namespace(plan: &Plan, cluster: &dyn Cluster, namespace: &str) -> Result<(), PreflightError> {
    if plan.clients.is_empty() {
        return Ok(());
    }
    let mut api = observing(plan, cluster)?;
    let labels = json!({"app.kubernetes.io/managed-by": "quakeproof"});
    let group = json!([{"kind": "Group", "name": CLIENT_GROUP, "apiGroup": "rbac.authorization.k8s.io"}]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let objects = [
        ("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": namespace, "labels": labels}})),
        (
            format!("{rbac}/namespaces/{namespace}/roles"),
            json!({"metadata": {"name": "quakeproof-clients"}, "rules": [
                {"apiGroups": [""], "resources": ["configmaps"],
                 "verbs": ["create", "get", "list", "watch", "update", "patch", "delete"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "list"]},
                {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get"]},
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "get"]},
                {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                 "verbs": ["create", "get", "update"]}
            ]}),
        ),
        (
            format!("{rbac}/namespaces/{namespace}/rolebindings"),
            json!({"metadata": {"name": "quakeproof-clients"}, "subjects": group,
                   "roleRef": {"kind": "Role", "name": "quakeproof-clients", "apiGroup": "rbac.authorization.k8s.io"}}),
        ),
        (
            format!("{rbac}/namespaces/kube-system/roles"),
            json!({"metadata": {"name": format!("quakeproof-leases-{namespace}")}, "rules": [
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
            ]}),
        ),
        (
            format!("{rbac}/namespaces/kube-system/rolebindings"),
            json!({"metadata": {"name": format!("quakeproof-leases-{namespace}")}, "subjects": group,
                   "roleRef": {"kind": "Role", "name": format!("quakeproof-leases-{namespace}"),
                               "apiGroup": "rbac.authorization.k8s.io"}}),
        ),
    ];
    for (path, object) in objects {
        create(&mut api, &path, &object).await?;
    }
    Ok(())
}

/// Removes what [`make_namespace`] made. Succeeds when it is gone already.
///
/// # Errors
/// [`PreflightError::Setup`] with the server's answer.
pub async fn remove_namespace(
    plan: &Plan,
    cluster: &dyn Cluster,
    namespace: &str,
) -> Result<(), PreflightError> {
    if plan.clients.is_empty() {
        return Ok(());
    }
    let mut api = observing(plan, cluster)?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system";
    let paths = [
        format!("{rbac}/rolebindings/quakeproof-leases-{namespace}"),
        format!("{rbac}/roles/quakeproof-leases-{namespace}"),
        format!("/api/v1/namespaces/{namespace}"),
    ];
    for path in paths {
        let answer = api.send(Method::DELETE, &path, None, CALL_WITHIN).await;
        match answer {
            Ok(answer) if answer.is_success() || answer.status == 404 => {}
            Ok(answer) => return Err(PreflightError::Setup(format!("DELETE {path}: {}", answer.status))),
            Err(failure) => return Err(PreflightError::Setup(format!("DELETE {path}: {}", failure.class()))),
        }
    }
    Ok(())
}

fn observing(plan: &Plan, cluster: &dyn Cluster) -> Result<HttpClient, PreflightError> {
    let server = plan
        .cluster
        .components
        .iter()
        .find(|c| c.role == Role::KubeApiserver)
        .ok_or_else(|| PreflightError::Setup("the cluster has no API server".to_owned()))?;
    observer::http(cluster, &server.component).map_err(PreflightError::Setup)
}

async fn create(api: &mut HttpClient, path: &str, object: &Value) -> Result<(), PreflightError> {
    let body = object.to_string().into_bytes();
    match api.send(Method::POST, path, Some(body.into()), CALL_WITHIN).await {
        Ok(answer) if answer.is_success() || answer.status == 409 => Ok(()),
        Ok(answer) => Err(PreflightError::Setup(format!("POST {path}: {}", answer.in_words()))),
        Err(failure) => Err(PreflightError::Setup(format!("POST {path}: {}", failure.class()))),
    }
}
