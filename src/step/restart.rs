//! Which components a restore restarts.

use crate::component::{ComponentId, Role};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// Which components a restore restarts: they are stopped before it and started after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Restart {
    /// API servers.
    pub api_servers: Which,
    /// Controller managers.
    pub controller_managers: Which,
    /// Schedulers.
    pub schedulers: Which,
}

impl Restart {
    /// Each role that may be restarted, with its key in the drill file and what is chosen of it.
    pub fn by_role(&self) -> [(Role, &'static str, &Which); 3] {
        [
            (Role::KubeApiserver, "apiServers", &self.api_servers),
            (Role::KubeControllerManager, "controllerManagers", &self.controller_managers),
            (Role::KubeScheduler, "schedulers", &self.schedulers),
        ]
    }
}

/// Which components of one role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Which {
    /// `false`.
    #[default]
    None,
    /// `true`.
    All,
    /// By name; not empty.
    Named(Vec<ComponentId>),
}

impl Which {
    /// Whether it is chosen.
    #[must_use]
    pub fn takes(&self, component: &ComponentId) -> bool {
        match self {
            Which::None => false,
            Which::All => true,
            Which::Named(names) => names.contains(component),
        }
    }
}

impl Serialize for Which {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Which::None => s.serialize_bool(false),
            Which::All => s.serialize_bool(true),
            Which::Named(names) => names.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Which {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Which;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false` or a list of component names, as `[kube-apiserver-1]`")
            }
            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Which, E> {
                Ok(if all { Which::All } else { Which::None })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Which, E> {
                // What a parameter was replaced by is a string.
                text.parse()
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
                    .and_then(|b| self.visit_bool(b))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Which, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(if names.is_empty() { Which::None } else { Which::Named(names) })
            }
        }
        d.deserialize_any(Visitor)
    }
}

impl JsonSchema for Which {
    fn schema_name() -> Cow<'static, str> {
        "Which".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "All, none, or those of a list of component names.",
            "oneOf": [
                {"type": "boolean", "description": "All, or none."},
                {"type": "array", "items": {"type": "string"}, "description": "By name, as `kube-apiserver-1`."}
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Which {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn all_none_or_some_by_name_survive_being_written() {
        let named = Which::Named(vec![ComponentId("kube-apiserver-2".to_owned())]);
        for (text, which) in [
            ("true", Which::All),
            ("false", Which::None),
            (r#"["kube-apiserver-2"]"#, named),
            ("[]", Which::None),
        ] {
            assert_eq!(read(text), which);
            assert_eq!(read(&serde_json::to_string(&which).unwrap()), which);
        }
        assert!(serde_json::from_str::<Which>("3").is_err());
    }

    #[test]
    fn a_name_takes_only_its_own() {
        let some = read(r#"["kube-apiserver-2"]"#);
        let id = |n: u8| ComponentId(format!("kube-apiserver-{n}"));
        assert_eq!([1, 2].map(|n| some.takes(&id(n))), [false, true]);
        assert_eq!([1, 2].map(|n| Which::All.takes(&id(n))), [true, true]);
        assert_eq!([1, 2].map(|n| Which::None.takes(&id(n))), [false, false]);
    }
}
