//! How far a restore moves the revision forward.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// How far a restore moves the revision forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bump {
    /// Not at all: revisions that clients have seen are used again.
    #[default]
    None,
    /// Past the highest revision that anyone was seen to hold, and [`Bump::MARGIN`] more.
    Auto,
    /// By this many revisions, 1 to 10^15.
    By(u64),
}

impl Bump {
    /// What `auto` adds beyond the highest revision seen, for clients that nobody asked:
    /// 10^9, which etcd's documentation takes to cover a week at 1500 writes/s.
    pub const MARGIN: u64 = 1_000_000_000;
    /// Largest bump accepted.
    pub const MAX: u64 = 1_000_000_000_000_000;

    /// The least number of revisions that are added; `None` for no bump.
    #[must_use]
    pub fn at_least(self) -> Option<u64> {
        match self {
            Bump::None => None,
            Bump::Auto => Some(Self::MARGIN),
            Bump::By(n) => Some(n),
        }
    }

    /// Revisions to add to `snapshot`, where `highest` is the highest revision that anyone
    /// was seen to hold; `None` for no bump.
    ///
    /// # Errors
    /// When `auto` would have to go further than [`Bump::MAX`]: a revision that is seen so
    /// far above the snapshot's is not of the same cluster, or was bumped itself.
    pub fn amount(self, snapshot: u64, highest: u64) -> Result<Option<u64>, String> {
        let amount = match self {
            Bump::None => return Ok(None),
            Bump::By(n) => n,
            Bump::Auto => highest.saturating_sub(snapshot).saturating_add(Self::MARGIN),
        };
        if amount > Self::MAX {
            return Err(format!(
                "`bumpRevision: auto` would add {amount} revisions to {snapshot}, since {highest} was seen; at most \
                 {} are added: is the snapshot of this cluster?",
                Self::MAX
            ));
        }
        Ok(Some(amount))
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Bump::None),
            "auto" => Ok(Bump::Auto),
            other => match other.parse::<u64>() {
                Ok(n) if (1..=Self::MAX).contains(&n) => Ok(Bump::By(n)),
                Ok(_) => Err(format!("bumpRevision `{other}` is outside 1 to {}", Self::MAX)),
                Err(_) => Err(format!("bumpRevision `{other}` is neither `none`, `auto` nor a number")),
            },
        }
    }
}

impl Serialize for Bump {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Bump::None => s.serialize_str("none"),
            Bump::Auto => s.serialize_str("auto"),
            Bump::By(n) => s.serialize_u64(*n),
        }
    }
}

impl<'de> Deserialize<'de> for Bump {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Bump;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`none`, `auto` or a number of revisions")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Bump, E> {
                Bump::parse(v).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Bump, E> {
                Bump::parse(&v.to_string()).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Bump, E> {
                Bump::parse(&v.to_string()).map_err(E::custom)
            }
        }
        d.deserialize_any(Visitor)
    }
}

impl JsonSchema for Bump {
    fn schema_name() -> Cow<'static, str> {
        "Bump".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How far a restore moves the revision forward: none, auto or a number.",
            "oneOf": [
                {"type": "string", "const": "none", "description": "Not at all."},
                {"type": "string", "const": "auto", "description": "Past the highest revision that anyone was seen to hold, and 10^9 more."},
                {"type": "integer", "minimum": 1, "maximum": Bump::MAX, "description": "By this many revisions."}
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_ends_above_everything_that_was_seen() {
        assert_eq!(Bump::Auto.amount(200, 465), Ok(Some(265 + Bump::MARGIN)));
        assert_eq!(Bump::Auto.amount(200, 100), Ok(Some(Bump::MARGIN)));
        assert_eq!(Bump::By(7).amount(200, 465), Ok(Some(7)));
        assert_eq!(Bump::None.amount(200, 465), Ok(None));
    }

    #[test]
    fn auto_refuses_to_follow_a_revision_that_can_not_be_of_this_cluster() {
        let refused = Bump::Auto.amount(200, u64::MAX).unwrap_err();
        assert!(refused.contains("is the snapshot of this cluster"), "{refused}");
    }
}
