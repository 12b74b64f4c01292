//! Where in a drill file each value stands.

use std::collections::BTreeMap;
use std::ops::Range;

/// Positions of every key and value of a drill file, by path
/// (`spec.steps[2].loseEtcd.members`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceMap {
    name: String,
    text: String,
    places: BTreeMap<String, Stand>,
}

/// Where one value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stand {
    /// Bytes of its key; absent for items of a list.
    pub key: Option<Range<usize>>,
    /// Bytes of the value.
    pub value: Range<usize>,
    /// The value is a scalar, so its own text is the best thing to point at.
    pub scalar: bool,
}

impl SourceMap {
    pub(super) fn new(name: &str, text: &str, places: BTreeMap<String, Stand>) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), places }
    }

    /// Name of the file, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Bytes to point at for the value at `path`: a scalar itself, else its key.
    /// For a path that the file does not spell out (a default), its nearest parent.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<Range<usize>> {
        let mut path = path;
        loop {
            if let Some(stand) = self.places.get(path) {
                return Some(match &stand.key {
                    Some(key) if !stand.scalar => key.clone(),
                    _ => stand.value.clone(),
                });
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}
