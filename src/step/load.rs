//! `load`: begins the loads of clients that have not begun yet, and waits for them.
//!
//! Before a load begins, one request of each of its clients shows by its headers which level it is on. What API
//! servers count is read before that and again once every answer is there, so that it covers each of these requests.

use super::kind::{StepDone, StepKind};
use super::{StepContext, StepError};
use crate::agent::api::ApiAccess;
use crate::apf::dump::{self, Fill};
use crate::apf::metrics::{LevelMetrics, SchemaMetrics, Scrape};
use crate::client::load_request::{TARGET, get};
use crate::client::under_test::Works;
use crate::clock::MonoNs;
use crate::component::network::CLIENT_GROUP;
use crate::component::{ComponentId, Role};
use crate::drill::lint::{Lint, Place, SoFar, WAIT};
use crate::drill::spec::{Client, Step};
use crate::drill::values::Span;
use crate::fault::apf_level::{ApfLevel, LEVELS, SCHEMAS, scrape};
use crate::journal::entry::Fact;
use crate::load::connections::Connections;
use crate::load::sender::LoadProgress;
use crate::plan::{PlannedClient, PlannedStep};
use crate::wire::connection::{Connector, Protocol};
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// Starts the load of clients that have not begun yet, and waits. Before a load begins, a request of each client
/// proves by its headers which level it is on, and the metrics of every API server are read; when all answers
/// are there they are read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunLoad {
    /// Names of `load` clients.
    pub clients: Vec<String>,
    /// What is waited for.
    #[serde(default)]
    pub until: LoadUntil,
    /// The step fails when that takes longer.
    #[serde(default = "RunLoad::default_at_most")]
    pub at_most: Span,
}

impl RunLoad {
    fn default_at_most() -> Span {
        Span::secs(60)
    }
}

/// How far a load has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadUntil {
    /// Every request was sent, or could not be.
    Sent,
    /// Every request has its answer, or will get none.
    #[default]
    Answered,
}

impl StepKind for RunLoad {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, _: &mut SoFar<'d>) {
        lint.span(&at.key("atMost"), self.at_most, WAIT);
        let path = at.key("clients");
        if self.clients.is_empty() {
            lint.error(&path, "no load is named", "name `load` clients, as `[jailed]`");
        }
        let begun = |client: &Client| client.kind().about().works == Works::ByStep;
        for name in &self.clients {
            lint.needs_load_of(&path, name, begun);
        }
        self.in_time(lint, at);
    }

    fn lasts_at_most(&self) -> Duration {
        self.at_most.0
    }

    fn execute<'a>(&'a self, _: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(self, ctx))
    }
}

impl RunLoad {
    /// A load that can't come to its end, or be sent, within its step.
    fn in_time(&self, lint: &mut Lint<'_>, at: &Place) {
        for load in self.clients.iter().filter_map(|name| lint.drill.load(name)) {
            let lasts = load.arrivals.duration();
            if lasts > self.at_most {
                let title =
                    format!("`{}` sends for {lasts}, and the step fails after {}", load.name, self.at_most);
                lint.error(&at.key("atMost"), title, format!("write `atMost: {lasts}` or more"));
            }
        }
    }
}

/// A probe of a level that lets nothing through waits a quarter of this at most.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at the queues while answers are awaited: a look is a request to each API server.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn execute(step: &RunLoad, ctx: &mut StepContext) -> Result<(), StepError> {
    let waiting: Vec<String> = step
        .clients
        .iter()
        .filter(|name| progress(ctx, name) == Some(LoadProgress::Waiting))
        .cloned()
        .collect();
    if !waiting.is_empty() {
        make_target(ctx).await.map_err(StepError::NotSeen)?;
        read_metrics(ctx).await?;
        let levels = names(ctx).await?;
        for name in &waiting {
            let level = probe(name, ctx).await?;
            is_as_planned(name, level.and_then(|uid| levels.get(&uid)), ctx)?;
        }
        for name in &waiting {
            ctx.go_on()?;
            if let Some(gate) = ctx.loads.get(name) {
                gate.go.cancel();
            }
        }
    }
    let wanted = match step.until {
        LoadUntil::Sent => LoadProgress::Sent,
        LoadUntil::Answered => LoadProgress::Answered,
    };
    let deadline = Instant::now() + step.at_most.0;
    for name in &step.clients {
        let Some(gate) = ctx.loads.get(name) else {
            return Err(StepError::NotSeen(format!("there is no load `{name}`")));
        };
        let progress = gate.progress.clone();
        if !reached(ctx, progress, wanted, deadline).await? {
            let far = self::progress(ctx, name);
            let why = format!("load `{name}` is not {wanted:?} within {}: it is {far:?}", step.at_most);
            return Err(StepError::NotSeen(why));
        }
    }
    if step.until == LoadUntil::Answered {
        read_metrics(ctx).await?;
        names(ctx).await?;
    }
    Ok(())
}

/// Waits for a load, and asks meanwhile how full the queues are.
async fn reached(
    ctx: &StepContext,
    mut progress: watch::Receiver<LoadProgress>,
    wanted: LoadProgress,
    deadline: Instant,
) -> Result<bool, StepError> {
    let mut look = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            reached = progress.wait_for(|now| *now >= wanted) => return Ok(reached.is_ok()),
            () = tokio::time::sleep_until(deadline) => return Ok(false),
            by = ctx.interrupt.asked() => return Err(StepError::Interrupted(by)),
            _ = look.tick() => {}
        }
        note_fill(ctx).await?;
    }
}

/// A server that is too busy to answer, or gone, is not asked again for this moment: it is a look, not a proof.
async fn note_fill(ctx: &StepContext) -> Result<(), StepError> {
    let levels = open_levels(ctx);
    if levels.is_empty() {
        return Ok(());
    }
    for server in ctx.components(Role::KubeApiserver) {
        let call_ns = ctx.clock.mono();
        let Ok(answer) = ctx.api().call(&server, Method::GET, dump::PATH, None).await else { continue };
        let return_ns = ctx.clock.mono();
        let Some(fills) = dump::read(&String::from_utf8_lossy(&answer.body)) else { continue };
        for level in &levels {
            let Some(Fill { waiting, executing }) = fills.get(&level.level_name(&ctx.run)).copied() else {
                continue;
            };
            let (server, level) = (server.clone(), level.name.clone());
            ctx.fact(Fact::QueueFill { server, level, waiting, executing, call_ns, return_ns }).await?;
        }
    }
    Ok(())
}

fn progress(ctx: &StepContext, name: &str) -> Option<LoadProgress> {
    Some(*ctx.loads.get(name)?.progress.borrow())
}

/// The object that loads read.
async fn make_target(ctx: &StepContext) -> Result<(), String> {
    let path = format!("/api/v1/namespaces/{}/configmaps", ctx.namespace);
    let object = json!({"metadata": {"name": TARGET}, "data": {"value": "x"}});
    let answer = ask(ctx, Method::POST, &path, Some(&object)).await?;
    match answer.0 {
        200..=299 | 409 => Ok(()),
        status => Err(format!("POST {path}: HTTP {status}")),
    }
}

async fn ask(
    ctx: &StepContext,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), String> {
    let servers = ctx.components(Role::KubeApiserver);
    let server = servers.first().ok_or("the cluster has no API server")?;
    let answer = ctx.api().call(server, method, path, body).await.map_err(|why| format!("{path}: {why}"))?;
    Ok((answer.status, answer.json()))
}

/// Which UID is which object at this moment.
async fn names(ctx: &StepContext) -> Result<BTreeMap<String, String>, StepError> {
    let call_ns = ctx.clock.mono();
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    for (path, names) in [LEVELS, SCHEMAS].into_iter().zip(&mut found) {
        let (_, list) = ask(ctx, Method::GET, path, None).await.map_err(StepError::NotSeen)?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        names.extend(items.iter().filter_map(|item| {
            let meta = &item["metadata"];
            Some((meta["uid"].as_str()?.to_owned(), meta["name"].as_str()?.to_owned()))
        }));
    }
    let [levels, schemas] = found;
    let return_ns = ctx.clock.mono();
    ctx.fact(Fact::FlowObjects { levels: levels.clone(), schemas, call_ns, return_ns }).await?;
    Ok(levels)
}

/// Whether a client's requests go where the plan says, and not to the level that nothing limits.
fn is_as_planned(client: &str, level: Option<&String>, ctx: &StepContext) -> Result<(), StepError> {
    let planned = ctx.plan.drill.level_of(client).map(|(_, level)| level);
    let wanted = planned.map(|level| level.level_name(&ctx.run));
    let why = match (level, wanted) {
        (None, _) => "its answer names no level: is API Priority and Fairness on?".to_owned(),
        (Some(level), _) if level == "exempt" => {
            "its requests are exempt from flow control, so nothing can be shown with them".to_owned()
        }
        (Some(level), Some(wanted)) if *level != wanted => format!(
            "its requests go to the level `{}`: a schema of the cluster with a lower precedence takes them",
            level.escape_default()
        ),
        _ => return Ok(()),
    };
    Err(StepError::NotSeen(format!("client `{client}`: {why}")))
}

/// One request as the client, to show where its requests go: the UID of the level.
async fn probe(name: &str, ctx: &StepContext) -> Result<Option<String>, StepError> {
    let failed = |why: String| StepError::NotSeen(format!("client `{name}` can't show where it goes: {why}"));
    let planned = planned(name, ctx).ok_or_else(|| failed("the plan has no such client".to_owned()))?;
    let endpoint = ctx.cluster.endpoint(&planned.target).map_err(|e| failed(e.to_string()))?;
    let identity =
        ctx.cluster.identity(&planned.identity, &[CLIENT_GROUP]).map_err(|e| failed(e.to_string()))?;
    let connector = Connector::new(ctx.cluster.dialer(), &endpoint, &identity, Protocol::Http1)
        .map_err(|e| failed(e.to_string()))?;
    let request = get(&ctx.namespace, &format!("?timeout={}ms", PROBE_TIMEOUT.as_millis()));
    let call_ns = ctx.clock.mono();
    let connection = Connections::new(connector, Protocol::Http1, 1, Arc::clone(&ctx.clock));
    let exchanged = connection.exchange(request).await;
    let return_ns = ctx.clock.mono();
    let Some(status) = exchanged.status else {
        return Err(failed(exchanged.failure.map_or_else(String::new, |f| f.to_string())));
    };
    ctx.fact(Fact::FlowProbed {
        client: name.to_owned(),
        server: planned.target.clone(),
        status,
        schema: exchanged.seen.schema,
        level: exchanged.seen.level.clone(),
        call_ns,
        return_ns,
    })
    .await?;
    Ok(exchanged.seen.level)
}

fn planned<'a>(name: &str, ctx: &'a StepContext) -> Option<&'a PlannedClient> {
    ctx.plan.clients.iter().find(|client| client.name == name)
}

/// What each API server counts for each level that the drill has made and not removed yet.
async fn read_metrics(ctx: &mut StepContext) -> Result<(), StepError> {
    let levels = open_levels(ctx);
    if levels.is_empty() {
        return Ok(());
    }
    for server in ctx.components(Role::KubeApiserver) {
        let call_ns = ctx.clock.mono();
        let scraped = scrape(&ctx.api(), &server).await.map_err(StepError::NotSeen)?;
        let read = Reading { scraped, call_ns, return_ns: ctx.clock.mono() };
        for level in &levels {
            let fact = read.of(ctx, &server, level).await.map_err(StepError::NotSeen)?;
            let Fact::FlowMetrics { level_is, .. } = &fact else { continue };
            let known = ctx.memory.levels.entry(level.name.clone()).or_insert_with(|| level_is.clone());
            let is_own = known == level_is;
            ctx.fact(fact).await?;
            if !is_own {
                let why =
                    format!("somebody else changed or removed the level `{}` of this drill", level.name);
                return Err(StepError::NotSeen(why));
            }
        }
    }
    Ok(())
}

/// Levels that the drill has made or changed and not ended yet.
fn open_levels(ctx: &StepContext) -> Vec<ApfLevel> {
    let is_open = |index: usize| ctx.memory.open.iter().any(|open| open.step == index);
    let levels = ctx.plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::ApfLevel(level) if is_open(planned.index) => Some(level.clone()),
        _ => None,
    });
    levels.collect()
}

/// An API server's metrics, which tell of every level.
struct Reading {
    scraped: Scrape,
    call_ns: MonoNs,
    return_ns: MonoNs,
}

impl Reading {
    async fn of(&self, ctx: &StepContext, server: &ComponentId, level: &ApfLevel) -> Result<Fact, String> {
        let api = ctx.api();
        let (schema, object) = (level.schema_path(&ctx.run), level.level_path(&ctx.run));
        let seen = self.scraped.levels.get(&level.level_name(&ctx.run)).cloned().unwrap_or_default();
        Ok(Fact::FlowMetrics {
            server: server.clone(),
            level: level.name.clone(),
            process_start_ns: self.scraped.process_start.map(|seconds| (seconds * 1e9) as u64),
            seats: seats(&seen),
            requests: requests(seen.schemas.get(&level.own_name(&ctx.run))),
            level_is: identity(&api.call(server, Method::GET, &object, None).await?.json()),
            schema_is: identity(&api.call(server, Method::GET, &schema, None).await?.json()),
            call_ns: self.call_ns,
            return_ns: self.return_ns,
        })
    }
}

/// UID and generation of an object.
pub(super) fn identity(object: &Value) -> Option<String> {
    let meta = &object["metadata"];
    Some(format!("{}/{}", meta["uid"].as_str()?, meta["generation"].as_u64().unwrap_or_default()))
}

fn seats(level: &LevelMetrics) -> BTreeMap<String, u64> {
    let all = [
        ("nominal", level.nominal),
        ("lower", level.lower),
        ("upper", level.upper),
        ("current", level.current),
    ];
    all.into_iter().filter_map(|(name, seats)| Some((name.to_owned(), seats?))).collect()
}

fn requests(schema: Option<&SchemaMetrics>) -> BTreeMap<String, u64> {
    let schema = schema.cloned().unwrap_or_default();
    let mut all: BTreeMap<String, u64> =
        schema.rejected.iter().map(|(reason, count)| (format!("rejected:{reason}"), *count)).collect();
    all.extend([
        ("dispatched".to_owned(), schema.dispatched),
        ("inQueue".to_owned(), schema.in_queue),
        ("executing".to_owned(), schema.executing),
        ("waitsExecuteTrue".to_owned(), schema.waits_execute_true),
        ("waitsExecuteFalse".to_owned(), schema.waits_execute_false),
    ]);
    all
}
