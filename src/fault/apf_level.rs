//! `apfLevel`: a priority level of API Priority and Fairness, and a schema that sends clients to it.
//!
//! Both objects are the drill's own, carry the run's label, and are removed again by the undo, whatever
//! has become of their shares meanwhile. The level is made before the schema: a schema without its level is
//! passed over by API servers, so at no instant do requests meet half of the fault.

use super::{Aim, Fault, FaultContext, FaultError, Faulting, Injection, authorized};
use crate::agent::api::ApiAccess;
use crate::agent::objects::RUN_LABEL;
use crate::agent::undo::{OnLapse, Undo, UndoOp};
use crate::apf::metrics::{self, Scrape};
use crate::apf::seats::{DEFAULT_SERVER_SEATS, SeatLimits, Shares, limits};
use crate::drill::spec::Step;
use crate::guard::GuardToken;
use crate::plan::PlannedComponent;
use crate::provider::Capability;
use crate::provider::component::{ComponentId, Role, StopMethod};
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Key of the fault in a drill file.
pub const APF_LEVEL: &str = "apfLevel";
/// Path of the PriorityLevelConfigurations.
pub const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
/// Path of the FlowSchemas.
pub const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// Makes a priority level and a schema that sends clients to it, on every API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApfLevel {
    /// kebab-case name, unique in the drill; at most 30 characters.
    pub name: String,
    /// `nominalConcurrencyShares`.
    #[schemars(range(max = 10_000))]
    pub shares: u32,
    /// What becomes of requests for which there is no seat.
    pub limit_response: LimitResponse,
    /// Seats that others may borrow, percent.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub lendable_percent: u8,
    /// Seats that it may borrow from others.
    #[serde(default)]
    pub borrowing_limit_percent: Borrowing,
    /// Clients whose every request goes to the level.
    pub clients: Vec<String>,
    /// `matchingPrecedence`: the lowest of the schemas that match a request decides.
    #[serde(default = "ApfLevel::default_precedence")]
    #[schemars(range(min = 2, max = 9999))]
    pub precedence: u32,
}

/// `limitResponse` of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LimitResponse {
    /// They are refused.
    Reject {},
    /// They wait in queues.
    Queue(Queuing),
}

/// Queues of a level; defaults are those of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Queuing {
    /// Number of queues.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub queues: u32,
    /// Queues that one flow is dealt.
    #[schemars(range(min = 1))]
    pub hand_size: u32,
    /// Requests that wait in one queue, at most.
    #[schemars(range(min = 1))]
    pub queue_length_limit: u32,
}

impl Default for Queuing {
    fn default() -> Self {
        Self { queues: 64, hand_size: 8, queue_length_limit: 50 }
    }
}

/// How much a level may borrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Borrowing {
    /// So many percent of its nominal seats; of a level without seats that is none.
    Percent(u32),
    /// The field is omitted, which means everything.
    Word(Unlimited),
}

/// The word for borrowing without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unlimited {
    /// `borrowingLimitPercent` is omitted.
    Unlimited,
}

impl Default for Borrowing {
    fn default() -> Self {
        Self::Percent(0)
    }
}

impl Borrowing {
    /// The field of the object; `None`: omitted.
    #[must_use]
    pub fn percent(self) -> Option<u32> {
        match self {
            Self::Percent(percent) => Some(percent),
            Self::Word(Unlimited::Unlimited) => None,
        }
    }
}

impl ApfLevel {
    fn default_precedence() -> u32 {
        400
    }

    /// Name of both objects in the cluster.
    #[must_use]
    pub fn object_name(run: &str, level: &str) -> String {
        format!("quakeproof-{level}-{}", run.rsplit('-').next().unwrap_or(run))
    }

    /// Paths of the schema and the level, in the order in which they are removed.
    #[must_use]
    pub fn paths(run: &str, level: &str) -> [String; 2] {
        let name = Self::object_name(run, level);
        [format!("{SCHEMAS}/{name}"), format!("{LEVELS}/{name}")]
    }

    fn level(&self, run: &str) -> Value {
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
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "metadata": self.metadata(run),
            "spec": {"type": "Limited", "limited": limited},
        })
    }

    fn schema(&self, run: &str) -> Value {
        let user = |client: &String| json!({"kind": "User", "user": {"name": client_user(client)}});
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": self.metadata(run),
            "spec": {
                "matchingPrecedence": self.precedence,
                "priorityLevelConfiguration": {"name": Self::object_name(run, &self.name)},
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
        json!({"name": Self::object_name(run, &self.name), "labels": {RUN_LABEL: run}})
    }

    async fn make(
        &self,
        context: FaultContext<'_>,
        guard: &GuardToken,
        injection: Injection<'_>,
    ) -> Result<(), FaultError> {
        authorized(guard, &injection)?;
        for (path, object) in [(LEVELS, self.level(injection.run)), (SCHEMAS, self.schema(injection.run))] {
            create(context.api, injection.targets, path, &object).await?;
        }
        Ok(())
    }

    async fn in_force(
        &self,
        context: FaultContext<'_>,
        injection: Injection<'_>,
    ) -> Result<String, FaultError> {
        let name = Self::object_name(injection.run, &self.name);
        let mut seen = Vec::new();
        for server in injection.targets {
            seen.push(limits_in_force(context.api, server, &name).await?);
        }
        Ok(seen.join("; "))
    }

    async fn gone(&self, context: FaultContext<'_>, injection: Injection<'_>) -> Result<String, FaultError> {
        let paths = Self::paths(injection.run, &self.name);
        for server in injection.targets {
            for path in &paths {
                let expected = || format!("{server} has no {path}");
                match context.api.call(server, Method::GET, path, None).await {
                    Ok(answer) if answer.status == 404 => {}
                    Ok(answer) => {
                        let seen = format!("it answers HTTP {}", answer.status);
                        return Err(FaultError::NotSeen { expected: expected(), seen });
                    }
                    Err(why) => return Err(FaultError::Untold { expected: expected(), why }),
                }
            }
        }
        Ok(format!("no API server has {}", paths.join(" or ")))
    }
}

/// User name of a client of the drill.
#[must_use]
pub fn client_user(client: &str) -> String {
    format!("quakeproof:client:{client}")
}

async fn create(
    api: &dyn ApiAccess,
    servers: &[ComponentId],
    path: &str,
    object: &Value,
) -> Result<(), FaultError> {
    let expected = format!("{} {} can be made", object["kind"], object["metadata"]["name"]);
    let mut why = "the cluster has no API server".to_owned();
    for server in servers {
        match api.call(server, Method::POST, path, Some(object)).await {
            Ok(answer) if answer.is_success() => return Ok(()),
            Ok(answer) => return Err(FaultError::NotSeen { expected, seen: answer.refusal() }),
            // It may have been made all the same; the next server then says that it exists.
            Err(failure) => why = format!("{server}: {failure}"),
        }
    }
    Err(FaultError::Untold { expected, why })
}

/// What an API server's metrics say of flow control.
///
/// # Errors
/// When they can't be had or read.
pub async fn scrape(api: &dyn ApiAccess, server: &ComponentId) -> Result<Scrape, String> {
    let answer = api.call(server, Method::GET, "/metrics", None).await?;
    if !answer.is_success() {
        return Err(format!("{server}: /metrics: {}", answer.refusal()));
    }
    metrics::read(&String::from_utf8_lossy(&answer.body)).map_err(|error| error.to_string())
}

/// Whether an API server counts with the limits that follow from every level that there is.
///
/// # Errors
/// When it does not yet, or can't be asked.
pub async fn limits_in_force(
    api: &dyn ApiAccess,
    server: &ComponentId,
    name: &str,
) -> Result<String, FaultError> {
    let expected = || format!("{server} limits `{name}` as its shares say");
    let untold = |why: String| FaultError::Untold { expected: expected(), why };
    let listed = api.call(server, Method::GET, LEVELS, None).await.map_err(untold)?;
    if !listed.is_success() {
        return Err(untold(format!("{LEVELS}: {}", listed.refusal())));
    }
    let scrape = scrape(api, server).await.map_err(untold)?;
    if scrape.levels.is_empty() {
        let seen = "its metrics name no level: API Priority and Fairness is off".to_owned();
        return Err(FaultError::NotSeen { expected: expected(), seen });
    }
    let levels = shares_of(&listed.json());
    let shares: BTreeMap<&str, Shares> =
        levels.iter().map(|(name, shares)| (name.as_str(), *shares)).collect();
    let seen = scrape.levels.get(name).cloned().unwrap_or_default();
    let counted = (seen.nominal, seen.lower, seen.upper);
    let Some(SeatLimits { nominal, lower, upper }) = limits(DEFAULT_SERVER_SEATS, &shares).get(name).copied()
    else {
        return Err(FaultError::NotSeen { expected: expected(), seen: "it has no such level".to_owned() });
    };
    let current = seen.current.is_some_and(|current| (lower..=upper).contains(&current));
    if counted != (Some(nominal), Some(lower), Some(upper)) || !current {
        let seen = format!(
            "nominal, lower, upper and current seats are {:?}, {:?}, {:?} and {:?}, for {nominal}, {lower}, {upper}",
            seen.nominal, seen.lower, seen.upper, seen.current
        );
        return Err(FaultError::NotSeen { expected: expected(), seen });
    }
    Ok(format!(
        "{server} has {nominal} nominal, {lower} lower, {upper} upper and {} current seats for {name}",
        seen.current.unwrap_or_default()
    ))
}

/// Shares of every level in a list; an exempt level has none unless it says so.
fn shares_of(list: &Value) -> BTreeMap<String, Shares> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |item: &Value| {
        let (spec, default) = match item["spec"]["type"].as_str() {
            Some("Exempt") => (&item["spec"]["exempt"], 0),
            _ => (&item["spec"]["limited"], 30),
        };
        let shares = Shares {
            nominal: spec["nominalConcurrencyShares"].as_u64().unwrap_or(default),
            lendable_percent: spec["lendablePercent"].as_u64().unwrap_or(0),
            borrowing_percent: spec["borrowingLimitPercent"].as_u64(),
        };
        Some((item["metadata"]["name"].as_str()?.to_owned(), shares))
    };
    items.iter().filter_map(of).collect()
}

impl Fault for ApfLevel {
    fn kind(&self) -> &'static str {
        APF_LEVEL
    }

    fn role(&self) -> Role {
        Role::KubeApiserver
    }

    fn targets(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        let servers = components.iter().filter(|c| c.role == Role::KubeApiserver);
        servers.map(|c| c.component.clone()).collect()
    }

    fn blast_radius(&self, aim: &Aim<'_>) -> String {
        let share = if self.shares == 0 {
            "takes no seat from any other level"
        } else {
            "takes its part of the seats from all other levels"
        };
        format!(
            "requests of {} are limited by a priority level of {} shares on {}; the level {share}. Requests of \
             nobody else go there",
            self.clients.join(", "),
            self.shares,
            aim.names()
        )
    }

    fn undo_in_words(&self) -> &'static str {
        "remove the schema, then the level; both carry the run's label, and nothing else is touched"
    }

    fn closed_by(&self, step: &Step) -> bool {
        matches!(step, Step::End(end) if end.fault == self.kind())
    }

    fn needs(&self) -> BTreeSet<Capability> {
        [Capability::AddressApiServers, Capability::DeadMan].into()
    }

    fn stop_method(&self) -> Option<StopMethod> {
        None
    }

    fn undo(&self, injection: &Injection<'_>, within_ns: u64) -> Undo {
        let remove = UndoOp::RemoveObjects {
            servers: injection.targets.to_vec(),
            run: injection.run.to_owned(),
            paths: Self::paths(injection.run, &self.name).to_vec(),
        };
        Undo { injection: injection.id.clone(), on_lapse: OnLapse::Revert, ops: vec![remove], within_ns }
    }

    fn roll_forward(&self, _: &Injection<'_>, _: u64) -> Option<Undo> {
        None
    }

    fn inject<'a>(
        &'a self,
        context: FaultContext<'a>,
        guard: &'a GuardToken,
        injection: Injection<'a>,
    ) -> Faulting<'a, ()> {
        Box::pin(self.make(context, guard, injection))
    }

    fn verify_injected<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(self.in_force(context, injection))
    }

    fn verify_ended<'a>(
        &'a self,
        context: FaultContext<'a>,
        injection: Injection<'a>,
    ) -> Faulting<'a, String> {
        Box::pin(self.gone(context, injection))
    }
}
