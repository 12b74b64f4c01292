//! A load whose requests are sent again when they are refused, as client libraries do behind their users' backs.
//!
//! Every attempt is recorded by itself, so that what a library hides is seen.
//! * `client-go` (`rest/with_retry.go`, 0.30 to 0.37): 429 and any 5xx that have a `Retry-After`, up to ten times, each
//!   time after so many seconds. Its limiter of 5 requests per second is not part of this.
//! * `kube` (5.0, `default_retry`): 429, 503 and 504, up to 15 times, after 5 ms doubling to 1000 s with jitter, and never
//!   before `Retry-After` is over.

use super::connection::{Connector, Protocol};
use super::context::ClientContext;
use super::load::{LEAD_NS, LoadProgress, LoadTold, outcome, request};
use super::session::{Broken, STOP_GRACE, Session, Setup, Timing};
use super::spec::{Load, LoadProtocol, LoadRequest, RetriesLike, RetryingLoad};
use crate::clock::Clock;
use crate::drill::spec::Client;
use crate::history::record::{Asked, Attempt, Op};
use crate::load::connections::Connections;
use crate::load::exchange::Exchanged;
use crate::load::pacer::{Account, until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Longest pause of the kube crate.
const KUBE_LONGEST: Duration = Duration::from_secs(1000);
/// Its first one.
const KUBE_FIRST: Duration = Duration::from_millis(5);

/// Waits for its step, sends, and goes on until every request has succeeded or was given up.
pub async fn run(mut ctx: ClientContext) {
    let told = ctx.load.take();
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = match (&setup.planned.spec, told) {
            (Some(Client::RetryingLoad(load)), Some(told)) => {
                let load = load.clone();
                drive(&mut session, &setup, &load, &told).await
            }
            _ => Err(Broken::Unpaced(setup.planned.name.clone())),
        };
        session.close(end);
    }
}

async fn drive(
    session: &mut Session,
    setup: &Setup,
    load: &RetryingLoad,
    told: &LoadTold,
) -> Result<Account, Broken> {
    let (stop, clock) = (session.stop(), session.shared_clock());
    tokio::select! {
        () = stop.cancelled() => return Ok(Account::default()),
        () = told.go.cancelled() => {}
    }
    let protocol = match load.like {
        RetriesLike::ClientGo => Protocol::Http2,
        RetriesLike::Kube => Protocol::Http1,
    };
    let connector = Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, protocol)?;
    let connections = Arc::new(Connections::new(connector, protocol, CONNECTIONS, session.shared_clock()));
    let _ = connections.open_all().await;
    let begin = clock.mono().plus(LEAD_NS);
    let _ = told.progress.send(LoadProgress::Begun);
    let mut out = JoinSet::new();
    let mut account = Account::default();
    for (index, offset) in load.arrivals.offsets(setup.seed).into_iter().enumerate() {
        let due = begin.plus(offset);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(account),
                () = until(&*clock, due) => break,
                Some(done) = out.join_next() => record(session, done, &mut account)?,
            }
        }
        account.scheduled += 1;
        let one = Request {
            index: index as u64,
            due,
            seed: setup.seed.wrapping_add(index as u64),
            like: load.like,
            outgoing: request(&setup.namespace, &setup.planned.name, &plain(load), index),
        };
        out.spawn(one.until_settled(Arc::clone(&connections), session.shared_clock()));
    }
    let _ = told.progress.send(LoadProgress::Sent);
    loop {
        let next = tokio::select! {
            biased;
            next = out.join_next() => next,
            () = async { stop.cancelled().await; tokio::time::sleep(STOP_GRACE).await } => {
                account.lost += out.len() as u64;
                return Ok(account);
            }
        };
        let Some(done) = next else { break };
        record(session, done, &mut account)?;
    }
    let _ = told.progress.send(LoadProgress::Answered);
    // Attempts that were not planned are recorded too.
    account.scheduled = session.recorded() + account.lost;
    Ok(account)
}

/// Connections of either library's kind: enough for all that is out.
const CONNECTIONS: usize = 16;

fn plain(load: &RetryingLoad) -> Load {
    Load {
        name: load.name.clone(),
        arrivals: load.arrivals,
        request: LoadRequest::Get {},
        timeout: None,
        protocol: LoadProtocol::Http2,
        connections: 1,
        in_flight: 1,
        server: None,
        while_held_by: None,
    }
}

type Attempts = (u64, Vec<(Timing, Exchanged)>);

fn record(
    session: &mut Session,
    done: Result<Attempts, tokio::task::JoinError>,
    account: &mut Account,
) -> Result<(), Broken> {
    let Ok((index, attempts)) = done else {
        account.lost += 1;
        return Ok(());
    };
    for (number, (timing, exchanged)) in attempts.into_iter().enumerate() {
        let of = Some(Attempt { request: index, number: number as u64 });
        let outcome = outcome(&exchanged);
        session.exchange(timing, Op::Request { asked: Asked::Get, of }, outcome, exchanged.seen)?;
    }
    Ok(())
}

struct Request {
    index: u64,
    due: crate::clock::MonoNs,
    seed: u64,
    like: RetriesLike,
    outgoing: crate::load::exchange::Outgoing,
}

impl Request {
    async fn until_settled(self, connections: Arc<Connections>, clock: Arc<dyn Clock>) -> Attempts {
        let mut dice = StdRng::seed_from_u64(self.seed);
        let (mut attempts, mut due) = (Vec::new(), Some(self.due));
        loop {
            let call = clock.mono();
            let exchanged = connections.exchange(self.outgoing.clone()).await;
            let pause = self.like.pause(attempts.len(), &exchanged, dice.random::<f64>());
            attempts.push((Timing { due: due.take(), call, returned: clock.mono() }, exchanged));
            let Some(pause) = pause else { return (self.index, attempts) };
            tokio::time::sleep(pause).await;
        }
    }
}

impl RetriesLike {
    /// How long the library waits before it sends the request again; `None`: it does not. `before` attempts were made
    /// before this one; `die` is in [0, 1).
    #[must_use]
    pub fn pause(self, before: usize, exchanged: &Exchanged, die: f64) -> Option<Duration> {
        let status = exchanged.status?;
        let asked = exchanged.seen.retry_after_seconds.map(Duration::from_secs);
        match self {
            RetriesLike::ClientGo => {
                let retried = before < 10 && (status == 429 || (500..600).contains(&status));
                asked.filter(|_| retried)
            }
            RetriesLike::Kube => {
                let retried = before < 15 && matches!(status, 429 | 503 | 504);
                let factor = 2_u32.saturating_pow(u32::try_from(before).unwrap_or(u32::MAX));
                let backoff = KUBE_FIRST.saturating_mul(factor).min(KUBE_LONGEST);
                // Jitter: up to twice as long.
                let backoff = backoff.mul_f64(1.0 + die);
                retried.then(|| backoff.max(asked.unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::Exchange;

    fn answered(status: u16, retry_after: Option<u64>) -> Exchanged {
        let seen = Exchange { retry_after_seconds: retry_after, ..Exchange::default() };
        Exchanged { status: Some(status), failure: None, seen }
    }

    #[test]
    fn client_go_goes_by_retry_after_alone() {
        let pause =
            |before, status, after| RetriesLike::ClientGo.pause(before, &answered(status, after), 0.5);
        assert_eq!(pause(0, 429, Some(2)), Some(Duration::from_secs(2)));
        assert_eq!(pause(0, 429, None), None, "nobody said when");
        assert_eq!(pause(9, 503, Some(1)), Some(Duration::from_secs(1)));
        assert_eq!(pause(10, 429, Some(1)), None, "ten retries were made");
        assert_eq!(pause(0, 200, Some(1)), None);
        assert_eq!(pause(0, 404, Some(1)), None);
    }

    #[test]
    fn kube_backs_off_and_never_comes_before_retry_after() {
        let pause = |before, status, after| RetriesLike::Kube.pause(before, &answered(status, after), 0.0);
        assert_eq!(pause(0, 429, None), Some(Duration::from_millis(5)));
        assert_eq!(pause(3, 503, None), Some(Duration::from_millis(40)));
        assert_eq!(pause(3, 429, Some(4)), Some(Duration::from_secs(4)));
        assert_eq!(pause(15, 429, Some(1)), None);
        assert_eq!(pause(0, 500, Some(1)), None, "not one of its statuses");
    }

    #[test]
    fn without_an_answer_nothing_is_sent_again() {
        let lost = Exchanged::failed(crate::client::failure::FailureClass::ConnectionLost, None);
        assert_eq!(RetriesLike::ClientGo.pause(0, &lost, 0.0), None);
        assert_eq!(RetriesLike::Kube.pause(0, &lost, 0.0), None);
    }
}
