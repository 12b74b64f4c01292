//! A known number of connections to one API server.
//!
//! HTTP/1.1 carries one request on a connection at a time, so a request takes a free one, or opens one as long
//! as there are fewer than allowed, or waits. HTTP/2 takes the connections in turn; one that carries as many
//! streams as the server allows makes the request wait too. A wait shows as the time between due and sent.

use super::exchange::{Body, Exchanged, Outgoing, read};
use crate::clock::Clock;
use crate::wire::connection::{Connector, Protocol};
use crate::wire::failure::FailureClass;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a connection may take to come up.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Connections that requests share.
pub struct Connections {
    connector: Connector,
    authority: String,
    clock: Arc<dyn Clock>,
    kind: Kind,
    /// Drive the connections; gone with them.
    drivers: Mutex<JoinSet<()>>,
}

enum Kind {
    Http1 { allowed: Semaphore, idle: Mutex<Vec<http1::SendRequest<Body>>> },
    Http2 { all: Vec<tokio::sync::Mutex<Option<http2::SendRequest<Body>>>>, next: AtomicUsize },
}

impl Connections {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(connector: Connector, protocol: Protocol, count: usize, clock: Arc<dyn Clock>) -> Self {
        let kind = match protocol {
            Protocol::Http1 => Kind::Http1 { allowed: Semaphore::new(count), idle: Mutex::default() },
            Protocol::Http2 => Kind::Http2 {
                all: (0..count).map(|_| tokio::sync::Mutex::new(None)).collect(),
                next: AtomicUsize::new(0),
            },
        };
        let authority = connector.address().to_string();
        Self { connector, authority, clock, kind, drivers: Mutex::default() }
    }

    /// Sends one request, once, and reads its whole answer. It waits for as long as the answer takes.
    pub async fn exchange(&self, outgoing: Outgoing) -> Exchanged {
        let result = match &self.kind {
            Kind::Http1 { allowed, idle } => self.over_http1(allowed, idle, outgoing).await,
            Kind::Http2 { all, next } => {
                let index = next.fetch_add(1, Ordering::Relaxed) % all.len();
                self.over_http2(&all[index], outgoing).await
            }
        };
        result.unwrap_or_else(|failure| failure)
    }

    /// Opens every connection beforehand, so that none is opened while requests are due.
    ///
    /// # Errors
    /// Why one could not be opened.
    pub async fn open_all(&self) -> Result<(), FailureClass> {
        match &self.kind {
            Kind::Http1 { allowed, idle } => {
                for _ in 0..allowed.available_permits() {
                    let sender = self.open_http1().await?;
                    lock(idle).push(sender);
                }
            }
            Kind::Http2 { all, .. } => {
                for connection in all {
                    *connection.lock().await = Some(self.open_http2().await?);
                }
            }
        }
        Ok(())
    }

    async fn over_http1(
        &self,
        allowed: &Semaphore,
        idle: &Mutex<Vec<http1::SendRequest<Body>>>,
        outgoing: Outgoing,
    ) -> Result<Exchanged, Exchanged> {
        let _permit = allowed.acquire().await.map_err(|_| not_sent(FailureClass::Stopped))?;
        let free = lock(idle).pop();
        let mut sender = match free {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.open_http1().await.map_err(not_sent)?,
        };
        sender.ready().await.map_err(|_| not_sent(FailureClass::ConnectionLost))?;
        let (sent, paged) = (self.clock.mono(), outgoing.paged);
        let response = sender.send_request(outgoing.request(&self.authority, false)).await;
        let response = response.map_err(|_| Exchanged::failed(FailureClass::ConnectionLost, Some(sent)))?;
        let exchanged = read(response, paged, sent, &*self.clock).await;
        if exchanged.failure.is_none() {
            lock(idle).push(sender);
        }
        Ok(exchanged)
    }

    async fn over_http2(
        &self,
        connection: &tokio::sync::Mutex<Option<http2::SendRequest<Body>>>,
        outgoing: Outgoing,
    ) -> Result<Exchanged, Exchanged> {
        let mut sender = {
            let mut open = connection.lock().await;
            match &*open {
                Some(sender) if !sender.is_closed() => sender.clone(),
                _ => open.insert(self.open_http2().await.map_err(not_sent)?).clone(),
            }
        };
        sender.ready().await.map_err(|_| not_sent(FailureClass::ConnectionLost))?;
        let (sent, paged) = (self.clock.mono(), outgoing.paged);
        let response = sender.send_request(outgoing.request(&self.authority, true)).await;
        let response = response.map_err(|_| Exchanged::failed(FailureClass::ConnectionLost, Some(sent)))?;
        Ok(read(response, paged, sent, &*self.clock).await)
    }

    async fn open_http1(&self) -> Result<http1::SendRequest<Body>, FailureClass> {
        let opened = tokio::time::timeout(CONNECT_WITHIN, async {
            let stream = self.connector.open().await?;
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| FailureClass::ConnectionLost)
        });
        let (sender, connection) = opened.await.unwrap_or(Err(FailureClass::Timeout))?;
        // How it ended is seen by whoever waits for an answer on it.
        lock(&self.drivers).spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    async fn open_http2(&self) -> Result<http2::SendRequest<Body>, FailureClass> {
        let opened = tokio::time::timeout(CONNECT_WITHIN, async {
            let stream = self.connector.open().await?;
            let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
            handshake.await.map_err(|_| FailureClass::ConnectionLost)
        });
        let (sender, connection) = opened.await.unwrap_or(Err(FailureClass::Timeout))?;
        lock(&self.drivers).spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

fn not_sent(failure: FailureClass) -> Exchanged {
    Exchanged::failed(failure, None)
}

/// What is behind these locks is whole whatever panicked.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
