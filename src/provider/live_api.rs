//! Requests to the API servers of a cluster that runs, as the harness's observer.

use super::{Cluster, observer};
use crate::agent::api::{ApiAccess, ApiAnswer};
use crate::component::ComponentId;
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
        let mut http = observer::http(self.cluster.as_ref(), server)?;
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
