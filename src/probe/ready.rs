//! `/readyz` of one API server.

use crate::client::context::ClientContext;
use crate::client::pace::Pace;
use crate::client::session::{Broken, Session, Setup};
use crate::history::record::{Answer, Op, Outcome};
use crate::load::pacer::Account;
use crate::wire::http::{HttpClient, failed_read, stopped};
use hyper::Method;
use std::time::Duration;

/// An answer later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(1);

/// Asks until told to end.
pub async fn run(ctx: ClientContext) {
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = observe(&mut session, &setup).await;
        session.close(end);
    }
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
