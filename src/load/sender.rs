//! Sends the requests of a load when they are due, and tells what came of each.

use super::arrivals::Arrivals;
use super::connections::Connections;
use super::exchange::{Exchanged, Outgoing};
use super::pacer::{Account, until};
use crate::clock::{Clock, MonoNs};
use crate::load::retries::RetriesLike;
use crate::load::timing::{STOP_GRACE, Timing};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// From the go to the first request: connections are up, and the first request is as little late as the others.
const LEAD_NS: u64 = 50_000_000;
/// A request that is sent later than this after it was due is counted as late.
const LATE_NS: u64 = 5_000_000;

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

/// What is to be sent, and when.
pub struct Orders {
    /// When requests are due.
    pub arrivals: Arrivals,
    /// Decides what is left to chance.
    pub seed: u64,
    /// Requests that are out at the same time, at most.
    pub in_flight: usize,
    /// What follows an answer.
    pub then: Then,
    /// The request with this index.
    pub request: Box<dyn Fn(usize) -> Outgoing + Send + Sync>,
}

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// The same request again, as a client library does when it was refused.
    Retry(RetriesLike),
    /// The next page of a list.
    NextPage,
}

/// One request that was sent, or could not be sent.
#[derive(Debug)]
pub struct Attempted {
    /// Index of the request in the load.
    pub request: u64,
    /// 0, and one more for each that followed from an answer.
    pub number: u64,
    /// When it was due (the first one), called and done.
    pub timing: Timing,
    /// What came of it.
    pub exchanged: Exchanged,
}

/// Sends by its orders.
pub struct Sender {
    orders: Orders,
    connections: Connections,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
    told: mpsc::UnboundedSender<Attempted>,
    scheduled: AtomicU64,
    late: AtomicU64,
    lost: AtomicU64,
}

impl Sender {
    /// Sends nothing yet. What comes back is sent to `told`.
    #[must_use]
    pub fn new(
        orders: Orders,
        connections: Connections,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        told: mpsc::UnboundedSender<Attempted>,
    ) -> Self {
        let [scheduled, late, lost] = [const { AtomicU64::new(0) }; 3];
        Self { orders, connections, clock, stop, told, scheduled, late, lost }
    }

    /// Sends everything and waits for the last answer. Every request that was scheduled is told of or lost.
    ///
    /// It does so on a thread of its own, where nothing that waits, for a disk above all, keeps a request from being
    /// sent in time; `None` when there can be no such thread.
    #[must_use]
    pub fn run_apart(self, progress: watch::Sender<LoadProgress>) -> JoinHandle<Option<Account>> {
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            Some(runtime.block_on(self.run(&progress)))
        })
    }

    async fn run(self, progress: &watch::Sender<LoadProgress>) -> Account {
        let sender = Arc::new(self);
        // What can't be opened now is tried again by the request that needs it, and recorded there.
        let _ = sender.connections.open_all().await;
        let begin = sender.clock.mono().plus(LEAD_NS);
        progress.send_replace(LoadProgress::Begun);
        let mut out = JoinSet::new();
        match sender.orders.arrivals.at_a_time() {
            Some(at_a_time) => sender.in_turns(begin, at_a_time, &mut out).await,
            None => sender.on_schedule(begin, &mut out).await,
        }
        progress.send_replace(LoadProgress::Sent);
        sender.collect(&mut out).await;
        progress.send_replace(LoadProgress::Answered);
        sender.account()
    }

    fn account(&self) -> Account {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Account { scheduled: read(&self.scheduled), late: read(&self.late), lost: read(&self.lost) }
    }

    /// A closed loop: so many take turns, each one sends its next request when its last one was answered.
    async fn in_turns(self: &Arc<Self>, begin: MonoNs, at_a_time: usize, out: &mut JoinSet<()>) {
        let count = self.orders.arrivals.offsets(self.orders.seed).len();
        let next = Arc::new(AtomicUsize::new(0));
        until(&*self.clock, begin).await;
        for _ in 0..at_a_time.min(count) {
            let (sender, next) = (Arc::clone(self), Arc::clone(&next));
            out.spawn(async move {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || sender.stop.is_cancelled() {
                        return;
                    }
                    sender.send(index, sender.clock.mono()).await;
                }
            });
        }
        // The first one to end found nothing left to send.
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            _ = out.join_next() => {}
        }
    }

    async fn on_schedule(self: &Arc<Self>, begin: MonoNs, out: &mut JoinSet<()>) {
        for (index, offset) in self.orders.arrivals.offsets(self.orders.seed).into_iter().enumerate() {
            let due = begin.plus(offset);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = until(&*self.clock, due) => {}
            }
            // Requests that were answered make room.
            while out.try_join_next().is_some() {}
            if out.len() >= self.orders.in_flight {
                self.scheduled.fetch_add(1, Ordering::Relaxed);
                self.lost.fetch_add(1, Ordering::Relaxed);
            } else {
                let sender = Arc::clone(self);
                out.spawn(async move { sender.send(index, due).await });
            }
        }
    }

    /// Waits for everything that is out. What does not come once the client was told to end is given up.
    async fn collect(&self, out: &mut JoinSet<()>) {
        loop {
            tokio::select! {
                biased;
                next = out.join_next() => if next.is_none() { return },
                () = async { self.stop.cancelled().await; tokio::time::sleep(STOP_GRACE).await } => {
                    self.lost.fetch_add(out.len() as u64, Ordering::Relaxed);
                    out.abort_all();
                    return;
                }
            }
        }
    }

    /// Sends one request, and whatever follows from its answer.
    async fn send(&self, index: usize, due: MonoNs) {
        // Made for retries only: most loads send thousands of requests of which none is followed by another.
        let mut dice = match self.orders.then {
            Then::Retry(_) => Some(StdRng::seed_from_u64(self.orders.seed.wrapping_add(index as u64))),
            Then::Nothing | Then::NextPage => None,
        };
        let (mut due, mut outgoing) = (Some(due), (self.orders.request)(index));
        for number in 0.. {
            self.scheduled.fetch_add(1, Ordering::Relaxed);
            let kept = (self.orders.then != Then::Nothing).then(|| outgoing.clone());
            let call = self.clock.mono();
            let exchanged = self.connections.exchange(outgoing).await;
            let timing = Timing { due: due.take(), call, returned: self.clock.mono() };
            let next = kept.and_then(|kept| self.following(kept, number, &exchanged, dice.as_mut()));
            self.tell(Attempted { request: index as u64, number, timing, exchanged });
            let Some((next, pause)) = next else { return };
            outgoing = next;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn following(
        &self,
        sent: Outgoing,
        number: u64,
        exchanged: &Exchanged,
        dice: Option<&mut StdRng>,
    ) -> Option<(Outgoing, Duration)> {
        match self.orders.then {
            Then::Nothing => None,
            Then::Retry(library) => {
                let pause = library.pause(number, exchanged, dice?.random::<f64>())?;
                Some((sent, pause))
            }
            Then::NextPage => {
                let page = exchanged.next_page.as_deref()?;
                Some((sent.page(page), Duration::ZERO))
            }
        }
    }

    fn tell(&self, attempted: Attempted) {
        let sent = attempted.exchanged.seen.sent_ns;
        let late = sent.zip(attempted.timing.due).is_some_and(|(sent, due)| sent.since(due) > LATE_NS);
        self.late.fetch_add(u64::from(late), Ordering::Relaxed);
        // Nobody listens only when the history can't be written any more.
        let _ = self.told.send(attempted);
    }
}
