//! What the kube crate sends its requests through: one connection and one record each.

use super::list::read_page;
use super::session::{Broken, Session};
use super::watch_line::event_of;
use crate::clock::Clock;
use crate::history::record::{Answer, Event, Op, Outcome};
use crate::load::timing::{Timing, timed};
use crate::wire::connection::Connector;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, Lines, Streamed, failed_read, stopped};
use futures::future::BoxFuture;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::{Method, Request, Response};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::Service;

/// A head, or a whole list, later than this is none. The crate itself would wait for as long to
/// connect, and for longer to read.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The session of a client whose requests come from within a crate.
pub struct Journal {
    inner: Mutex<Inner>,
    returned: Notify,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

struct Inner {
    session: Option<Session>,
    broken: Option<Broken>,
    out: u32,
    streaming: bool,
    next_stream: u64,
    list: u64,
    next_page: u32,
    listed_at: Option<u64>,
}

impl Journal {
    /// Takes a session over.
    #[must_use]
    pub fn new(session: Session) -> Self {
        let (clock, stop) = (session.shared_clock(), session.stop());
        let inner = Inner {
            session: Some(session),
            broken: None,
            out: 0,
            streaming: false,
            next_stream: 0,
            list: 0,
            next_page: 0,
            listed_at: None,
        };
        Self { inner: Mutex::new(inner), returned: Notify::new(), clock, stop }
    }

    /// Returns once no request is out. Cancel-safe.
    pub async fn settled(&self) {
        loop {
            // Registered before looking, so that no return falls in between.
            let mut returned = std::pin::pin!(self.returned.notified());
            returned.as_mut().enable();
            if self.inner().out == 0 {
                return;
            }
            returned.await;
        }
    }

    /// Gives the session back, with what keeps it from being written any more. What arrives later is not recorded.
    pub fn close(&self) -> Option<(Session, Option<Broken>)> {
        if self.inner().streaming {
            self.ended(FailureClass::Stopped.as_str());
        }
        let mut inner = self.inner();
        let broken = inner.broken.take();
        inner.session.take().map(|session| (session, broken))
    }

    /// Records an event of the stream that was opened last.
    pub fn event(&self, event: Event) {
        let mut inner = self.inner();
        let stream = inner.next_stream.saturating_sub(1);
        inner.record(|session| session.event(stream, event));
    }

    /// resourceVersion of the last complete list, or of the bookmark that ended initial events.
    #[must_use]
    pub fn listed_at(&self) -> Option<u64> {
        self.inner().listed_at
    }

    /// The history can't be written any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner().broken.is_some()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic while held")
    }
}

impl Inner {
    fn record(&mut self, write: impl FnOnce(&mut Session) -> Result<(), Broken>) {
        let Some(session) = self.session.as_mut() else { return };
        if let Err(broken) = write(session) {
            self.broken.get_or_insert(broken);
        }
    }

    fn list_op(&mut self, asked: &Asked) -> Op {
        if !asked.continues {
            self.list = self.session.as_ref().map_or(0, Session::next_seq);
            self.next_page = 0;
        }
        let page = self.next_page;
        self.next_page += 1;
        let resource_version = asked.resource_version.clone();
        Op::List { list: self.list, page, resource_version, limit: asked.limit }
    }
}

/// A request that is out; dropping it is its return.
struct Out<'a>(&'a Journal);

impl<'a> Out<'a> {
    /// `None` once the client is to end.
    fn begin(journal: &'a Journal) -> Option<Self> {
        if journal.stop.is_cancelled() {
            return None;
        }
        journal.inner().out += 1;
        Some(Self(journal))
    }
}

impl Drop for Out<'_> {
    fn drop(&mut self) {
        self.0.inner().out -= 1;
        self.0.returned.notify_waiters();
    }
}

/// What a request asks for, as its query says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    watch: bool,
    initial_events: bool,
    continues: bool,
    resource_version: Option<String>,
    limit: Option<u32>,
}

impl Asked {
    fn of(query: &str) -> Self {
        let mut asked = Self::default();
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match key {
                "watch" => asked.watch = matches!(value, "true" | "1"),
                "sendInitialEvents" => asked.initial_events = value == "true",
                "continue" => asked.continues = !value.is_empty(),
                "resourceVersion" if !value.is_empty() => asked.resource_version = Some(value.to_owned()),
                "limit" => asked.limit = value.parse().ok(),
                _ => {}
            }
        }
        asked
    }
}

/// A body: whole, or lines as they arrive.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Sends GETs, each on a connection of its own, and records them.
#[derive(Clone)]
pub struct RecordedTransport {
    connector: Connector,
    journal: Arc<Journal>,
}

impl RecordedTransport {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(connector: Connector, journal: Arc<Journal>) -> Self {
        Self { connector, journal }
    }

    async fn list(self, path: String, asked: Asked) -> io::Result<Response<Body>> {
        let Some(_out) = Out::begin(&self.journal) else { return stopping() };
        let mut http = HttpClient::over(self.connector.clone());
        let (timing, result) = self.journal.timed(http.send(Method::GET, &path, None, DEADLINE)).await;
        let (outcome, listed) = match &result {
            None => (stopped(), None),
            Some(Ok(answer)) if answer.is_success() => match read_page(&answer.body) {
                Some((page, _)) => {
                    let listed = page.revision;
                    (Outcome::Ok(page), listed)
                }
                None => {
                    let reason = FailureClass::Malformed.to_string();
                    (Outcome::Failed { status: Some(answer.status), reason }, None)
                }
            },
            Some(result) => (failed_read(result), None),
        };
        let mut inner = self.journal.inner();
        let op = inner.list_op(&asked);
        inner.listed_at = listed.or(inner.listed_at);
        inner.record(|session| session.op(timing, op, outcome));
        drop(inner);
        result.map_or_else(stopping, whole)
    }

    async fn watch(self, path: String, asked: Asked) -> io::Result<Response<Body>> {
        let Some(_out) = Out::begin(&self.journal) else { return stopping() };
        let mut http = HttpClient::over(self.connector.clone());
        let (timing, result) = self.journal.timed(http.stream(&path, DEADLINE)).await;
        let mut inner = self.journal.inner();
        let stream = inner.next_stream;
        inner.next_stream += 1;
        let from = asked.resource_version.and_then(|version| version.parse().ok());
        let op = match from {
            Some(from) if !asked.initial_events => Op::Watch { stream, from },
            _ => Op::WatchList { stream },
        };
        let (outcome, response) = match result {
            None => (stopped(), stopping()),
            Some(Ok(Streamed::Accepted(lines))) => {
                (Outcome::Ok(Answer::default()), Ok(Response::new(body_of(lines, self.journal.clone()))))
            }
            Some(Ok(Streamed::Refused(answer))) => {
                let answer = Ok(answer);
                (failed_read(&answer), whole(answer))
            }
            Some(Err(failure)) => (failed_read(&Err(failure)), whole(Err(failure))),
        };
        inner.streaming = matches!(outcome, Outcome::Ok(_));
        inner.record(|session| session.op(timing, op, outcome));
        drop(inner);
        response
    }
}

impl Journal {
    async fn timed<T>(&self, operation: impl Future<Output = T>) -> (Timing, Option<T>) {
        timed(&*self.clock, &self.stop, None, operation).await
    }

    /// What the crate does not hand out: bookmarks and errors.
    fn note(&self, line: &[u8]) {
        match event_of(line) {
            Event::Bookmark { revision, initial_events_end } => {
                if initial_events_end {
                    self.inner().listed_at = Some(revision);
                }
                self.event(Event::Bookmark { revision, initial_events_end });
            }
            event @ (Event::Error { .. } | Event::Ended { .. }) => {
                self.event(event);
                self.inner().streaming = false;
            }
            _ => {}
        }
    }

    fn ended(&self, reason: &str) {
        self.event(Event::Ended { reason: reason.to_owned() });
        self.inner().streaming = false;
    }
}

/// One line a frame: the crate reads the next one only when it has handed out what the last one
/// gave, so that the order of the records is that of the stream.
fn body_of(lines: Lines, journal: Arc<Journal>) -> Body {
    let frames = stream::unfold(Some((lines, journal)), |open| async move {
        let (mut lines, journal) = open?;
        match lines.next().await {
            Ok(Some(mut line)) => {
                journal.note(&line);
                line.push(b'\n');
                Some((Ok(Frame::data(Bytes::from(line))), Some((lines, journal))))
            }
            Ok(None) => {
                journal.ended("eof");
                None
            }
            Err(class) => {
                journal.ended(class.as_str());
                Some((Err(io::Error::other(class.as_str())), None))
            }
        }
    });
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

fn stopping() -> io::Result<Response<Body>> {
    Err(io::Error::other(FailureClass::Stopped.as_str()))
}

fn whole(result: Result<HttpAnswer, HttpFailure>) -> io::Result<Response<Body>> {
    let answer = result.map_err(|failure| io::Error::other(failure.class().as_str()))?;
    let body = Full::new(answer.body).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(answer.status).body(body).map_err(io::Error::other)
}

impl<B> Service<Request<B>> for RecordedTransport {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let transport = self.clone();
        if request.method() != Method::GET {
            return Box::pin(async { Err(io::Error::other("a reflector only reads")) });
        }
        let uri = request.uri();
        let path = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
        let asked = Asked::of(uri.query().unwrap_or_default());
        if asked.watch {
            Box::pin(transport.watch(path, asked))
        } else {
            Box::pin(transport.list(path, asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_crate_asks_for_is_read_from_its_query() {
        assert_eq!(Asked::of("&limit=500"), Asked { limit: Some(500), ..Asked::default() });
        let page = Asked::of("&limit=500&continue=abc%3D");
        assert!(page.continues && !page.watch);
        let watch = Asked::of("&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=17");
        assert_eq!(watch.resource_version.as_deref(), Some("17"));
        assert!(watch.watch && !watch.initial_events);
        let streaming = Asked::of(
            "&watch=true&resourceVersion=0&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        );
        assert!(streaming.watch && streaming.initial_events);
    }
}
