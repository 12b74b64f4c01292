//! LISTs at a fixed pace; every page and every id is recorded.

use super::context::ClientContext;
use super::http::HttpClient;
use super::list::{ListRequest, Listed, list};
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
    let mut last_seen = None;
    let mut pace = Pace::new(session, setup.every_ns()?);
    let mut continuations = 0;
    while let Some(slot) = pace.next().await {
        let before = session.recorded();
        let asked = parameter(version, last_seen);
        let request = ListRequest {
            namespace: &setup.namespace,
            resource_version: asked.as_deref(),
            not_older_than: version == ListResourceVersion::LastSeen,
            limit,
            due: Some(slot.due),
        };
        last_seen = next(last_seen, list(session, &mut http, request).await?);
        continuations += session.recorded() - before - 1;
    }
    // Later pages are due when the one before has come.
    let account = pace.account();
    Ok(Account { scheduled: account.scheduled + continuations, ..account })
}

fn parameter(version: ListResourceVersion, last_seen: Option<u64>) -> Option<String> {
    match version {
        ListResourceVersion::Unset => None,
        ListResourceVersion::Zero => Some("0".to_owned()),
        ListResourceVersion::LastSeen => last_seen.map(|revision| revision.to_string()),
    }
}

/// What the next list goes on from. A server that has not got as far as the last list (504), or
/// no longer has it (410), is asked for the most recent state next, as client-go's reflector does.
fn next(last_seen: Option<u64>, listed: Listed) -> Option<u64> {
    match listed {
        Listed::At(revision) => Some(revision),
        Listed::Refused(410 | 504) => None,
        Listed::Refused(_) | Listed::Unanswered => last_seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_says_so_makes_the_last_revision_forgotten() {
        assert_eq!(next(Some(9), Listed::At(7)), Some(7), "a revision that went back is gone on from");
        assert_eq!(next(Some(9), Listed::Refused(504)), None);
        assert_eq!(next(Some(9), Listed::Refused(410)), None);
        assert_eq!(next(Some(9), Listed::Refused(429)), Some(9));
        assert_eq!(next(Some(9), Listed::Unanswered), Some(9));
    }

    #[test]
    fn the_first_list_of_all_goes_without_a_revision() {
        assert_eq!(parameter(ListResourceVersion::LastSeen, None), None);
        assert_eq!(parameter(ListResourceVersion::LastSeen, Some(9)).as_deref(), Some("9"));
        assert_eq!(parameter(ListResourceVersion::Unset, Some(9)), None);
        assert_eq!(parameter(ListResourceVersion::Zero, Some(9)).as_deref(), Some("0"));
    }
}
