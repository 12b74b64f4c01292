//! The rules of client-go's leader election (`tools/leaderelection`), as a state machine
//! of one candidate. Pure: it is told what time it is and what came of its operations.
//!
//! * A record is another's for as long as `leaseDuration` (the record's own) has not
//!   passed, by the candidate's own clock, since the candidate saw the record change.
//!   What time the record itself names is never looked at.
//! * A leader first updates blindly, at the resourceVersion seen last; when that fails
//!   it reads the record and tries once more. It tries every `retryPeriod`.
//! * Each time it has renewed, it waits `retryPeriod` and then has `renewDeadline` for
//!   the next time. Only when that is over does it stop believing that it leads,
//!   whatever records of others it has seen meanwhile.
//! * A follower tries every `retryPeriod`, stretched by up to 1.2 of it at random.

use crate::clock::MonoNs;

/// Reason of the end of a lead that could not be renewed.
pub const RENEW_DEADLINE: &str = "renew-deadline";

/// How much a follower's pause is stretched at most, as a part of `retryPeriod`.
pub const JITTER: f64 = 1.2;

/// Timing of an election, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How long others leave a record alone.
    pub lease_duration_ns: u64,
    /// How long a leader tries to renew.
    pub renew_deadline_ns: u64,
    /// Time between two tries.
    pub retry_period_ns: u64,
}

/// `spec` of the Lease, as candidates write and compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionRecord {
    /// Empty: nobody.
    pub holder: String,
    /// For how long others are to leave it alone.
    pub lease_duration_seconds: u64,
    /// When the holder took it, wall time.
    pub acquire_time: String,
    /// When it was last renewed, wall time.
    pub renew_time: String,
    /// How often it has changed hands.
    pub transitions: u64,
}

/// What a candidate does next in a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Try {
    /// Read the Lease.
    Get,
    /// Make it.
    Create(ElectionRecord),
    /// Write it at the resourceVersion seen last.
    Update(ElectionRecord),
    /// The try is over: the Lease is the candidate's, or is not.
    Over(bool),
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The Lease as it is now.
    Lease {
        /// Its record.
        record: ElectionRecord,
        /// Its resourceVersion.
        version: String,
    },
    /// There is none.
    NotFound,
    /// Refused, or no answer.
    Failed,
}

/// Change of a candidate's belief.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It believes from now on that it leads.
    Leads {
        /// How often the Lease has changed hands.
        transitions: u64,
    },
    /// It does so no more.
    Lost,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Candidate {
    rules: Rules,
    identity: String,
    observed: Option<Observed>,
    /// resourceVersion of the Lease read or written last.
    version: Option<String>,
    /// Until when it believes that it leads.
    leads_until: Option<MonoNs>,
    led_since: Option<MonoNs>,
    began: MonoNs,
    next: MonoNs,
}

#[derive(Debug, Clone)]
struct Observed {
    record: ElectionRecord,
    at: MonoNs,
}

impl Candidate {
    /// A candidate that makes its first try now.
    #[must_use]
    pub fn new(rules: Rules, identity: String, now: MonoNs) -> Self {
        Self {
            rules,
            identity,
            observed: None,
            version: None,
            leads_until: None,
            led_since: None,
            began: now,
            next: now,
        }
    }

    /// Who it is.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// resourceVersion for the next update.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Since when it believes that it leads; `None` when it does not.
    #[must_use]
    pub fn led_since(&self) -> Option<MonoNs> {
        self.led_since
    }

    /// Until when it believes that it leads, if it renews no more.
    #[must_use]
    pub fn leads_until(&self) -> Option<MonoNs> {
        self.leads_until
    }

    /// When it has to be attended to: for a try, or because its lead runs out.
    #[must_use]
    pub fn due(&self) -> MonoNs {
        self.leads_until.map_or(self.next, |until| until.min(self.next))
    }

    /// Ends a lead that could not be renewed in time.
    pub fn expire(&mut self, now: MonoNs) -> Option<Change> {
        self.leads_until.filter(|until| *until <= now)?;
        (self.leads_until, self.led_since) = (None, None);
        Some(Change::Lost)
    }

    /// Begins a try.
    pub fn begin(&mut self, now: MonoNs, wall: &str) -> Try {
        self.began = now;
        if self.holds(now) && self.version.is_some() {
            return Try::Update(self.own_record(wall));
        }
        Try::Get
    }

    /// Goes on with a try after one of its operations.
    pub fn go_on(&mut self, done: &Try, told: Told, now: MonoNs, wall: &str) -> Try {
        match (done, told) {
            (Try::Get, Told::NotFound) => Try::Create(self.record(wall, wall, 0)),
            (Try::Get, Told::Lease { record, version }) => {
                self.version = Some(version);
                if self.observed.as_ref().is_none_or(|o| o.record != record) {
                    self.observed = Some(Observed { record: record.clone(), at: now });
                }
                let mine = record.holder == self.identity;
                if !record.holder.is_empty() && !mine && self.is_valid(self.began) {
                    return Try::Over(false);
                }
                Try::Update(if mine {
                    self.own_record(wall)
                } else {
                    self.record(wall, wall, record.transitions.saturating_add(1))
                })
            }
            (Try::Create(_) | Try::Update(_), Told::Lease { record, version }) => {
                self.version = Some(version);
                self.observed = Some(Observed { record, at: now });
                Try::Over(true)
            }
            // The blind update of a leader failed: it looks before it gives up.
            (Try::Update(_), _) if self.holds(self.began) && self.observed_before_try() => Try::Get,
            _ => Try::Over(false),
        }
    }

    /// Takes in how a try ended. `stretch` is between 0 and 1, drawn at random.
    pub fn end(&mut self, held: bool, now: MonoNs, stretch: f64) -> Option<Change> {
        let retry = self.rules.retry_period_ns;
        if held {
            let change = self.leads_until.is_none().then(|| Change::Leads {
                transitions: self.observed.as_ref().map_or(0, |o| o.record.transitions),
            });
            self.led_since.get_or_insert(now);
            // A new leader renews at once; the deadline counts from the next try.
            self.next = if change.is_some() { now } else { now.plus(retry) };
            self.leads_until = Some(self.next.plus(self.rules.renew_deadline_ns));
            return change;
        }
        self.next = if self.leads_until.is_some() {
            self.began.plus(retry)
        } else {
            now.plus(stretched(retry, stretch))
        };
        self.expire(now)
    }

    /// A record that gives the Lease up, for a leader that steps down.
    #[must_use]
    pub fn release(&self, wall: &str) -> Option<ElectionRecord> {
        let transitions = self.observed.as_ref()?.record.transitions;
        Some(ElectionRecord {
            holder: String::new(),
            lease_duration_seconds: 1,
            acquire_time: wall.to_owned(),
            renew_time: wall.to_owned(),
            transitions,
        })
    }

    /// It has stepped down and stands again after `pause_ns`, as who it is.
    pub fn stepped_down(&mut self, now: MonoNs, pause_ns: u64) {
        (self.leads_until, self.led_since) = (None, None);
        (self.observed, self.version) = (None, None);
        self.next = now.plus(pause_ns);
    }

    fn is_valid(&self, now: MonoNs) -> bool {
        self.observed.as_ref().is_some_and(|o| {
            let duration = o.record.lease_duration_seconds.saturating_mul(1_000_000_000);
            o.at.plus(duration) > now
        })
    }

    fn holds(&self, now: MonoNs) -> bool {
        self.observed.as_ref().is_some_and(|o| o.record.holder == self.identity) && self.is_valid(now)
    }

    /// The record held was known before the try began, so no read has been made in it.
    fn observed_before_try(&self) -> bool {
        self.observed.as_ref().is_some_and(|o| o.at < self.began)
    }

    /// A renewal: since when and how often stay as they are.
    fn own_record(&self, wall: &str) -> ElectionRecord {
        let old = self.observed.as_ref().map(|o| &o.record);
        let acquired = old.map_or(wall, |r| r.acquire_time.as_str());
        self.record(acquired, wall, old.map_or(0, |r| r.transitions))
    }

    fn record(&self, acquired: &str, renewed: &str, transitions: u64) -> ElectionRecord {
        ElectionRecord {
            holder: self.identity.clone(),
            lease_duration_seconds: self.rules.lease_duration_ns / 1_000_000_000,
            acquire_time: acquired.to_owned(),
            renew_time: renewed.to_owned(),
            transitions,
        }
    }
}

/// A pause of a follower.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
fn stretched(retry_ns: u64, stretch: f64) -> u64 {
    retry_ns.saturating_add((retry_ns as f64 * JITTER * stretch.clamp(0.0, 1.0)) as u64)
}

#[cfg(test)]
mod tests;
