//! What objectives and steps need of the rest of a drill, each said with what to write.

use super::Lint;
use crate::drill::spec::{Client, Step};
use crate::drill::suggest;

/// Kind of the client that writes the ledger, and one of it.
pub(crate) const WRITER: (&str, &str) = ("ledgerWriter", "{name: orders, rate: 50/s}");

impl Lint<'_> {
    /// Whether the drill has such a client.
    pub(crate) fn has(&self, which: impl Fn(&Client) -> bool) -> bool {
        self.drill.spec.clients.iter().any(which)
    }

    /// Whether the drill has such a step.
    pub(crate) fn has_step(&self, which: impl Fn(&Step) -> bool) -> bool {
        self.drill.spec.steps.iter().any(which)
    }

    /// Whether the drill has a client of that kind and name.
    pub(crate) fn has_client(&self, kind: &str, name: &str) -> bool {
        self.has(|client| client.key() == kind && client.name() == name)
    }

    /// `title` says what can't be told without a client of that kind, of which there is an example.
    pub(crate) fn needs_kind(&mut self, path: &str, title: impl Into<String>, (kind, example): (&str, &str)) {
        if !self.has(|client| client.key() == kind) {
            self.error(path, title, format!("add a client, as `- {kind}: {example}`"));
        }
    }

    /// `title` says what can't be told where nothing is written.
    pub(crate) fn needs_writer(&mut self, path: &str, title: &str) {
        self.needs_kind(path, title, WRITER);
    }

    /// The client that an objective is about is of its kind, and a level holds it up.
    pub(crate) fn needs_held_up(&mut self, path: &str, kind: &str, name: &str) {
        if !self.has_client(kind, name) {
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
        // Each of its requests is one attempt, so that its fate can be counted.
        self.needs_load_of(path, client, |client| matches!(client, Client::Load(_)));
        let there = self.has(|c| c.name() == client);
        if there && self.drill.begin_of(client).is_none() {
            let title = format!("no step begins the load `{client}`");
            self.error(path, title, format!("add `- load: {{clients: [{client}]}}`"));
        }
    }

    /// The name is one of a client of some kind of load.
    pub(crate) fn needs_load_of(&mut self, path: &str, name: &str, is_load: impl Fn(&Client) -> bool) {
        let loads = self.drill.spec.clients.iter().filter(|client| is_load(client));
        let known: Vec<&str> = loads.map(|client| client.name()).collect();
        if !known.contains(&name) {
            let help = suggest::hint(name, "load clients", &known).unwrap_or_else(|| {
                "add a client, as `- load: {name: jailed, arrivals: {burst: {requests: 30}}}`".to_owned()
            });
            self.error(path, format!("no client `{name}` is a `load`"), help);
        }
    }
}
