//! LISTs at a fixed pace; every page and every id is recorded.

use super::context::ClientContext;
use super::http::HttpClient;
use super::list::{ListRequest, list};
use super::pace::Pace;
use super::session::{Broken, Session, Setup};
use super::spec::ListResourceVersion;
use crate::drill::spec::Client;
use crate::load::pacer::Account;

/// Lists until told to end. A failed page ends its LIST; the next slot begins anew.
pub async fn run(ctx: ClientContext) {
    if let Some((mut session, setup)) = Session::open(ctx) {
        let end = read(&mut session, &setup).await;
        session.close(end);
    }
}

async fn read(session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let (version, limit) = match &setup.planned.spec {
        Some(Client::ListReader(spec)) => (spec.resource_version, spec.limit),
        _ => (ListResourceVersion::default(), None),
    };
    let resource_version = match version {
        ListResourceVersion::Unset => None,
        ListResourceVersion::Zero => Some("0"),
    };
    let mut pace = Pace::new(session, setup.every_ns()?);
    let mut continuations = 0;
    while let Some(slot) = pace.next().await {
        let before = session.recorded();
        let due = Some(slot.due);
        list(session, &mut http, ListRequest { namespace: &setup.namespace, resource_version, limit, due })
            .await?;
        continuations += session.recorded() - before - 1;
    }
    // Later pages are due when the one before has come.
    let account = pace.account();
    Ok(Account { scheduled: account.scheduled + continuations, ..account })
}
