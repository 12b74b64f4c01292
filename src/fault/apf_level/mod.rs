//! `apfLevel`: a priority level of API Priority and Fairness, and a schema that sends clients to it.
//!
//! Both objects are the drill's own, carry the run's label, and are removed again by the undo, whatever
//! has become of their shares meanwhile. The level is made before the schema: a schema without its level is
//! passed over by API servers, so at no instant do requests meet half of the fault.
//!
//! A level that was there before is changed only when the drill names it twice. It is read before the undo is
//! armed, carries the run's label while it is changed, and is put back as it was, annotations and labels included.

mod ask;
mod existing;
mod limits;
mod lint;
mod objects;

pub use limits::{limits_in_force, scrape};
pub(crate) use lint::shares_in_range;

use super::{Aim, Fault, FaultContext, FaultError, Faulting, Injection, authorized};
use crate::agent::api::ApiAccess;
use crate::agent::undo::{Undo, UndoOp};
use crate::component::capability::Capability;
use crate::component::{ComponentId, Role, StopMethod};
use crate::guard::GuardToken;
use crate::plan::{PlannedComponent, of_role};
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

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
    /// Clients whose every request goes to the level. May be empty for an existing level: then only those are
    /// limited whom the cluster's own schemas send there.
    pub clients: Vec<String>,
    /// Changes this level of the cluster instead of making one. Its whole spec is replaced by what stands here,
    /// defaults included; the undo puts it back. Absent: the drill makes its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<Existing>,
    /// `matchingPrecedence`: the lowest of the schemas that match a request decides. `global-default` has 9900.
    #[serde(default = "ApfLevel::default_precedence")]
    #[schemars(range(min = 2, max = 9899))]
    pub precedence: u32,
}

/// A level that is there before the drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Existing {
    /// Name of the PriorityLevelConfiguration; not `exempt` or `catch-all`, which API servers put right themselves.
    pub level: String,
    /// The same name again: everybody whose requests go to this level is hit, not only clients of the drill.
    pub confirm: String,
}

/// `limitResponse` of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
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
#[serde(
    untagged,
    expecting = "`borrowingLimitPercent` is a percentage of 0 or more, or the word `unlimited`"
)]
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

    /// Name of the objects that the drill makes.
    #[must_use]
    pub fn own_name(&self, run: &str) -> String {
        format!("quakeproof-{}-{}", self.name, run.rsplit('-').next().unwrap_or(run))
    }

    /// Name of the level in the cluster.
    #[must_use]
    pub fn level_name(&self, run: &str) -> String {
        self.existing.as_ref().map_or_else(|| self.own_name(run), |existing| existing.level.clone())
    }

    /// Path of the level.
    #[must_use]
    pub fn level_path(&self, run: &str) -> String {
        format!("{LEVELS}/{}", self.level_name(run))
    }

    /// Path of the schema.
    #[must_use]
    pub fn schema_path(&self, run: &str) -> String {
        format!("{SCHEMAS}/{}", self.own_name(run))
    }

    /// Paths of what the drill makes, in the order in which it is removed.
    #[must_use]
    pub fn own_paths(&self, run: &str) -> Vec<String> {
        let schema = self.schema_path(run);
        if self.existing.is_some() { vec![schema] } else { vec![schema, self.level_path(run)] }
    }

    async fn make(
        &self,
        context: FaultContext<'_>,
        guard: &GuardToken,
        injection: Injection<'_>,
    ) -> Result<(), FaultError> {
        authorized(guard, &injection)?;
        match injection.before.first() {
            Some(before) => {
                let path = self.level_path(injection.run);
                existing::change(context.api, injection, &path, before, self.spec()).await?;
            }
            None => create(context.api, injection.targets, LEVELS, &self.level(injection.run)).await?,
        }
        if self.clients.is_empty() {
            return Ok(());
        }
        create(context.api, injection.targets, SCHEMAS, &self.schema(injection.run)).await
    }

    async fn in_force(
        &self,
        context: FaultContext<'_>,
        injection: Injection<'_>,
    ) -> Result<String, FaultError> {
        let name = self.level_name(injection.run);
        let mut seen = Vec::new();
        for server in injection.targets {
            seen.push(limits_in_force(context.api, server, &name).await?);
        }
        if self.existing.is_some() {
            seen.push(existing::led_there(context.api, injection.targets, &name).await?);
        }
        Ok(seen.join("; "))
    }

    async fn gone(&self, context: FaultContext<'_>, injection: Injection<'_>) -> Result<String, FaultError> {
        let paths = self.own_paths(injection.run);
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
        let mut seen = format!("no API server has {}", paths.join(" or "));
        if let Some(before) = injection.before.first() {
            let path = self.level_path(injection.run);
            let as_before = existing::as_before(context.api, injection, &path, before).await?;
            seen = format!("{seen}; {as_before}");
        }
        Ok(seen)
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
    ask::any(api, servers, (Method::POST, path, Some(object)), &expected).await?;
    Ok(())
}

impl Fault for ApfLevel {
    fn kind(&self) -> &'static str {
        APF_LEVEL
    }

    fn role(&self) -> Role {
        Role::KubeApiserver
    }

    fn targets(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        of_role(components, Role::KubeApiserver)
    }

    fn blast_radius(&self, aim: &Aim<'_>) -> String {
        let share = if self.shares == 0 {
            "takes no seat from any other level"
        } else {
            "takes its part of the seats from all other levels"
        };
        let (shares, servers, clients) = (self.shares, aim.names(), self.clients.join(", "));
        match &self.existing {
            Some(Existing { level, .. }) => format!(
                "the priority level `{level}` has {shares} shares on {servers}, for everybody whom a schema of the \
                 cluster sends there; shares, lending, borrowing and limit response are all replaced; all other \
                 levels get their part of the rest"
            ),
            None => format!(
                "requests of {clients} are limited by a priority level of {shares} shares on {servers}; the level \
                 {share}. Requests of nobody else go there"
            ),
        }
    }

    fn undo_in_words(&self) -> &'static str {
        match self.existing {
            Some(_) => {
                "remove the schema, then put the level back as it was; both carry the run's label until then"
            }
            None => {
                "remove the schema, then the level; both carry the run's label, and nothing else is touched"
            }
        }
    }

    fn needs(&self) -> BTreeSet<Capability> {
        [Capability::AddressApiServers, Capability::DeadMan].into()
    }

    fn stop_method(&self) -> Option<StopMethod> {
        None
    }

    fn undo(&self, injection: &Injection<'_>, within_ns: u64) -> Undo {
        let (servers, run) = (injection.targets.to_vec(), injection.run.to_owned());
        let paths = self.own_paths(injection.run);
        let mut ops = vec![UndoOp::RemoveObjects { servers: servers.clone(), run: run.clone(), paths }];
        if let Some(before) = injection.before.first() {
            let path = self.level_path(injection.run);
            ops.push(UndoOp::PutObjectBack { servers, run, path, object: before.clone() });
        }
        Undo { injection: injection.id.clone(), on_lapse: self.on_lapse(), ops, within_ns }
    }

    fn before<'a>(
        &'a self,
        context: FaultContext<'a>,
        targets: &'a [ComponentId],
    ) -> Faulting<'a, Vec<Value>> {
        Box::pin(async move {
            for server in targets {
                limits::is_on(context.api, server).await?;
            }
            let Some(Existing { level, .. }) = &self.existing else { return Ok(Vec::new()) };
            Ok(vec![existing::read(context.api, targets, level).await?])
        })
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
