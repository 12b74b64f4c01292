//! HTTP/1.1 over TLS on one explicit connection: no pool, no retry, no redirect.

use crate::component::network::{Dialer, Endpoint, Identity};
use crate::history::record::Outcome;
use crate::wire::connection::{BadIdentity, Connector, Protocol};
use crate::wire::failure::FailureClass;
use crate::wire::objects::refusal_class;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Largest answer that is read; a larger one counts as a lost connection.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: Bytes,
}

impl HttpAnswer {
    /// 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Class of an answer that is not a success.
    #[must_use]
    pub fn refusal(&self) -> FailureClass {
        refusal_class(self.status, &self.body)
    }

    /// A refusal in words. The body is the cluster's text and long: only its first line, escaped.
    #[must_use]
    pub fn in_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let line: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
        format!("{} {}: {}", self.status, self.refusal(), line.escape_debug())
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFailure {
    /// No byte of the request was sent: it certainly had no effect.
    NotSent(FailureClass),
    /// The request was handed over and no whole answer came: it may have had its effect.
    Unanswered(FailureClass),
}

impl HttpFailure {
    /// Class of the failure.
    #[must_use]
    pub fn class(self) -> FailureClass {
        match self {
            Self::NotSent(class) | Self::Unanswered(class) => class,
        }
    }
}

/// Outcome of a read without a good answer: a read has no effect that could be in doubt.
#[must_use]
pub fn failed_read(result: &Result<HttpAnswer, HttpFailure>) -> Outcome {
    match result {
        Ok(answer) => Outcome::Failed { status: Some(answer.status), reason: answer.refusal().to_string() },
        Err(failure) => Outcome::Failed { status: None, reason: failure.class().to_string() },
    }
}

/// Outcome of a write without a good answer. A 5xx may hide that it took effect; and
/// a unique name that exists already can only be ours.
#[must_use]
pub fn failed_write(result: &Result<HttpAnswer, HttpFailure>) -> Outcome {
    match result {
        Ok(answer) => match answer.refusal() {
            class if answer.status >= 500 || class == FailureClass::AlreadyExists => {
                Outcome::Unknown { reason: class.to_string() }
            }
            class => Outcome::Failed { status: Some(answer.status), reason: class.to_string() },
        },
        Err(HttpFailure::NotSent(class)) => Outcome::Failed { status: None, reason: class.to_string() },
        Err(HttpFailure::Unanswered(class)) => Outcome::Unknown { reason: class.to_string() },
    }
}

/// Outcome of an operation that was given up because the client was told to end.
#[must_use]
pub fn stopped() -> Outcome {
    Outcome::Unknown { reason: FailureClass::Stopped.to_string() }
}

/// An open connection; dropping it closes it at once.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A client with at most one connection and one operation at a time. When the
/// connection is gone, the next operation opens a new one within its own deadline.
pub struct HttpClient {
    connector: Connector,
    connection: Option<Open>,
}

impl HttpClient {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// When the endpoint's or identity's certificates can't be read.
    pub fn new(
        dialer: Arc<dyn Dialer>,
        endpoint: &Endpoint,
        identity: &Identity,
    ) -> Result<Self, BadIdentity> {
        Ok(Self::over(Connector::new(dialer, endpoint, identity, Protocol::Http1)?))
    }

    /// A client over an HTTP/1.1 connector that others may share.
    #[must_use]
    pub fn over(connector: Connector) -> Self {
        Self { connector, connection: None }
    }

    /// Sends one request and reads the whole answer. A connection that did not
    /// come to a clean end of the exchange, or whose future was dropped, is closed.
    ///
    /// # Errors
    /// When there is no whole answer within `deadline`, connecting included.
    pub async fn send(
        &mut self,
        method: Method,
        path_and_query: &str,
        body: Option<Bytes>,
        deadline: Duration,
    ) -> Result<HttpAnswer, HttpFailure> {
        let until = Instant::now() + deadline;
        let request = self.request(method, path_and_query, body);
        let mut open = self.ready(until).await?;
        let answer = timeout_at(until, async {
            let response = hand_over(&mut open, request).await?;
            read_answer(response).await
        })
        .await
        .unwrap_or(Err(HttpFailure::Unanswered(FailureClass::Timeout)))?;
        self.connection = Some(open);
        Ok(answer)
    }

    /// Sends a GET whose answer is a stream of lines that may never end. The
    /// stream takes the connection with it.
    ///
    /// # Errors
    /// When there is no answer's head within `deadline`, connecting included.
    pub async fn stream(
        &mut self,
        path_and_query: &str,
        deadline: Duration,
    ) -> Result<Streamed, HttpFailure> {
        let until = Instant::now() + deadline;
        let request = self.request(Method::GET, path_and_query, None);
        let mut open = self.ready(until).await?;
        let late = HttpFailure::Unanswered(FailureClass::Timeout);
        let response = timeout_at(until, hand_over(&mut open, request)).await.unwrap_or(Err(late))?;
        if response.status().is_success() {
            return Ok(Streamed::Accepted(Lines::new(response.into_body(), open)));
        }
        let answer = timeout_at(until, read_answer(response)).await.unwrap_or(Err(late))?;
        self.connection = Some(open);
        Ok(Streamed::Refused(answer))
    }

    fn request(&self, method: Method, path: &str, body: Option<Bytes>) -> Request<Full<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.connector.address().to_string())
            .header(header::USER_AGENT, "quakeproof")
            .header(header::ACCEPT, "application/json");
        let request = match &body {
            Some(_) => request.header(header::CONTENT_TYPE, "application/json"),
            None => request,
        };
        request.body(Full::new(body.unwrap_or_default())).expect("paths are built from names and numbers")
    }

    /// Takes the connection if it still stands, else opens one.
    async fn ready(&mut self, until: Instant) -> Result<Open, HttpFailure> {
        if let Some(mut open) = self.connection.take()
            && let Ok(Ok(())) = timeout_at(until, open.sender.ready()).await
        {
            return Ok(open);
        }
        let opened = timeout_at(until, async {
            let stream = self.connector.open().await?;
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| FailureClass::ConnectionLost)
        });
        let (sender, connection) =
            opened.await.unwrap_or(Err(FailureClass::Timeout)).map_err(HttpFailure::NotSent)?;
        // How the connection ended is seen by whoever waits for an answer on it.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Open { sender, driver })
    }
}

async fn hand_over(
    open: &mut Open,
    request: Request<Full<Bytes>>,
) -> Result<hyper::Response<Incoming>, HttpFailure> {
    open.sender.try_send_request(request).await.map_err(|mut error| {
        // The request comes back only when none of it was written.
        let class = FailureClass::ConnectionLost;
        match error.take_message() {
            Some(_) => HttpFailure::NotSent(class),
            None => HttpFailure::Unanswered(class),
        }
    })
}

async fn read_answer(response: hyper::Response<Incoming>) -> Result<HttpAnswer, HttpFailure> {
    let status = response.status().as_u16();
    match Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await {
        Ok(body) => Ok(HttpAnswer { status, body: body.to_bytes() }),
        Err(_) => Err(HttpFailure::Unanswered(FailureClass::ConnectionLost)),
    }
}

/// Answer to a request for a stream.
pub enum Streamed {
    /// The stream is open.
    Accepted(Lines),
    /// The server answered with something else than success.
    Refused(HttpAnswer),
}

/// Lines of an open stream.
pub struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
    /// Where the next line starts in `buffer`.
    start: usize,
    /// Bytes of `buffer` up to here hold no newline after `start`.
    scanned: usize,
    /// Keeps the connection open.
    _open: Open,
}

impl Lines {
    fn new(body: Incoming, open: Open) -> Self {
        Self { body, buffer: Vec::new(), start: 0, scanned: 0, _open: open }
    }

    /// The next line without its newline; `None` when the server has ended the
    /// stream in order. Cancel-safe.
    ///
    /// # Errors
    /// When the connection broke, or a line is longer than [`MAX_ANSWER_BYTES`].
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, FailureClass> {
        loop {
            if let Some(at) = self.buffer[self.scanned..].iter().position(|b| *b == b'\n') {
                let end = self.scanned + at;
                let line = self.buffer[self.start..end].to_vec();
                self.start = end + 1;
                self.scanned = self.start;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.scanned = self.buffer.len();
            if self.buffer.len() > MAX_ANSWER_BYTES {
                return Err(FailureClass::Malformed);
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(FailureClass::ConnectionLost),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
