//! Single requests to one API server, as the harness's observer: exempt from flow control, so
//! that no level that a drill makes can hold up an observation or an undo.

use crate::component::ComponentId;
use futures::future::BoxFuture;
use hyper::Method;
use serde_json::Value;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: Vec<u8>,
}

impl ApiAnswer {
    /// 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body as JSON; `Null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The refusal in words: status and the begin of the body, escaped.
    #[must_use]
    pub fn refusal(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let said = self.json()["message"].as_str().map(str::to_owned);
        let line: String =
            said.as_deref().unwrap_or(&text).lines().next().unwrap_or_default().chars().take(300).collect();
        format!("HTTP {}: {}", self.status, line.escape_debug())
    }
}

/// Asks API servers, each by itself and never through a balancer. Every request opens its own
/// connection, takes at most a few seconds, and is never retried: who waits asks again.
pub trait ApiAccess: Send + Sync {
    /// Sends one request, with a JSON body if there is one. An error says why there is no answer.
    fn call<'a>(
        &'a self,
        server: &'a ComponentId,
        method: Method,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<ApiAnswer, String>>;
}
