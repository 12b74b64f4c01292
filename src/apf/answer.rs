//! Which refusal an answer is: several of them are a 429.

use serde::{Deserialize, Serialize};

/// What is looked at of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// `X-Kubernetes-PF-PriorityLevel-UID` was there: Priority and Fairness has decided about the request.
    pub has_level: bool,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// Begin of the body.
    pub body: &'a [u8],
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Class {
    /// 2xx: executed.
    Ok,
    /// Refused by Priority and Fairness: text and both headers. Whether the queue was full, the wait had ended or
    /// nothing may wait is only in the server's metrics and, by its time, in the record.
    FlowControl,
    /// Executed, and refused by a cache that is being filled (429 with a Status, 1.31 and later).
    StorageInitializing,
    /// Executed, and refused for a PodDisruptionBudget (429 with a Status).
    DisruptionBudget,
    /// Refused by a server that is going down (429 without the headers).
    ShuttingDown,
    /// Refused by the limits of requests in flight, which are used when Priority and Fairness is off.
    MaxInFlight,
    /// 401: nobody known.
    Unauthenticated,
    /// 403: known, and not allowed; a seat was used all the same.
    Forbidden,
    /// Any other status.
    Other,
}

impl Class {
    /// Whether the request was given a seat, whatever came of it.
    #[must_use]
    pub fn was_executed(self) -> bool {
        matches!(self, Class::Ok | Class::StorageInitializing | Class::DisruptionBudget | Class::Forbidden)
    }
}

/// Classifies an answer. Bodies as in `k8s.io/apiserver` `pkg/server/filters` and `pkg/storage/errors.go`, 1.29 to 1.37.
#[must_use]
pub fn classify(answer: Answer<'_>) -> Class {
    match answer.status {
        200..=299 => Class::Ok,
        401 => Class::Unauthenticated,
        403 => Class::Forbidden,
        429 => too_many(answer),
        _ => Class::Other,
    }
}

fn too_many(answer: Answer<'_>) -> Class {
    let body = String::from_utf8_lossy(answer.body);
    let is_status = answer.content_type.is_some_and(|t| t.starts_with("application/json"))
        && body.contains("\"kind\":\"Status\"");
    if body.contains("storage is (re)initializing") {
        return Class::StorageInitializing;
    }
    if is_status {
        return if body.contains("DisruptionBudget") { Class::DisruptionBudget } else { Class::Other };
    }
    if body.starts_with("The apiserver is shutting down") {
        return Class::ShuttingDown;
    }
    if body.starts_with("Too many requests, please try again later.") {
        return if answer.has_level { Class::FlowControl } else { Class::MaxInFlight };
    }
    Class::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, has_level: bool, content_type: &str, body: &str) -> Class {
        classify(Answer { status, has_level, content_type: Some(content_type), body: body.as_bytes() })
    }

    #[test]
    fn look_alikes_of_429_are_told_apart() {
        let text = "text/plain; charset=utf-8";
        let too_many = "Too many requests, please try again later.\n";
        let status = |message: &str, causes: &str| {
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"TooManyRequests","details":{{"causes":[{causes}]}},"code":429}}"#
            )
        };
        assert_eq!(class(429, true, text, too_many), Class::FlowControl);
        assert_eq!(class(429, false, text, too_many), Class::MaxInFlight);
        assert_eq!(
            class(429, false, text, "The apiserver is shutting down, please try again later.\n"),
            Class::ShuttingDown
        );
        let json = "application/json";
        assert_eq!(
            class(429, true, json, &status("storage is (re)initializing", "")),
            Class::StorageInitializing
        );
        let budget = status("Cannot evict pod", r#"{"reason":"DisruptionBudget"}"#);
        assert_eq!(class(429, true, json, &budget), Class::DisruptionBudget);
        assert_eq!(class(429, true, json, &status("something else", "")), Class::Other);
        assert_eq!(class(429, true, text, "another proxy says no"), Class::Other);
    }

    #[test]
    fn what_used_a_seat_is_not_what_went_well() {
        assert!(class(403, true, "application/json", "").was_executed());
        assert!(!class(401, false, "application/json", "").was_executed());
        assert!(!class(429, true, "text/plain", "Too many requests, please try again later.").was_executed());
    }

    /// Text that quotes a Status is no Status, and a Status without its content type is none either.
    #[test]
    fn only_json_that_says_so_is_a_status() {
        let quoted = r#"Too many requests, please try again later. {"kind":"Status"}"#;
        assert_eq!(class(429, true, "text/plain; charset=utf-8", quoted), Class::FlowControl);
        let no_type = Answer { status: 429, has_level: true, content_type: None, body: quoted.as_bytes() };
        assert_eq!(classify(no_type), Class::FlowControl);
        assert_eq!(
            class(429, true, "application/json", "Too many requests, please try again later."),
            Class::FlowControl
        );
    }
}
