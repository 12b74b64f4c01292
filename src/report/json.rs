//! `report.json` and its schema.

use super::model::Report;
use schemars::generate::SchemaSettings;

/// The report as indented JSON with a final newline.
#[must_use]
pub fn render(report: &Report) -> String {
    pretty(report)
}

/// JSON Schema (draft-07) of `report.json`.
#[must_use]
pub fn schema() -> String {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Report>();
    schema.insert("$id".to_owned(), "https://quakeproof.dev/schemas/report.v1.json".into());
    schema.insert("title".to_owned(), "quakeproof report, format 1".into());
    pretty(&schema)
}

fn pretty<T: serde::Serialize>(value: &T) -> String {
    let mut text =
        serde_json::to_string_pretty(value).expect("string keys and plain values always serialize");
    text.push('\n');
    text
}
