//! One request and everything that is recorded of its answer.

use crate::apf::answer::{Answer, Class, classify};
use crate::clock::{Clock, MonoNs};
use crate::history::record::Exchange;
use crate::wire::failure::FailureClass;
use futures::stream::{self, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use hyper::{Method, Request, Response, header};
use memchr::memmem;
use std::convert::Infallible;
use std::time::Duration;

/// The schema that a request was classified by.
const SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";
/// The level that it was sent to.
const LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";
/// Bytes of a body that are looked at; the rest is read and dropped.
const LOOKED_AT: usize = 4096;

/// Body of a request.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Media type of the body.
    pub content_type: &'static str,
    /// JSON in parts, a pause before each but the first.
    pub body: Vec<Bytes>,
    /// The pause.
    pub pause: Duration,
    /// The answer is a page of a list, and where the next one begins is wanted.
    pub paged: bool,
}

impl Outgoing {
    /// A GET.
    #[must_use]
    pub fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            content_type: "application/json",
            body: Vec::new(),
            pause: Duration::ZERO,
            paged: false,
        }
    }

    /// The same for the page of a list that begins here.
    #[must_use]
    pub fn page(mut self, token: &str) -> Self {
        let asked = self.path.find("&continue=").unwrap_or(self.path.len());
        self.path.truncate(asked);
        self.path.push_str("&continue=");
        self.path.push_str(token);
        self
    }

    /// The request for one connection; HTTP/2 needs the authority, HTTP/1.1 the header.
    pub(super) fn request(self, authority: &str, http2: bool) -> Request<Body> {
        let uri = if http2 { format!("https://{authority}{}", self.path) } else { self.path };
        let mut request = Request::builder()
            .method(self.method)
            .uri(uri)
            .header(header::USER_AGENT, "quakeproof")
            .header(header::ACCEPT, "application/json");
        if !http2 {
            request = request.header(header::HOST, authority);
        }
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        request.body(body(self.body, self.pause)).expect("paths are built from names and numbers")
    }
}

fn body(mut parts: Vec<Bytes>, pause: Duration) -> Body {
    if parts.len() < 2 {
        return Full::new(parts.pop().unwrap_or_default()).boxed_unsync();
    }
    let parts = stream::iter(parts.into_iter().enumerate()).then(move |(index, part)| async move {
        if index > 0 {
            tokio::time::sleep(pause).await;
        }
        Ok(Frame::data(part))
    });
    StreamBody::new(parts).boxed_unsync()
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// Status; absent without an answer.
    pub status: Option<u16>,
    /// Why there is no whole answer.
    pub failure: Option<FailureClass>,
    /// Where the next page of a list begins, when there is one and it was wanted.
    pub next_page: Option<String>,
    /// What is recorded of it.
    pub seen: Exchange,
}

impl Exchanged {
    /// No answer.
    #[must_use]
    pub fn failed(failure: FailureClass, sent: Option<MonoNs>) -> Self {
        let seen = Exchange { sent_ns: sent, ..Exchange::default() };
        Self { status: None, failure: Some(failure), next_page: None, seen }
    }
}

/// Reads an answer to its end.
pub(super) async fn read(
    response: Response<Incoming>,
    paged: bool,
    sent: MonoNs,
    clock: &dyn Clock,
) -> Exchanged {
    let first_byte = clock.mono();
    let (head, mut body) = response.into_parts();
    let mut begin = Vec::new();
    let mut failure = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => {
                let room = LOOKED_AT.saturating_sub(begin.len()).min(data.len());
                begin.extend_from_slice(&data[..room]);
            }
            Ok(Err(_)) => {}
            Err(_) => {
                failure = Some(FailureClass::ConnectionLost);
                break;
            }
        }
    }
    let status = head.status.as_u16();
    let text = |name: &str| text(&head.headers, name);
    let (schema, level) = (text(SCHEMA), text(LEVEL));
    let content_type = text(CONTENT_TYPE.as_str());
    let class = classify(Answer {
        status,
        has_level: level.is_some(),
        content_type: content_type.as_deref(),
        body: &begin,
    });
    let class: Option<Class> = failure.is_none().then_some(class);
    let seen = Exchange {
        sent_ns: Some(sent),
        first_byte_ns: Some(first_byte),
        class,
        schema,
        level,
        retry_after_seconds: text(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok()),
    };
    let next_page = (paged && class == Some(Class::Ok)).then(|| next_page(&begin)).flatten();
    Exchanged { status: Some(status), failure, next_page, seen }
}

/// The metadata of a list come before its items. A token is base64 without padding, so it can stand in a query as it is.
fn next_page(begin: &[u8]) -> Option<String> {
    let head = &begin[..memmem::find(begin, b"\"items\":").unwrap_or(begin.len())];
    let key: &[u8] = b"\"continue\":\"";
    let token = &head[memmem::find(head, key)? + key.len()..];
    let token = &token[..token.iter().position(|byte| *byte == b'"')?];
    let is_token = token.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    (is_token && !token.is_empty()).then(|| String::from_utf8_lossy(token).into_owned())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_named_before_the_items() {
        let list = br#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"7","continue":"eyJ2IjoibWV0YSJ9"},"items":[]}"#;
        assert_eq!(next_page(list).as_deref(), Some("eyJ2IjoibWV0YSJ9"));
        let last = br#"{"metadata":{"resourceVersion":"7"},"items":[{"data":{"continue":"x"}}]}"#;
        assert_eq!(next_page(last), None, "data of an object");
        assert_eq!(next_page(br#"{"metadata":{"continue":"a b"},"items":[]}"#), None, "no token");
        assert_eq!(next_page(br#"{"metadata":{"continue":"#), None);
    }

    #[test]
    fn a_page_takes_the_place_of_the_one_before_it() {
        let first = Outgoing::get("/maps?limit=5".to_owned());
        let second = first.page("one");
        assert_eq!(second.path, "/maps?limit=5&continue=one");
        assert_eq!(second.page("two").path, "/maps?limit=5&continue=two");
    }
}
