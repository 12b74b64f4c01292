//! Requests to the API servers of a cluster that runs, as the harness's observer.

use super::http::HttpClient;
use crate::agent::api::{ApiAccess, ApiAnswer};
use crate::provider::Cluster;
use crate::provider::component::ComponentId;
use crate::provider::network::OBSERVER_USER;
use futures::future::BoxFuture;
use hyper::Method;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Limit of one request.
const DEADLINE: Duration = Duration::from_secs(5);

/// Asks the API servers of a cluster.
pub struct LiveApi {
    cluster: Arc<dyn Cluster>,
}

impl LiveApi {
    /// Access to this cluster.
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster }
    }

    async fn ask(
        &self,
        server: &ComponentId,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiAnswer, String> {
        let endpoint = self.cluster.endpoint(server).map_err(|e| e.to_string())?;
        let identity = self.cluster.identity(OBSERVER_USER, &[]).map_err(|e| e.to_string())?;
        let mut http =
            HttpClient::new(self.cluster.dialer(), &endpoint, &identity).map_err(|e| e.to_string())?;
        let body = body.map(|body| body.to_string().into_bytes().into());
        let answer = http.send(method, path, body, DEADLINE).await.map_err(|f| f.class().to_string())?;
        Ok(ApiAnswer { status: answer.status, body: answer.body.to_vec() })
    }
}

impl ApiAccess for LiveApi {
    fn call<'a>(
        &'a self,
        server: &'a ComponentId,
        method: Method,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<ApiAnswer, String>> {
        Box::pin(self.ask(server, method, path, body))
    }
}
