//! Where two JSON documents differ.

use serde::Serialize;
use serde_json::Value;

/// One place where two documents differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// JSON path, such as `$.objectives[0].verdict`.
    pub path: String,
    /// In the first document, shortened; `nothing` when it is absent.
    pub first: String,
    /// In the second one.
    pub second: String,
}

/// The first `limit` places where two documents differ, in the order of the first document.
#[must_use]
pub fn differences(first: &Value, second: &Value, limit: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("$".to_owned(), Some(first), Some(second), limit, &mut found);
    found
}

fn compare(path: String, a: Option<&Value>, b: Option<&Value>, limit: usize, found: &mut Vec<Difference>) {
    if found.len() >= limit || a == b {
        return;
    }
    match (a, b) {
        (Some(Value::Object(x)), Some(Value::Object(y))) => {
            let added = y.keys().filter(|key| !x.contains_key(*key));
            for key in x.keys().chain(added) {
                compare(format!("{path}{}", member(key)), x.get(key), y.get(key), limit, found);
            }
        }
        (Some(Value::Array(x)), Some(Value::Array(y))) => {
            for index in 0..x.len().max(y.len()) {
                compare(format!("{path}[{index}]"), x.get(index), y.get(index), limit, found);
            }
        }
        _ => found.push(Difference { path, first: shortened(a), second: shortened(b) }),
    }
}

fn member(key: &str) -> String {
    let plain = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain { format!(".{key}") } else { format!("[{key:?}]") }
}

fn shortened(value: Option<&Value>) -> String {
    const LIMIT: usize = 120;
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_place_is_named_as_a_path() {
        let a = json!({"objectives": [{"verdict": "pass", "odd key": 1}], "gone": 1});
        let b = json!({"objectives": [{"verdict": "fail", "odd key": 2}], "new": null});
        let found = differences(&a, &b, 10);
        let paths: Vec<_> = found.iter().map(|d| d.path.as_str()).collect();
        assert_eq!(paths, ["$.objectives[0].verdict", "$.objectives[0][\"odd key\"]", "$.gone", "$.new"]);
        assert_eq!((found[0].first.as_str(), found[0].second.as_str()), ("\"pass\"", "\"fail\""));
        assert_eq!(found[2].second, "nothing");
        assert_eq!(differences(&a, &a, 10), []);
        assert_eq!(differences(&a, &b, 1).len(), 1);
    }
}
