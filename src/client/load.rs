//! A load: requests at instants that are fixed before the first one.
//!
//! They are sent, on a thread of their own, by [`crate::load::sender`]; this client records what came of them.

use super::context::{ClientContext, Setup};
use super::load_request::{asked, get, request};
use super::load_spec::{Load, LoadProtocol, RetryingLoad};
use super::session::{Broken, Session, live};
use crate::history::record::{Answer, Asked, Attempt, Op, Outcome};
use crate::load::connections::Connections;
use crate::load::exchange::Exchanged;
use crate::load::pacer::Account;
use crate::load::retries::RetriesLike;
use crate::load::sender::{Attempted, LoadProgress, Orders, Sender, Then};
use crate::wire::connection::{Connector, Protocol};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Connections of a retrying load, of either library's kind: enough for all that is out.
const CONNECTIONS: usize = 16;
/// Answers are recorded together that come within this time: each time that the recorder wakes up takes a core from
/// the server, and from the sender, which are what is measured.
const RECORD_EVERY: Duration = Duration::from_millis(10);

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

/// Both ends of a gate.
#[must_use]
pub fn gate() -> (LoadGate, LoadTold) {
    let go = CancellationToken::new();
    let (sender, progress) = watch::channel(LoadProgress::Waiting);
    (LoadGate { go: go.clone(), progress }, LoadTold { go, progress: sender })
}

/// A load's work.
pub(super) struct Work {
    protocol: Protocol,
    connections: usize,
    asked: Asked,
    orders: Orders,
}

/// Waits for its step, sends, and waits for the last answer.
pub(super) async fn run(mut ctx: ClientContext, work: impl FnOnce(&Setup) -> Work) {
    let told = ctx.load.take();
    live(ctx, async |session, setup| match told {
        Some(told) => drive(session, setup, work(setup), told).await,
        None => Err(Broken::Unpaced(setup.planned.name.clone())),
    })
    .await;
}

async fn drive(session: &mut Session, setup: &Setup, work: Work, told: LoadTold) -> Result<Account, Broken> {
    let stop = session.stop();
    tokio::select! {
        () = stop.cancelled() => return Ok(Account::default()),
        () = told.go.cancelled() => {}
    }
    let Work { protocol, connections, asked, orders } = work;
    let connector = Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, protocol)?;
    let connections = Connections::new(connector, protocol, connections, session.shared_clock());
    let follows = orders.then != Then::Nothing;
    let (tell, mut answered) = mpsc::unbounded_channel();
    let sender = Sender::new(orders, connections, session.shared_clock(), stop, tell);
    let sending = sender.run_apart(told.progress);
    let mut together = Vec::new();
    // Ends when the sender is gone, with everything that it told.
    while answered.recv_many(&mut together, usize::MAX).await > 0 {
        for attempted in together.drain(..) {
            record(session, asked, follows, attempted)?;
        }
        tokio::time::sleep(RECORD_EVERY).await;
    }
    Ok(sending.await.ok().flatten().unwrap_or_default())
}

fn record(session: &mut Session, asked: Asked, follows: bool, attempted: Attempted) -> Result<(), Broken> {
    let Attempted { request, number, timing, exchanged } = attempted;
    let of = follows.then_some(Attempt { request, number });
    let outcome = outcome(&exchanged);
    session.exchange(timing, Op::Request { asked, of }, outcome, exchanged.seen)
}

pub(super) fn plain(setup: &Setup, load: Load) -> Work {
    let protocol = match load.protocol {
        LoadProtocol::Http1 => Protocol::Http1,
        LoadProtocol::Http2 => Protocol::Http2,
    };
    let (namespace, name) = (setup.namespace.clone(), setup.planned.name.clone());
    Work {
        protocol,
        connections: load.connections as usize,
        asked: asked(&load.request),
        orders: Orders {
            arrivals: load.arrivals,
            seed: setup.seed,
            in_flight: load.in_flight as usize,
            then: if load.request.has_pages() { Then::NextPage } else { Then::Nothing },
            request: Box::new(move |index| request(&namespace, &name, &load, index)),
        },
    }
}

pub(super) fn retrying(setup: &Setup, load: &RetryingLoad) -> Work {
    let protocol = match load.like {
        RetriesLike::ClientGo => Protocol::Http2,
        RetriesLike::Kube => Protocol::Http1,
    };
    let namespace = setup.namespace.clone();
    Work {
        protocol,
        connections: CONNECTIONS,
        asked: Asked::Get,
        orders: Orders {
            arrivals: load.arrivals,
            seed: setup.seed,
            in_flight: usize::MAX,
            then: Then::Retry(load.like),
            request: Box::new(move |_| get(&namespace, "")),
        },
    }
}

fn outcome(exchanged: &Exchanged) -> Outcome {
    match (exchanged.failure, exchanged.status) {
        (Some(failure), _) if exchanged.seen.sent_ns.is_none() => {
            Outcome::Failed { status: None, reason: failure.to_string() }
        }
        (Some(failure), _) => Outcome::Unknown { reason: failure.to_string() },
        (None, Some(status)) if (200..300).contains(&status) => Outcome::Ok(Answer::default()),
        (None, status) => Outcome::Failed { status, reason: "refused".to_owned() },
    }
}
