//! One line of a watch as the event that a history holds.

use crate::history::record::Event;
use crate::ledger::id_of;
use crate::wire::failure::FailureClass;
use crate::wire::objects::WatchLine;

/// The event that a line is. A line that can't be read ends the stream.
#[must_use]
pub fn event_of(line: &[u8]) -> Event {
    let malformed = || Event::Ended { reason: FailureClass::Malformed.to_string() };
    let Ok(line) = serde_json::from_slice::<WatchLine<'_>>(line) else { return malformed() };
    if line.kind == "ERROR" {
        return Event::Error { code: line.object.code, message: line.object.message.into_owned() };
    }
    let metadata = &line.object.metadata;
    let Some(revision) = metadata.revision() else { return malformed() };
    match (line.kind.as_ref(), id_of(&metadata.name)) {
        ("ADDED" | "MODIFIED", Some(id)) => Event::Put { id, revision },
        ("DELETED", Some(id)) => Event::Delete { id, revision },
        ("BOOKMARK", _) => Event::Bookmark { revision, initial_events_end: metadata.ends_initial_events() },
        _ => Event::Other { revision },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, name: &str) -> Event {
        event_of(
            format!(
                r#"{{"type":"{kind}","object":{{"metadata":{{"name":"{name}","resourceVersion":"7"}}}}}}"#
            )
            .as_bytes(),
        )
    }

    #[test]
    fn every_kind_of_watch_line_becomes_its_event() {
        assert_eq!(line("ADDED", "ledger-3"), Event::Put { id: 3, revision: 7 });
        assert_eq!(line("MODIFIED", "ledger-3"), Event::Put { id: 3, revision: 7 });
        assert_eq!(line("DELETED", "ledger-3"), Event::Delete { id: 3, revision: 7 });
        assert_eq!(line("ADDED", "kube-root-ca.crt"), Event::Other { revision: 7 });
        let gone = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(event_of(gone), Event::Error { code: 410, message: "too old".to_owned() });
        assert_eq!(event_of(b"{\"type\":"), Event::Ended { reason: "malformed".to_owned() });
    }

    #[test]
    fn the_bookmark_that_ends_initial_events_is_told_from_others() {
        let bookmark =
            br#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","metadata":{"resourceVersion":"9"}}}"#;
        assert_eq!(event_of(bookmark), Event::Bookmark { revision: 9, initial_events_end: false });
        let last = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert_eq!(event_of(last), Event::Bookmark { revision: 9, initial_events_end: true });
    }
}
