//! A load: requests at instants that are fixed before the first one.

use super::connection::{Connector, Protocol};
use super::context::ClientContext;
use super::session::{Broken, STOP_GRACE, Session, Setup, Timing};
use super::spec::{Load, LoadProtocol, LoadRequest};
use crate::clock::{Clock, MonoNs};
use crate::drill::spec::Client;
use crate::history::record::{Answer, Asked, Op, Outcome};
use crate::load::connections::Connections;
use crate::load::exchange::{Exchanged, Outgoing};
use crate::load::pacer::{Account, until};
use crate::plan::PlannedClient;
use hyper::Method;
use hyper::body::Bytes;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// ConfigMap that loads read; a `load` step makes it.
pub const TARGET: &str = "quakeproof-load";
/// After which a watch of a load is to end.
const WATCH_SECONDS: u64 = 2;
/// From the go to the first request: connections are up, and the first request is as little late as the others.
pub(super) const LEAD_NS: u64 = 50_000_000;
/// A request that is sent later than this after it was due is counted as late.
const LATE_NS: u64 = 5_000_000;

/// Starts a load, and shows how far it is.
#[derive(Debug, Clone)]
pub struct LoadGate {
    /// Cancelled when the load is to begin.
    pub go: CancellationToken,
    /// How far it is.
    pub progress: watch::Receiver<LoadProgress>,
}

/// The client's end of a [`LoadGate`].
#[derive(Debug)]
pub struct LoadTold {
    /// Cancelled when the load is to begin.
    pub go: CancellationToken,
    /// How far it is.
    pub progress: watch::Sender<LoadProgress>,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadProgress {
    /// Not begun.
    Waiting,
    /// Requests are being sent.
    Begun,
    /// The last one was sent.
    Sent,
    /// The last answer is there.
    Answered,
}

/// Both ends of a gate.
#[must_use]
pub fn gate() -> (LoadGate, LoadTold) {
    let go = CancellationToken::new();
    let (sender, progress) = watch::channel(LoadProgress::Waiting);
    (LoadGate { go: go.clone(), progress }, LoadTold { go, progress: sender })
}

/// The drill's words on a load client.
#[must_use]
pub fn spec_of(planned: &PlannedClient) -> Option<&Load> {
    match planned.spec.as_ref()? {
        Client::Load(load) => Some(load),
        _ => None,
    }
}

/// Waits for its step, sends, and waits for the last answer.
pub async fn run(mut ctx: ClientContext) {
    let told = ctx.load.take();
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = match (spec_of(&setup.planned).cloned(), told) {
            (Some(load), Some(told)) => drive(&mut session, setup, load, told).await,
            _ => Err(Broken::Unpaced(setup.planned.name.clone())),
        };
        session.close(end);
    }
}

async fn drive(session: &mut Session, setup: Setup, load: Load, told: LoadTold) -> Result<Account, Broken> {
    let stop = session.stop();
    tokio::select! {
        () = stop.cancelled() => return Ok(Account::default()),
        () = told.go.cancelled() => {}
    }
    let protocol = match load.protocol {
        LoadProtocol::Http1 => Protocol::Http1,
        LoadProtocol::Http2 => Protocol::Http2,
    };
    let connector = Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, protocol)?;
    let count = load.connections as usize;
    let connections = Arc::new(Connections::new(connector, protocol, count, session.shared_clock()));
    let (done, mut answered) = mpsc::unbounded_channel();
    let asked = asked(load.request);
    let clock = session.shared_clock();
    let sending = Sending {
        setup,
        load,
        connections,
        clock,
        stop,
        done,
        out: JoinSet::new(),
        account: Account::default(),
    };
    let sending = apart(sending.run(told));
    // Ends when the sender is gone, with everything that it told.
    while let Some((timing, exchanged)) = answered.recv().await {
        let outcome = outcome(&exchanged);
        session.exchange(timing, Op::Request { asked, of: None }, outcome, exchanged.seen)?;
    }
    Ok(sending.await.ok().flatten().unwrap_or_default())
}

/// Runs on a thread of its own, where nothing that waits, for a disk above all, keeps a request from being sent in
/// time; `None` when there can be no such thread.
fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<Option<T>> {
    tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        Some(runtime.block_on(work))
    })
}

type Done = (Timing, Exchanged);

/// What sends. It only tells of what came back; the session records it elsewhere.
struct Sending {
    setup: Setup,
    load: Load,
    connections: Arc<Connections>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    done: mpsc::UnboundedSender<Done>,
    out: JoinSet<Done>,
    account: Account,
}

impl Sending {
    async fn run(mut self, told: LoadTold) -> Account {
        // What can't be opened now is tried again by the request that needs it, and recorded there.
        let _ = self.connections.open_all().await;
        let begin = self.clock.mono().plus(LEAD_NS);
        let _ = told.progress.send(LoadProgress::Begun);
        match self.load.arrivals.at_a_time() {
            Some(at_a_time) => self.in_turns(begin, at_a_time).await,
            None => self.on_schedule(begin).await,
        }
        let _ = told.progress.send(LoadProgress::Sent);
        self.collect().await;
        let _ = told.progress.send(LoadProgress::Answered);
        self.account
    }

    async fn in_turns(&mut self, begin: MonoNs, at_a_time: usize) {
        until(&*self.clock, begin).await;
        for index in 0..self.load.arrivals.offsets(self.setup.seed).len() {
            if self.stop.is_cancelled() {
                break;
            }
            if self.out.len() >= at_a_time
                && let Some(done) = self.out.join_next().await
            {
                self.tell(done);
            }
            self.account.scheduled += 1;
            self.send(index, self.clock.mono());
        }
    }

    async fn on_schedule(&mut self, begin: MonoNs) {
        let (stop, clock) = (self.stop.clone(), Arc::clone(&self.clock));
        for (index, offset) in self.load.arrivals.offsets(self.setup.seed).into_iter().enumerate() {
            let due = begin.plus(offset);
            loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = until(&*clock, due) => break,
                    Some(done) = self.out.join_next() => self.tell(done),
                }
            }
            self.account.scheduled += 1;
            // Answers that are there already make room.
            while let Some(done) = self.out.try_join_next() {
                self.tell(done);
            }
            if self.out.len() >= self.load.in_flight as usize {
                self.account.lost += 1;
            } else {
                self.send(index, due);
            }
        }
    }

    fn send(&mut self, index: usize, due: MonoNs) {
        let outgoing = request(&self.setup.namespace, &self.setup.planned.name, &self.load, index);
        let (connections, clock) = (Arc::clone(&self.connections), Arc::clone(&self.clock));
        self.out.spawn(async move {
            let call = clock.mono();
            let exchanged = connections.exchange(outgoing).await;
            (Timing { due: Some(due), call, returned: clock.mono() }, exchanged)
        });
    }

    /// Waits for everything that is out. What does not come once the client was told to end is given up: those
    /// requests were sent, and their number is what is missing from the account.
    async fn collect(&mut self) {
        let stop = self.stop.clone();
        loop {
            let next = tokio::select! {
                biased;
                next = self.out.join_next() => next,
                () = async { stop.cancelled().await; tokio::time::sleep(STOP_GRACE).await } => {
                    self.account.lost += self.out.len() as u64;
                    self.out.abort_all();
                    return;
                }
            };
            match next {
                Some(done) => self.tell(done),
                None => return,
            }
        }
    }

    fn tell(&mut self, done: Result<Done, JoinError>) {
        let Ok((timing, exchanged)) = done else {
            self.account.lost += 1;
            return;
        };
        let late =
            exchanged.seen.sent_ns.zip(timing.due).is_some_and(|(sent, due)| sent.since(due) > LATE_NS);
        self.account.late += u64::from(late);
        // Nobody listens only when the history can't be written any more.
        let _ = self.done.send((timing, exchanged));
    }
}

fn asked(request: LoadRequest) -> Asked {
    match request {
        LoadRequest::Get {} => Asked::Get,
        LoadRequest::List { .. } => Asked::List,
        LoadRequest::Patch {} => Asked::Patch,
        LoadRequest::Watch {} => Asked::Watch,
        LoadRequest::Create { .. } => Asked::Create,
        LoadRequest::SlowCreate { .. } => Asked::SlowCreate,
    }
}

/// The `index`-th request of a load.
#[must_use]
pub fn request(namespace: &str, client: &str, load: &Load, index: usize) -> Outgoing {
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let query = load.timeout.map(|t| format!("?timeout={}ms", t.0.as_millis())).unwrap_or_default();
    let object = |name: &str, bytes: u32| {
        format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"value":"{}"}}"#, "x".repeat(bytes as usize))
    };
    let name = format!("{client}-{index}");
    let post = |body: Vec<Bytes>, pause: Duration| Outgoing {
        method: Method::POST,
        path: format!("{maps}{query}"),
        content_type: "application/json",
        body,
        pause,
    };
    match load.request {
        LoadRequest::Get {} => Outgoing::get(format!("{maps}/{TARGET}{query}")),
        LoadRequest::List { limit: None } => Outgoing::get(format!("{maps}{query}")),
        LoadRequest::List { limit: Some(limit) } => {
            let separator = if query.is_empty() { "?" } else { "&" };
            Outgoing::get(format!("{maps}{query}{separator}limit={limit}"))
        }
        LoadRequest::Patch {} => Outgoing {
            method: Method::PATCH,
            path: format!("{maps}/{TARGET}{query}"),
            content_type: "application/merge-patch+json",
            body: vec![Bytes::from(format!(r#"{{"data":{{"value":"{index}"}}}}"#))],
            pause: Duration::ZERO,
        },
        LoadRequest::Watch {} => {
            Outgoing::get(format!("{maps}?watch=true&resourceVersion=0&timeoutSeconds={WATCH_SECONDS}"))
        }
        LoadRequest::Create { value_bytes } => {
            post(vec![Bytes::from(object(&name, value_bytes) + "}")], Duration::ZERO)
        }
        LoadRequest::SlowCreate { duration } => {
            post(vec![Bytes::from(object(&name, 1)), Bytes::from_static(b"}")], duration.0)
        }
    }
}

pub(super) fn outcome(exchanged: &Exchanged) -> Outcome {
    match (exchanged.failure, exchanged.status) {
        (Some(failure), _) if exchanged.seen.sent_ns.is_none() => {
            Outcome::Failed { status: None, reason: failure.to_string() }
        }
        (Some(failure), _) => Outcome::Unknown { reason: failure.to_string() },
        (None, Some(status)) if (200..300).contains(&status) => Outcome::Ok(Answer::default()),
        (None, status) => Outcome::Failed { status, reason: "refused".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::values::Span;
    use crate::load::arrivals::{Arrivals, Serial};

    fn load(request: LoadRequest, timeout: Option<Span>) -> Load {
        Load {
            name: "l".to_owned(),
            arrivals: Arrivals::Serial(Serial { requests: 1, at_a_time: 1 }),
            request,
            timeout,
            protocol: LoadProtocol::Http1,
            connections: 1,
            in_flight: 1,
            server: None,
            while_held_by: None,
        }
    }

    fn sent(what: LoadRequest, timeout: Option<Span>) -> Outgoing {
        request("n", "l", &load(what, timeout), 7)
    }

    #[test]
    fn requests_ask_for_what_they_say() {
        let maps = "/api/v1/namespaces/n/configmaps";
        let path = |what, timeout| sent(what, timeout).path;
        assert_eq!(path(LoadRequest::Get {}, None), format!("{maps}/{TARGET}"));
        let short = Some(Span::millis(1500));
        assert_eq!(path(LoadRequest::Get {}, short), format!("{maps}/{TARGET}?timeout=1500ms"));
        assert_eq!(path(LoadRequest::List { limit: Some(5) }, None), format!("{maps}?limit=5"));
        assert_eq!(
            path(LoadRequest::List { limit: Some(5) }, short),
            format!("{maps}?timeout=1500ms&limit=5")
        );
        assert!(path(LoadRequest::Watch {}, None).contains("watch=true"));
        let patch = sent(LoadRequest::Patch {}, None);
        assert_eq!((patch.method, patch.content_type), (Method::PATCH, "application/merge-patch+json"));
    }

    #[test]
    fn a_body_in_parts_is_an_object_once_it_is_whole() {
        let slow = sent(LoadRequest::SlowCreate { duration: Span::secs(3) }, None);
        assert_eq!((slow.body.len(), slow.pause), (2, Duration::from_secs(3)));
        for outgoing in [slow, sent(LoadRequest::Create { value_bytes: 400 }, None)] {
            let object: serde_json::Value = serde_json::from_slice(&outgoing.body.concat()).unwrap();
            assert_eq!(object["metadata"]["name"], "l-7");
        }
    }
}
