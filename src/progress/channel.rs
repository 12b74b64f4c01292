//! From the runner to the display: a bounded channel and one thread.

use super::event::{EventKind, ProgressEvent};
use super::{Mode, json, plain, tty};
use crate::clock::Clock;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Events that may wait for the display.
const CAPACITY: usize = 1024;
/// Name of the display's thread.
pub(super) const DISPLAY_THREAD: &str = "progress";
/// How often moving lines move while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// Shows events in one way.
pub(super) trait Show: Send {
    /// Shows one event.
    fn event(&mut self, event: &ProgressEvent);
    /// Time has passed.
    fn tick(&mut self) {}
    /// Leaves the terminal as it was. `dropped` events were never shown.
    fn close(&mut self, dropped: u64);
}

/// Sends events. Cheap to clone; never blocks, never fails.
#[derive(Clone)]
pub struct Handle {
    sender: SyncSender<ProgressEvent>,
    dropped: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
}

impl Handle {
    /// Sends an event with the time of now; drops it when the display is behind.
    pub fn send(&self, kind: EventKind) {
        let event = ProgressEvent { at: self.clock.wall(), mono_ns: self.clock.mono(), kind };
        match self.sender.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Events that were not shown.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The display. Dropping it shows what is waiting and restores the terminal, on
/// a panic as well.
pub struct Display {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Starts a display on this process's standard error, or standard output for [`Mode::Json`].
    #[must_use]
    pub fn start(mode: Mode, clock: Arc<dyn Clock>) -> (Handle, Display) {
        match mode {
            Mode::Tty => Self::with(Box::new(tty::Tty::new(clock.clone())), clock),
            Mode::Plain => Self::write_to(mode, Box::new(std::io::stderr()), clock),
            Mode::Json => Self::write_to(mode, Box::new(std::io::stdout()), clock),
        }
    }

    /// Starts a display that writes lines to `out`; [`Mode::Tty`] is written as [`Mode::Plain`].
    #[must_use]
    pub fn write_to(mode: Mode, out: Box<dyn Write + Send>, clock: Arc<dyn Clock>) -> (Handle, Display) {
        match mode {
            Mode::Json => Self::with(Box::new(json::Json::new(out)), clock),
            Mode::Tty | Mode::Plain => Self::with(Box::new(plain::Plain::new(out)), clock),
        }
    }

    fn with(show: Box<dyn Show>, clock: Arc<dyn Clock>) -> (Handle, Display) {
        let (sender, receiver) = sync_channel(CAPACITY);
        let stop = Arc::new(AtomicBool::new(false));
        let dropped = Arc::new(AtomicU64::new(0));
        let (stopped, lost) = (stop.clone(), dropped.clone());
        // Without a thread nothing is shown and every event counts as dropped; the run goes on.
        let thread = std::thread::Builder::new()
            .name(DISPLAY_THREAD.to_owned())
            .spawn(move || run(show, &receiver, &stopped, &lost))
            .ok();
        (Handle { sender, dropped, clock }, Display { stop, thread })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A display that panicked has nothing more to show; the run goes on.
            let _ = thread.join();
        }
    }
}

fn run(mut show: Box<dyn Show>, events: &Receiver<ProgressEvent>, stop: &AtomicBool, dropped: &AtomicU64) {
    loop {
        match events.recv_timeout(TICK) {
            Ok(event) => show.event(&event),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Acquire) => break,
            Err(RecvTimeoutError::Timeout) => show.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    show.close(dropped.load(Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::progress::MessageLevel;
    use crate::progress::memory::Memory;
    use std::io;
    use std::sync::Mutex;

    fn message(text: &str) -> EventKind {
        EventKind::Message { level: MessageLevel::Info, text: text.to_owned() }
    }

    #[test]
    fn what_was_sent_is_shown_before_the_display_is_gone() {
        let out = Memory::default();
        let (handle, display) =
            Display::write_to(Mode::Plain, Box::new(out.clone()), Arc::new(FakeClock::new()));
        handle.send(message("first"));
        handle.send(message("second"));
        drop(display);
        let text = out.text();
        assert!(text.contains("first") && text.contains("second"), "{text}");
        assert_eq!(handle.dropped(), 0);
    }

    /// A reader that has stopped reading, such as a full pipe, until it is let go.
    struct Stuck(Arc<Mutex<()>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            drop(self.0.lock().unwrap());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_reader_never_blocks_the_runner_and_the_loss_is_counted() {
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let (handle, display) =
            Display::write_to(Mode::Json, Box::new(Stuck(gate.clone())), Arc::new(FakeClock::new()));
        for _ in 0..2 * CAPACITY {
            handle.send(message("x"));
        }
        // One event may be in the display's hands, the channel holds CAPACITY.
        assert!(handle.dropped() >= (CAPACITY - 1) as u64);
        drop(held);
        drop(display);
    }
}
