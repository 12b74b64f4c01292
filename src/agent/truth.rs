//! Holds a LIST against etcd's own state at the same revision. Pure.

use std::collections::BTreeMap;
use std::fmt;

/// `namespace/name` → resourceVersion, or mod revision.
pub type Revisions = BTreeMap<String, u64>;

/// How a LIST differs from etcd.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Listed, but etcd has none.
    pub phantom: Vec<String>,
    /// In etcd, but not listed.
    pub absent: Vec<String>,
    /// Listed with another revision than etcd's.
    pub changed: Vec<String>,
}

/// How `listed` differs from `stored`; `None` when it does not.
#[must_use]
pub fn difference(listed: &Revisions, stored: &Revisions) -> Option<Difference> {
    let mut found = Difference::default();
    for (name, revision) in listed {
        match stored.get(name) {
            None => found.phantom.push(name.clone()),
            Some(other) if other != revision => found.changed.push(name.clone()),
            Some(_) => {}
        }
    }
    found.absent.extend(stored.keys().filter(|name| !listed.contains_key(*name)).cloned());
    (found != Difference::default()).then_some(found)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} listed that etcd has not, {} missing, {} with another revision",
            self.phantom.len(),
            self.absent.len(),
            self.changed.len()
        )?;
        let example =
            [&self.phantom, &self.absent, &self.changed].into_iter().find_map(|names| names.first());
        match example {
            // Names come from the cluster.
            Some(name) => write!(f, "; for instance {}", name.escape_default()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn revisions(pairs: &[(&str, u64)]) -> Revisions {
        pairs.iter().map(|(name, revision)| ((*name).to_owned(), *revision)).collect()
    }

    #[test]
    fn each_kind_of_difference_is_told_apart() {
        let listed = revisions(&[("d/lost", 9), ("d/same", 2), ("d/newer", 5)]);
        let stored = revisions(&[("d/same", 2), ("d/newer", 4), ("d/unseen", 8)]);
        let found = difference(&listed, &stored).unwrap();
        assert_eq!(found.phantom, ["d/lost"]);
        assert_eq!(found.absent, ["d/unseen"]);
        assert_eq!(found.changed, ["d/newer"]);
        assert_eq!(
            found.to_string(),
            "1 listed that etcd has not, 1 missing, 1 with another revision; for instance d/lost"
        );
    }

    proptest! {
        #[test]
        fn there_is_a_difference_exactly_when_the_two_are_unequal(
            listed in proptest::collection::btree_map("[ab]", 1u64..3, 0..3),
            stored in proptest::collection::btree_map("[ab]", 1u64..3, 0..3),
        ) {
            prop_assert_eq!(difference(&listed, &stored).is_none(), listed == stored);
        }
    }
}
