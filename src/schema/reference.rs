//! The reference page of the drill format, generated from the types.

use super::drill_without_references;
use serde_json::Value;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# The drill format

Generated from the types in `src/`; `QUAKEPROOF_BLESS=1 cargo test --test drill` rewrites it.

A drill is one YAML document. Keys are camelCase, names kebab-case; durations and rates always carry a
unit (`250ms`, `90s`, `50/s`). Unknown keys are errors. A step, client, condition or objective is a
mapping with one key that says what it is: `- hold: {for: 5s}`.

`$(name)` stands for the value of the parameter `name` anywhere outside of `spec.parameters` and
`spec.profiles`, alone or inside a longer text. Values come from the parameter's default, then the
profile asked for, then `--set`.

`quakeproof check FILE` says what is wrong with a drill, `quakeproof plan FILE` what it would do with
every default filled in, `quakeproof schema drill` prints the JSON Schema for editors:
`# yaml-language-server: $schema=…/schemas/drill.v1alpha1.json`.
";

/// `docs/reference/drill.md`.
#[must_use]
pub fn drill_page() -> String {
    let schema = drill_without_references();
    let mut page = INTRODUCTION.to_owned();
    let mut seen = BTreeSet::from(["Drill".to_owned()]);
    let mut queue = VecDeque::from([("Drill".to_owned(), &schema)]);
    while let Some((name, definition)) = queue.pop_front() {
        section(&mut page, &name, definition, &schema);
        for next in references(definition) {
            if let Some(definition) = schema.pointer(&format!("/definitions/{next}"))
                && seen.insert(next.clone())
            {
                queue.push_back((next, definition));
            }
        }
    }
    page
}

fn section(page: &mut String, name: &str, definition: &Value, schema: &Value) {
    let _ = writeln!(page, "\n## {name}\n");
    if let Some(text) = definition.get("description").and_then(Value::as_str) {
        let _ = writeln!(page, "{}", paragraph(text));
    }
    if let Some(Value::Object(properties)) = definition.get("properties") {
        if properties.is_empty() {
            return;
        }
        let _ = writeln!(page, "\n| Key | Type | Default | Description |\n|---|---|---|---|");
        let required: Vec<&str> =
            definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, property) in properties {
            let _ = writeln!(
                page,
                "| `{key}` | {} | {} | {} |",
                type_of(property),
                default_of(key, property, &required),
                description(property)
            );
        }
    } else if let Some(variants) =
        definition.get("oneOf").or_else(|| definition.get("anyOf")).and_then(Value::as_array)
    {
        variant_table(page, variants, schema);
    }
}

/// Variants of an enum: single keys with what follows them, or plain values.
fn variant_table(page: &mut String, variants: &[Value], schema: &Value) {
    let rows: Vec<(String, String, String)> = variants.iter().flat_map(|v| variant_rows(v, schema)).collect();
    let tagged = rows.iter().any(|(_, kind, _)| !kind.is_empty());
    let head = if tagged {
        "| Key | Type | Description |\n|---|---|---|"
    } else {
        "| Value | Description |\n|---|---|"
    };
    let _ = writeln!(page, "\n{head}");
    for (value, kind, text) in rows {
        let _ = if tagged {
            writeln!(page, "| {value} | {kind} | {text} |")
        } else {
            writeln!(page, "| {value} | {text} |")
        };
    }
}

fn variant_rows(variant: &Value, schema: &Value) -> Vec<(String, String, String)> {
    if let Some(Value::Object(properties)) = variant.get("properties") {
        let row = |(key, property): (&String, &Value)| {
            let own = description(variant);
            let text = if own.is_empty() { description_of_reference(property, schema) } else { own };
            (format!("`{key}`"), type_of(property), text)
        };
        return properties.iter().map(row).collect();
    }
    let values = match (variant.get("const"), variant.get("enum").and_then(Value::as_array)) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(values)) => values.clone(),
        (None, None) => return vec![(type_of(variant), String::new(), description(variant))],
    };
    values.iter().map(|v| (format!("`{}`", plain(v)), String::new(), description(variant))).collect()
}

fn description_of_reference(property: &Value, schema: &Value) -> String {
    let name = property.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/definitions/"));
    name.and_then(|n| schema.pointer(&format!("/definitions/{n}"))).map(description).unwrap_or_default()
}

/// Names of the definitions that a schema refers to, in order.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match (key.as_str(), value.as_str()) {
                ("$ref", Some(target)) => {
                    target.strip_prefix("#/definitions/").map(str::to_owned).into_iter().collect()
                }
                ("definitions", _) => Vec::new(),
                _ => references(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let name = target.rsplit('/').next().unwrap_or(target);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(parts) = schema.get(key).and_then(Value::as_array) {
            let parts: Vec<String> = parts.iter().filter(|p| p["type"] != "null").map(type_of).collect();
            return parts.join(" or ");
        }
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", plain(value));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> =
            values.iter().filter(|v| !v.is_null()).map(|v| format!("`{}`", plain(v))).collect();
        return values.join(" or ");
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null"),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer") => whole_number(schema),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("mapping of names to {}", type_of(values)),
            _ => "mapping".to_owned(),
        },
        Some("string") => "text".to_owned(),
        _ => "anything".to_owned(),
    }
}

fn whole_number(schema: &Value) -> String {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64).map(|n| n.to_string());
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!("whole number, {least} to {most}"),
        (Some(least), None) => format!("whole number, {least} or more"),
        _ => "whole number".to_owned(),
    }
}

fn default_of(key: &str, property: &Value, required: &[&str]) -> String {
    match property.get("default") {
        _ if required.contains(&key) => "required".to_owned(),
        Some(Value::Null) | None => "none".to_owned(),
        Some(Value::Object(_)) => "see its type".to_owned(),
        Some(value) => format!("`{}`", plain(value)),
    }
}

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    paragraph(text).replace('|', "\\|")
}

fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
