//! What a load asks an API server for.

use super::load_spec::{Load, LoadRequest};
use crate::history::record::Asked;
use crate::load::exchange::Outgoing;
use hyper::Method;
use hyper::body::Bytes;
use std::time::Duration;

/// ConfigMap that loads read; a `load` step makes it.
pub const TARGET: &str = "quakeproof-load";
/// After which a watch of a load is to end.
const WATCH_SECONDS: u64 = 2;

/// As histories have it.
#[must_use]
pub fn asked(request: &LoadRequest) -> Asked {
    match request {
        LoadRequest::Get {} => Asked::Get,
        LoadRequest::List { .. } => Asked::List,
        LoadRequest::Patch {} => Asked::Patch,
        LoadRequest::Watch {} => Asked::Watch,
        LoadRequest::Create { .. } => Asked::Create,
        LoadRequest::Delete { .. } => Asked::Delete,
        LoadRequest::SlowCreate { .. } => Asked::SlowCreate,
    }
}

/// The `index`-th request of a load.
#[must_use]
pub fn request(namespace: &str, client: &str, load: &Load, index: usize) -> Outgoing {
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let query = load.timeout.map(|t| format!("?timeout={}ms", t.0.as_millis())).unwrap_or_default();
    let object = |name: &str, bytes: u32| {
        format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"value":"{}"}}"#, "x".repeat(bytes as usize))
    };
    let made = |client: &str| format!("{client}-{index}");
    let post = |body: Vec<Bytes>, pause: Duration| Outgoing {
        method: Method::POST,
        body,
        pause,
        ..Outgoing::get(format!("{maps}{query}"))
    };
    match &load.request {
        LoadRequest::Get {} => get(namespace, &query),
        LoadRequest::List { limit: None, .. } => Outgoing::get(format!("{maps}{query}")),
        LoadRequest::List { limit: Some(limit), all_pages } => {
            let separator = if query.is_empty() { "?" } else { "&" };
            let path = format!("{maps}{query}{separator}limit={limit}");
            Outgoing { paged: *all_pages, ..Outgoing::get(path) }
        }
        LoadRequest::Patch {} => Outgoing {
            method: Method::PATCH,
            content_type: "application/merge-patch+json",
            body: vec![Bytes::from(format!(r#"{{"data":{{"value":"{index}"}}}}"#))],
            ..Outgoing::get(format!("{maps}/{TARGET}{query}"))
        },
        LoadRequest::Watch {} => {
            Outgoing::get(format!("{maps}?watch=true&resourceVersion=0&timeoutSeconds={WATCH_SECONDS}"))
        }
        LoadRequest::Create { value_bytes } => {
            post(vec![Bytes::from(object(&made(client), *value_bytes) + "}")], Duration::ZERO)
        }
        LoadRequest::Delete { of } => {
            let path = format!("{maps}/{}{query}", made(of));
            Outgoing { method: Method::DELETE, ..Outgoing::get(path) }
        }
        LoadRequest::SlowCreate { duration } => {
            post(vec![Bytes::from(object(&made(client), 1)), Bytes::from_static(b"}")], duration.0)
        }
    }
}

/// GET of the one ConfigMap.
#[must_use]
pub fn get(namespace: &str, query: &str) -> Outgoing {
    Outgoing::get(format!("/api/v1/namespaces/{namespace}/configmaps/{TARGET}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::load_spec::LoadProtocol;
    use crate::drill::values::Span;
    use crate::load::arrivals::{Arrivals, Serial};

    fn load(request: LoadRequest, timeout: Option<Span>) -> Load {
        Load {
            name: "l".to_owned(),
            arrivals: Arrivals::Serial(Serial { requests: 1, at_a_time: 1 }),
            request,
            timeout,
            protocol: LoadProtocol::Http1,
            connections: 1,
            in_flight: 1,
            server: None,
            while_held_by: None,
        }
    }

    fn sent(what: LoadRequest, timeout: Option<Span>) -> Outgoing {
        request("n", "l", &load(what, timeout), 7)
    }

    #[test]
    fn requests_ask_for_what_they_say() {
        let maps = "/api/v1/namespaces/n/configmaps";
        let path = |what, timeout| sent(what, timeout).path;
        assert_eq!(path(LoadRequest::Get {}, None), format!("{maps}/{TARGET}"));
        let short = Some(Span::millis(1500));
        assert_eq!(path(LoadRequest::Get {}, short), format!("{maps}/{TARGET}?timeout=1500ms"));
        assert_eq!(
            path(LoadRequest::List { limit: Some(5), all_pages: false }, None),
            format!("{maps}?limit=5")
        );
        assert_eq!(
            path(LoadRequest::List { limit: Some(5), all_pages: false }, short),
            format!("{maps}?timeout=1500ms&limit=5")
        );
        assert!(path(LoadRequest::Watch {}, None).contains("watch=true"));
        let delete = sent(LoadRequest::Delete { of: "made".to_owned() }, None);
        assert_eq!((delete.method, delete.path), (Method::DELETE, format!("{maps}/made-7")));
        let patch = sent(LoadRequest::Patch {}, None);
        assert_eq!((patch.method, patch.content_type), (Method::PATCH, "application/merge-patch+json"));
    }

    #[test]
    fn a_body_in_parts_is_an_object_once_it_is_whole() {
        let slow = sent(LoadRequest::SlowCreate { duration: Span::secs(3) }, None);
        assert_eq!((slow.body.len(), slow.pause), (2, Duration::from_secs(3)));
        for outgoing in [slow, sent(LoadRequest::Create { value_bytes: 400 }, None)] {
            let object: serde_json::Value = serde_json::from_slice(&outgoing.body.concat()).unwrap();
            assert_eq!(object["metadata"]["name"], "l-7");
        }
    }
}
