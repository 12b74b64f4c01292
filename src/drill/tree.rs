//! A YAML document as a tree in which every node knows where it stands.
//!
//! The tree lies between YAML and the typed drill, so that `$(parameter)` can be
//! filled in before types are known while every later error still points at the
//! text that the author wrote.

use super::source::Stand;
use std::collections::BTreeMap;
use std::ops::Range;

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Bytes of the node's own text; for a list or mapping, of everything in it.
    pub span: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// `~`, `null` or nothing.
    Null,
    /// A scalar.
    Scalar {
        /// Its text: the contents of a string, the digits of a number as written.
        text: String,
        /// Certainly a string; otherwise it may be read as a number or boolean.
        string: bool,
    },
    /// A list.
    Seq(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// Key of a mapping's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// Its text.
    pub text: String,
    /// Bytes of the file.
    pub span: Range<usize>,
}

impl Node {
    /// The entry of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, n)| n),
            _ => None,
        }
    }

    /// Every node below and including this one, by path.
    pub fn places(&self) -> BTreeMap<String, Stand> {
        let mut places = BTreeMap::new();
        self.collect(String::new(), None, &mut places);
        places
    }

    fn collect(&self, path: String, key: Option<Range<usize>>, places: &mut BTreeMap<String, Stand>) {
        let scalar = matches!(self.value, Value::Scalar { .. });
        match &self.value {
            Value::Seq(items) => {
                for (i, item) in items.iter().enumerate() {
                    item.collect(format!("{path}[{i}]"), None, places);
                }
            }
            Value::Map(entries) => {
                for (k, node) in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    node.collect(format!("{path}{dot}{}", k.text), Some(k.span.clone()), places);
                }
            }
            Value::Null | Value::Scalar { .. } => {}
        }
        places.insert(path, Stand { key, value: self.span.clone(), scalar });
    }

    /// Takes out the smallest thing around `span` without which the rest can still be
    /// judged: an entry whose key stands there, else the list item that contains it.
    /// False when there is none.
    pub fn prune(&mut self, span: &Range<usize>) -> bool {
        match &mut self.value {
            Value::Map(entries) => {
                for (_, node) in entries.iter_mut() {
                    if node.contains(span) && node.prune(span) {
                        return true;
                    }
                }
                false
            }
            Value::Seq(items) => {
                for i in 0..items.len() {
                    if items[i].contains(span) {
                        if !items[i].prune(span) {
                            items.remove(i);
                        }
                        return true;
                    }
                }
                false
            }
            Value::Null | Value::Scalar { .. } => false,
        }
    }

    /// Takes out the mapping entry whose key stands exactly at `span`.
    pub fn remove_key(&mut self, span: &Range<usize>) -> bool {
        match &mut self.value {
            Value::Map(entries) => {
                if let Some(i) = entries.iter().position(|(k, _)| k.span == *span) {
                    entries.remove(i);
                    return true;
                }
                entries.iter_mut().any(|(_, node)| node.remove_key(span))
            }
            Value::Seq(items) => items.iter_mut().any(|node| node.remove_key(span)),
            Value::Null | Value::Scalar { .. } => false,
        }
    }

    fn contains(&self, span: &Range<usize>) -> bool {
        self.span.start <= span.start && span.end <= self.span.end
    }
}
