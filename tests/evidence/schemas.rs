//! What a bundle holds is what the published schemas say, so that other programs can rely on them.

use crate::bundle::{bundle, copy_of};
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::publish::publish;
use quakeproof::schema::{Format, schema_for};
use serde_json::Value;
use std::fs;

/// Where `value` breaks the schema of `format`; nothing when it keeps it.
fn breaches(format: Format, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft7::new(&schema_for(format)).unwrap();
    validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

fn journal(dir: &RunDir) -> Vec<Value> {
    let text = fs::read_to_string(dir.journal()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn report(dir: &RunDir) -> Value {
    serde_json::from_slice(&fs::read(dir.report_json()).unwrap()).unwrap()
}

#[test]
fn a_journal_and_a_report_keep_their_schemas() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    for (at, entry) in journal(&dir).iter().enumerate() {
        assert_eq!(breaches(Format::Journal, entry), [""; 0], "line {}", at + 1);
    }
    assert_eq!(breaches(Format::Report, &report(&dir)), [""; 0]);
}

#[test]
fn the_schemas_refuse_what_is_neither() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    let mut entry = journal(&dir).remove(0);
    entry["monoNs"] = "soon".into();
    assert_ne!(breaches(Format::Journal, &entry), [""; 0]);
    let mut report = report(&dir);
    report["verdict"] = "maybe".into();
    assert_ne!(breaches(Format::Report, &report), [""; 0]);
}
