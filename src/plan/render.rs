//! The plan as a table for people: `quakeproof plan`.

use super::digest::plan_digest;
use super::{Plan, PlannedClient, PredictedView};
use crate::drill::lint::step_key;
use crate::drill::values::Span;
use crate::report::escape;
use std::fmt::Write as _;
use std::time::Duration;
use tabled::builder::Builder;
use tabled::settings::{Padding, Style};

/// What will be done to what, what it harms, how that ends, what is expected.
/// Safe to print on a terminal, whatever the drill file says.
#[must_use]
pub fn render(plan: &Plan) -> String {
    let mut out = String::new();
    head(&mut out, plan);
    steps(&mut out, plan);
    clients(&mut out, plan);
    predictions(&mut out, plan);
    objectives(&mut out, plan);
    defaults(&mut out, plan);
    out
}

fn head(out: &mut String, plan: &Plan) {
    let metadata = &plan.drill.metadata;
    let versions = &plan.cluster.versions;
    let list = |values: &std::collections::BTreeMap<String, String>| {
        let pairs: Vec<String> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
    };
    let components: Vec<String> = plan.cluster.components.iter().map(|c| c.component.to_string()).collect();
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
    table_out(out, table);
}

fn steps(out: &mut String, plan: &Plan) {
    let _ = writeln!(out, "\nSteps");
    let mut table = Builder::new();
    table.push_record(["#", "step", "with", "on"]);
    for step in &plan.steps {
        let targets: Vec<String> = step.targets.iter().map(ToString::to_string).collect();
        let settings = serde_json::to_value(&step.step).unwrap_or_default();
        let settings = settings.get(step_key(&step.step)).map(flat).unwrap_or_default();
        let index = (step.index + 1).to_string();
        push(&mut table, [index, step_key(&step.step).to_owned(), settings, dash(&targets.join(", "))]);
    }
    table_out(out, table);
    for step in &plan.steps {
        let Some(fault) = &step.fault else { continue };
        let ended = match fault.closed_by {
            Some(i) => format!("by step {} (`{}`)", i + 1, step_key(&plan.steps[i].step)),
            None => "by its undo".to_owned(),
        };
        let _ = writeln!(out, "\nFault in step {}", step.index + 1);
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
        table_out(out, table);
    }
}

fn clients(out: &mut String, plan: &Plan) {
    let _ = writeln!(
        out,
        "\nClients and probes, with the least they must record before / during / after the fault"
    );
    let mut table = Builder::new();
    table.push_record(["name", "kind", "target", "every", "minimum", "user"]);
    for client in &plan.clients {
        push(&mut table, client_row(client));
    }
    table_out(out, table);
}

fn client_row(client: &PlannedClient) -> [String; 6] {
    let kind = serde_json::to_value(client.kind).ok().and_then(|v| v.as_str().map(str::to_owned));
    let every = client.every_ns.map(|ns| Span(Duration::from_nanos(ns)).to_string());
    let minimum = client.minimum;
    [
        client.name.clone(),
        kind.unwrap_or_default(),
        client.target.to_string(),
        every.unwrap_or_else(|| "watch".to_owned()),
        format!("{} / {} / {}", minimum.before, minimum.during, minimum.after),
        client.identity.clone(),
    ]
}

fn predictions(out: &mut String, plan: &Plan) {
    if plan.predictions.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nPredicted views, before and after the old revision is passed");
    let mut table = Builder::new();
    table.push_record(["client", "before", "after", "410"]);
    for p in &plan.predictions {
        let gone = if p.gone_410 { "yes" } else { "no" };
        push(&mut table, [p.client.clone(), view(p.before_passing), view(p.after_passing), gone.to_owned()]);
    }
    table_out(out, table);
    for p in &plan.predictions {
        let _ = writeln!(out, "  {}: {}", escape::terminal(&p.client), escape::terminal(&p.source));
    }
}

fn view(view: PredictedView) -> String {
    match view {
        PredictedView::True => "as etcd",
        PredictedView::LostTimeline => "lost timeline",
        PredictedView::NotApplicable => "does not occur",
    }
    .to_owned()
}

fn objectives(out: &mut String, plan: &Plan) {
    let _ = writeln!(out, "\nObjectives");
    for objective in &plan.objectives {
        let predicted = objective.predicted.as_deref().unwrap_or("nothing is predicted");
        let _ = writeln!(
            out,
            "  {}: predicted {}",
            escape::terminal(&objective.name),
            escape::terminal(predicted)
        );
    }
}

/// The whole drill with every default filled in.
fn defaults(out: &mut String, plan: &Plan) {
    let _ = writeln!(out, "\nThe drill with every parameter and default filled in");
    let json = serde_json::to_value(&plan.drill).unwrap_or_default();
    tree(out, &json, 1);
}

fn tree(out: &mut String, value: &serde_json::Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let entries: Vec<(String, &serde_json::Value)> = match value {
        serde_json::Value::Object(map) => map.iter().map(|(k, v)| (format!("{k}:"), v)).collect(),
        serde_json::Value::Array(items) => items.iter().map(|v| ("-".to_owned(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in entries {
        let key = escape::terminal(&key).into_owned();
        let nested = match value {
            serde_json::Value::Object(map) => {
                map.values().any(|v| v.is_object() || v.is_array()) || map.len() > 4
            }
            serde_json::Value::Array(items) => items.iter().any(|v| v.is_object() || v.is_array()),
            _ => false,
        };
        if nested {
            let _ = writeln!(out, "{indent}{key}");
            tree(out, value, depth + 1);
        } else {
            let _ = writeln!(out, "{indent}{key} {}", escape::terminal(&flat(value)));
        }
    }
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
    if value.is_object() { format!("{{{}}}", flat(value)) } else { flat(value) }
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn push<const N: usize>(table: &mut Builder, cells: [String; N]) {
    table.push_record(cells.map(|cell| escape::terminal(&cell).into_owned()));
}

fn table_out(out: &mut String, table: Builder) {
    let mut table = table.build();
    table.with(Style::empty()).with(Padding::new(0, 2, 0, 0));
    for line in table.to_string().lines() {
        let _ = writeln!(out, "  {}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::{ResolveInput, resolve};
    use super::*;

    const DRILL: &str = include_str!("../../scenarios/etcd/restore-without-bump.yaml");

    #[test]
    fn a_reader_learns_targets_harm_undo_predictions_and_defaults() {
        let shown = render(&resolve(ResolveInput::plain("d.yaml", DRILL)).unwrap());
        for needed in
            ["blast radius", "undo", "lost timeline", "300 / 0 / 15", "maxLag", "plan digest", "etcd-1"]
        {
            assert!(shown.contains(needed), "{needed} is missing in:\n{shown}");
        }
    }

    #[test]
    fn text_of_the_drill_can_not_act_on_the_terminal() {
        let text = DRILL.replace("owner: platform-team", "owner: \"evil\\e[2Jteam\"");
        let shown = render(&resolve(ResolveInput::plain("d.yaml", &text)).unwrap());
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.contains("evil\\u{1b}"), "{shown}");
    }
}
