//! A Secret, made once, then read and listed in turns: whether API servers can decrypt
//! what etcd holds. The value is compared here and never recorded.

use super::context::{ClientContext, Setup};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, failed_write, stopped};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Makes one Secret, then in turns reads it and lists the namespace's Secrets. That shows
/// whether API servers can decrypt what etcd holds; the value never enters a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two reads.
    pub every: Span,
}

impl ClientUnderTest for SecretReader {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::SecretReader,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, read))
    }
}

/// An answer later than this is none. An API server that can't fill its cache of Secrets
/// answers LIST at once with 429.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// Name of the Secret of a client.
fn secret_name(client: &str) -> String {
    format!("canary-{client}")
}

/// Reads until told to end.
async fn read(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let name = secret_name(&setup.planned.name);
    let all = format!("/api/v1/namespaces/{}/secrets", setup.namespace);
    let one = format!("{all}/{name}");
    let value = format!("{:032x}", StdRng::seed_from_u64(setup.seed).random::<u128>());
    let mut pace = Pace::new(session, setup.every_ns()?);
    let mut made = false;
    let mut listing = false;
    while let Some(slot) = pace.next().await {
        let due = Some(slot.due);
        if !made {
            let body = json!({"metadata": {"name": name}, "stringData": {"value": value}}).to_string();
            let (timing, result) =
                session.timed(due, http.send(Method::POST, &all, Some(body.into()), DEADLINE)).await;
            let outcome = result.map_or_else(stopped, |result| created(&result));
            made = matches!(outcome, Outcome::Ok(_));
            session.op(timing, Op::CreateSecret, outcome)?;
            continue;
        }
        let (path, op) = if listing { (&all, Op::ListSecrets) } else { (&one, Op::GetSecret) };
        listing = !listing;
        let (timing, result) = session.timed(due, http.send(Method::GET, path, None, DEADLINE)).await;
        let outcome = result.map_or_else(stopped, |result| judge(&result, &name, &value));
        session.op(timing, op, outcome)?;
    }
    Ok(pace.account())
}

/// The name is this client's alone: when it is taken, an earlier attempt took effect.
fn created(result: &Result<HttpAnswer, HttpFailure>) -> Outcome {
    match result {
        Ok(answer) if answer.is_success() || answer.refusal() == FailureClass::AlreadyExists => {
            Outcome::Ok(Answer::default())
        }
        _ => failed_write(result),
    }
}

/// Right when the Secret is in the answer, with its value.
fn judge(result: &Result<HttpAnswer, HttpFailure>, name: &str, value: &str) -> Outcome {
    let Ok(answer) = result else { return failed_read(result) };
    if !answer.is_success() {
        return failed_read(result);
    }
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
        return Outcome::Failed { status: Some(answer.status), reason: FailureClass::Malformed.to_string() };
    };
    let revision = body["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok());
    let secret = match body["items"].as_array() {
        Some(items) => items.iter().find(|item| item["metadata"]["name"] == name),
        None => Some(&body),
    };
    let Some(secret) = secret else {
        return Outcome::Failed { status: None, reason: FailureClass::NotFound.to_string() };
    };
    let right = secret["data"]["value"] == STANDARD.encode(value);
    Outcome::Ok(Answer { revision, wrong_value: !right, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &Value) -> Result<HttpAnswer, HttpFailure> {
        Ok(HttpAnswer { status, body: body.to_string().into() })
    }

    fn secret(name: &str, value: &str) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": "5"}, "data": {"value": STANDARD.encode(value)}})
    }

    #[test]
    fn a_value_is_right_alone_and_in_a_list() {
        let right = |body: &Value| match judge(&answer(200, body), "canary-s", "v") {
            Outcome::Ok(answer) => Some(!answer.wrong_value),
            _ => None,
        };
        assert_eq!(right(&secret("canary-s", "v")), Some(true));
        assert_eq!(right(&secret("canary-s", "w")), Some(false));
        let list = |items: &[Value]| json!({"metadata": {"resourceVersion": "9"}, "items": items});
        assert_eq!(right(&list(&[secret("other", "w"), secret("canary-s", "v")])), Some(true));
        assert_eq!(right(&list(&[secret("other", "v")])), None);
    }

    #[test]
    fn no_outcome_holds_the_value() {
        for body in [secret("canary-s", "the-value"), json!({"items": [secret("canary-s", "the-value")]})] {
            let outcome = judge(&answer(200, &body), "canary-s", "the-value");
            assert!(!serde_json::to_string(&outcome).unwrap().contains("the-value"));
        }
    }

    #[test]
    fn a_secret_that_is_there_already_was_made_by_an_earlier_attempt() {
        let taken = json!({"kind": "Status", "reason": "AlreadyExists"});
        assert!(matches!(created(&answer(409, &taken)), Outcome::Ok(_)));
        assert!(matches!(created(&answer(500, &json!({}))), Outcome::Unknown { .. }));
    }
}
