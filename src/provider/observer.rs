//! The harness's own connection to an API server: a user that no drill can jail, and who is never a client under test.

use super::Cluster;
use crate::component::ComponentId;
use crate::component::network::OBSERVER_USER;
use crate::wire::http::HttpClient;

/// A client of its own for this API server.
///
/// # Errors
/// Why there is none, in words.
pub fn http(cluster: &dyn Cluster, server: &ComponentId) -> Result<HttpClient, String> {
    let endpoint = cluster.endpoint(server).map_err(|e| e.to_string())?;
    let identity = cluster.identity(OBSERVER_USER, &[]).map_err(|e| e.to_string())?;
    HttpClient::new(cluster.dialer(), &endpoint, &identity).map_err(|e| e.to_string())
}
