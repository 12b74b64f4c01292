//! The plan as a table for people: `quakeproof plan`.

use super::digest::plan_digest;
use super::{Plan, PlannedClient};
use crate::drill::spec::Step;
use crate::drill::values::Span;
use crate::escape;
use crate::history::kind::ClientKind;
use std::fmt::Write as _;
use std::time::Duration;
use tabled::builder::Builder;
use tabled::settings::peaker::Priority;
use tabled::settings::{Padding, Style, Width};

/// What will be done to what, what it harms, how that ends, what is expected, in lines of `width`
/// columns where words allow it. Steps are numbered from 0, as in the evidence.
/// Safe to print on a terminal, whatever the drill file says.
#[must_use]
pub fn render(plan: &Plan, width: usize) -> String {
    let mut page = Page { out: String::new(), width };
    page.head(plan);
    page.steps(plan);
    page.clients(plan);
    page.predictions(plan);
    page.objectives(plan);
    page.defaults(plan);
    page.out
}

/// What is printed.
struct Page {
    out: String,
    width: usize,
}

impl Page {
    fn head(&mut self, plan: &Plan) {
        let metadata = &plan.drill.metadata;
        let versions = &plan.cluster.versions;
        let list = |values: &std::collections::BTreeMap<String, String>| {
            let pairs: Vec<String> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
            if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
        };
        let components: Vec<String> =
            plan.cluster.components.iter().map(|c| c.component.to_string()).collect();
        let rows = [
            ("drill", format!("{}: {}", metadata.name, metadata.title)),
            ("owner", metadata.owner.clone()),
            ("reason", metadata.reason.clone()),
            ("drill digest", plan.drill_digest.clone()),
            ("plan digest", plan_digest(plan)),
            ("seed", plan.seed.to_string()),
            ("profile", plan.profile.clone().unwrap_or_else(|| "none (real timings)".to_owned())),
            ("parameters", list(&plan.parameters)),
            ("overrides", list(&plan.overrides)),
            (
                "cluster",
                match &plan.cluster.standing {
                    Some(name) => format!("{} (standing cluster `{name}`)", plan.cluster.name),
                    None => format!("{} (made for the run, removed after it)", plan.cluster.name),
                },
            ),
            ("versions", format!("Kubernetes {}, etcd {}", versions.kubernetes, versions.etcd)),
            ("components", components.join(", ")),
        ];
        let mut table = Builder::new();
        for (key, value) in rows {
            push(&mut table, [key.to_owned(), value]);
        }
        self.table(table);
    }

    fn steps(&mut self, plan: &Plan) {
        let _ = writeln!(self.out, "\nSteps");
        let mut table = Builder::new();
        table.push_record(["#", "step", "with", "on"]);
        for step in &plan.steps {
            let targets: Vec<String> = step.targets.iter().map(ToString::to_string).collect();
            let (key, index) = (step.step.key(), step.index.to_string());
            push(&mut table, [index, key.to_owned(), settings(&step.step, key), dash(&targets.join(", "))]);
        }
        self.table(table);
        for step in &plan.steps {
            let Some(fault) = &step.fault else { continue };
            let ended = match fault.closed_by {
                Some(i) => format!("by step {i} (`{}`)", plan.steps[i].step.key()),
                None => "by its undo".to_owned(),
            };
            let _ = writeln!(self.out, "\nFault in step {}", step.index);
            let mut table = Builder::new();
            push(&mut table, ["blast radius".to_owned(), fault.blast_radius.clone()]);
            push(&mut table, ["ends".to_owned(), ended]);
            push(&mut table, ["undo".to_owned(), fault.undo.clone()]);
            let within = Span(Duration::from_nanos(fault.undo_within_ns));
            let lapse = format!("{:?}", fault.on_lapse).to_lowercase();
            push(
                &mut table,
                [
                    "dead-man".to_owned(),
                    format!(
                        "{lapse} when the runner is silent for {}; an undo takes {within} at most",
                        plan.limits.dead_man
                    ),
                ],
            );
            self.table(table);
        }
    }

    fn clients(&mut self, plan: &Plan) {
        let _ =
            writeln!(self.out, "\nClients and probes; minimum of records before / during / after the fault");
        let mut table = Builder::new();
        table.push_record(["name", "kind", "target", "every", "minimum", "user"]);
        for client in &plan.clients {
            push(&mut table, client_row(client));
        }
        self.table(table);
    }

    fn predictions(&mut self, plan: &Plan) {
        if plan.predictions.is_empty() {
            return;
        }
        let _ = writeln!(self.out, "\nPredicted views, before and after the old revision is passed");
        let mut table = Builder::new();
        table.push_record(["client", "before", "after", "ends with 410", "rule"]);
        let mut rules: Vec<&str> = Vec::new();
        for p in &plan.predictions {
            let gone = if p.gone_410 { "yes" } else { "no" };
            let rule = rules.iter().position(|rule| *rule == p.source).unwrap_or_else(|| {
                rules.push(&p.source);
                rules.len() - 1
            });
            let (before, after) = (p.before_passing.words().to_owned(), p.after_passing.words().to_owned());
            push(&mut table, [p.client.clone(), before, after, gone.to_owned(), (rule + 1).to_string()]);
        }
        self.table(table);
        let mut table = Builder::new();
        for (index, rule) in rules.into_iter().enumerate() {
            push(&mut table, [format!("{}.", index + 1), rule.to_owned()]);
        }
        self.table(table);
    }

    fn objectives(&mut self, plan: &Plan) {
        let _ = writeln!(self.out, "\nObjectives");
        let mut table = Builder::new();
        for objective in &plan.objectives {
            let predicted = match &objective.predicted {
                Some(predicted) => format!("predicted {predicted}"),
                None => "nothing is predicted".to_owned(),
            };
            push(&mut table, [objective.name.clone(), predicted]);
        }
        self.table(table);
    }

    /// The whole drill with every default filled in.
    fn defaults(&mut self, plan: &Plan) {
        let _ = writeln!(self.out, "\nThe drill with every parameter and default filled in\n");
        // What can't be written as YAML could not have been read from it.
        let yaml = serde_saphyr::to_string(&plan.drill).unwrap_or_default();
        for line in yaml.lines() {
            let _ = writeln!(self.out, "  {}", escape::terminal(line));
        }
    }

    fn table(&mut self, table: Builder) {
        let mut table = table.build();
        table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
        table.with(Width::wrap(self.width.saturating_sub(2)).priority(Priority::max(true)).keep_words(true));
        for line in table.to_string().lines() {
            let _ = writeln!(self.out, "  {}", line.trim_end());
        }
    }
}

/// What the file says of a step, and nothing that would be so without it.
fn settings(step: &Step, key: &str) -> String {
    let whole = serde_json::to_value(step).unwrap_or_default();
    let Some(serde_json::Value::Object(all)) = whole.get(key) else { return String::new() };
    let is_default = |setting: &str| {
        let mut without = all.clone();
        without.shift_remove(setting);
        serde_json::from_value::<Step>(serde_json::json!({ key: without })).is_ok_and(|other| other == *step)
    };
    let said = all.iter().filter(|(setting, _)| !is_default(setting));
    flat(
        &said
            .map(|(setting, value)| (setting.clone(), value.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    )
}

/// When a client without a pace of its own is at work.
fn unpaced(kind: ClientKind) -> &'static str {
    match kind {
        ClientKind::Load | ClientKind::RetryingLoad => "its arrivals",
        _ => "watch",
    }
}

fn client_row(client: &PlannedClient) -> [String; 6] {
    let kind = serde_json::to_value(client.kind).ok().and_then(|v| v.as_str().map(str::to_owned));
    let every = client.every_ns.map(|ns| Span(Duration::from_nanos(ns)).to_string());
    let minimum = client.minimum;
    [
        client.name.clone(),
        kind.unwrap_or_default(),
        client.target.to_string(),
        every.unwrap_or_else(|| unpaced(client.kind).to_owned()),
        format!("{} / {} / {}", minimum.before, minimum.during, minimum.after),
        client.identity.clone(),
    ]
}

/// A value on one line.
fn flat(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Object(map) => {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("{k}: {}", nested_flat(v))).collect();
            if pairs.is_empty() { "{}".to_owned() } else { pairs.join(", ") }
        }
        serde_json::Value::Array(items) => {
            format!("[{}]", items.iter().map(nested_flat).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn nested_flat(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(map) if !map.is_empty() => format!("{{{}}}", flat(value)),
        _ => flat(value),
    }
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn push<const N: usize>(table: &mut Builder, cells: [String; N]) {
    table.push_record(cells.map(|cell| escape::terminal(&cell).into_owned()));
}

#[cfg(test)]
mod tests {
    use super::super::resolve::{ResolveInput, resolve};
    use super::*;

    const DRILL: &str = include_str!("../../scenarios/etcd/restore-without-bump.yaml");

    #[test]
    fn a_reader_learns_targets_harm_undo_predictions_and_defaults() {
        let shown = render(&resolve(ResolveInput::plain("d.yaml", DRILL)).unwrap(), 100);
        for needed in
            ["blast radius", "undo", "lost timeline", "300 / 0 / 15", "maxLag", "plan digest", "etcd-1"]
        {
            assert!(shown.contains(needed), "{needed} is missing in:\n{shown}");
        }
    }

    #[test]
    fn lines_are_no_longer_than_asked_and_steps_say_only_what_the_file_says() {
        let shown = render(&resolve(ResolveInput::plain("d.yaml", DRILL)).unwrap(), 80);
        let tables = shown.split("The drill with every").next().unwrap();
        let longest = tables.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 80, "{longest}");
        assert!(!tables.contains("readyWithin"), "{tables}");
    }

    #[test]
    fn the_filled_in_drill_is_a_drill() {
        let plan = resolve(ResolveInput::plain("d.yaml", DRILL)).unwrap();
        let shown = render(&plan, 100);
        let yaml: String = shown
            .split("default filled in")
            .nth(1)
            .unwrap()
            .lines()
            .map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line)))
            .collect();
        let again =
            resolve(ResolveInput::plain("again.yaml", &yaml)).unwrap_or_else(|e| panic!("{e}: {yaml}"));
        assert_eq!(again.drill, plan.drill);
    }

    #[test]
    fn text_of_the_drill_can_not_act_on_the_terminal() {
        let text = DRILL.replace("owner: platform-team", "owner: \"evil\\e[2Jteam\"");
        let shown = render(&resolve(ResolveInput::plain("d.yaml", &text)).unwrap(), 100);
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.contains("evil\\u{1b}"), "{shown}");
    }
}
