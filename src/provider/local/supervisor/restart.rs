//! Who is started again after it has exited by itself, and how soon.
//!
//! Upstream's controller managers and schedulers exit when they lose their Lease, which
//! they do after about ten seconds without an API server; they count on a kubelet to start
//! them again. So they are started again here: after 1 s, each time after twice as long up
//! to 30 s, and after 1 s again once they have run for 60 s. (A kubelet begins at 10 s, ends
//! at 5 min and forgets after 10 min; a drill is too short for that.)
//!
//! etcd and API servers are not. One that exits by itself is what a drill is there to show,
//! and what it is started on has to be put right first: an etcd member started again on a
//! data directory that is being moved would make a new one, and an undo relies on knowing
//! what runs. What was stopped on purpose is never started again.

use crate::component::Role;
use std::time::Duration;

/// First pause.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// A process that has run for this long has recovered.
const RECOVERED: Duration = Duration::from_secs(60);

/// Whether components of this role are started again.
#[must_use]
pub fn is_restarted(role: Role) -> bool {
    match role {
        Role::KubeControllerManager | Role::KubeScheduler => true,
        Role::Etcd | Role::KubeApiserver => false,
    }
}

/// Pauses of one component.
#[derive(Debug)]
pub struct BackOff {
    next: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl BackOff {
    /// How long to pause after a process that ran for `ran`.
    pub fn after(&mut self, ran: Duration) -> Duration {
        if ran >= RECOVERED {
            self.next = FIRST;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_begin_anew_after_a_minute_of_running() {
        let mut back_off = BackOff::default();
        let mut seconds = |ran| back_off.after(Duration::from_secs(ran)).as_secs();
        let crashes: Vec<u64> = (0..7).map(|_| seconds(10)).collect();
        assert_eq!(crashes, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(seconds(59), 30);
        assert_eq!(seconds(60), 1);
        assert_eq!(seconds(0), 2);
    }

    #[test]
    fn what_holds_data_or_serves_it_is_left_as_it_ended() {
        let restarted = [Role::Etcd, Role::KubeApiserver, Role::KubeControllerManager, Role::KubeScheduler]
            .map(is_restarted);
        assert_eq!(restarted, [false, false, true, true]);
    }
}
