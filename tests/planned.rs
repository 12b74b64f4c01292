//! Every scenario is planned as it was, on every pinned version: what is expected of it, in numbers and in words, who
//! is watched, and what each fault harms. `QUAKEPROOF_BLESS=1` writes it anew.

use quakeproof::plan::Plan;
use quakeproof::plan::resolve::{ResolveInput, resolve};
use quakeproof::provider::binaries::pinned_pairs;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scenarios() -> Vec<PathBuf> {
    let areas = fs::read_dir(root().join("scenarios")).unwrap().map(|area| area.unwrap().path());
    let mut all: Vec<PathBuf> =
        areas.flat_map(|area| fs::read_dir(area).unwrap().map(|file| file.unwrap().path())).collect();
    all.sort();
    all
}

/// What a plan says about the future. Digests, the seed's consequences apart, are tested where they are made.
fn foretold(plan: &Plan) -> Value {
    let clients = plan
        .clients
        .iter()
        .map(|client| json!([client.name, client.kind, client.target, client.every_ns, client.minimum]));
    let objectives = plan.objectives.iter().map(|objective| json!([objective.name, objective.predicted]));
    let faults = plan.steps.iter().filter_map(|step| {
        let fault = step.fault.as_ref()?;
        Some(json!([step.index, step.targets, fault.blast_radius, fault.undo, fault.closed_by]))
    });
    json!({
        "clients": clients.collect::<Vec<_>>(),
        "predictions": plan.predictions,
        "flow": plan.flow,
        "objectives": objectives.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
    })
}

#[test]
fn every_scenario_is_planned_as_it_was() {
    let mut changed = Vec::new();
    for path in scenarios() {
        let (text, name) = (fs::read_to_string(&path).unwrap(), path.file_stem().unwrap().to_string_lossy());
        for (kubernetes, _) in pinned_pairs() {
            let input = ResolveInput::plain(&name, &text);
            let plan = resolve(ResolveInput { kubernetes: Some((*kubernetes).to_owned()), ..input });
            let now = format!("{:#}\n", foretold(&plan.unwrap_or_else(|error| panic!("{name}: {error}"))));
            let golden = root().join(format!("tests/data/plan/{name}-{kubernetes}.json"));
            if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
                fs::create_dir_all(golden.parent().unwrap()).unwrap();
                fs::write(&golden, &now).unwrap();
            }
            let before = fs::read_to_string(&golden).unwrap_or_default();
            if before != now {
                let first = before.lines().zip(now.lines()).find(|(before, now)| before != now);
                changed.push(format!("{name} on {kubernetes}: {first:?}"));
            }
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
