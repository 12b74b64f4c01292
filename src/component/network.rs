//! How a client gets a connection: from which host, to where, as whom.

use super::HostId;
use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;

/// The host that the harness's clients and probes live on.
pub const CLIENT_HOST: &str = "client";

/// User name of the harness's own identity, which observes and undoes. It is mapped to the
/// APF level `exempt`, so that no drill can jail the undo, and is never `system:masters`.
pub const OBSERVER_USER: &str = "quakeproof:observer";
/// Group that every client's certificate names; RBAC is granted to it.
pub const CLIENT_GROUP: &str = "quakeproof:clients";

/// Opens sockets whose network identity is a host of the cluster. The socket is
/// unconnected, so the caller alone decides when it connects and for how long it tries.
pub trait Dialer: Send + Sync {
    /// An unconnected, non-blocking IPv4 TCP socket that belongs to `from`'s network namespace.
    fn socket<'a>(&'a self, from: &'a HostId) -> BoxFuture<'a, io::Result<tokio::net::TcpSocket>>;
}

/// Sockets of this machine itself, for clusters that are reachable from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectDialer;

impl Dialer for DirectDialer {
    fn socket<'a>(&'a self, _: &'a HostId) -> BoxFuture<'a, io::Result<tokio::net::TcpSocket>> {
        Box::pin(async { tokio::net::TcpSocket::new_v4() })
    }
}

/// Where a component listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Address in the cluster's network.
    pub address: SocketAddr,
    /// Name that its serving certificate is checked against.
    pub server_name: String,
    /// PEM of the CA that signed it.
    pub ca_pem: String,
}

/// A client certificate with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// User name (the certificate's common name).
    pub user: String,
    /// PEM of the certificate.
    pub cert_pem: String,
    /// PEM of the private key; never logged, never in evidence.
    pub key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("user", &self.user).finish_non_exhaustive()
    }
}
