//! LISTs at a fixed pace; every page and every id is recorded.

use super::context::{ClientContext, Setup};
use super::list::{ListRequest, Listed, list};
use super::pace::Pace;
use super::session::{Broken, Session, live};
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::lint::{Lint, PAGE, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::load::pacer::Account;
use crate::wire::http::HttpClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists the ledger's objects and records every id of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListReader {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two lists.
    pub every: Span,
    /// The resourceVersion parameter that is sent.
    #[serde(default)]
    pub resource_version: ListResourceVersion,
    /// Objects per page; absent: one page.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The resourceVersion parameter of a LIST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ListResourceVersion {
    /// Not sent: the most recent state is asked for.
    #[default]
    Unset,
    /// `0`: any state will do, the cache answers.
    #[serde(rename = "0")]
    Zero,
    /// That of the last list, as `resourceVersionMatch=NotOlderThan`. After a refusal as too
    /// large (504) or too old (410) the next list goes without one, as client-go's does.
    #[serde(rename = "lastSeen")]
    LastSeen,
}

impl ClientUnderTest for ListReader {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::ListReader,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        if let Some(limit) = self.limit
            && !(PAGE.0..=PAGE.1).contains(&limit)
        {
            let help = format!("write {} to {}, or leave it out for one page", PAGE.0, PAGE.1);
            lint.error(&at.key("limit"), format!("`limit: {limit}` is out of range"), help);
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let spec = self.clone();
        Box::pin(live(ctx, async move |session, setup| read(&spec, session, setup).await))
    }
}

/// Lists until told to end. A failed page ends its LIST; the next slot begins anew.
async fn read(spec: &ListReader, session: &mut Session, setup: &Setup) -> Result<Account, Broken> {
    let mut http = HttpClient::new(setup.dialer.clone(), &setup.endpoint, &setup.identity)?;
    let (version, limit) = (spec.resource_version, spec.limit);
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
