//! `report.json`.

use super::model::Report;

/// The report as indented JSON with a final newline.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut text =
        serde_json::to_string_pretty(report).expect("string keys and plain values always serialize");
    text.push('\n');
    text
}
