//! What objectives and steps need of the rest of a drill, each said with what to write.

use super::Lint;
use crate::drill::spec::{Client, Step};
use crate::drill::suggest;

/// How to add a ledger writer.
pub(crate) const WRITER: &str = "add a client, as `- ledgerWriter: {name: orders, rate: 50/s}`";

/// A load of which each request is one attempt, so that its fate can be counted.
fn is_load(client: &Client) -> bool {
    matches!(client, Client::Load(_))
}

impl Lint<'_> {
    /// Whether the drill has such a client.
    pub(crate) fn has(&self, which: impl Fn(&Client) -> bool) -> bool {
        self.drill.spec.clients.iter().any(which)
    }

    /// Whether the drill has such a step.
    pub(crate) fn has_step(&self, which: impl Fn(&Step) -> bool) -> bool {
        self.drill.spec.steps.iter().any(which)
    }

    /// `title` says what can't be told where nothing is written.
    pub(crate) fn needs_writer(&mut self, path: &str, title: &str) {
        if !self.has(|client| matches!(client, Client::LedgerWriter(_))) {
            self.error(path, title, WRITER);
        }
    }

    /// The client that an objective is about is of its kind, and a level holds it up.
    pub(crate) fn needs_held_up(&mut self, path: &str, is: bool, kind: &str, name: &str) {
        if !is {
            let title = format!("no `{kind}` is named `{name}`");
            self.error(path, title, format!("name a client of kind `{kind}`"));
        }
        let held_up =
            |s: &Step| matches!(s, Step::ApfLevel(level) if level.clients.iter().any(|c| c == name));
        if !self.has_step(held_up) {
            let title = format!("no `apfLevel` holds up `{name}`");
            self.error(path, title, format!("add it to the `clients` of an `apfLevel`, as `[{name}]`"));
        }
    }

    /// A load that some step begins: one that none begins is of no objective's use.
    pub(crate) fn needs_load(&mut self, path: &str, client: &str) {
        self.needs_loads(path, &[client.to_owned()], is_load);
        let there = self.has(|c| c.name() == client);
        if there && self.drill.begin_of(client).is_none() {
            let title = format!("no step begins the load `{client}`");
            self.error(path, title, format!("add `- load: {{clients: [{client}]}}`"));
        }
    }

    /// Each name is a client of a kind of load.
    pub(crate) fn needs_loads(&mut self, path: &str, names: &[String], is_load: fn(&Client) -> bool) {
        let loads = self.drill.spec.clients.iter().filter(|client| is_load(client));
        let known: Vec<&str> = loads.map(|client| client.name()).collect();
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let help = suggest::hint(name, "load clients", &known).unwrap_or_else(|| {
                "add a client, as `- load: {name: jailed, arrivals: {burst: {requests: 30}}}`".to_owned()
            });
            self.error(path, format!("no client `{name}` is a `load`"), help);
        }
    }
}
