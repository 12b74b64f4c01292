//! `--events json`: one object per line, for programs.
//!
//! The last line is `{"event": "closed", "dropped": n}`: so many events were
//! lost because the reader was too slow.

use super::channel::Show;
use super::event::ProgressEvent;
use std::io::Write;

pub(super) struct Json {
    /// `None` once the reader is gone: progress must not end a run.
    out: Option<Box<dyn Write + Send>>,
}

impl Json {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: Some(out) }
    }

    fn line(&mut self, value: &impl serde::Serialize) {
        let Some(out) = self.out.as_mut() else { return };
        let Ok(mut line) = serde_json::to_vec(value) else { return };
        line.push(b'\n');
        if out.write_all(&line).and_then(|()| out.flush()).is_err() {
            self.out = None;
        }
    }
}

impl Show for Json {
    fn event(&mut self, event: &ProgressEvent) {
        self.line(event);
    }

    fn close(&mut self, dropped: u64) {
        self.line(&serde_json::json!({"event": "closed", "dropped": dropped}));
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::{MonoNs, WallTime};
    use crate::progress::{ClientState, EventKind, ProgressEvent};

    #[test]
    fn an_event_is_one_flat_object() {
        let event = ProgressEvent {
            at: WallTime("2026-11-29T18:00:00.000000Z".to_owned()),
            mono_ns: MonoNs(7),
            kind: EventKind::ClientState {
                client: "orders".to_owned(),
                state: ClientState::Good,
                good: 3,
                bad: 0,
                unknown: 1,
                last: None,
            },
        };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"at":"2026-11-29T18:00:00.000000Z","monoNs":7,"event":"clientState","client":"orders","state":"good","good":3,"bad":0,"unknown":1,"last":null}"#
        );
    }
}
