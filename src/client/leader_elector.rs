//! Candidates for one Lease: carries out what [`super::election`] decides, each
//! candidate over a connection of its own.

use super::context::{ClientContext, Setup};
use super::election::{Candidate, Change, ElectionRecord, RENEW_DEADLINE, Rules, Told, Try};
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::clock::{Clock, MonoNs};
use crate::drill::lint::{Lint, Place, WAIT};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, ElectAction, Event, Op, Outcome};
use crate::load::pacer::until;
use crate::load::timing::{Timing, timed};
use crate::wire::connection::{Connector, Protocol};
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, stopped};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hyper::Method;
use hyper::body::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Candidates for one coordination.k8s.io Lease in the drill's namespace, by client-go's
/// rules: the record observed last with local time, optimistic locking by
/// resourceVersion, one transition more at each takeover. A candidate believes that it
/// leads until it has failed to renew for the whole of `renewDeadline`; it then starts
/// over under a new identity, as a component that exits does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderElector {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Name of the Lease; clients that name the same one compete. Default: the client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Candidates in this client, 1 to 5.
    #[schemars(range(min = 1, max = 5))]
    #[serde(default = "default_candidates")]
    pub candidates: u8,
    /// How long others leave a record alone that they saw change, whole seconds.
    #[serde(default = "default_lease_duration")]
    pub lease_duration: Span,
    /// How long a leader tries to renew before it gives up; less than `leaseDuration`.
    #[serde(default = "default_renew_deadline")]
    pub renew_deadline: Span,
    /// Time between two tries; `renewDeadline` is more than 1.2 of it.
    #[serde(default = "default_retry_period")]
    pub retry_period: Span,
    /// The leader gives the Lease up after this long, keeps its identity and stands
    /// again, as a controller does that is told to step down and runs on. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<Span>,
    /// The candidates stand only after this long, so that others lead first. Absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_after: Option<Span>,
}

impl LeaderElector {
    /// Name of the Lease.
    #[must_use]
    pub fn lease_name(&self) -> &str {
        self.lease.as_deref().unwrap_or(&self.name)
    }
}

fn default_candidates() -> u8 {
    2
}

fn default_lease_duration() -> Span {
    Span::secs(15)
}

fn default_renew_deadline() -> Span {
    Span::secs(10)
}

fn default_retry_period() -> Span {
    Span::secs(2)
}

/// Of elections.
const LEASE_DURATION: (Span, Span) = (Span::secs(2), Span::secs(3600));
/// Of elections.
const RETRY: (Span, Span) = (Span::millis(100), Span::secs(600));

impl ClientUnderTest for LeaderElector {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::LeaderElector,
            talks_to: TalksTo::ApiServer,
            works: Works::Fixed(self.retry_period.0),
        }
    }

    /// As client-go refuses to start with other values.
    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        if !(1..=5).contains(&self.candidates) {
            let title = format!("`candidates: {}` is out of range", self.candidates);
            lint.error(&at.key("candidates"), title, "write 1 to 5");
        }
        lint.whole_seconds(&at.key("leaseDuration"), self.lease_duration, LEASE_DURATION);
        lint.span(&at.key("retryPeriod"), self.retry_period, RETRY);
        if let Some(after) = self.stands_after {
            lint.span(&at.key("standsAfter"), after, (Span::millis(1), Span::secs(30)));
        }
        if let Some(after) = self.hand_over {
            lint.span(&at.key("handOver"), after, (Span::secs(1), WAIT.1));
        }
        if self.lease_duration <= self.renew_deadline {
            let title = format!("`renewDeadline: {}` is not less than `leaseDuration`", self.renew_deadline);
            lint.error(&at.key("renewDeadline"), title, "others would take over while a leader still tries");
        }
        // retryPeriod × 1.2, as client-go's jitter.
        if self.renew_deadline.0 <= self.retry_period.0.saturating_mul(6) / 5 {
            let title =
                format!("`retryPeriod: {}` leaves no second try in `renewDeadline`", self.retry_period);
            lint.error(&at.key("retryPeriod"), title, "make it less than five sixths of `renewDeadline`");
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let spec = self.clone();
        Box::pin(live(ctx, async move |session, setup| {
            stand(&spec, session, setup).await.map(|()| session.unscheduled())
        }))
    }
}

/// Stands for election until told to end. The Lease is left as it is then, as by
/// components that are killed.
async fn stand(spec: &LeaderElector, session: &mut Session, setup: &Setup) -> Result<(), Broken> {
    let (clock, stop) = (session.shared_clock(), session.stop());
    if let Some(after) = spec.stands_after {
        let begin = clock.mono().plus(after.as_ns());
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = until(&*clock, begin) => {}
        }
    }
    let mut election = Election::new(session, setup, spec)?;
    let mut out = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(returned) = out.next() => {
                if let Some(call) = election.returned(session, returned)? {
                    out.push(election.send(call, &*clock, &stop));
                }
            }
            () = until(&*clock, election.next_due()) => {
                for call in election.attend(session)? {
                    out.push(election.send(call, &*clock, &stop));
                }
            }
        }
    }
    while let Some(returned) = out.next().await {
        election.record(session, &returned)?;
    }
    election.resign_all(session)
}

struct Election {
    lease: String,
    namespace: String,
    client: String,
    rules: Rules,
    hand_over_ns: Option<u64>,
    stands: Vec<Stand>,
    rng: StdRng,
}

/// A candidate with its connection, which is away while an operation is out.
struct Stand {
    candidate: Candidate,
    http: Option<HttpClient>,
    incarnation: u32,
    trying: Option<Doing>,
}

#[derive(Clone)]
enum Doing {
    Trying(Try),
    Releasing,
}

/// An operation to be sent.
struct Call {
    index: usize,
    http: HttpClient,
    action: ElectAction,
    request: (Method, String, Option<Bytes>),
    within: Duration,
}

struct Returned {
    index: usize,
    http: HttpClient,
    action: ElectAction,
    candidate: String,
    timing: Timing,
    result: Option<Result<HttpAnswer, HttpFailure>>,
}

impl Election {
    fn new(session: &Session, setup: &Setup, spec: &LeaderElector) -> Result<Self, Broken> {
        let connector =
            Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, Protocol::Http1)?;
        let rules = Rules {
            lease_duration_ns: spec.lease_duration.as_ns(),
            renew_deadline_ns: spec.renew_deadline.as_ns(),
            retry_period_ns: spec.retry_period.as_ns(),
        };
        let client = setup.planned.name.clone();
        let now = session.clock().mono();
        let stand = |index: usize| Stand {
            candidate: Candidate::new(rules, identity(&client, index, 1), now),
            http: Some(HttpClient::over(connector.clone())),
            incarnation: 1,
            trying: None,
        };
        let stands = (0..usize::from(spec.candidates)).map(stand).collect();
        let seed = Sha256::new().chain_update(setup.seed.to_be_bytes()).chain_update(&client).finalize();
        Ok(Self {
            lease: spec.lease_name().to_owned(),
            namespace: setup.namespace.clone(),
            rules,
            hand_over_ns: spec.hand_over.map(crate::drill::values::Span::as_ns),
            stands,
            rng: StdRng::from_seed(seed.into()),
            client,
        })
    }

    /// The earliest instant at which a candidate that is not waiting for an answer wants something.
    fn next_due(&self) -> MonoNs {
        let due = self.stands.iter().filter(|s| s.http.is_some()).map(|s| s.candidate.due());
        due.min().unwrap_or(MonoNs(u64::MAX))
    }

    fn attend(&mut self, session: &mut Session) -> Result<Vec<Call>, Broken> {
        let mut calls = Vec::new();
        for index in 0..self.stands.len() {
            let now = session.clock().mono();
            let stand = &mut self.stands[index];
            if stand.http.is_none() || stand.candidate.due() > now {
                continue;
            }
            if let Some(change) = stand.candidate.expire(now) {
                self.changed(session, index, &change)?;
                continue;
            }
            let over = |since: MonoNs| self.hand_over_ns.is_some_and(|after| now.since(since) >= after);
            let releases = stand.candidate.led_since().is_some_and(over);
            let wall = session.clock().wall().0;
            let call = match releases.then(|| stand.candidate.release(&wall)).flatten() {
                Some(record) => self.call(index, ElectAction::Release, Some(&record), now),
                None => {
                    let step = stand.candidate.begin(now, &wall);
                    self.go(index, step, now)
                }
            };
            calls.extend(call);
        }
        Ok(calls)
    }

    /// The operation of the next step of a try; `None` when the try is over.
    fn go(&mut self, index: usize, step: Try, now: MonoNs) -> Option<Call> {
        let (action, record) = match &step {
            Try::Get => (ElectAction::Get, None),
            Try::Create(record) => (ElectAction::Create, Some(record.clone())),
            Try::Update(record) => (ElectAction::Update, Some(record.clone())),
            Try::Over(_) => return None,
        };
        self.stands[index].trying = Some(Doing::Trying(step));
        self.call(index, action, record.as_ref(), now)
    }

    fn call(
        &mut self,
        index: usize,
        action: ElectAction,
        record: Option<&ElectionRecord>,
        now: MonoNs,
    ) -> Option<Call> {
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        let one = format!("{all}/{}", self.lease);
        let stand = &mut self.stands[index];
        let version = stand.candidate.version();
        let body = record.map(|record| {
            let version = version.filter(|_| action != ElectAction::Create);
            Bytes::from(lease_of(&self.lease, version, record).to_string())
        });
        let request = match action {
            ElectAction::Get => (Method::GET, one, None),
            ElectAction::Create => (Method::POST, all, body),
            ElectAction::Update | ElectAction::Release => (Method::PUT, one, body),
        };
        if action == ElectAction::Release {
            stand.trying = Some(Doing::Releasing);
        }
        // As components do: half the renew deadline, and never longer than the lead lasts.
        let half = self.rules.renew_deadline_ns / 2;
        let left = stand.candidate.leads_until().map_or(half, |until| until.since(now).min(half));
        let within = Duration::from_nanos(left.max(1));
        Some(Call { index, http: stand.http.take()?, action, request, within })
    }

    fn send<'a>(
        &self,
        call: Call,
        clock: &'a dyn Clock,
        stop: &'a CancellationToken,
    ) -> impl Future<Output = Returned> + use<'a> {
        let candidate = self.stands[call.index].candidate.identity().to_owned();
        async move {
            let Call { index, mut http, action, request: (method, path, body), within } = call;
            let (timing, result) = timed(clock, stop, None, http.send(method, &path, body, within)).await;
            Returned { index, http, action, candidate, timing, result }
        }
    }

    /// Records an operation and takes it in. Returns the next one of the same try.
    fn returned(&mut self, session: &mut Session, returned: Returned) -> Result<Option<Call>, Broken> {
        let told = self.record(session, &returned)?;
        let Returned { index, http, .. } = returned;
        let now = session.clock().mono();
        let stand = &mut self.stands[index];
        stand.http = Some(http);
        match stand.trying.take() {
            Some(Doing::Releasing) => {
                if let Told::Lease { .. } = told {
                    // Long enough for the others to have noticed.
                    stand.candidate.stepped_down(now, self.rules.retry_period_ns.saturating_mul(3));
                    let candidate = stand.candidate.identity().to_owned();
                    let reason = "released".to_owned();
                    session.event(stream(index), Event::LeadingEnded { candidate, reason })?;
                } else {
                    let change = stand.candidate.end(false, now, 0.0);
                    self.changed_if(session, index, change)?;
                }
                Ok(None)
            }
            Some(Doing::Trying(step)) => {
                let wall = session.clock().wall().0;
                match stand.candidate.go_on(&step, told, now, &wall) {
                    Try::Over(held) => {
                        let stretch = self.rng.random::<f64>();
                        let change = self.stands[index].candidate.end(held, now, stretch);
                        self.changed_if(session, index, change)?;
                        Ok(None)
                    }
                    step => Ok(self.go(index, step, now)),
                }
            }
            None => Ok(None),
        }
    }

    fn record(&self, session: &mut Session, returned: &Returned) -> Result<Told, Broken> {
        let (told, outcome) = match &returned.result {
            None => (Told::Failed, stopped()),
            Some(result) => read(result, returned.action),
        };
        let op = Op::Elect {
            candidate: returned.candidate.clone(),
            lease: self.lease.clone(),
            action: returned.action,
        };
        session.op(returned.timing, op, outcome)?;
        Ok(told)
    }

    fn changed_if(
        &mut self,
        session: &mut Session,
        index: usize,
        change: Option<Change>,
    ) -> Result<(), Broken> {
        change.map_or(Ok(()), |change| self.changed(session, index, &change))
    }

    fn changed(&mut self, session: &mut Session, index: usize, change: &Change) -> Result<(), Broken> {
        let stand = &mut self.stands[index];
        let candidate = stand.candidate.identity().to_owned();
        match change {
            Change::Leads { transitions } => {
                let revision = stand.candidate.version().and_then(|v| v.parse().ok()).unwrap_or(0);
                let event = Event::Leading { candidate, revision, transitions: *transitions };
                session.event(stream(index), event)
            }
            Change::Lost => {
                let reason = RENEW_DEADLINE.to_owned();
                session.event(stream(index), Event::LeadingEnded { candidate, reason })?;
                // A component exits and is started again, as somebody else.
                stand.incarnation += 1;
                let identity = identity(&self.client, index, stand.incarnation);
                stand.candidate = Candidate::new(self.rules, identity, session.clock().mono());
                Ok(())
            }
        }
    }

    fn resign_all(&self, session: &mut Session) -> Result<(), Broken> {
        for (index, stand) in self.stands.iter().enumerate() {
            if stand.candidate.led_since().is_some() {
                let candidate = stand.candidate.identity().to_owned();
                let reason = FailureClass::Stopped.to_string();
                session.event(stream(index), Event::LeadingEnded { candidate, reason })?;
            }
        }
        Ok(())
    }
}

fn stream(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

/// `client-a-1`: a candidate's letter, and how often it has been started.
fn identity(client: &str, index: usize, incarnation: u32) -> String {
    let letter = char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    format!("{client}-{letter}-{incarnation}")
}

fn lease_of(name: &str, version: Option<&str>, record: &ElectionRecord) -> Value {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.lease_duration_seconds,
            "acquireTime": record.acquire_time,
            "renewTime": record.renew_time,
            "leaseTransitions": record.transitions,
        },
    });
    if let Some(version) = version {
        lease["metadata"]["resourceVersion"] = json!(version);
    }
    lease
}

/// What an answer tells the candidate, and what is recorded of it.
fn read(result: &Result<HttpAnswer, HttpFailure>, action: ElectAction) -> (Told, Outcome) {
    match result {
        Ok(answer) if answer.is_success() => match parse(answer) {
            Some((record, version)) => {
                let outcome = Outcome::Ok(Answer {
                    revision: version.parse().ok(),
                    holder: Some(record.holder.clone()),
                    transitions: Some(record.transitions),
                    ..Answer::default()
                });
                (Told::Lease { record, version }, outcome)
            }
            None => {
                let reason = FailureClass::Malformed.to_string();
                (Told::Failed, Outcome::Failed { status: Some(answer.status), reason })
            }
        },
        Ok(answer) if answer.status == 404 && action == ElectAction::Get => {
            (Told::NotFound, failed_read(result))
        }
        // A write that was sent and not answered may have had its effect; a conflict or another
        // refusal had none.
        Ok(answer) if action != ElectAction::Get && answer.status >= 500 => {
            (Told::Failed, Outcome::Unknown { reason: answer.refusal().to_string() })
        }
        Err(HttpFailure::Unanswered(class)) if action != ElectAction::Get => {
            (Told::Failed, Outcome::Unknown { reason: class.to_string() })
        }
        _ => (Told::Failed, failed_read(result)),
    }
}

fn parse(answer: &HttpAnswer) -> Option<(ElectionRecord, String)> {
    let lease: Value = serde_json::from_slice(&answer.body).ok()?;
    let spec = &lease["spec"];
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let record = ElectionRecord {
        holder: text("holderIdentity"),
        lease_duration_seconds: spec["leaseDurationSeconds"].as_u64().unwrap_or(0),
        acquire_time: text("acquireTime"),
        renew_time: text("renewTime"),
        transitions: spec["leaseTransitions"].as_u64().unwrap_or(0),
    };
    Some((record, lease["metadata"]["resourceVersion"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &Value) -> Result<HttpAnswer, HttpFailure> {
        Ok(HttpAnswer { status, body: body.to_string().into() })
    }

    #[test]
    fn a_lease_is_read_back_as_it_was_written() {
        let record = ElectionRecord {
            holder: "c-a-1".to_owned(),
            lease_duration_seconds: 15,
            acquire_time: "2026-01-01T00:00:00.000000Z".to_owned(),
            renew_time: "2026-01-01T00:00:02.000000Z".to_owned(),
            transitions: 3,
        };
        let lease = lease_of("c", Some("77"), &record);
        let (told, outcome) = read(&answer(200, &lease), ElectAction::Update);
        assert_eq!(told, Told::Lease { record, version: "77".to_owned() });
        let Outcome::Ok(Answer { revision: Some(77), transitions: Some(3), holder: Some(holder), .. }) =
            outcome
        else {
            panic!("{outcome:?}");
        };
        assert_eq!(holder, "c-a-1");
    }

    #[test]
    fn a_conflict_is_certain_and_a_server_error_is_not() {
        let (_, conflict) = read(&answer(409, &json!({"reason": "Conflict"})), ElectAction::Update);
        assert!(matches!(conflict, Outcome::Failed { status: Some(409), .. }));
        let (_, error) = read(&answer(500, &json!({})), ElectAction::Update);
        assert!(matches!(error, Outcome::Unknown { .. }));
        let (told, _) = read(&answer(404, &json!({})), ElectAction::Get);
        assert_eq!(told, Told::NotFound);
    }
}
