//! The same histories, exported and checked by porcupine, give the same result.

use crate::properties::is_possible;
use crate::random::history;
use crate::recorded::{TWINS, recorded};
use crate::skip::skip;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use quakeproof::check::Judge;
use quakeproof::check::consistency::epochs::{Epoch, Run};
use quakeproof::check::consistency::export::render;
use quakeproof::timeline::EvidenceInput;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Random histories that are compared.
const RANDOM: usize = 400;

#[test]
fn porcupine_comes_to_the_same_result() {
    if Command::new("go").arg("version").output().is_err() {
        skip("porcupine_comes_to_the_same_result", "the Go toolchain is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut expected: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    let mut export = |name: String, run: &Run| {
        std::fs::write(dir.path().join(format!("{name}.jsonl")), render(run)).unwrap();
        expected.insert(name, run.epochs.iter().map(is_possible).collect());
    };
    let good = recorded("restore-bump-and-mark");
    export("restore-bump-and-mark".to_owned(), &epochs(&good));
    export("restore-without-bump".to_owned(), &epochs(&recorded("restore-without-bump")));
    for (at, (_, change)) in TWINS.iter().enumerate() {
        let mut twin = good.clone();
        change(&mut twin);
        export(format!("twin-{at}"), &epochs(&twin));
    }
    let mut runner = TestRunner::deterministic();
    for at in 0..RANDOM {
        let epoch = history(6).new_tree(&mut runner).unwrap().current();
        // Objects with residue are searched one by one, and porcupine searches all of them together.
        if quakeproof::check::consistency::versions::Versions::of(&epoch).residue.is_empty() {
            export(format!("random-{at}"), &alone(epoch));
        }
    }
    let found = check(dir.path());
    assert_eq!(found.len(), expected.len());
    for (name, expected) in &expected {
        let expected: Vec<String> = expected
            .iter()
            .enumerate()
            .map(|(at, possible)| format!("{} {}", at + 1, if *possible { "Ok" } else { "Illegal" }))
            .collect();
        let export = || std::fs::read_to_string(dir.path().join(format!("{name}.jsonl"))).unwrap();
        // The export of a recorded run is long; of it the name says enough.
        let history = if name.starts_with("random") { export() } else { String::new() };
        assert_eq!(&found[name], &expected, "{name}\n{history}");
    }
    assert_eq!(expected["restore-bump-and-mark"], [true, true]);
    assert!((0..TWINS.len()).all(|at| expected[&format!("twin-{at}")].contains(&false)));
    let impossible = expected.values().filter(|e| e.contains(&false)).count();
    assert!(impossible > TWINS.len() + 20, "{impossible} impossible histories");
}

fn epochs(input: &EvidenceInput) -> Run {
    Run::of(&Judge::new(input)).unwrap()
}

fn alone(epoch: Epoch) -> Run {
    Run { epochs: vec![epoch], ..Run::default() }
}

/// Results by file name, one line for each epoch.
fn check(histories: &Path) -> BTreeMap<String, Vec<String>> {
    let run = Command::new("go")
        .args(["test", "-count=1", "./..."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/porcupine"))
        .env("QUAKEPROOF_HISTORIES", histories)
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
    let mut results = BTreeMap::new();
    for entry in std::fs::read_dir(histories).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(name) = name.strip_suffix(".jsonl.result") {
            let text = std::fs::read_to_string(&path).unwrap();
            results.insert(name.to_owned(), text.lines().map(str::to_owned).collect());
        }
    }
    results
}
