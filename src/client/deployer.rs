//! Deployments that the controller manager has to act upon.

use super::consumed::{self, consume};
use super::context::ClientContext;
use super::session::live;
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::Made;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Creates a Deployment of one replica and looks, with quorum reads, until the
/// controller manager has made its ReplicaSet with the Deployment's UID as owner. Goes on
/// looking at earlier ones: a Deployment that a restore lost must not be acted upon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployer {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Deployments.
    #[serde(default = "Deployer::default_round")]
    pub every: Span,
}

impl Deployer {
    fn default_round() -> Span {
        Span::secs(1)
    }
}

impl ClientUnderTest for Deployer {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::Deployer,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, async |session, setup| consume(session, setup, Made::Deployment).await))
    }
}

/// A Deployment of one replica. Nothing has to run: there is no node.
#[must_use]
pub fn deployment(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "paused": false,
            "selector": {"matchLabels": {"quakeproof.dev/made": name}},
            "template": {
                "metadata": {"labels": {"quakeproof.dev/made": name}},
                "spec": consumed::pod_spec(),
            },
        },
    })
}

/// Name of the ReplicaSet that a Deployment's conditions name in quotes, as in
/// `Created new replica set "deploy-1-7c5d9"`.
#[must_use]
pub fn named_replica_set(deployment: &serde_json::Value) -> Option<String> {
    let conditions = deployment["status"]["conditions"].as_array()?;
    let progressing = conditions.iter().find(|c| c["type"] == "Progressing")?;
    let name = progressing["message"].as_str()?.split('"').nth(1)?;
    // It becomes part of a path.
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// Whether `owner` is the controller of the object.
#[must_use]
pub fn is_controlled_by(object: &serde_json::Value, owner: &str) -> bool {
    object["metadata"]["ownerReferences"]
        .as_array()
        .is_some_and(|all| all.iter().any(|r| r["controller"] == true && r["uid"] == owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_replica_set_is_named_in_the_condition_whatever_the_words_around_it() {
        let with =
            |message: &str| json!({"status": {"conditions": [{"type": "Progressing", "message": message}]}});
        for message in [r#"Created new replica set "d-1-7c5""#, r#"ReplicaSet "d-1-7c5" is progressing."#] {
            assert_eq!(named_replica_set(&with(message)).as_deref(), Some("d-1-7c5"));
        }
        assert_eq!(named_replica_set(&with("nothing yet")), None);
        assert_eq!(named_replica_set(&with(r#"Created "../../secrets""#)), None, "it goes into a path");
        assert_eq!(named_replica_set(&json!({})), None);
    }

    #[test]
    fn only_the_controller_counts_as_owner_and_only_by_uid() {
        let owned = |uid: &str, controller: bool| json!({"metadata": {"ownerReferences": [{"name": "d-1", "uid": uid, "controller": controller}]}});
        assert!(is_controlled_by(&owned("u1", true), "u1"));
        assert!(!is_controlled_by(&owned("u2", true), "u1"), "the same name under another UID");
        assert!(!is_controlled_by(&owned("u1", false), "u1"));
    }
}
