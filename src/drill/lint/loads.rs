//! Loads: what one machine can send, what an API server takes, and the clients that a load names.

use super::super::spec::{Client, Load};
use super::super::values::Span;
use super::ranges::{PAGE, span};
use super::{Lint, client_path};
use crate::client::spec::{LoadRequest, RetryingLoad};
use crate::load::arrivals::Arrivals;
use crate::provider::component::ComponentId;

/// Of one load; each is a line of its history.
const MOST_REQUESTS: u64 = 5_000_000;

pub(super) fn check(lint: &mut Lint<'_>) {
    for (i, client) in lint.drill.spec.clients.iter().enumerate() {
        let path = |key: &str| client_path(i, client, key);
        match client {
            Client::Load(c) => {
                arrivals(lint, &path("arrivals"), c.arrivals);
                numbers(lint, c, path);
                request(lint, c, path);
                holder(lint, c, path);
                server(lint, c.server.as_ref(), path);
            }
            Client::RetryingLoad(c) => {
                retrying(lint, c, path);
                server(lint, c.server.as_ref(), path);
            }
            _ => {}
        }
    }
}

fn retrying(lint: &mut Lint<'_>, c: &RetryingLoad, path: impl Fn(&str) -> String) {
    arrivals(lint, &path("arrivals"), c.arrivals);
    if c.arrivals.at_a_time().is_some() {
        let title = "a load that retries has no closed loop";
        lint.error(&path("arrivals"), title, "write `burst` or `constant`");
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
            count(lint, path, "requests", s.requests, 1_000_000);
            count(lint, path, "atATime", s.at_a_time, 1_000);
        }
        Arrivals::Burst(b) => {
            count(lint, path, "requests", b.requests, 100_000);
            count(lint, path, "times", b.times, 10_000);
        }
        _ => {}
    }
}

/// A number of 1 or more.
fn count(lint: &mut Lint<'_>, path: &str, key: &str, value: u32, most: u32) {
    if !(1..=most).contains(&value) {
        lint.error(path, format!("`{key}: {value}` is out of range"), format!("write 1 to {most}"));
    }
}

fn numbers(lint: &mut Lint<'_>, c: &Load, path: impl Fn(&str) -> String) {
    count(lint, &path("connections"), "connections", c.connections, 1000);
    count(lint, &path("inFlight"), "inFlight", c.in_flight, 100_000);
    if let Some(timeout) = c.timeout {
        // API servers take only what is below their own request timeout, 60 s by default.
        span(lint, &path("timeout"), timeout, (Span::millis(100), Span::secs(59)));
    }
}

fn request(lint: &mut Lint<'_>, c: &Load, path: impl Fn(&str) -> String) {
    match &c.request {
        LoadRequest::List { limit: Some(limit), .. } if !(PAGE.0..=PAGE.1).contains(limit) => {
            let help = format!("write {} to {}, or leave it out for all", PAGE.0, PAGE.1);
            lint.error(&path("request.list.limit"), format!("`limit: {limit}` is out of range"), help);
        }
        LoadRequest::List { limit: None, all_pages: true } => {
            let title = "`allPages` without `limit`: the first page is all there is";
            lint.error(&path("request.list.allPages"), title, "say with `limit` how long a page is");
        }
        LoadRequest::Create { value_bytes } if !(1..=500_000).contains(value_bytes) => {
            let title = format!("`valueBytes: {value_bytes}` is out of range");
            let help = "write 1 to 500000; etcd takes 1.5 MiB at most";
            lint.error(&path("request.create.valueBytes"), title, help);
        }
        LoadRequest::SlowCreate { duration } => {
            span(lint, &path("request.slowCreate.for"), *duration, (Span::millis(100), Span::secs(50)));
        }
        LoadRequest::Delete { of } => {
            let made =
                lint.drill.load(of).is_some_and(|made| matches!(made.request, LoadRequest::Create { .. }));
            if !made {
                let title = format!("no load named `{of}` creates objects");
                lint.error(&path("request.delete.of"), title, "name a load whose `request` is `create`");
            }
        }
        _ => {}
    }
}

fn holder(lint: &mut Lint<'_>, c: &Load, path: impl Fn(&str) -> String) {
    let Some(name) = &c.while_held_by else { return };
    if *name == c.name {
        lint.error(&path("whileHeldBy"), "a load can't hold the level for itself", "name another load");
        return;
    }
    let holds =
        lint.drill.load(name).is_some_and(|held| matches!(held.request, LoadRequest::SlowCreate { .. }));
    if !holds {
        let title = format!("no load named `{name}` holds a seat");
        lint.error(&path("whileHeldBy"), title, "name a load whose `request` is `slowCreate`");
    }
}

fn server(lint: &mut Lint<'_>, server: Option<&ComponentId>, path: impl Fn(&str) -> String) {
    let Some(server) = server else { return };
    let count = lint.drill.spec.cluster.topology.api_servers;
    let names: Vec<String> = (1..=count).map(|n| format!("kube-apiserver-{n}")).collect();
    if !names.contains(&server.0) {
        let title = format!("the cluster has no API server `{}`", server.0.escape_debug());
        lint.error(&path("server"), title, format!("API servers: `{}`", names.join("`, `")));
    }
}
