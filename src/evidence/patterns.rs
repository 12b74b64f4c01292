//! What secrets look like in a line of text. One list for finding and for redacting, so
//! that whatever is redacted can't be found any more.

use std::ops::Range;

/// A kind of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A PEM block of a private key, from its first dash on.
    PrivateKey,
    /// The same in base64, as kubeconfigs and Secrets hold it.
    EncodedPrivateKey,
    /// A JSON Web Token.
    Jwt,
    /// Something behind `Bearer `.
    Bearer,
    /// The value of a key such as `token`, `password` or `client-key-data`.
    Value,
}

impl Pattern {
    pub(super) fn words(self) -> &'static str {
        match self {
            Pattern::PrivateKey => "private key",
            Pattern::EncodedPrivateKey => "private key in base64",
            Pattern::Jwt => "JSON Web Token",
            Pattern::Bearer => "bearer token",
            Pattern::Value => "secret value",
        }
    }
}

/// What stands in the place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// base64 of `-----BEGIN` followed by each kind of private key that OpenSSL and Go write.
const ENCODED_KEYS: [&str; 4] = [
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS",
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
    "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS",
    "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVkt",
];

/// Keys whose values are secrets, lower case.
const KEYS: [&str; 6] = ["client-key-data", "token", "password", "passwd", "secret-key", "bearer-token"];

/// Every secret in a line, in ascending order and without overlap.
pub(super) fn find(line: &str) -> Vec<(Range<usize>, Pattern)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        match starts_here(line, at) {
            Some((range, pattern)) => {
                at = range.end.max(at + 1);
                found.push((range, pattern));
            }
            None => at += 1,
        }
        while !line.is_char_boundary(at) {
            at += 1;
        }
    }
    found
}

fn starts_here(line: &str, at: usize) -> Option<(Range<usize>, Pattern)> {
    let rest = &line[at..];
    match rest.as_bytes()[0] {
        b'-' => private_key(rest).map(|end| (at..at + end, Pattern::PrivateKey)),
        b'L' => ENCODED_KEYS
            .iter()
            .any(|key| rest.starts_with(key))
            .then(|| (at..at + run(rest, is_base64), Pattern::EncodedPrivateKey)),
        b'e' if !within_word(line, at) => jwt(rest).map(|end| (at..at + end, Pattern::Jwt)),
        b'B' | b'b' if starts_with_ignoring_case(rest, "bearer ") => {
            let value = &rest["bearer ".len()..];
            let length = run(value, is_token);
            let start = at + "bearer ".len();
            (length >= 8).then(|| (start..start + length, Pattern::Bearer))
        }
        b'c' | b't' | b'p' | b's' | b'b' | b'C' | b'T' | b'P' | b'S' => keyed_value(line, at),
        _ => None,
    }
}

/// `-----BEGIN … PRIVATE KEY-----` up to the end of the block or of the line.
fn private_key(rest: &str) -> Option<usize> {
    let label = rest.strip_prefix("-----BEGIN ")?;
    let end = label.find("-----")?;
    if !label[..end].ends_with("PRIVATE KEY") {
        return None;
    }
    let body = &label[end..];
    Some(match body.find("-----END ") {
        Some(at) => {
            let tail = &body[at + "-----END ".len()..];
            let closed = tail.find("-----").map_or(tail.len(), |dashes| dashes + 5);
            rest.len() - tail.len() + closed
        }
        None => rest.len(),
    })
}

fn jwt(rest: &str) -> Option<usize> {
    if !rest.starts_with("eyJ") {
        return None;
    }
    let header = run(rest, is_base64url);
    let payload = rest[header..].strip_prefix('.')?;
    let length = run(payload, is_base64url);
    if !payload.starts_with("eyJ") || header < 10 || length < 4 {
        return None;
    }
    let mut end = header + 1 + length;
    if let Some(signature) = rest[end..].strip_prefix('.') {
        end += 1 + run(signature, is_base64url);
    }
    Some(end)
}

/// `key=value`, `key: value`, `"key":"value"` and the like.
fn keyed_value(line: &str, at: usize) -> Option<(Range<usize>, Pattern)> {
    if within_word(line, at) {
        return None;
    }
    let rest = &line[at..];
    let key = KEYS.iter().find(|key| starts_with_ignoring_case(rest, key))?;
    let mut value = &rest[key.len()..];
    value = value.trim_start_matches(['"', '\'', '\\']);
    let after = value.strip_prefix('=').or_else(|| value.strip_prefix(':'))?;
    let quoted = after.trim_start().trim_start_matches(['"', '\'', '\\']);
    let length = run(quoted, is_token);
    let start = line.len() - quoted.len();
    // Short values are words: `token: none`, `password=""`.
    (length >= 8).then(|| (start..start + length, Pattern::Value))
}

fn within_word(line: &str, at: usize) -> bool {
    line[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric())
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

fn run(text: &str, accept: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| accept(*b)).count()
}

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

fn is_base64url(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

fn is_token(b: u8) -> bool {
    is_base64(b) || is_base64url(b) || matches!(b, b'.' | b'~')
}
