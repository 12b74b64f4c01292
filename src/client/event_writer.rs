//! Creates core/v1 Events, which API servers store under an etcd lease that they share.

use super::context::{ClientContext, Setup};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Made, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_write, stopped};
use crate::wire::objects::Item;
use hyper::Method;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Creates core/v1 Events. API servers store them under an etcd lease that they cache
/// for up to a minute: one that was granted after the snapshot is gone after a restore,
/// and an API server that keeps running fails to create Events until it takes another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventWriter {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Events.
    #[serde(default = "default_event")]
    pub every: Span,
}

fn default_event() -> Span {
    Span::millis(500)
}

impl ClientUnderTest for EventWriter {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::EventWriter,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, write))
    }
}

/// An answer later than this makes the outcome unknown.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Creates one Event per slot until told to end.
async fn write(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let path = format!("/api/v1/namespaces/{}/events", setup.namespace);
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        let id = slot.index + 1;
        let body = Bytes::from(event(&setup.planned.name, &setup.namespace, id).to_string());
        let sent = http.send(Method::POST, &path, Some(body), DEADLINE);
        let (timing, result) = session.timed(Some(slot.due), sent).await;
        let outcome = result.map_or_else(stopped, |result| outcome_of(&result));
        session.op(timing, Op::Make { what: Made::Event, id }, outcome)?;
    }
    Ok(pace.account())
}

fn event(client: &str, namespace: &str, id: u64) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{client}-{id}"), "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "namespace": namespace, "name": namespace},
        "reason": "Drill",
        "message": format!("event {id} of {client}"),
        "type": "Normal",
    })
}

fn outcome_of(result: &Result<HttpAnswer, HttpFailure>) -> Outcome {
    match result {
        Ok(answer) if answer.is_success() => {
            let created = serde_json::from_slice::<Item<'_>>(&answer.body).ok();
            let revision = created.and_then(|event| event.metadata.revision());
            Outcome::Ok(Answer { revision, ..Answer::default() })
        }
        // etcd refused the whole transaction, so nothing was written.
        Ok(answer) if answer.refusal() == FailureClass::LeaseNotFound => {
            Outcome::Failed { status: Some(answer.status), reason: answer.refusal().to_string() }
        }
        result => failed_write(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, message: &str) -> Outcome {
        let body = serde_json::json!({"kind": "Status", "message": message, "code": status});
        outcome_of(&Ok(HttpAnswer { status, body: body.to_string().into() }))
    }

    #[test]
    fn an_event_refused_for_its_lease_was_certainly_not_written_and_another_500_may_have_been() {
        assert_eq!(
            answer(500, "etcdserver: requested lease not found"),
            Outcome::Failed { status: Some(500), reason: "lease-not-found".to_owned() }
        );
        assert!(matches!(answer(500, "etcdserver: request timed out"), Outcome::Unknown { .. }));
    }
}
