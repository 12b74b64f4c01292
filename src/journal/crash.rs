//! A hook for crash tests: `QUAKEPROOF_CRASH_AFTER_ENTRY=<seq>` makes the process that
//! writes the journal kill itself with SIGKILL right after entry `<seq>` is durable.
//!
//! Only builds with debug assertions or the feature `crash-test` honour it. It reads the
//! environment here, and not in `cli/`, so that the kill comes before any caller goes on.

#[cfg(any(debug_assertions, feature = "crash-test"))]
pub(super) fn after_entry(seq: u64) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let wanted = std::env::var("QUAKEPROOF_CRASH_AFTER_ENTRY").ok().and_then(|text| text.parse().ok());
    if wanted == Some(seq) {
        kill(Pid::this(), Signal::SIGKILL).expect("a process may always kill itself");
    }
}

#[cfg(not(any(debug_assertions, feature = "crash-test")))]
pub(super) fn after_entry(_: u64) {}
