//! One client's life: its history, its signals to the runner, and its end.

use super::context::{ClientContext, ClientSignal, Sample, Setup};
use super::election::RENEW_DEADLINE;
use crate::clock::{BootId, Clock, MonoNs};
use crate::history::kind::ClientKind;
use crate::history::record::{ENDED_AS_ASKED, Event, EventRecord, Exchange, Op, OpRecord, Outcome, Record};
use crate::history::recorder::Recorder;
use crate::load::pacer::Account;
use crate::load::timing::{Timing, timed};
use crate::wire::connection::BadIdentity;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// Least time between the starts of two attempts to open a stream, or to list
/// before it. Fixed, without backoff, so that the end of an outage is seen sharply.
pub const ATTEMPT_EVERY: Duration = Duration::from_millis(200);

/// Why a client ended before it was told to.
#[derive(Debug, Error)]
pub enum Broken {
    /// Its history can't be written any more, so nothing it does is evidence.
    #[error("recorder: {0}; free space on the disk that holds the run directory")]
    Recorder(#[from] io::Error),
    /// Its certificates can't be read.
    #[error(transparent)]
    Identity(#[from] BadIdentity),
    /// The plan gives it no rate or interval.
    #[error("the plan gives client `{0}` neither a rate nor an interval")]
    Unpaced(String),
    /// The probe's name does not say which Lease it reads.
    #[error("the name of probe `{0}` does not end with the lease it reads, {1}")]
    NoLease(String, String),
}

/// A client's life: its history is opened, it works until it is told to end, and its history is closed.
pub async fn live<W>(ctx: ClientContext, work: W)
where
    W: AsyncFnOnce(&mut Session, &Setup) -> Result<Account, Broken>,
{
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = work(&mut session, &setup).await;
        session.close(end);
    }
}

/// An open history and the way to tell the runner.
pub struct Session {
    client: String,
    kind: ClientKind,
    boot: BootId,
    clock: Arc<dyn Clock>,
    recorder: Recorder,
    signals: UnboundedSender<ClientSignal>,
    stop: CancellationToken,
    next_seq: u64,
    told_at: MonoNs,
}

/// Least time between two signals of a load.
const TOLD_EVERY_NS: u64 = 100_000_000;

impl Session {
    /// Writes the history's first line. When that fails the runner is told and there is no session.
    #[must_use]
    pub(super) fn open(ctx: ClientContext) -> Option<(Self, Setup)> {
        let ClientContext { setup, clock, recorder, signals, stop, load: _ } = ctx;
        let planned = &setup.planned;
        let mut session = Self {
            client: planned.name.clone(),
            kind: planned.kind,
            boot: clock.boot(),
            clock,
            recorder,
            signals,
            stop,
            next_seq: 0,
            told_at: MonoNs(0),
        };
        let system = if planned.talks_to_etcd() { "etcd" } else { "api" };
        let opened = Record::Opened {
            client: planned.name.clone(),
            kind: planned.kind,
            identity: setup.identity.user.clone(),
            target: format!("{system}/{}", planned.target),
            at: session.clock.wall(),
            mono_ns: session.clock.mono(),
            boot: session.boot.clone(),
        };
        // The anchor puts the first line on disk, so that even a client that never gets to do anything left a trace.
        match session.recorder.append(&opened).and_then(|()| session.recorder.anchor()) {
            Ok(()) => Some((session, setup)),
            Err(error) => {
                session.tell_broken(&Broken::Recorder(error));
                None
            }
        }
    }

    /// The run's clock.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The clock, for operations that run beside the session.
    #[must_use]
    pub fn shared_clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    /// Cancelled when the client is to end.
    #[must_use]
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Sequence number of the next operation.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Number of operations recorded.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.next_seq
    }

    /// The account of a client whose every operation follows from another: none is due at a set time.
    #[must_use]
    pub fn unscheduled(&self) -> Account {
        Account { scheduled: self.recorded(), ..Account::default() }
    }

    /// Runs an operation and takes its times.
    pub async fn timed<T>(
        &self,
        due: Option<MonoNs>,
        operation: impl Future<Output = T>,
    ) -> (Timing, Option<T>) {
        timed(&*self.clock, &self.stop, due, operation).await
    }

    /// Records an operation and tells the runner.
    ///
    /// # Errors
    /// When the history can't be written.
    pub fn op(&mut self, timing: Timing, op: Op, outcome: Outcome) -> Result<(), Broken> {
        self.record(timing, op, outcome, None)
    }

    /// Records a request of a load and tells the runner.
    ///
    /// # Errors
    /// When the history can't be written.
    pub fn exchange(
        &mut self,
        timing: Timing,
        op: Op,
        outcome: Outcome,
        exchange: Exchange,
    ) -> Result<(), Broken> {
        self.record(timing, op, outcome, Some(exchange))
    }

    /// Of a load's thousands of requests the runner needs to see only that they go on.
    fn is_told(&mut self, of_load: bool) -> bool {
        let now = self.clock.mono();
        let told = !of_load || now.since(self.told_at) >= TOLD_EVERY_NS;
        if told {
            self.told_at = now;
        }
        told
    }

    fn record(
        &mut self,
        timing: Timing,
        op: Op,
        outcome: Outcome,
        exchange: Option<Exchange>,
    ) -> Result<(), Broken> {
        let of_load = exchange.is_some();
        let (sample, revision) = match &outcome {
            Outcome::Ok(answer) if answer.wrong_value => {
                (Sample::Failed("wrong-value".to_owned()), answer.revision)
            }
            Outcome::Ok(answer) => (Sample::Ok, answer.revision),
            // An answer: whether the object should be there is for the judge to say.
            Outcome::Failed { status: Some(404), .. }
                if matches!(op, Op::Get { .. } | Op::CasRead { .. }) =>
            {
                (Sample::Ok, None)
            }
            Outcome::Failed { reason, .. } => (Sample::Failed(reason.clone()), None),
            Outcome::Unknown { reason } => (Sample::Unknown(reason.clone()), None),
        };
        self.recorder.op(OpRecord {
            seq: self.next_seq,
            boot: self.boot.clone(),
            due_ns: timing.due,
            call_ns: timing.call,
            return_ns: timing.returned,
            op,
            outcome,
            exchange,
        })?;
        self.next_seq += 1;
        if self.is_told(of_load) {
            self.tell(sample, timing.call, timing.returned, revision);
        }
        Ok(())
    }

    /// Records something that arrived on a stream just now and tells the runner.
    ///
    /// # Errors
    /// When the history can't be written.
    pub fn event(&mut self, stream: u64, event: Event) -> Result<(), Broken> {
        let at = self.clock.mono();
        let (sample, revision) = match &event {
            Event::Put { revision, .. }
            | Event::Delete { revision, .. }
            | Event::Other { revision }
            | Event::Bookmark { revision, .. } => (Sample::Ok, Some(*revision)),
            Event::Store { revision, .. } => (Sample::Ok, *revision),
            Event::Error { code, .. } => (Sample::Failed(format!("error-{code}")), None),
            Event::Ended { reason } if reason == ENDED_AS_ASKED => (Sample::Ok, None),
            Event::Ended { reason } => (Sample::Failed(format!("ended-{reason}")), None),
            Event::Leading { revision, .. } => (Sample::Ok, Some(*revision)),
            // Giving up the lead on purpose is as it should be.
            Event::LeadingEnded { reason, .. } if reason == RENEW_DEADLINE => {
                (Sample::Failed(reason.clone()), None)
            }
            Event::LeadingEnded { .. } => (Sample::Ok, None),
        };
        self.recorder.event(EventRecord { stream, boot: self.boot.clone(), at_ns: at, event })?;
        self.tell(sample, at, at, revision);
        Ok(())
    }

    /// Writes the last line, or tells the runner why there can be none.
    pub(super) fn close(mut self, end: Result<Account, Broken>) {
        let account = match end {
            Ok(account) => account,
            Err(broken) => {
                self.tell_broken(&broken);
                if matches!(broken, Broken::Recorder(_)) {
                    return;
                }
                Account::default()
            }
        };
        let closed = Record::Closed {
            mono_ns: self.clock.mono(),
            boot: self.boot.clone(),
            scheduled: account.scheduled,
            recorded: self.recorded(),
            late: account.late,
            lost: account.lost,
        };
        if let Err(error) = self.recorder.append(&closed).and_then(|()| self.recorder.anchor()) {
            self.tell_broken(&Broken::Recorder(error));
        }
    }

    fn tell_broken(&self, broken: &Broken) {
        let now = self.clock.mono();
        self.tell(Sample::Unknown(broken.to_string()), now, now, None);
    }

    fn tell(&self, sample: Sample, call: MonoNs, returned: MonoNs, revision: Option<u64>) {
        // The runner may have gone; the history is what counts.
        let _ = self.signals.send(ClientSignal {
            client: self.client.clone(),
            kind: self.kind,
            sample,
            call,
            returned,
            revision,
        });
    }
}
