//! The few requests that bring a cluster up: one connection each, HTTP/1.1 over
//! TLS, from a host of the cluster.

use crate::provider::component::HostId;
use crate::provider::network::{Dialer, Endpoint, Identity};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks one API server or etcd member as one identity.
pub struct Asker<'a> {
    dialer: &'a dyn Dialer,
    from: HostId,
    endpoint: Endpoint,
    tls: TlsConnector,
}

/// An answer: status code and body.
pub struct Reply {
    /// HTTP status code.
    pub status: u16,
    /// Body as it came.
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON; `Null` when it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl<'a> Asker<'a> {
    /// Asks `endpoint` from the host `from` as `identity`.
    ///
    /// # Errors
    /// When a certificate can't be parsed.
    pub fn new(
        dialer: &'a dyn Dialer,
        from: HostId,
        endpoint: Endpoint,
        identity: &Identity,
    ) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(endpoint.ca_pem.as_bytes()) {
            roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
        let chain = CertificateDer::pem_slice_iter(identity.cert_pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(io::Error::other)?;
        Ok(Self { dialer, from, endpoint, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Reads `path`.
    ///
    /// # Errors
    /// When there is no answer within five seconds.
    pub async fn get(&self, path: &str) -> io::Result<Reply> {
        self.request(Method::GET, path, Bytes::new()).await
    }

    /// Creates `object` under `path`.
    ///
    /// # Errors
    /// When there is no answer within five seconds.
    pub async fn create(&self, path: &str, object: &Value) -> io::Result<Reply> {
        self.request(Method::POST, path, Bytes::from(serde_json::to_vec(object)?)).await
    }

    async fn request(&self, method: Method, path: &str, body: Bytes) -> io::Result<Reply> {
        tokio::time::timeout(PATIENCE, self.exchange(method, path, body))
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s"))?
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> io::Result<Reply> {
        let socket = self.dialer.socket(&self.from).await?;
        let stream = socket.connect(self.endpoint.address).await?;
        let name = ServerName::try_from(self.endpoint.server_name.clone()).map_err(io::Error::other)?;
        let tls = self.tls.connect(name, stream).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(io::Error::other)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.endpoint.server_name)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "quakeproof/bring-up")
            .body(Full::new(body))
            .map_err(io::Error::other)?;
        let talk = async {
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
            Ok(Reply { status, body })
        };
        let mut talk = std::pin::pin!(talk);
        tokio::select! {
            reply = &mut talk => reply,
            // The connection may be over just before its last answer is read.
            _ = connection => talk.await,
        }
    }
}
