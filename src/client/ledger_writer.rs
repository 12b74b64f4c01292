//! Creates `ledger-<id>` with a unique value for each slot of an open loop.

use super::context::{ClientContext, Setup};
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::lint::{Lint, Place};
use crate::drill::values::Rate;
use crate::history::kind::ClientKind;
use crate::history::record::{Answer, Op, Outcome};
use crate::ledger::{object_name, value_of};
use crate::load::pacer::{Account, Due, OpenLoop, Schedule, Slot, until};
use crate::load::timing::{Timing, timed};
use crate::wire::connection::{Connector, Protocol};
use crate::wire::http::{HttpAnswer, HttpClient, HttpFailure, failed_write, stopped};
use crate::wire::objects::ConfigMap;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hyper::Method;
use hyper::body::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Creates one ConfigMap per operation, each with a unique value, at a fixed
/// open-loop rate. Acknowledged writes are kept outside the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LedgerWriter {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Writes per second, due whatever the server does.
    pub rate: Rate,
}

impl ClientUnderTest for LedgerWriter {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::LedgerWriter,
            talks_to: TalksTo::ApiServer,
            works: Works::Fixed(self.rate.interval()),
        }
    }

    /// Ids count from 1, and every id that a second writer tried would be taken.
    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        if lint.drill.spec.clients[..at.index].iter().any(|client| client.key() == "ledgerWriter") {
            let title = "a second `ledgerWriter` would write the ids of the first one";
            lint.error(&at.key("name"), title, "give the first one a higher `rate`");
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let rate = self.rate;
        Box::pin(live(ctx, async move |session, setup| write(rate, session, setup).await))
    }
}

/// An answer later than this makes a write's outcome unknown.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Writes that may be out at once, each on a connection of its own: more than a
/// second's worth at the usual 50/s. Reached only while the server does not
/// answer; a write that is due then is lost and accounted for.
pub const MAX_OUT: usize = 64;

struct Returned {
    lane: HttpClient,
    id: u64,
    timing: Timing,
    result: Option<Result<HttpAnswer, HttpFailure>>,
}

/// Writes until told to end. The ledger's first id is 1.
async fn write(rate: Rate, session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let connector = Connector::new(setup.dialer.clone(), &setup.endpoint, &setup.identity, Protocol::Http1)?;
    let start = session.clock().mono();
    let (clock, stop) = (session.shared_clock(), session.stop());
    let path = format!("/api/v1/namespaces/{}/configmaps", setup.namespace);
    let mut pacer = OpenLoop::new(Schedule::at_rate(start, rate), MAX_OUT);
    // The lane used last is used first, so that a quick server sees one connection.
    let mut lanes: Vec<HttpClient> = Vec::new();
    let mut out = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(returned) = out.next() => {
                pacer.returned();
                lanes.push(record(session, setup, returned)?);
            }
            () = until(&*clock, pacer.next_due()) => {
                while let Some(due) = pacer.take(clock.mono()) {
                    let Due::Send(slot) = due else { continue };
                    let lane = lanes.pop().unwrap_or_else(|| HttpClient::over(connector.clone()));
                    out.push(create(lane, slot, setup, &path, &*clock, &stop));
                }
            }
        }
    }
    while let Some(returned) = out.next().await {
        record(session, setup, returned)?;
    }
    Ok(pacer.account())
}

async fn create(
    mut lane: HttpClient,
    slot: Slot,
    setup: &Setup,
    path: &str,
    clock: &dyn crate::clock::Clock,
    stop: &tokio_util::sync::CancellationToken,
) -> Returned {
    let id = slot.index + 1;
    let body = serde_json::json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(id)},
        "data": {"value": value_of(setup.seed, id)},
    });
    let body = Bytes::from(body.to_string());
    let (timing, result) =
        timed(clock, stop, Some(slot.due), lane.send(Method::POST, path, Some(body), DEADLINE)).await;
    Returned { lane, id, timing, result }
}

fn record(session: &mut Session, setup: &Setup, returned: Returned) -> Result<HttpClient, Broken> {
    let Returned { lane, id, timing, result } = returned;
    let outcome = match result {
        None => stopped(),
        Some(Ok(answer)) if answer.is_success() => {
            let created = serde_json::from_slice::<ConfigMap<'_>>(&answer.body).ok();
            let revision = created.and_then(|c| c.metadata.revision());
            Outcome::Ok(Answer { revision, ..Answer::default() })
        }
        Some(result) => failed_write(&result),
    };
    let acknowledged = matches!(outcome, Outcome::Ok(_));
    session.op(timing, Op::Create { id }, outcome)?;
    if acknowledged {
        setup.ledger.acknowledge(id);
    }
    Ok(lane)
}
