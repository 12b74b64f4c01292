//! `/readyz` of one API server.

use super::{Identity, Needs, Probe};
use crate::client::context::{ClientContext, Setup};
use crate::client::pace::Pace;
use crate::client::session::{Broken, Session, live};
use crate::component::Role;
use crate::drill::spec::{ApiReady, Drill, SteadyState};
use crate::history::record::{Answer, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::http::{HttpClient, failed_read, stopped};
use hyper::Method;
use std::time::Duration;

/// Its name begins so; the API server follows.
pub const NAME: &str = "ready-";
/// An answer later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(1);

/// One for each API server.
#[must_use]
pub fn planned(needs: Needs<'_>) -> Vec<Probe> {
    let every = every(needs.drill);
    let servers = (needs.of_role)(Role::KubeApiserver).into_iter();
    servers
        .map(|target| Probe { name: format!("{NAME}{target}"), target, identity: Identity::Own, every })
        .collect()
}

/// Pace of the drill's own `apiReady` condition, else the default one.
fn every(drill: &Drill) -> Duration {
    let condition = drill.spec.steady_state.iter().find_map(|s| match s {
        SteadyState::ApiReady(ready) => Some(ready.every),
        SteadyState::WriteSucceeds(_) => None,
    });
    condition.unwrap_or(ApiReady::default().every).0
}

/// Asks until told to end.
pub async fn run(ctx: ClientContext) {
    live(ctx, observe).await;
}

async fn observe(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let mut pace = Pace::new(session, setup.every_ns()?);
    while let Some(slot) = pace.next().await {
        let request = http.send(Method::GET, "/readyz", None, DEADLINE);
        let (timing, result) = session.timed(Some(slot.due), request).await;
        let outcome = match result {
            None => stopped(),
            Some(Ok(answer)) if answer.is_success() => Outcome::Ok(Answer::default()),
            Some(result) => failed_read(&result),
        };
        session.op(timing, Op::Ready, outcome)?;
    }
    Ok(pace.account())
}
