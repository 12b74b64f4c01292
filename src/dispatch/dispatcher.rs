//! The dispatcher: the only one that writes the journal and changes run state.
//! Everybody else sends it messages.

use crate::client::context::ClientSignal;
use crate::clock::{Clock, MonoNs, WallStepDetector};
use crate::dispatch::observations::Observations;
use crate::history::recorder::Anchor;
use crate::journal::JournalError;
use crate::journal::entry::{Entry, JournalEvent};
use crate::journal::writer::JournalWriter;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Somebody who wants to see what happens while it happens. Must not block.
pub trait Watcher: Send + Sync {
    /// A journal entry is durable.
    fn entry(&self, entry: &Entry);
    /// A client told something.
    fn signal(&self, signal: &ClientSignal);
    /// Something is under way that is neither.
    fn note(&self, text: &str);
}

/// Clock steps below this are NTP slewing, not steps.
const WALL_STEP_TOLERANCE_NS: u64 = 100_000_000;
/// How often the wall clock is held against the monotonic one.
const WALL_LOOK_EVERY: Duration = Duration::from_millis(500);

type Append = (JournalEvent, oneshot::Sender<Result<Entry, JournalError>>);

/// Sends messages to the dispatcher.
#[derive(Clone)]
pub struct Journalist {
    appends: mpsc::UnboundedSender<Append>,
    /// For recorders: digests of history prefixes.
    pub anchors: mpsc::UnboundedSender<Anchor>,
    /// For clients: what they see.
    pub signals: mpsc::UnboundedSender<ClientSignal>,
    /// What the clients have told so far.
    pub observations: watch::Receiver<Observations>,
    forget: mpsc::UnboundedSender<MonoNs>,
}

impl Journalist {
    /// Writes an event; returns once it is durable.
    ///
    /// # Errors
    /// When it could not be made durable: no effect may follow.
    pub async fn record(&self, event: JournalEvent) -> Result<Entry, JournalError> {
        let (tx, rx) = oneshot::channel();
        self.appends.send((event, tx)).map_err(|_| JournalError::Closed)?;
        rx.await.map_err(|_| JournalError::Closed)?
    }

    /// Only samples called from `at` on count towards a good stretch.
    pub fn forget_streaks(&self, at: MonoNs) {
        let _ = self.forget.send(at);
    }
}

/// Owns the journal until the run is closed.
pub struct Dispatcher {
    journal: JournalWriter,
    clock: Arc<dyn Clock>,
    watcher: Arc<dyn Watcher>,
    appends: mpsc::UnboundedReceiver<Append>,
    anchors: mpsc::UnboundedReceiver<Anchor>,
    signals: mpsc::UnboundedReceiver<ClientSignal>,
    forget: mpsc::UnboundedReceiver<MonoNs>,
    observations: watch::Sender<Observations>,
}

impl Dispatcher {
    /// A dispatcher that writes `journal`, and the handle by which others reach it.
    #[must_use]
    pub fn new(
        journal: JournalWriter,
        clock: Arc<dyn Clock>,
        watcher: Arc<dyn Watcher>,
    ) -> (Self, Journalist) {
        let (appends_tx, appends) = mpsc::unbounded_channel();
        let (anchors_tx, anchors) = mpsc::unbounded_channel();
        let (signals_tx, signals) = mpsc::unbounded_channel();
        let (forget_tx, forget) = mpsc::unbounded_channel();
        let (observations, seen) = watch::channel(Observations::default());
        let journalist = Journalist {
            appends: appends_tx,
            anchors: anchors_tx,
            signals: signals_tx,
            observations: seen,
            forget: forget_tx,
        };
        (Self { journal, clock, watcher, appends, anchors, signals, forget, observations }, journalist)
    }

    /// Runs until every handle is gone; returns the journal.
    pub async fn run(mut self) -> JournalWriter {
        let mut wall = WallStepDetector::new(WALL_STEP_TOLERANCE_NS);
        wall.look(self.clock.as_ref());
        let mut look = tokio::time::interval(WALL_LOOK_EVERY);
        loop {
            tokio::select! {
                biased;
                append = self.appends.recv() => match append {
                    Some((event, done)) => {
                        self.drain_anchors();
                        let _ = done.send(self.append(event));
                    }
                    None => break,
                },
                Some(anchor) = self.anchors.recv() => self.anchor(anchor),
                Some(at) = self.forget.recv() => self.observations.send_modify(|seen| seen.forget_streaks(at)),
                Some(signal) = self.signals.recv() => self.signals(&signal),
                _ = look.tick() => {
                    if let Some(step) = wall.look(self.clock.as_ref()) {
                        let step_ns = i64::try_from(step).unwrap_or(i64::MAX);
                        let _ = self.append(JournalEvent::WallClockStepped { step_ns });
                    }
                }
            }
        }
        self.drain_anchors();
        self.journal
    }

    fn signals(&mut self, first: &ClientSignal) {
        self.watcher.signal(first);
        let more: Vec<ClientSignal> = std::iter::from_fn(|| self.signals.try_recv().ok()).take(256).collect();
        more.iter().for_each(|signal| self.watcher.signal(signal));
        self.observations.send_modify(|seen| {
            seen.take(first);
            more.iter().for_each(|signal| seen.take(signal));
        });
    }

    fn drain_anchors(&mut self) {
        while let Ok(anchor) = self.anchors.try_recv() {
            self.anchor(anchor);
        }
    }

    fn anchor(&mut self, anchor: Anchor) {
        let Anchor { file, bytes, records, sha256 } = anchor;
        // A full disk shows at the next entry that somebody waits for.
        let _ = self.append(JournalEvent::HistoryAnchored { file, bytes, records, sha256 });
    }

    fn append(&mut self, event: JournalEvent) -> Result<Entry, JournalError> {
        let entry = self.journal.append(event)?;
        self.watcher.entry(&entry);
        Ok(entry)
    }
}
