//! Hooks for crash tests: the process that writes the journal kills itself with SIGKILL
//! right after an entry is durable.
//!
//! * `QUAKEPROOF_CRASH_AFTER_ENTRY=<seq>`: after entry `<seq>`.
//! * `QUAKEPROOF_CRASH_AFTER_EVENT=<name>[:<n>]`: after the `<n>`th entry of that event (the
//!   first by default) that this process writes, such as `stepStarted:3`. Anchors of
//!   histories come whenever they come, so with clients only this names the same point again.
//!
//! Only builds with debug assertions or the feature `crash-test` honour them. They are read
//! from the environment here, and not in `cli/`, so that the kill comes before any caller goes on.

use super::entry::Entry;

#[cfg(any(debug_assertions, feature = "crash-test"))]
pub(super) fn after_entry(entry: &Entry) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let wanted = std::env::var("QUAKEPROOF_CRASH_AFTER_ENTRY").ok().and_then(|text| text.parse().ok());
    if wanted == Some(entry.seq) || is_wanted_event(entry) {
        kill(Pid::this(), Signal::SIGKILL).expect("a process may always kill itself");
    }
}

#[cfg(any(debug_assertions, feature = "crash-test"))]
fn is_wanted_event(entry: &Entry) -> bool {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let Ok(wanted) = std::env::var("QUAKEPROOF_CRASH_AFTER_EVENT") else { return false };
    let (name, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    let is_one = serde_json::to_value(&entry.event).is_ok_and(|event| event.get(name).is_some());
    is_one && nth.parse() == Ok(SEEN.fetch_add(1, Ordering::Relaxed) + 1)
}

#[cfg(not(any(debug_assertions, feature = "crash-test")))]
pub(super) fn after_entry(_: &Entry) {}
