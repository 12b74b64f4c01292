//! Loads as a drill file has them.

use super::context::ClientContext;
use super::load;
use super::under_test::{About, ClientUnderTest, Running, TalksTo, Works};
use crate::component::ComponentId;
use crate::drill::lint::{Lint, PAGE, Place};
use crate::drill::values::Span;
use crate::history::kind::ClientKind;
use crate::load::arrivals::Arrivals;
use crate::load::retries::RetriesLike;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends requests at instants that are fixed before the first one, whatever the server does with them. Begins when
/// a `load` step says so, and ends with the last answer. Nothing is sent twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Load {
    /// kebab-case name, unique in the drill; the client has a user of its own.
    pub name: String,
    /// When requests are due.
    pub arrivals: Arrivals,
    /// What is asked.
    #[serde(default)]
    pub request: LoadRequest,
    /// The `timeout` parameter of each request; absent: not sent. A quarter of it is what a request waits in a
    /// queue of flow control at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What is spoken.
    #[serde(default)]
    pub protocol: LoadProtocol,
    /// Connections. HTTP/1.1 carries one request on each at a time, HTTP/2 up to 100.
    #[serde(default = "Load::default_connections")]
    #[schemars(range(min = 1, max = 1000))]
    pub connections: u32,
    /// Requests that are out at the same time, at most; what is due beyond that is not sent and counted as lost.
    #[serde(default = "Load::default_in_flight")]
    #[schemars(range(min = 1, max = 100_000))]
    pub in_flight: u32,
    /// The API server that is asked, as `kube-apiserver-1`. Default: one after the other, client by client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ComponentId>,
    /// A client whose one request lasts longer than all of these: the level is never idle meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_held_by: Option<String>,
}

impl Load {
    fn default_connections() -> u32 {
        2
    }

    fn default_in_flight() -> u32 {
        1000
    }
}

/// A load of GETs that are sent again when they are refused, as a client library does by itself. Every attempt is
/// recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryingLoad {
    /// kebab-case name, unique in the drill; the client has a user of its own.
    pub name: String,
    /// The library.
    pub like: RetriesLike,
    /// When requests are due; not `serial`.
    pub arrivals: Arrivals,
    /// The API server that is asked, as `kube-apiserver-1`. Default: one after the other, client by client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ComponentId>,
}

/// What a load asks for, on objects of the drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum LoadRequest {
    /// GET of one ConfigMap.
    Get {},
    /// LIST of the drill's ConfigMaps.
    List {
        /// The `limit` parameter: the first page of so many objects. Absent: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 100_000))]
        limit: Option<u32>,
        /// Asks for the pages after the first one too, each one once the one before it is there, by its `continue`.
        #[serde(default, rename = "allPages", skip_serializing_if = "std::ops::Not::not")]
        all_pages: bool,
    },
    /// PATCH (merge) of the one ConfigMap that GETs read.
    Patch {},
    /// WATCH of the drill's ConfigMaps that is to end after two seconds; its answer is there when it is open.
    Watch {},
    /// POST of a ConfigMap of its own.
    Create {
        /// Bytes of its value, 1 to 500,000.
        #[serde(default = "LoadRequest::one_byte", rename = "valueBytes")]
        #[schemars(range(min = 1, max = 500_000))]
        value_bytes: u32,
    },
    /// DELETE of a ConfigMap, one after the other, that another load has made.
    Delete {
        /// Name of the client whose requests are `create`; its load has come to its end before.
        of: String,
    },
    /// POST of a ConfigMap whose body ends only after a while: it holds its seat for so long.
    SlowCreate {
        /// From the begin of the request to the end of its body.
        #[serde(rename = "for")]
        duration: Span,
    },
}

impl LoadRequest {
    /// Whether an answer is followed by requests for further pages.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        matches!(self, Self::List { all_pages: true, .. })
    }

    fn one_byte() -> u32 {
        1
    }
}

impl Default for LoadRequest {
    fn default() -> Self {
        Self::Get {}
    }
}

/// What is spoken inside TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoadProtocol {
    /// HTTP/1.1, as kube-rs does.
    #[serde(rename = "http1")]
    Http1,
    /// HTTP/2, as client-go does.
    #[default]
    #[serde(rename = "http2")]
    Http2,
}

/// Of one load; each is a line of its history.
const MOST_REQUESTS: u64 = 5_000_000;

impl ClientUnderTest for Load {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::Load,
            talks_to: self.server.as_ref().map_or(TalksTo::ApiServer, TalksTo::Named),
            works: Works::ByStep,
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        arrivals(lint, &at.key("arrivals"), self.arrivals);
        numbers(lint, self, at);
        request(lint, self, at);
        holder(lint, self, at);
        server(lint, self.server.as_ref(), at);
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let spec = self.clone();
        Box::pin(load::run(ctx, move |setup| load::plain(setup, spec)))
    }
}

impl ClientUnderTest for RetryingLoad {
    fn about(&self) -> About<'_> {
        About {
            name: &self.name,
            kind: ClientKind::RetryingLoad,
            talks_to: self.server.as_ref().map_or(TalksTo::ApiServer, TalksTo::Named),
            works: Works::ByStep,
        }
    }

    fn lint(&self, lint: &mut Lint<'_>, at: &Place) {
        retrying(lint, self, at);
        server(lint, self.server.as_ref(), at);
    }

    fn run(&self, ctx: ClientContext) -> Running {
        let spec = self.clone();
        Box::pin(load::run(ctx, move |setup| load::retrying(setup, &spec)))
    }
}

fn retrying(lint: &mut Lint<'_>, c: &RetryingLoad, at: &Place) {
    arrivals(lint, &at.key("arrivals"), c.arrivals);
    if c.arrivals.at_a_time().is_some() {
        let title = "a load that retries has no closed loop";
        lint.error(&at.key("arrivals"), title, "write `burst` or `constant`");
    }
}

fn arrivals(lint: &mut Lint<'_>, path: &str, arrivals: Arrivals) {
    let requests = match arrivals {
        // Of chance arrivals there may be none.
        Arrivals::Poisson(c) if c.duration.0.as_secs_f64() * f64::from(c.rate.0) < 1.0 => 0,
        _ => arrivals.count_at_most(),
    };
    if requests == 0 || requests > MOST_REQUESTS {
        let title = format!("these arrivals are {requests} requests");
        lint.error(path, title, format!("make it 1 to {MOST_REQUESTS}"));
    }
    if requests == 0 {
        return;
    }
    match arrivals {
        Arrivals::Serial(s) => {
            lint.count(path, "requests", s.requests, 1_000_000);
            lint.count(path, "atATime", s.at_a_time, 1_000);
        }
        Arrivals::Burst(b) => {
            lint.count(path, "requests", b.requests, 100_000);
            lint.count(path, "times", b.times, 10_000);
        }
        _ => {}
    }
}

fn numbers(lint: &mut Lint<'_>, c: &Load, at: &Place) {
    lint.count(&at.key("connections"), "connections", c.connections, 1000);
    lint.count(&at.key("inFlight"), "inFlight", c.in_flight, 100_000);
    if let Some(timeout) = c.timeout {
        // API servers take only what is below their own request timeout, 60 s by default.
        lint.span(&at.key("timeout"), timeout, (Span::millis(100), Span::secs(59)));
    }
}

fn request(lint: &mut Lint<'_>, c: &Load, at: &Place) {
    match &c.request {
        LoadRequest::List { limit: Some(limit), .. } if !(PAGE.0..=PAGE.1).contains(limit) => {
            let help = format!("write {} to {}, or leave it out for all", PAGE.0, PAGE.1);
            lint.error(&at.key("request.list.limit"), format!("`limit: {limit}` is out of range"), help);
        }
        LoadRequest::List { limit: None, all_pages: true } => {
            let title = "`allPages` without `limit`: the first page is all there is";
            lint.error(&at.key("request.list.allPages"), title, "say with `limit` how long a page is");
        }
        LoadRequest::Create { value_bytes } if !(1..=500_000).contains(value_bytes) => {
            let title = format!("`valueBytes: {value_bytes}` is out of range");
            let help = "write 1 to 500000; etcd takes 1.5 MiB at most";
            lint.error(&at.key("request.create.valueBytes"), title, help);
        }
        LoadRequest::SlowCreate { duration } => {
            lint.span(&at.key("request.slowCreate.for"), *duration, (Span::millis(100), Span::secs(50)));
        }
        LoadRequest::Delete { of } => {
            let made =
                lint.drill.load(of).is_some_and(|made| matches!(made.request, LoadRequest::Create { .. }));
            if !made {
                let title = format!("no load named `{of}` creates objects");
                lint.error(&at.key("request.delete.of"), title, "name a load whose `request` is `create`");
            }
        }
        _ => {}
    }
}

fn holder(lint: &mut Lint<'_>, c: &Load, at: &Place) {
    let Some(name) = &c.while_held_by else { return };
    if *name == c.name {
        lint.error(&at.key("whileHeldBy"), "a load can't hold the level for itself", "name another load");
        return;
    }
    let holds =
        lint.drill.load(name).is_some_and(|held| matches!(held.request, LoadRequest::SlowCreate { .. }));
    if !holds {
        let title = format!("no load named `{name}` holds a seat");
        lint.error(&at.key("whileHeldBy"), title, "name a load whose `request` is `slowCreate`");
    }
}

fn server(lint: &mut Lint<'_>, server: Option<&ComponentId>, at: &Place) {
    let Some(server) = server else { return };
    let count = lint.drill.spec.cluster.topology.api_servers;
    let names: Vec<String> = (1..=count).map(|n| format!("kube-apiserver-{n}")).collect();
    if !names.contains(&server.0) {
        let title = format!("the cluster has no API server `{}`", server.0.escape_debug());
        lint.error(&at.key("server"), title, format!("API servers: `{}`", names.join("`, `")));
    }
}
