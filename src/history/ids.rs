//! Sets of ledger ids, written as ranges: `1-480,490`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A set of ledger ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdSet(pub BTreeSet<u64>);

impl IdSet {
    /// Ids in `self` that `other` lacks.
    #[must_use]
    pub fn minus(&self, other: &IdSet) -> IdSet {
        IdSet(self.0.difference(&other.0).copied().collect())
    }

    /// Number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No ids.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The set as ranges.
    #[must_use]
    pub fn to_ranges(&self) -> String {
        let mut out = String::new();
        let mut ids = self.0.iter().copied().peekable();
        while let Some(first) = ids.next() {
            let mut last = first;
            while last.checked_add(1).is_some_and(|next| ids.next_if_eq(&next).is_some()) {
                last += 1;
            }
            if !out.is_empty() {
                out.push(',');
            }
            let _ = if first == last { write!(out, "{first}") } else { write!(out, "{first}-{last}") };
        }
        out
    }

    /// Largest number of ids that a parsed set may hold: more than the objects of any ledger, and few
    /// enough that a forged range does not exhaust memory.
    pub const MAX: u64 = 1_000_000;

    fn parse(text: &str) -> Result<Self, String> {
        let mut ids = BTreeSet::new();
        let mut room = Self::MAX;
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |t: &str| t.parse::<u64>().map_err(|_| format!("`{part}` is not an id or a range"));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(format!("`{part}` is not an ascending range"));
            }
            room = (last - first)
                .checked_add(1)
                .and_then(|count| room.checked_sub(count))
                .ok_or_else(|| format!("with `{part}` it holds more than {} ids", Self::MAX))?;
            ids.extend(first..=last);
        }
        Ok(Self(ids))
    }
}

impl FromIterator<u64> for IdSet {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        Self(ids.into_iter().collect())
    }
}

impl Serialize for IdSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.to_ranges())
    }
}

impl<'de> Deserialize<'de> for IdSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(d)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_read_as_people_write_them() {
        let set: IdSet = [1, 2, 3, 7, 9, 10].into_iter().collect();
        assert_eq!(set.to_ranges(), "1-3,7,9-10");
        assert!(IdSet::parse("5-2").is_err());
        assert!(IdSet::parse("0-18446744073709551615").is_err());
        assert!(IdSet::parse("x").is_err());
        let last = "18446744073709551614-18446744073709551615";
        assert_eq!(IdSet::parse(last).unwrap().to_ranges(), last);
    }

    #[test]
    fn a_forged_range_takes_no_more_room_than_a_ledger() {
        for bomb in ["0-1000000", "1-999999,2000001-2999999", "7-18446744073709551615"] {
            let error = IdSet::parse(bomb).unwrap_err();
            assert!(error.contains("more than 1000000 ids"), "{error}");
        }
        assert_eq!(IdSet::parse("1-1000000").unwrap().len(), 1_000_000);
    }

    proptest! {
        #[test]
        fn every_set_survives_the_round_trip(ids in proptest::collection::btree_set(0u64..500, 0..80)) {
            let set = IdSet(ids);
            prop_assert_eq!(IdSet::parse(&set.to_ranges()).unwrap(), set);
        }
    }
}
