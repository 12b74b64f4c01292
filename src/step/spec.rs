//! The steps of a drill file that are not faults.

use crate::drill::values::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

/// Saves an etcd snapshot with the `etcdctl` of the running version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakeSnapshot {
    /// Name by which later steps refer to the snapshot.
    #[serde(rename = "as")]
    pub name: String,
}

/// Lets the clients run for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// How long.
    #[serde(rename = "for")]
    pub duration: Span,
}

/// Restores every lost etcd member from a snapshot with the `etcdutl` of the
/// etcd that will run, starts it, and restarts what is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreSnapshot {
    /// Name given by an earlier `takeSnapshot`.
    pub from: String,
    /// How far the revision is moved forward. Anything but `none` also marks
    /// the old revisions compacted: etcdutl refuses either alone.
    #[serde(default)]
    pub bump_revision: Bump,
    /// Which components are restarted as part of the procedure.
    #[serde(default)]
    pub restart: Restart,
}

/// How far a restore moves the revision forward.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bump {
    /// Not at all: revisions that clients have seen are used again.
    #[default]
    None,
    /// By 10^9, which etcd's documentation takes to cover a week at 1500 writes/s.
    Auto,
    /// By this many revisions, 1 to 10^15.
    By(u64),
}

impl Bump {
    /// What `auto` stands for.
    pub const AUTO: u64 = 1_000_000_000;
    /// Largest bump accepted.
    pub const MAX: u64 = 1_000_000_000_000_000;

    /// Revisions to add; `None` for no bump.
    #[must_use]
    pub fn amount(self) -> Option<u64> {
        match self {
            Bump::None => None,
            Bump::Auto => Some(Self::AUTO),
            Bump::By(n) => Some(n),
        }
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
            "description": "How far a restore moves the revision forward: none, auto (10^9) or a number.",
            "oneOf": [
                {"type": "string", "const": "none", "description": "Not at all."},
                {"type": "string", "const": "auto", "description": "By 10^9."},
                {"type": "integer", "minimum": 1, "maximum": Bump::MAX, "description": "By this many revisions."}
            ]
        })
    }
}

/// Which components a restore restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Restart {
    /// Stop every API server before the restore and start them after it.
    pub api_servers: bool,
    /// Restart every controller manager.
    pub controller_managers: bool,
    /// Restart every scheduler.
    pub schedulers: bool,
}

/// Waits for a condition while the clients record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Observe {
    /// The condition.
    pub until: Until,
    /// The step ends here even if the condition does not hold; the objectives
    /// that needed it are then inconclusive.
    pub at_most: Span,
    /// How long to go on recording once the condition holds.
    #[serde(default = "Observe::default_then")]
    pub then: Span,
}

impl Observe {
    fn default_then() -> Span {
        Span::secs(3)
    }
}

/// What an `observe` step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Until {
    /// etcd's revision is higher than any revision that the lost timeline reached.
    RevisionPassedLost,
    /// Every API server answers `/readyz` with ok.
    ApiReady,
}
