//! Requests to whichever API server answers.

use crate::agent::api::{ApiAccess, ApiAnswer};
use crate::component::ComponentId;
use crate::fault::FaultError;
use hyper::Method;
use serde_json::Value;

/// Asks one server after the other until one answers. A refusal is an answer, and says that what is `expected` is not
/// seen. A server without an answer may have done it all the same; the next one then says so.
pub(super) async fn any(
    api: &dyn ApiAccess,
    servers: &[ComponentId],
    (method, path, body): (Method, &str, Option<&Value>),
    expected: &str,
) -> Result<ApiAnswer, FaultError> {
    let expected = || expected.to_owned();
    let mut why = "the cluster has no API server".to_owned();
    for server in servers {
        match api.call(server, method.clone(), path, body).await {
            Ok(answer) if answer.is_success() => return Ok(answer),
            Ok(answer) => return Err(FaultError::NotSeen { expected: expected(), seen: answer.refusal() }),
            Err(failure) => why = format!("{server}: {failure}"),
        }
    }
    Err(FaultError::Untold { expected: expected(), why })
}
