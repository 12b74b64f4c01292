//! Every recorded run is judged as it was: whole reports, figure by figure. `QUAKEPROOF_BLESS=1` writes them anew;
//! whoever does that has changed what is said of runs that happened, and owes the judge a new number.

#[path = "support/recorded_run.rs"]
mod recorded_run;

use quakeproof::check::linearizable::Linearizable;
use quakeproof::drill::spec::Objective;
use quakeproof::plan::PlannedObjective;
use quakeproof::report::{json, prepare};
use quakeproof::timeline::EvidenceInput;
use recorded_run::recorded_run;
use std::fs;
use std::path::{Path, PathBuf};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// `(area, name)` of every recorded run.
fn recorded() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for area in ["apf", "consistency"] {
        for entry in fs::read_dir(data().join(area)).unwrap() {
            let file = entry.unwrap().file_name().to_string_lossy().into_owned();
            all.extend(file.strip_suffix(".tar.gz").map(|name| (area.to_owned(), name.to_owned())));
        }
    }
    all.sort();
    all
}

/// What clients of a restore were answered is also held against one order of writes, whatever the drill asked for.
fn in_one_order_too(input: &mut EvidenceInput) {
    let objective = Linearizable { name: "in-one-order".to_owned(), ..Linearizable::default() };
    if !input.plan.objectives.iter().any(|planned| planned.objective.key() == "linearizable") {
        input.plan.objectives.push(PlannedObjective {
            name: objective.name.clone(),
            objective: Objective::Linearizable(objective),
            predicted: None,
        });
    }
}

#[test]
fn every_recorded_run_is_judged_as_it_was() {
    let all = recorded();
    assert!(all.len() >= 9, "{all:?}");
    for (area, name) in all {
        let mut input = recorded_run(&area, &name);
        if area == "consistency" {
            in_one_order_too(&mut input);
        }
        let report = prepare(&input, "not kept with recorded runs").report;
        let judged = json::render(&report);
        let golden = data().join(&area).join(format!("{name}.report.json"));
        if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
            fs::write(&golden, &judged).unwrap();
        }
        let before = fs::read_to_string(&golden).unwrap();
        let other = before.lines().zip(judged.lines()).position(|(before, now)| before != now);
        let line = other.map(|at| (at + 1, before.lines().nth(at), judged.lines().nth(at)));
        assert!(before == judged, "{name}: judged otherwise than before, at {line:?}");
    }
}
