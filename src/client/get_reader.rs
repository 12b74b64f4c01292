//! Quorum GETs of single acknowledged objects.

use super::context::{ClientContext, Setup};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Op, Outcome};
use crate::ledger::{Ledger, object_name, value_of};
use crate::load::pacer::Account;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_read, stopped};
use crate::wire::objects::ConfigMap;
use hyper::Method;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Reads single objects that the ledger names, without resourceVersion (a quorum read).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two reads.
    pub every: Span,
}

impl ClientUnderTest for GetReader {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::GetReader,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        let title = "a `getReader` reads what a `ledgerWriter` wrote, and there is none";
        lint.needs_writer(&at.key("name"), title);
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, read))
    }
}

/// An answer later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(2);

/// How many of the last acknowledged writes count as recent.
const RECENT: usize = 100;

/// Reads until told to end; begins with the first acknowledged write.
async fn read(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let every_ns = setup.every_ns()?;
    let mut rng = rng_of(setup.seed, &setup.planned.name);
    let stop = session.stop();
    tokio::select! {
        () = stop.cancelled() => return Ok(Account::default()),
        () = setup.ledger.first_acknowledged() => {}
    }
    let mut pace = Pace::new(session, every_ns);
    while let Some(slot) = pace.next().await {
        let Some(id) = choose(&mut rng, &setup.ledger) else { continue };
        let path = format!("/api/v1/namespaces/{}/configmaps/{}", setup.namespace, object_name(id));
        let (timing, result) =
            session.timed(Some(slot.due), http.send(Method::GET, &path, None, DEADLINE)).await;
        let outcome = result.map_or_else(stopped, |result| judge(&result, &value_of(setup.seed, id)));
        session.op(timing, Op::Get { id }, outcome)?;
    }
    Ok(pace.account())
}

fn judge(result: &Result<HttpAnswer, HttpFailure>, expected: &str) -> Outcome {
    let Ok(answer) = result else { return failed_read(result) };
    if !answer.is_success() {
        return failed_read(result);
    }
    match serde_json::from_slice::<ConfigMap<'_>>(&answer.body) {
        Ok(object) => Outcome::Ok(Answer {
            revision: object.metadata.revision(),
            wrong_value: object.data.value != expected,
            ..Answer::default()
        }),
        Err(_) => {
            Outcome::Failed { status: Some(answer.status), reason: FailureClass::Malformed.to_string() }
        }
    }
}

/// A client's own stream of random numbers.
fn rng_of(seed: u64, client: &str) -> StdRng {
    let mut digest = Sha256::new();
    digest.update(seed.to_be_bytes());
    digest.update(client.as_bytes());
    StdRng::from_seed(digest.finalize().into())
}

/// One third each: the newest acknowledged id, one of the last [`RECENT`], any.
fn choose(rng: &mut StdRng, ledger: &Ledger) -> Option<u64> {
    let len = ledger.len();
    let newest = len.checked_sub(1)?;
    let index = match rng.random_range(0..3) {
        0 => newest,
        1 => rng.random_range(len.saturating_sub(RECENT)..len),
        _ => rng.random_range(0..len),
    };
    ledger.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_recent_and_old_writes_are_all_read_and_the_seed_decides_which() {
        let ledger = Ledger::new();
        assert_eq!(choose(&mut rng_of(1, "reader"), &ledger), None);
        (1..=1000).for_each(|id| ledger.acknowledge(id));
        let draw = |seed, name| {
            let mut rng = rng_of(seed, name);
            (0..300).filter_map(|_| choose(&mut rng, &ledger)).collect::<Vec<_>>()
        };
        let ids = draw(1, "reader");
        let newest = ids.iter().filter(|id| **id == 1000).count();
        let recent = ids.iter().filter(|id| (901..1000).contains(*id)).count();
        let old = ids.iter().filter(|id| **id <= 900).count();
        assert!(newest > 60 && recent > 60 && old > 60, "{newest} newest, {recent} recent, {old} old");
        assert_eq!(ids, draw(1, "reader"));
        assert_ne!(ids, draw(2, "reader"));
        assert_ne!(ids, draw(1, "other"));
    }

    #[test]
    fn a_value_that_somebody_else_wrote_is_told_from_the_ledgers() {
        let answer = |value: &str| {
            let body = format!(r#"{{"metadata":{{"resourceVersion":"5"}},"data":{{"value":"{value}"}}}}"#);
            Ok(HttpAnswer { status: 200, body: body.into() })
        };
        let wrong = |outcome| matches!(outcome, Outcome::Ok(Answer { wrong_value: true, .. }));
        assert!(!wrong(judge(&answer("a-1"), "a-1")));
        assert!(wrong(judge(&answer("a-2"), "a-1")));
        let garbage = Ok(HttpAnswer { status: 200, body: "ok".into() });
        assert!(matches!(judge(&garbage, "a-1"), Outcome::Failed { reason, .. } if reason == "malformed"));
    }
}
