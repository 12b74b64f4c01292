//! The few fields that clients need of the API server's JSON, borrowed where possible.

use crate::wire::failure::FailureClass;
use serde::Deserialize;
use std::borrow::Cow;

/// `metadata` of an object or a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta<'a> {
    /// Object name; empty for lists.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Namespace; empty for lists and cluster-wide objects.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    /// Token for the next page; empty on the last one.
    #[serde(borrow, rename = "continue")]
    pub continue_token: Cow<'a, str>,
    annotations: Annotations,
}

impl Meta<'_> {
    /// The resourceVersion as the number that it is.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }

    /// It ends the initial events of a watch that began with them.
    #[must_use]
    pub fn ends_initial_events(&self) -> bool {
        self.annotations.initial_events_end.is_some()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    // Present is what counts; its value is `true`.
    #[serde(rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<serde::de::IgnoredAny>,
}

/// A ConfigMap of the ledger.
#[derive(Debug, Deserialize)]
pub struct ConfigMap<'a> {
    /// Name and resourceVersion.
    #[serde(borrow)]
    pub metadata: Meta<'a>,
    /// Its value.
    #[serde(borrow, default)]
    pub data: Data<'a>,
}

/// `data` of a ledger object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Data<'a> {
    /// The unique value.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct List<'a> {
    /// resourceVersion and continuation.
    #[serde(borrow)]
    pub metadata: Meta<'a>,
    /// Its objects.
    #[serde(borrow, default = "Vec::new")]
    pub items: Vec<Item<'a>>,
}

/// An object of which only the metadata matters.
#[derive(Debug, Deserialize)]
pub struct Item<'a> {
    /// Name, namespace, resourceVersion.
    #[serde(borrow)]
    pub metadata: Meta<'a>,
}

/// A coordination.k8s.io Lease.
#[derive(Debug, Deserialize)]
pub struct Lease<'a> {
    /// resourceVersion.
    #[serde(borrow)]
    pub metadata: Meta<'a>,
    /// Its holder.
    #[serde(borrow, default)]
    pub spec: LeaseSpec<'a>,
}

/// `spec` of a Lease.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec<'a> {
    /// Empty or absent when nobody holds it.
    #[serde(borrow)]
    pub holder_identity: Option<Cow<'a, str>>,
}

/// One line of a watch.
#[derive(Debug, Deserialize)]
pub struct WatchLine<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    /// The object; for `ERROR` a Status.
    #[serde(borrow)]
    pub object: WatchedObject<'a>,
}

/// Object of a watch line: an object's metadata, or a Status.
#[derive(Debug, Deserialize)]
pub struct WatchedObject<'a> {
    /// Name and resourceVersion.
    #[serde(borrow, default)]
    pub metadata: Meta<'a>,
    /// Status code of an `ERROR`.
    #[serde(default)]
    pub code: u16,
    /// Message of an `ERROR`.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    details: Details<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    causes: Vec<Cause<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
}

/// Class of an answer that is not a success, from its status code and, where
/// there is one, the Status object in its body.
#[must_use]
pub fn refusal_class(code: u16, body: &[u8]) -> FailureClass {
    let status: Status<'_> = serde_json::from_slice(body).unwrap_or_default();
    match code {
        401 => FailureClass::Unauthorized,
        403 => FailureClass::Forbidden,
        404 => FailureClass::NotFound,
        409 if status.reason == "AlreadyExists" => FailureClass::AlreadyExists,
        409 => FailureClass::Conflict,
        410 => FailureClass::Gone,
        429 if status.message.contains("(re)initializing") => FailureClass::Reinitializing,
        429 => FailureClass::TooManyRequests,
        504 if status.details.causes.iter().any(|c| c.reason == "ResourceVersionTooLarge") => {
            FailureClass::TooLargeResourceVersion
        }
        504 => FailureClass::Timeout,
        500 if status.message.contains("requested lease not found") => FailureClass::LeaseNotFound,
        500.. => FailureClass::ServerError,
        _ => FailureClass::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_that_share_a_status_code_are_told_apart() {
        let reinitializing =
            br#"{"kind":"Status","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}"#;
        assert_eq!(refusal_class(429, reinitializing), FailureClass::Reinitializing);
        assert_eq!(refusal_class(429, b"Too many requests"), FailureClass::TooManyRequests);
        let too_large = br#"{"kind":"Status","message":"Timeout: Too large resource version: 9, current: 5",
            "reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"m"}]},"code":504}"#;
        assert_eq!(refusal_class(504, too_large), FailureClass::TooLargeResourceVersion);
        assert_eq!(refusal_class(504, b"{}"), FailureClass::Timeout);
        assert_eq!(refusal_class(409, br#"{"reason":"AlreadyExists"}"#), FailureClass::AlreadyExists);
        assert_eq!(refusal_class(409, br#"{"reason":"Conflict"}"#), FailureClass::Conflict);
        assert_eq!(refusal_class(500, b""), FailureClass::ServerError);
        assert_eq!(refusal_class(422, b""), FailureClass::Invalid);
    }

    #[test]
    fn a_list_page_is_read_without_its_payload() {
        let page = br#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"12","continue":"abc"},
            "items":[{"metadata":{"name":"ledger-3","namespace":"n","resourceVersion":"7","uid":"u"},"data":{"value":"x"}}]}"#;
        let list: List<'_> = serde_json::from_slice(page).unwrap();
        assert_eq!(list.metadata.revision(), Some(12));
        assert_eq!(list.metadata.continue_token, "abc");
        assert!(matches!(list.items[0].metadata.name, Cow::Borrowed("ledger-3")));
        assert_eq!(list.items[0].metadata.revision(), Some(7));
    }

    #[test]
    fn an_error_event_gives_its_code() {
        let line =
            br#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410,"message":"too old"}}"#;
        let line: WatchLine<'_> = serde_json::from_slice(line).unwrap();
        assert_eq!((line.kind.as_ref(), line.object.code), ("ERROR", 410));
    }
}
