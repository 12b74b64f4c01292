//! What a drill does to its priority levels, and which requests meet them when: read from its steps alone.
//!
//! A plan predicts counts from this, so what can't be foreseen from the steps is said here, with what to write instead.

use super::spec::{Client, Drill, Step};
use crate::apf::level::{capacity, wait_limit};
use crate::apf::seats::DEFAULT_SERVER_SEATS;
use crate::check::apf::lease::LosesLease;
use crate::client::load_spec::{Load, LoadProtocol, LoadRequest};
use crate::fault::apf_level::{APF_LEVEL, ApfLevel, LimitResponse};
use crate::step::load::LoadUntil;
use std::time::Duration;

/// `--request-timeout` of an API server that was given none.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Limits are adjusted so often (`borrowingAdjustmentPeriod` in `apf_controller.go`).
pub const BORROWING_PERIOD: Duration = Duration::from_secs(10);
/// Shares of the suggested and mandatory levels in all (`bootstrap/default.go`, 1.29 to 1.37).
const SHARES_OF_OTHERS: u64 = 245;
/// What happens within this time may happen at once.
const AT_ONCE_NS: u64 = 1_000_000_000;
/// Streams of an HTTP/2 connection that an API server allows.
const STREAMS: u64 = 100;

/// Why nothing can be predicted of a load, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unforeseen {
    /// Why.
    pub why: String,
    /// What to write instead.
    pub help: String,
}

const BY_LATENCY: &str = "judge the load by `latency`, or leave it out of the objective";

fn unforeseen<T>(why: impl Into<String>, help: impl Into<String>) -> Result<T, Unforeseen> {
    Err(Unforeseen { why: why.into(), help: help.into() })
}

/// Seats that come back while requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharesBack {
    /// When the change is made, nanoseconds from the first request.
    pub at_ns: u64,
    /// Seats from then on.
    pub seats: u64,
}

/// A load and the level that it meets.
#[derive(Debug, Clone, Copy)]
pub struct Meeting<'a> {
    drill: &'a Drill,
    /// The load.
    pub load: &'a Load,
    /// The level.
    pub level: &'a ApfLevel,
    /// Index of the step that begins the load.
    pub at: usize,
}

impl Load {
    /// How long one of its requests may wait in a queue. The `timeout` of a watch is none of flow control's.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        let deadline = match self.request {
            LoadRequest::Watch {} => None,
            _ => self.timeout.map(|timeout| timeout.0),
        };
        wait_limit(deadline, REQUEST_TIMEOUT)
    }
}

impl ApfLevel {
    /// Requests of one flow that can wait at once; 0 where none may.
    #[must_use]
    pub fn room(&self) -> u64 {
        match &self.limit_response {
            LimitResponse::Reject {} => 0,
            LimitResponse::Queue(queue) => {
                capacity(queue.hand_size as usize, queue.queue_length_limit as usize) as u64
            }
        }
    }
}

impl Drill {
    /// The load of this name.
    #[must_use]
    pub fn load(&self, name: &str) -> Option<&Load> {
        self.spec.clients.iter().find_map(|client| match client {
            Client::Load(load) if load.name == name => Some(load),
            _ => None,
        })
    }

    /// The level that a load is sent to when it begins, and the step that begins it.
    #[must_use]
    pub fn level_of(&self, client: &str) -> Option<(usize, &ApfLevel)> {
        let at = self.begin_of(client)?;
        let made = self.open_levels(at).filter(|level| level.clients.iter().any(|c| c == client));
        made.min_by_key(|level| level.precedence).map(|level| (at, level))
    }

    /// Why nothing can be predicted of the requests of a load.
    ///
    /// # Errors
    /// That.
    pub fn foresee(&self, name: &str, due: impl Fn(&Load) -> Vec<u64>) -> Result<(), Unforeseen> {
        let Some(load) = self.load(name) else { return Ok(()) };
        if load.request.has_pages() {
            return unforeseen("how many pages a list has is not known beforehand", "leave `allPages` out");
        }
        match self.meeting(name) {
            Some(meeting) => meeting.foresee(&due),
            None => self.foresee_elsewhere(load),
        }
    }

    /// Where no level of the drill is meant for it, it goes wherever the cluster's own schemas send it.
    fn foresee_elsewhere(&self, load: &Load) -> Result<(), Unforeseen> {
        let Some(at) = self.begin_of(&load.name) else { return Ok(()) };
        let changed = self.open_levels(at).find_map(|level| level.existing.as_ref());
        match changed {
            Some(existing) => unforeseen(
                format!("`{}` may be sent to `{}`, which is changed", load.name, existing.level),
                BY_LATENCY,
            ),
            None => Ok(()),
        }
    }

    /// What a load meets that has a level of the drill.
    #[must_use]
    pub fn meeting(&self, name: &str) -> Option<Meeting<'_>> {
        let (at, level) = self.level_of(name)?;
        Some(Meeting { drill: self, load: self.load(name)?, level, at })
    }

    /// The step that begins a load.
    #[must_use]
    pub fn begin_of(&self, client: &str) -> Option<usize> {
        let names =
            |step: &Step| matches!(step, Step::Load(load) if load.clients.iter().any(|c| c == client));
        self.spec.steps.iter().position(names)
    }

    /// The step after which every answer is there; `None`: no step waits for that.
    fn end_of(&self, client: &str) -> Option<usize> {
        self.spec.steps.iter().position(|step| {
            matches!(step, Step::Load(load)
                if load.until == LoadUntil::Answered && load.clients.iter().any(|c| c == client))
        })
    }

    /// Levels that are made or changed before a step, and not ended.
    fn open_levels(&self, at: usize) -> impl Iterator<Item = &ApfLevel> {
        let steps = &self.spec.steps[..at.min(self.spec.steps.len())];
        let ended = steps.iter().rposition(|s| matches!(s, Step::End(end) if end.fault == APF_LEVEL));
        steps[ended.map_or(0, |end| end + 1)..].iter().filter_map(|step| match step {
            Step::ApfLevel(level) => Some(level),
            _ => None,
        })
    }

    /// When an elector that is held up loses its Lease, counted from when the level is in force: earliest, latest.
    #[must_use]
    pub fn lease_lost(&self, objective: &LosesLease) -> Option<(Duration, Duration)> {
        let elector = self.spec.clients.iter().find_map(|client| match client {
            Client::LeaderElector(elector) if elector.name == objective.client => Some(elector),
            _ => None,
        })?;
        let (deadline, retry) = (elector.renew_deadline.0, elector.retry_period.0);
        // The deadline counts from the next try, which follows the last renewal by `retryPeriod`; a try that was under
        // way when the level came into force may be held up as well.
        let slack = objective.slack.0;
        Some((deadline.saturating_sub(slack), deadline.saturating_add(retry).saturating_add(slack)))
    }

    /// Shares of a level right before a step.
    #[must_use]
    pub fn shares_before(&self, at: usize, level: &ApfLevel) -> u32 {
        let mut changes = self.spec.steps[..at].iter().filter_map(|step| match step {
            Step::ApfShares(change) if change.level == level.name => Some(change.shares),
            _ => None,
        });
        changes.next_back().unwrap_or(level.shares)
    }

    /// Nominal seats of a level of so many shares beside the cluster's own levels and the drill's others, on an API
    /// server with the default number of seats.
    fn seats(&self, at: usize, level: &ApfLevel, shares: u32) -> u64 {
        let others = self.open_levels(at).filter(|other| other.name != level.name);
        let others: u64 = others.map(|other| u64::from(self.shares_before(at, other))).sum();
        let shares = u64::from(shares);
        (DEFAULT_SERVER_SEATS * shares).div_ceil((SHARES_OF_OTHERS + others + shares).max(1))
    }
}

impl Meeting<'_> {
    /// Shares of the level when the load begins.
    #[must_use]
    pub fn shares(&self) -> u32 {
        self.drill.shares_before(self.at, self.level)
    }

    /// When seats come back while its answers are awaited.
    ///
    /// # Errors
    /// Why that can't be said.
    pub fn shares_back(&self, due: impl Fn(&Load) -> Vec<u64>) -> Result<Option<SharesBack>, Unforeseen> {
        let steps = &self.drill.spec.steps;
        let end = self.drill.end_of(&self.load.name).unwrap_or(steps.len());
        let is_change =
            |step: &Step| matches!(step, Step::ApfShares(change) if change.level == self.level.name);
        let meanwhile = &steps[self.at..end.max(self.at)];
        let Some(change) = meanwhile.iter().position(is_change).map(|index| index + self.at) else {
            return Ok(None);
        };
        let Step::ApfShares(shares) = &steps[change] else { return Ok(None) };
        if meanwhile.iter().filter(|step| is_change(step)).count() > 1 {
            return unforeseen(
                "its level's shares are changed more than once while answers are awaited",
                BY_LATENCY,
            );
        }
        if shares.shares == 0 || self.load.arrivals.at_a_time().is_some() {
            return unforeseen("its level's shares are changed in the middle of it", BY_LATENCY);
        }
        let mut at_ns = 0_u64;
        for step in &steps[self.at..change] {
            at_ns = at_ns.saturating_add(self.lasts(step, &due)?);
        }
        let seats = self.drill.seats(change, self.level, shares.shares);
        Ok(Some(SharesBack { at_ns, seats }))
    }

    /// How long a step lasts; a load's step from its first request to its last one.
    fn lasts(&self, step: &Step, due: &impl Fn(&Load) -> Vec<u64>) -> Result<u64, Unforeseen> {
        let unknown = || {
            unforeseen(
                "when its level's shares come back is not known beforehand",
                "let only `hold` and loads with `until: sent` stand before `apfShares`",
            )
        };
        match step {
            Step::Hold(hold) => Ok(hold.duration.as_ns()),
            Step::Load(begun) if begun.until == LoadUntil::Sent => {
                let mut longest = 0;
                for name in &begun.clients {
                    match self.drill.load(name) {
                        Some(load) if load.arrivals.at_a_time().is_none() => {
                            longest = longest.max(due(load).last().copied().unwrap_or_default());
                        }
                        _ => return unknown(),
                    }
                }
                Ok(longest)
            }
            _ => unknown(),
        }
    }

    fn foresee(&self, due: &impl Fn(&Load) -> Vec<u64>) -> Result<(), Unforeseen> {
        let (load, level) = (self.load, self.level);
        if let Some(existing) = &level.existing {
            let why = format!(
                "what others send to `{}` is not known, nor what becomes of `{}` there",
                existing.level, load.name
            );
            return unforeseen(why, format!("leave `existing` out; or {BY_LATENCY}"));
        }
        self.alone()?;
        let arrivals = due(load);
        self.shares_back(due)?;
        let borrows = level.borrowing_limit_percent.percent().is_none();
        let rejects = level.limit_response == (LimitResponse::Reject {});
        let total = arrivals.len() as u64;
        let at_once = self.at_once(&arrivals);
        let room = level.room();
        let out = match (self.shares(), borrows) {
            (0, true) if rejects => {
                return unforeseen(
                    "whether a request finds a seat that was borrowed depends on when limits are adjusted",
                    "let the level queue, or leave `borrowingLimitPercent` out",
                );
            }
            (0, true) if total > room || load.wait_limit() <= BORROWING_PERIOD + Duration::from_secs(1) => {
                return unforeseen(
                    "until a level without shares has borrowed a seat, up to 10 s, every request has to wait",
                    "make its queue as long as there are requests, and let them wait for more than 11 s",
                );
            }
            (0, true) => total,
            (0, false)
                if rejects
                    && load.while_held_by.is_none()
                    && load.arrivals.at_a_time().is_some_and(|n| n > 1) =>
            {
                return unforeseen("which of several at a time gets through is chance", "write `atATime: 1`");
            }
            (0, false) if !rejects && load.arrivals.at_a_time().is_some_and(|n| n as u64 > room) => {
                return unforeseen("more at a time than can wait", "make the queue as long as `atATime`");
            }
            (0, false) => room + at_once,
            (shares, _) => {
                let seats = self.drill.seats(self.at, level, shares);
                if at_once > seats + room {
                    let why = format!(
                        "{at_once} requests may be out at the same time, and {seats} seats and a queue of {room} are for them"
                    );
                    return unforeseen(why, format!("send fewer at a time; or {BY_LATENCY}"));
                }
                at_once
            }
        };
        self.can_send(out.min(total))
    }

    /// Requests that may reach the level at the same time.
    fn at_once(&self, due: &[u64]) -> u64 {
        if let Some(at_a_time) = self.load.arrivals.at_a_time() {
            return at_a_time as u64;
        }
        let lasts = match &self.load.request {
            LoadRequest::SlowCreate { duration } => duration.as_ns().max(AT_ONCE_NS),
            _ => AT_ONCE_NS,
        };
        let ends = due.iter().map(|from| due.partition_point(|at| *at <= from.saturating_add(lasts)));
        ends.enumerate().map(|(begin, end)| (end - begin) as u64).max().unwrap_or_default()
    }

    /// Whether the client can have so many requests out.
    fn can_send(&self, out: u64) -> Result<(), Unforeseen> {
        let streams = match self.load.protocol {
            LoadProtocol::Http1 => 1,
            LoadProtocol::Http2 => STREAMS,
        };
        let carried = u64::from(self.load.connections) * streams;
        if out > u64::from(self.load.in_flight) {
            let why = format!("{out} requests may be out at the same time, more than `inFlight`");
            return unforeseen(why, format!("write `inFlight: {out}` or more"));
        }
        if out > carried {
            let why =
                format!("{out} requests may be out at the same time, and the connections carry {carried}");
            return unforeseen(why, format!("write `connections: {}` or more", out.div_ceil(streams)));
        }
        Ok(())
    }

    /// Whether nobody else of the level interferes.
    fn alone(&self) -> Result<(), Unforeseen> {
        if self.load.while_held_by.is_some() {
            return self.held();
        }
        let holds = self.drill.spec.clients.iter().any(|client| {
            matches!(client, Client::Load(other) if other.while_held_by.as_deref() == Some(&self.load.name))
        });
        for client in self.drill.spec.clients.iter() {
            let name = client.name();
            if name == self.load.name || !self.level.clients.iter().any(|c| c == name) {
                continue;
            }
            let elsewhere = |other: &Load| match (&other.server, &self.load.server) {
                (Some(theirs), Some(own)) => theirs != own,
                _ => false,
            };
            match client {
                Client::Load(other) if elsewhere(other) => {}
                // An open watch is not under flow control.
                Client::Watcher(_) => {}
                Client::Load(_) | Client::RetryingLoad(_) if !self.overlaps(name) => {}
                Client::Load(_) | Client::RetryingLoad(_)
                    if holds && self.drill.begin_of(name) > Some(self.at) => {}
                _ => {
                    let why = format!("`{name}` sends to the same level at the same time");
                    return unforeseen(why, "give it a level of its own, or let one come after the other");
                }
            }
        }
        Ok(())
    }

    fn overlaps(&self, other: &str) -> bool {
        let Some(begin) = self.drill.begin_of(other) else { return false };
        let open_until = |name: &str| self.drill.end_of(name).unwrap_or(usize::MAX);
        begin <= open_until(&self.load.name) && self.at <= open_until(other)
    }

    /// Whether a request of another load keeps the level busy for all of its time.
    fn held(&self) -> Result<(), Unforeseen> {
        let Some(holder) = self.load.while_held_by.as_deref().and_then(|name| self.drill.load(name)) else {
            return Ok(());
        };
        let LoadRequest::SlowCreate { duration } = &holder.request else { return Ok(()) };
        let help = "let it be begun by an earlier step, with `until: sent`, on the same level and API server";
        let same_level =
            self.drill.level_of(&holder.name).is_some_and(|(_, level)| level.name == self.level.name);
        let same_server = holder.server == self.load.server
            && (holder.server.is_some() || self.drill.spec.cluster.topology.api_servers == 1);
        let begin = self.drill.begin_of(&holder.name);
        let Some(begin) = begin.filter(|begin| *begin < self.at && same_level && same_server) else {
            return unforeseen(format!("`{}` does not hold the level for it", holder.name), help);
        };
        let needed = Step::held(&self.drill.spec.steps[begin..self.at])
            .saturating_add(self.load.arrivals.duration().0)
            .saturating_add(Duration::from_secs(1));
        if duration.0 < needed {
            let why = format!("`{}` holds the level for {duration}, and this takes longer", holder.name);
            return unforeseen(why, format!("write `for: {}s` or more", needed.as_secs_f64().ceil()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::parameters::ParameterValues;
    use crate::drill::parse;

    const SEED_450: &str = include_str!("../../scenarios/apf/seed-450.yaml");

    fn drill(text: &str) -> Drill {
        parse::parse("drill.yaml", text, &ParameterValues::default()).unwrap().0
    }

    fn due(load: &Load) -> Vec<u64> {
        load.arrivals.offsets(1)
    }

    fn back(text: &str) -> Result<Option<SharesBack>, Unforeseen> {
        drill(text).meeting("batch").unwrap().shares_back(due)
    }

    const LAST_NS: u64 = 449 * 1_000_000_000 / 30;

    #[test]
    fn shares_come_back_after_the_last_request_of_whoever_sends_longest() {
        let as_it_is = back(SEED_450).unwrap().unwrap();
        assert_eq!(as_it_is, SharesBack { at_ns: LAST_NS + 200_000_000, seats: 66 });
        let longer = SEED_450.replace("{rate: 24/s, for: 15s}", "{rate: 24/s, for: 30s}");
        let control = 719 * 1_000_000_000_u64 / 24;
        assert_eq!(back(&longer).unwrap().unwrap().at_ns, control + 200_000_000);
        let looked =
            SEED_450.replace("- hold: {for: 200ms}", "- observe: {until: apiReady, atMost: 5s, then: 1s}");
        assert!(back(&looked).is_err(), "an observation lasts as long as it lasts");
    }

    #[test]
    fn shares_that_were_given_before_count_and_those_of_other_levels_take_seats() {
        let given = SEED_450.replace(
            "    - load: {clients: [batch, control], until: sent}",
            "    - apfShares: {level: jail, shares: 10}\n    - load: {clients: [batch, control], until: sent}",
        );
        assert_eq!(drill(SEED_450).meeting("batch").unwrap().shares(), 0);
        assert_eq!(drill(&given).meeting("batch").unwrap().shares(), 10);
        let beside = SEED_450.replace(
            "  steps:\n",
            "  steps:\n    - apfLevel: {name: large, shares: 9725, limitResponse: {reject: {}}, clients: [control]}\n",
        );
        assert_eq!(back(&beside).unwrap().unwrap().seats, 2, "30 of 10,000 shares");
    }
}
