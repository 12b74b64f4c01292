//! JSON Schemas of the formats that other programs read, generated from the types.
//!
//! Draft-07, because the YAML language server understands nothing newer.

pub mod reference;

use crate::drill::spec::{API_VERSION, Drill};
use crate::findings::{self, Findings};
use crate::journal::entry::Entry;
use crate::report::Report;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Formats that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A drill file.
    Drill,
    /// One line of `journal.jsonl`.
    Journal,
    /// `report.json`.
    Report,
    /// `findings.yaml`.
    Findings,
}

/// The JSON Schema of a format.
#[must_use]
pub fn schema_for(format: Format) -> Value {
    match format {
        Format::Drill => {
            let mut schema = drill_without_references();
            accept_references(&mut schema);
            schema
        }
        Format::Journal => draft07::<Entry>("quakeproof journal entry"),
        Format::Report => draft07::<Report>("quakeproof report"),
        Format::Findings => {
            let mut schema = draft07::<Findings>("quakeproof findings");
            schema["properties"]["apiVersion"]["const"] = json!(findings::API_VERSION);
            schema["properties"]["kind"]["const"] = json!(findings::KIND);
            schema
        }
    }
}

/// The schema as it is checked in: pretty, with a newline at its end.
///
/// # Panics
/// Never: a schema is JSON.
#[must_use]
pub fn schema_text(format: Format) -> String {
    let mut text = serde_json::to_string_pretty(&schema_for(format)).expect("a schema is JSON");
    text.push('\n');
    text
}

/// The drill's schema as the types have it: what values look like once parameters are filled in.
pub(super) fn drill_without_references() -> Value {
    let mut schema = draft07::<Drill>("quakeproof drill");
    for (key, only) in [("apiVersion", API_VERSION), ("kind", "Drill")] {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{key}")) {
            property["const"] = json!(only);
        }
    }
    schema
}

fn draft07<T: JsonSchema>(title: &str) -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = json!(title);
    schema
}

/// Name of the definition that stands for `$(name)`.
const REFERENCE: &str = "ParameterReference";

/// Lets `$(name)` stand wherever a number, a boolean or a text of a certain form is
/// asked for. Plain texts take it anyway; parameters themselves can't refer to others.
fn accept_references(schema: &mut Value) {
    let definitions = schema.get("definitions").cloned().unwrap_or_default();
    if let Some(Value::Object(all)) = schema.get_mut("definitions") {
        for (name, definition) in all.iter_mut() {
            if name != "Parameter" {
                accept_in(definition, &definitions);
            }
        }
        all.insert(
            REFERENCE.to_owned(),
            json!({
                "description": "The value of a parameter: $(name).",
                "type": "string",
                "pattern": r"\$\([A-Za-z][A-Za-z0-9]*\)"
            }),
        );
    }
}

fn accept_in(schema: &mut Value, definitions: &Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (key, property) in properties.iter_mut() {
            if key != "parameters" && key != "profiles" && constrained_scalar(property, definitions) {
                wrap(property);
            }
        }
    }
}

/// Whether a schema asks for a scalar that `$(name)` would not match.
fn constrained_scalar(schema: &Value, definitions: &Value) -> bool {
    if let Some(name) =
        schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/definitions/"))
    {
        return definitions.get(name).is_some_and(|d| constrained_scalar(d, definitions));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(parts)) = schema.get(key) {
            let scalar =
                |p: &&Value| !matches!(p.get("type").and_then(Value::as_str), Some("null" | "array"));
            let mut scalars = parts.iter().filter(scalar).peekable();
            return scalars.peek().is_some() && scalars.all(|p| constrained_scalar(p, definitions));
        }
    }
    let is = |name: &str| match schema.get("type") {
        Some(Value::String(t)) => t == name,
        Some(Value::Array(types)) => types.iter().any(|t| t == name),
        _ => false,
    };
    let formed = ["pattern", "enum", "const"].iter().any(|k| schema.get(*k).is_some());
    is("integer") || is("number") || is("boolean") || (is("string") && formed)
}

fn wrap(property: &mut Value) {
    let Value::Object(mut inner) = property.take() else { return };
    let mut outer = Map::new();
    for key in ["description", "default"] {
        if let Some(value) = inner.remove(key) {
            outer.insert(key.to_owned(), value);
        }
    }
    let parts = json!([inner, { "$ref": format!("#/definitions/{REFERENCE}") }]);
    outer.insert("anyOf".to_owned(), parts);
    *property = Value::Object(outer);
}
