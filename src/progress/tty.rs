//! Moving lines on a terminal: phase, step with its elapsed time, one line per
//! client with its counters. What is worth keeping scrolls by above them.

use super::channel::{DISPLAY_THREAD, Show};
use super::event::{ClientState, EventKind, ProgressEvent};
use super::plain::{describe, phase_word};
use crate::clock::{Clock, MonoNs};
use crate::escape::terminal as safe;
use crate::report::figure;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use owo_colors::OwoColorize;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Tty {
    lines: MultiProgress,
    /// Nothing moves any more: somebody panicked.
    still: Arc<AtomicBool>,
    head: ProgressBar,
    step: ProgressBar,
    rows: BTreeMap<String, ProgressBar>,
    clock: Arc<dyn Clock>,
    started: Option<MonoNs>,
    phase: &'static str,
    running: Option<(String, MonoNs)>,
}

impl Tty {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let still = Arc::new(AtomicBool::new(false));
        keep_panics_readable(&lines, &still);
        let head = lines.add(line());
        let step = lines.add(line());
        Self {
            lines,
            still,
            head,
            step,
            rows: BTreeMap::new(),
            clock,
            started: None,
            phase: "starting",
            running: None,
        }
    }

    fn redraw(&self) {
        if self.still.load(Ordering::Acquire) {
            return;
        }
        let now = self.clock.mono();
        let since = figure::duration(now.since(self.started.unwrap_or(now)));
        self.head.set_message(format!("{} {}", self.phase.bold(), since.dimmed()));
        let step = self
            .running
            .as_ref()
            .map(|(text, began)| format!("  {text} {}", figure::duration(now.since(*began)).dimmed()));
        self.step.set_message(step.unwrap_or_default());
    }

    fn row(&mut self, name: &str, message: String) {
        if self.still.load(Ordering::Acquire) {
            return;
        }
        let lines = &self.lines;
        self.rows.entry(name.to_owned()).or_insert_with(|| lines.add(line())).set_message(message);
    }

    fn keep(&self, text: &str) {
        // Should the terminal be gone, there is nobody to show it to.
        let _ = if self.still.load(Ordering::Acquire) {
            writeln!(std::io::stderr(), "{text}")
        } else {
            self.lines.println(text)
        };
    }
}

/// Takes the moving lines away for good before a panic is reported; they would be
/// drawn over it. What is worth keeping still appears, as plain lines.
fn keep_panics_readable(lines: &MultiProgress, still: &Arc<AtomicBool>) {
    let (lines, still, report) = (lines.clone(), still.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        // The display's own thread may hold the lock that clearing takes.
        let own = std::thread::current().name() == Some(DISPLAY_THREAD);
        if !own && !still.swap(true, Ordering::AcqRel) {
            // On a thread of its own: indicatif draws nothing on one that panics.
            let lines = lines.clone();
            let clearing = std::thread::Builder::new().spawn(move || lines.clear());
            // Untidy lines are no reason to lose the report.
            let _ = clearing.map(std::thread::JoinHandle::join);
        }
        report(info);
    }));
}

/// A line of text without a bar. It must not animate by itself: only events and ticks redraw it.
fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}").expect("the template is constant and valid");
    ProgressBar::new_spinner().with_style(style)
}

impl Show for Tty {
    fn event(&mut self, event: &ProgressEvent) {
        self.started.get_or_insert(event.mono_ns);
        match &event.kind {
            EventKind::PhaseChanged { phase } => self.phase = phase_word(*phase),
            EventKind::StepStarted { kind, step, of } => {
                let text = format!("step {step}: {}, {} of {of}", safe(kind), step + 1);
                self.running = Some((text, event.mono_ns));
            }
            EventKind::StepFinished { failed: None, .. } => self.running = None,
            EventKind::ClientState { client, state, good, bad, unknown, last } => {
                // The state comes first: a narrow terminal cuts a line's end.
                let word = match state {
                    ClientState::Good => format!("{:<7}", "good").green().to_string(),
                    ClientState::Bad => format!("{:<7}", "bad").red().bold().to_string(),
                    ClientState::Unknown => format!("{:<7}", "unknown").yellow().to_string(),
                };
                let last = last.as_deref().map(safe).unwrap_or_default();
                let name = safe(client);
                let counts = format!("{good:>6} good {bad:>4} bad {unknown:>4} unknown");
                self.row(client, format!("  {word} {name:<30} {} {}", counts.dimmed(), last.dimmed()));
            }
            EventKind::Condition { condition, holds, samples, needed } => {
                let state =
                    if *holds { "holds".green().to_string() } else { "does not hold".yellow().to_string() };
                let name = safe(condition);
                self.row(
                    &format!("~{condition}"),
                    format!("  {name:<18} {state} {samples} of {needed} samples"),
                );
            }
            kept => self.keep(&describe(kept)),
        }
        self.redraw();
    }

    fn tick(&mut self) {
        self.redraw();
    }

    fn close(&mut self, dropped: u64) {
        if self.still.load(Ordering::Acquire) {
            // The lines are gone already; clearing again would take the panic's report along.
            self.lines.set_draw_target(ProgressDrawTarget::hidden());
        }
        for row in self.rows.values().chain([&self.head, &self.step]) {
            row.finish_and_clear();
        }
        // As in `keep`: without a terminal there is nothing to restore.
        let _ = self.lines.clear();
        if dropped > 0 {
            self.keep(&format!("{dropped} progress events were not shown; the evidence is complete"));
        }
    }
}
