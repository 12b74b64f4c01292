//! Pods that the scheduler has to look at.

use super::consumed::{self, consume};
use super::context::ClientContext;
use super::session::live;
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::history::record::Made;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Creates a Pod that no node can take and looks, with quorum reads, until the scheduler
/// has said so in its condition `PodScheduled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodCreator {
    /// kebab-case name, unique in the drill.
    pub name: String,
    /// Time between two Pods.
    #[serde(default = "PodCreator::default_round")]
    pub every: Span,
}

impl PodCreator {
    fn default_round() -> Span {
        Span::secs(1)
    }
}

impl ClientUnderTest for PodCreator {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::PodCreator,
            talks_to: TalksTo::ApiServer,
            works: Works::Every(self.every),
        }
    }

    fn run(&self, ctx: ClientContext) -> Running {
        Box::pin(live(ctx, async |session, setup| consume(session, setup, Made::Pod).await))
    }
}

/// A Pod for the default scheduler that no node can take: its node selector fits none,
/// so the scheduler has to say so whether there are nodes or not.
#[must_use]
pub fn pod(name: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": consumed::pod_spec(),
    })
}

/// Whether the scheduler has said that it can't place the Pod.
#[must_use]
pub fn is_judged_by_scheduler(pod: &serde_json::Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|c| c["type"] == "PodScheduled"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_without_the_condition_has_not_been_looked_at() {
        assert!(!is_judged_by_scheduler(&json!({"status": {"phase": "Pending"}})));
        let conditions = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
        assert!(is_judged_by_scheduler(&json!({"status": {"conditions": conditions}})));
    }
}
