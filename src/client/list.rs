//! One LIST of the ledger's namespace, page by page, every page recorded.

use super::session::{Broken, Session};
use crate::clock::MonoNs;
use crate::history::record::{Answer, Op, Outcome};
use crate::ledger::id_of;
use crate::wire::failure::FailureClass;
use crate::wire::http::{HttpClient, failed_read, stopped};
use crate::wire::objects::List;
use hyper::Method;
use std::time::Duration;

/// A page later than this is none.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// A LIST to be made.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// Namespace of the ledger.
    pub namespace: &'a str,
    /// The resourceVersion parameter; `None`: not sent.
    pub resource_version: Option<&'a str>,
    /// Sent with `resourceVersionMatch=NotOlderThan`. Without it a limit makes the API server take
    /// the resourceVersion for the exact one that is wanted.
    pub not_older_than: bool,
    /// Objects per page; `None`: one page.
    pub limit: Option<u32>,
    /// When the first page was due.
    pub due: Option<MonoNs>,
}

/// What came of a LIST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Every page arrived; the resourceVersion of the last one.
    At(u64),
    /// A page was refused, and with this status.
    Refused(u16),
    /// A page was not answered, or can't be read.
    Unanswered,
}

impl Listed {
    /// The list's resourceVersion.
    #[must_use]
    pub fn revision(self) -> Option<u64> {
        match self {
            Self::At(revision) => Some(revision),
            Self::Refused(_) | Self::Unanswered => None,
        }
    }
}

/// Makes a LIST. When a page fails, the pages before it are recorded all the same.
///
/// # Errors
/// When the history can't be written.
pub async fn list(
    session: &mut Session,
    http: &mut HttpClient,
    request: ListRequest<'_>,
) -> Result<Listed, Broken> {
    let number = session.next_seq();
    let mut token = String::new();
    let mut page = 0;
    loop {
        let path = path_of(&request, &token);
        let due = request.due.filter(|_| page == 0);
        let (timing, result) = session.timed(due, http.send(Method::GET, &path, None, DEADLINE)).await;
        // A continuation carries its own revision; the server refuses both together.
        let resource_version = request.resource_version.filter(|_| page == 0).map(str::to_owned);
        let op = Op::List { list: number, page, resource_version, limit: request.limit };
        let read = match result {
            None => Err(stopped()),
            Some(Ok(answer)) if answer.is_success() => read_page(&answer.body).ok_or_else(|| {
                Outcome::Failed { status: Some(answer.status), reason: FailureClass::Malformed.to_string() }
            }),
            Some(result) => Err(failed_read(&result)),
        };
        match read {
            Err(outcome) => {
                let listed = match &outcome {
                    Outcome::Failed { status: Some(status), .. } => Listed::Refused(*status),
                    _ => Listed::Unanswered,
                };
                session.op(timing, op, outcome)?;
                return Ok(listed);
            }
            Ok((answer, next)) => {
                let listed = answer.revision.map_or(Listed::Unanswered, Listed::At);
                session.op(timing, op, Outcome::Ok(answer))?;
                if next.is_empty() {
                    return Ok(listed);
                }
                token = next;
                page += 1;
            }
        }
    }
}

/// What a page says and the token of the next one; `None` when it can't be read.
pub(super) fn read_page(body: &[u8]) -> Option<(Answer, String)> {
    let list: List<'_> = serde_json::from_slice(body).ok()?;
    let revision = list.metadata.revision()?;
    let ids = list.items.iter().filter_map(|item| id_of(&item.metadata.name)).collect();
    let next = list.metadata.continue_token.into_owned();
    let more = !next.is_empty();
    Some((Answer { revision: Some(revision), ids: Some(ids), more, ..Answer::default() }, next))
}

fn path_of(request: &ListRequest<'_>, token: &str) -> String {
    let mut path = format!("/api/v1/namespaces/{}/configmaps?", request.namespace);
    if let Some(limit) = request.limit {
        path.push_str(&format!("limit={limit}&"));
    }
    if !token.is_empty() {
        path.push_str("continue=");
        // Tokens are URL-safe base64 today; anything else a server sends is escaped.
        for byte in token.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    path.push(char::from(byte));
                }
                _ => path.push_str(&format!("%{byte:02X}")),
            }
        }
    } else if let Some(version) = request.resource_version {
        path.push_str(&format!("resourceVersion={version}"));
        if request.not_older_than {
            path.push_str("&resourceVersionMatch=NotOlderThan");
        }
    }
    path.truncate(path.trim_end_matches(['&', '?']).len());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_is_asked_for_without_a_resource_version() {
        let mut request = ListRequest {
            namespace: "n",
            resource_version: Some("0"),
            not_older_than: false,
            limit: None,
            due: None,
        };
        assert_eq!(path_of(&request, ""), "/api/v1/namespaces/n/configmaps?resourceVersion=0");
        request.limit = Some(500);
        assert_eq!(path_of(&request, "a&b"), "/api/v1/namespaces/n/configmaps?limit=500&continue=a%26b");
        request = ListRequest { resource_version: None, limit: None, ..request };
        assert_eq!(path_of(&request, ""), "/api/v1/namespaces/n/configmaps");
        request =
            ListRequest { resource_version: Some("17"), not_older_than: true, limit: Some(5), ..request };
        let asked = "limit=5&resourceVersion=17&resourceVersionMatch=NotOlderThan";
        assert_eq!(path_of(&request, ""), format!("/api/v1/namespaces/n/configmaps?{asked}"));
    }

    #[test]
    fn objects_that_are_not_the_ledgers_are_not_counted() {
        let page = br#"{"metadata":{"resourceVersion":"9"},"items":[
            {"metadata":{"name":"kube-root-ca.crt"}},{"metadata":{"name":"ledger-4"}}]}"#;
        let (answer, next) = read_page(page).unwrap();
        assert_eq!(answer.ids.unwrap().to_ranges(), "4");
        assert_eq!((answer.revision, next.as_str(), answer.more), (Some(9), "", false));
        assert!(
            read_page(br#"{"metadata":{},"items":[]}"#).is_none(),
            "a list without a revision can't be held against the truth"
        );
    }
}
