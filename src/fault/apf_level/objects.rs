//! The objects of a level, as they are written.

use super::{ApfLevel, LimitResponse, client_user};
use crate::agent::objects::RUN_LABEL;
use serde_json::{Value, json};

impl ApfLevel {
    /// What the level is to be.
    pub(super) fn spec(&self) -> Value {
        let response = match &self.limit_response {
            LimitResponse::Reject {} => json!({"type": "Reject"}),
            LimitResponse::Queue(q) => json!({"type": "Queue", "queuing": {
                "queues": q.queues, "handSize": q.hand_size, "queueLengthLimit": q.queue_length_limit,
            }}),
        };
        let mut limited = json!({
            "nominalConcurrencyShares": self.shares,
            "lendablePercent": self.lendable_percent,
            "limitResponse": response,
        });
        if let Some(percent) = self.borrowing_limit_percent.percent() {
            limited["borrowingLimitPercent"] = percent.into();
        }
        json!({"type": "Limited", "limited": limited})
    }

    /// The level as an object of the drill.
    pub(super) fn level(&self, run: &str) -> Value {
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "metadata": self.metadata(run),
            "spec": self.spec(),
        })
    }

    /// The schema, always an object of the drill.
    pub(super) fn schema(&self, run: &str) -> Value {
        let user = |client: &String| json!({"kind": "User", "user": {"name": client_user(client)}});
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": self.metadata(run),
            "spec": {
                "matchingPrecedence": self.precedence,
                "priorityLevelConfiguration": {"name": self.level_name(run)},
                "rules": [{
                    "subjects": self.clients.iter().map(user).collect::<Vec<_>>(),
                    "resourceRules": [{
                        "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"],
                        "clusterScope": true,
                    }],
                    "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
                }],
            },
        })
    }

    fn metadata(&self, run: &str) -> Value {
        json!({"name": self.own_name(run), "labels": {RUN_LABEL: run}})
    }
}
