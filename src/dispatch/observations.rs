//! What the clients have told so far, folded for waits and progress. Never evidence.

use crate::client::context::{ClientSignal, Sample};
use crate::clock::MonoNs;
use crate::drill::spec::Sustained;
use crate::history::kind::ClientKind;
use std::collections::BTreeMap;

/// Everything heard from the clients up to now.
#[derive(Debug, Clone)]
pub struct Observations {
    clients: BTreeMap<String, Observed>,
    /// Samples called before this do not count towards a good stretch.
    not_before: MonoNs,
}

/// What one client told.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Its kind.
    pub kind: ClientKind,
    /// Good samples so far.
    pub good: u64,
    /// Bad samples so far.
    pub bad: u64,
    /// Samples that could not be told.
    pub unknown: u64,
    /// The last sample.
    pub last: Sample,
    /// Highest revision in any answer.
    pub max_revision: u64,
    /// Revision in the last answer that had one.
    pub last_revision: u64,
    /// When the newest good sample was called.
    pub last_good_call: MonoNs,
    /// Length of the current stretch of good samples.
    streak: u64,
    /// When the first good sample of that stretch returned.
    streak_since: MonoNs,
    /// When the last one was called.
    streak_until: MonoNs,
}

impl Default for Observations {
    fn default() -> Self {
        Self { clients: BTreeMap::new(), not_before: MonoNs(0) }
    }
}

impl Observations {
    /// Takes in one signal.
    pub fn take(&mut self, signal: &ClientSignal) {
        let seen = self.clients.entry(signal.client.clone()).or_insert_with(|| Observed {
            kind: signal.kind,
            good: 0,
            bad: 0,
            unknown: 0,
            last: Sample::Unknown("nothing yet".to_owned()),
            max_revision: 0,
            last_revision: 0,
            last_good_call: MonoNs(0),
            streak: 0,
            streak_since: signal.returned,
            streak_until: signal.call,
        });
        if signal.sample == Sample::Ok {
            seen.last_good_call = seen.last_good_call.max(signal.call);
        }
        match signal.sample {
            Sample::Ok if signal.call < self.not_before => seen.good += 1,
            Sample::Ok => {
                seen.good += 1;
                if seen.streak == 0 {
                    seen.streak_since = signal.returned;
                }
                seen.streak += 1;
                seen.streak_until = seen.streak_until.max(signal.call);
            }
            Sample::Failed(_) => {
                seen.bad += 1;
                seen.streak = 0;
            }
            Sample::Unknown(_) => {
                seen.unknown += 1;
                seen.streak = 0;
            }
        }
        seen.last = signal.sample.clone();
        if let Some(revision) = signal.revision {
            seen.max_revision = seen.max_revision.max(revision);
            seen.last_revision = revision;
        }
    }

    /// What `client` told; `None` before its first signal.
    #[must_use]
    pub fn of(&self, client: &str) -> Option<&Observed> {
        self.clients.get(client)
    }

    /// Every client that told something.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Observed)> {
        self.clients.iter()
    }

    /// Highest revision that any client has seen.
    #[must_use]
    pub fn max_revision(&self) -> u64 {
        self.clients.values().map(|c| c.max_revision).max().unwrap_or(0)
    }

    /// Newest revision reported by the observer's etcd ranges; 0 before the first.
    #[must_use]
    pub fn truth_revision(&self) -> u64 {
        self.clients
            .values()
            .filter(|c| c.kind == ClientKind::EtcdTruth)
            .map(|c| c.last_revision)
            .max()
            .unwrap_or(0)
    }

    /// Whether `client` has been good for as long as `sustained` asks.
    #[must_use]
    pub fn sustained(&self, client: &str, sustained: Sustained) -> bool {
        self.clients.get(client).is_some_and(|c| {
            c.streak >= u64::from(sustained.samples)
                && c.streak_until.since(c.streak_since) >= sustained.over.as_ns()
        })
    }

    /// Forgets the current good stretches: only what is called from `at` on counts.
    pub fn forget_streaks(&mut self, at: MonoNs) {
        self.not_before = at;
        for seen in self.clients.values_mut() {
            seen.streak = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::values::Span;

    fn signal(at: u64, sample: Sample, revision: u64) -> ClientSignal {
        ClientSignal {
            client: "orders".to_owned(),
            kind: ClientKind::LedgerWriter,
            sample,
            call: MonoNs(at),
            returned: MonoNs(at + 10),
            revision: Some(revision),
        }
    }

    #[test]
    fn sustained_needs_both_the_number_and_the_time() {
        let wanted = Sustained { samples: 3, over: Span::millis(1) };
        let mut seen = Observations::default();
        for at in [100, 200, 300] {
            seen.take(&signal(at, Sample::Ok, 1));
        }
        assert!(!seen.sustained("orders", wanted), "three samples but only 200 ns");
        seen.take(&signal(2_000_000, Sample::Ok, 2));
        assert!(seen.sustained("orders", wanted));
        seen.take(&signal(2_000_100, Sample::Unknown("timeout".to_owned()), 0));
        assert!(!seen.sustained("orders", wanted), "unknown is not good");
    }

    #[test]
    fn a_sample_called_before_the_stretches_were_forgotten_does_not_begin_one() {
        let wanted = Sustained { samples: 1, over: Span::millis(0) };
        let mut seen = Observations::default();
        seen.take(&signal(100, Sample::Ok, 1));
        seen.forget_streaks(MonoNs(500));
        seen.take(&signal(400, Sample::Ok, 1));
        assert!(!seen.sustained("orders", wanted));
        seen.take(&signal(500, Sample::Ok, 1));
        assert!(seen.sustained("orders", wanted));
    }

    #[test]
    fn the_highest_revision_survives_a_rollback() {
        let mut seen = Observations::default();
        seen.take(&signal(1, Sample::Ok, 500));
        seen.take(&signal(2, Sample::Ok, 300));
        assert_eq!(seen.max_revision(), 500);
        assert_eq!(seen.of("orders").unwrap().last_revision, 300);
    }
}
