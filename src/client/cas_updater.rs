//! Compare-and-swap updates of objects that only this client writes.
//!
//! It never reads before it updates: each PUT carries the resourceVersion that the last answer
//! gave it, across an outage and a restore too. Only a refusal makes it read anew.

use super::context::{ClientContext, Setup};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::clock::MonoNs;
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, failed_write, stopped};
use crate::wire::objects::ConfigMap;
use hyper::Method;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Updates objects of its own by PUT, each with a unique value and the resourceVersion that it
/// holds. It goes on with what it holds whatever happens, and reads anew only when it is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CasUpdater {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two updates; the objects take turns.
    pub every: Span,
    /// Number of objects.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "default_objects")]
    pub objects: u32,
}

fn default_objects() -> u32 {
    5
}

/// Objects of a client that compares and swaps.
const OBJECTS: (u32, u32) = (1, 100);

impl ClientUnderTest for CasUpdater {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::CasUpdater,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        if !(OBJECTS.0..=OBJECTS.1).contains(&self.objects) {
            let help = format!("write {} to {}", OBJECTS.0, OBJECTS.1);
            lint.error(&at.key("objects"), format!("`objects: {}` is out of range", self.objects), help);
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let objects = self.objects as usize;
        Box::pin(live(ctx, async move |session, setup| update(objects, session, setup).await))
    }
}

/// An answer later than this makes an update's outcome unknown.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// What the client knows of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// It was never there, as far as the client knows, or it is gone.
    Nothing,
    /// The resourceVersion of the last answer that gave one.
    At(u64),
    /// The last update was refused: what is held is not what is there.
    Refuted,
}

struct Updater<'a> {
    session: &'a mut Session,
    setup: &'a Setup,
    http: HttpClient,
    next_value: u64,
    held: Vec<Held>,
}

/// Updates until told to end, the objects in turn.
async fn update(objects: usize, session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut pace = Pace::new(session, setup.every_ns()?);
    let http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let mut updater = Updater { session, setup, http, next_value: 1, held: vec![Held::Nothing; objects] };
    let mut turn = 0;
    let mut reads = 0;
    while let Some(slot) = pace.next().await {
        let object = turn % objects;
        turn += 1;
        let due = Some(slot.due);
        match updater.held[object] {
            Held::Nothing => updater.create(due, object).await?,
            Held::At(held) => updater.put(due, object, held).await?,
            Held::Refuted => updater.read(due, object).await?,
        }
        // A refused client reads at once what it has to rest the next update on.
        if matches!(updater.held[object], Held::Refuted) {
            updater.read(None, object).await?;
            reads += 1;
        }
    }
    let account = pace.account();
    Ok(Account { scheduled: account.scheduled + reads, ..account })
}

impl Updater<'_> {
    async fn create(&mut self, due: Option<MonoNs>, object: usize) -> Result<(), Broken> {
        let value = self.value();
        let body = self.body(object, value, None);
        let path = self.collection();
        let (timing, result) =
            self.session.timed(due, self.http.send(Method::POST, &path, Some(body), DEADLINE)).await;
        let outcome = written(result);
        self.held[object] = match &outcome {
            Outcome::Ok(Answer { revision: Some(revision), .. }) => Held::At(*revision),
            // It may be there: created by an earlier attempt that was not answered.
            Outcome::Ok(_) | Outcome::Unknown { .. } => Held::Refuted,
            Outcome::Failed { .. } => Held::Nothing,
        };
        self.session.op(timing, Op::CasCreate { object: object as u64, value }, outcome)
    }

    async fn put(&mut self, due: Option<MonoNs>, object: usize, held: u64) -> Result<(), Broken> {
        let value = self.value();
        let body = self.body(object, value, Some(held));
        let path = format!("{}/{}", self.collection(), self.name(object));
        let (timing, result) =
            self.session.timed(due, self.http.send(Method::PUT, &path, Some(body), DEADLINE)).await;
        let outcome = written(result);
        self.held[object] = match &outcome {
            Outcome::Ok(Answer { revision: Some(revision), .. }) => Held::At(*revision),
            Outcome::Ok(_) | Outcome::Failed { status: Some(404 | 409), .. } => Held::Refuted,
            Outcome::Failed { .. } | Outcome::Unknown { .. } => Held::At(held),
        };
        self.session.op(timing, Op::CasUpdate { object: object as u64, held, value }, outcome)
    }

    async fn read(&mut self, due: Option<MonoNs>, object: usize) -> Result<(), Broken> {
        let path = format!("{}/{}", self.collection(), self.name(object));
        let (timing, result) =
            self.session.timed(due, self.http.send(Method::GET, &path, None, DEADLINE)).await;
        let outcome = result.map_or_else(stopped, |result| found(&result, &self.prefix()));
        self.held[object] = match &outcome {
            Outcome::Ok(Answer { revision: Some(revision), .. }) => Held::At(*revision),
            Outcome::Failed { status: Some(404), .. } => Held::Nothing,
            _ => Held::Refuted,
        };
        self.session.op(timing, Op::CasRead { object: object as u64 }, outcome)
    }

    fn value(&mut self) -> u64 {
        let value = self.next_value;
        self.next_value += 1;
        value
    }

    fn body(&self, object: usize, value: u64, held: Option<u64>) -> Bytes {
        let mut metadata = serde_json::json!({"name": self.name(object)});
        if let Some(held) = held {
            metadata["resourceVersion"] = held.to_string().into();
        }
        let body = serde_json::json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"value": format!("{}{value}", self.prefix())},
        });
        Bytes::from(body.to_string())
    }

    /// Values are unique over all clients and runs.
    fn prefix(&self) -> String {
        format!("{:016x}-{}-", self.setup.seed, self.setup.planned.name)
    }

    fn name(&self, object: usize) -> String {
        format!("cas-{}-{object}", self.setup.planned.name)
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.setup.namespace)
    }
}

fn written(result: Option<Result<HttpAnswer, HttpFailure>>) -> Outcome {
    match result {
        None => stopped(),
        Some(Ok(answer)) if answer.is_success() => {
            let object = serde_json::from_slice::<ConfigMap<'_>>(&answer.body).ok();
            Outcome::Ok(Answer { revision: object.and_then(|o| o.metadata.revision()), ..Answer::default() })
        }
        Some(result) => failed_write(&result),
    }
}

fn found(result: &Result<HttpAnswer, HttpFailure>, prefix: &str) -> Outcome {
    let Ok(answer) = result else { return failed_read(result) };
    if !answer.is_success() {
        return failed_read(result);
    }
    match serde_json::from_slice::<ConfigMap<'_>>(&answer.body) {
        Ok(object) => {
            let value = object.data.value.strip_prefix(prefix).and_then(|number| number.parse().ok());
            Outcome::Ok(Answer {
                revision: object.metadata.revision(),
                wrong_value: value.is_none(),
                value,
                ..Answer::default()
            })
        }
        Err(_) => {
            Outcome::Failed { status: Some(answer.status), reason: FailureClass::Malformed.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Result<HttpAnswer, HttpFailure> {
        Ok(HttpAnswer { status, body: Bytes::from(body.to_owned()) })
    }

    #[test]
    fn a_conflict_is_certain_not_to_have_taken_effect_and_a_late_answer_is_not() {
        let conflict = written(Some(answer(409, r#"{"reason":"Conflict"}"#)));
        assert_eq!(conflict, Outcome::Failed { status: Some(409), reason: "conflict".to_owned() });
        let late = written(Some(Err(HttpFailure::Unanswered(FailureClass::Timeout))));
        assert_eq!(late, Outcome::Unknown { reason: "timeout".to_owned() });
        let done = written(Some(answer(200, r#"{"metadata":{"resourceVersion":"12"}}"#)));
        assert!(matches!(done, Outcome::Ok(Answer { revision: Some(12), .. })));
    }

    #[test]
    fn a_read_tells_which_of_its_own_values_it_found() {
        let body = r#"{"metadata":{"resourceVersion":"5"},"data":{"value":"00-me-17"}}"#;
        let read = |prefix: &str| match found(&answer(200, body), prefix) {
            Outcome::Ok(answer) => answer,
            other => panic!("not read: {other:?}"),
        };
        assert_eq!((read("00-me-").value, read("00-me-").wrong_value), (Some(17), false));
        assert_eq!((read("00-other-").value, read("00-other-").wrong_value), (None, true));
    }
}
