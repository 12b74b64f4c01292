//! One connection at a time, opened where and when the caller says.

use crate::component::HostId;
use crate::component::network::{CLIENT_HOST, Dialer, Endpoint, Identity};
use crate::wire::failure::FailureClass;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What is spoken inside TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// To API servers.
    Http1,
    /// To etcd.
    Http2,
}

/// Certificates or names that no connection can be made with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("can't connect to {address} as `{user}`: {reason}; the cluster's certificates may be damaged")]
pub struct BadIdentity {
    /// Where to.
    pub address: SocketAddr,
    /// As whom.
    pub user: String,
    /// What is wrong.
    pub reason: String,
}

/// Opens connections to one endpoint as one identity. It never retries.
#[derive(Clone)]
pub struct Connector {
    dialer: Arc<dyn Dialer>,
    address: SocketAddr,
    server_name: ServerName<'static>,
    tls: TlsConnector,
}

impl Connector {
    /// Reads the certificates; opens nothing yet.
    ///
    /// # Errors
    /// When a certificate, key or server name can't be read.
    pub fn new(
        dialer: Arc<dyn Dialer>,
        endpoint: &Endpoint,
        identity: &Identity,
        protocol: Protocol,
    ) -> Result<Self, BadIdentity> {
        let bad =
            |reason: String| BadIdentity { address: endpoint.address, user: identity.user.clone(), reason };
        let mut config = client_config(endpoint, identity).map_err(bad)?;
        config.alpn_protocols = vec![match protocol {
            Protocol::Http1 => b"http/1.1".to_vec(),
            Protocol::Http2 => b"h2".to_vec(),
        }];
        let server_name = ServerName::try_from(endpoint.server_name.clone())
            .map_err(|e| bad(format!("server name `{}`: {e}", endpoint.server_name)))?;
        Ok(Self { dialer, address: endpoint.address, server_name, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Where it connects to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens one connection; no limit in time but the caller's.
    ///
    /// # Errors
    /// The class of what went wrong; nothing of the protocol inside TLS was sent.
    pub async fn open(&self) -> Result<TlsStream<TcpStream>, FailureClass> {
        let host = HostId(CLIENT_HOST.to_owned());
        let socket = self.dialer.socket(&host).await.map_err(|_| FailureClass::Unreachable)?;
        let stream = socket.connect(self.address).await.map_err(|e| connect_class(&e))?;
        // Only latency depends on it.
        let _ = stream.set_nodelay(true);
        self.tls.connect(self.server_name.clone(), stream).await.map_err(|e| tls_class(&e))
    }
}

fn client_config(endpoint: &Endpoint, identity: &Identity) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(endpoint.ca_pem.as_bytes()) {
        let cert = cert.map_err(|e| format!("CA certificate: {e}"))?;
        roots.add(cert).map_err(|e| format!("CA certificate: {e}"))?;
    }
    let chain = CertificateDer::pem_slice_iter(identity.cert_pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| format!("client certificate: {e}"))?;
    let key =
        PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(|e| format!("client key: {e}"))?;
    // Named, so that no other provider in the process can take its place.
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(|e| format!("client certificate: {e}"))
}

fn connect_class(error: &io::Error) -> FailureClass {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureClass::Refused,
        io::ErrorKind::ConnectionReset => FailureClass::ConnectionLost,
        io::ErrorKind::TimedOut => FailureClass::Timeout,
        _ => FailureClass::Unreachable,
    }
}

fn tls_class(error: &io::Error) -> FailureClass {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => FailureClass::Tls,
        _ => FailureClass::ConnectionLost,
    }
}
