//! Live progress of a run.
//!
//! The runner sends [`ProgressEvent`]s through a [`Handle`]; it is never blocked:
//! when the display can't keep up, events are dropped and counted. Progress is
//! for watching only. What counts is in the journal and the histories.

mod channel;
mod event;
mod feed;
mod json;
#[cfg(test)]
mod memory;
mod plain;
mod tty;

pub use channel::{Display, Handle};
pub use event::{ClientState, EventKind, MessageLevel, ProgressEvent};
pub use feed::Feed;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Moving lines on a terminal (standard error).
    Tty,
    /// One line per thing that happens, on standard error: for logs, CI and `NO_COLOR`.
    Plain,
    /// One JSON object per line on standard output, for programs.
    Json,
}

impl Mode {
    /// Chooses a mode. `json`: `--events json` was given. `terminal`: standard
    /// error is one. `plain`: `NO_COLOR` or `CI` is set.
    #[must_use]
    pub fn choose(json: bool, terminal: bool, plain: bool) -> Mode {
        match (json, terminal && !plain) {
            (true, _) => Mode::Json,
            (false, true) => Mode::Tty,
            (false, false) => Mode::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;

    #[test]
    fn only_a_terminal_without_ci_gets_moving_lines() {
        assert_eq!(Mode::choose(false, true, false), Mode::Tty);
        assert_eq!(Mode::choose(false, true, true), Mode::Plain);
        assert_eq!(Mode::choose(false, false, false), Mode::Plain);
        assert_eq!(Mode::choose(true, true, false), Mode::Json);
    }
}
