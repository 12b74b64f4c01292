//! The pace of a client that has one operation out at a time.

use super::session::Session;
use crate::clock::Clock;
use crate::load::pacer::{Account, ClosedLoop, Schedule, Slot, until};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Slots of a closed loop, from now until the client is told to end.
pub struct Pace {
    pacer: ClosedLoop,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

impl Pace {
    /// One slot every `every_ns` nanoseconds, the first one now.
    #[must_use]
    pub fn new(session: &Session, every_ns: u64) -> Self {
        let clock = session.shared_clock();
        let pacer = ClosedLoop::new(Schedule::every(clock.mono(), every_ns));
        Self { pacer, clock, stop: session.stop() }
    }

    /// Waits for the next slot; `None` once the client is to end.
    pub async fn next(&mut self) -> Option<Slot> {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                () = until(&*self.clock, self.pacer.next_due()) => {}
            }
            if let Some(slot) = self.pacer.take(self.clock.mono()) {
                return Some(slot);
            }
        }
    }

    /// What became of the slots so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.pacer.account()
    }
}
