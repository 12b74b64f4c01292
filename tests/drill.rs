//! Drill files from the outside: golden error messages, generated files, scenarios.
//!
//! `QUAKEPROOF_BLESS=1 cargo test --test drill` rewrites what is generated.

use proptest::prelude::*;
use quakeproof::cli;
use quakeproof::drill;
use quakeproof::drill::parameters::ParameterValues;
use quakeproof::exit::ExitCode;
use quakeproof::schema::reference;
use quakeproof::schema::{Format, schema_for, schema_text};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares with a checked-in file, or rewrites it when asked to.
fn assert_golden(path: &Path, actual: &str) {
    if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let name = path.strip_prefix(root()).unwrap_or(path).display();
    assert!(
        expected == actual,
        "{name} differs; QUAKEPROOF_BLESS=1 cargo test --test drill rewrites it\n--- expected\n{expected}\n--- actual\n{actual}"
    );
}

fn yaml_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|e| e == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A first line `# --set key=value …` or `# --profile name` gives the overrides of a case.
fn overrides(text: &str) -> ParameterValues {
    let mut values = ParameterValues::default();
    let mut words = text.lines().next().unwrap_or_default().trim_start_matches('#').split_whitespace();
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("--set", Some(pair)) => {
                let (key, value) = pair.split_once('=').unwrap();
                values.set.insert(key.to_owned(), value.to_owned());
            }
            ("--profile", Some(name)) => values.profile = Some(name.to_owned()),
            _ => {}
        }
    }
    values
}

#[test]
fn every_broken_drill_gets_its_message() {
    let dir = root().join("tests/data/drill");
    let cases = yaml_files(&dir);
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    for case in cases {
        let text = fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let shown = match drill::load(&name, &text, &overrides(&text)) {
            Ok(loaded) => {
                assert!(!loaded.warnings.is_empty(), "{name} is a good drill");
                loaded.warnings.iter().map(|w| w.render(&name, &text)).collect::<Vec<_>>().join("\n")
            }
            Err(errors) => errors.to_string(),
        };
        assert_golden(&case.with_extension("err"), &shown);
    }
}

#[test]
fn the_checked_in_schemas_are_those_of_the_types() {
    let schemas = root().join("schemas");
    assert_golden(&schemas.join("drill.v1alpha1.json"), &schema_text(Format::Drill));
    assert_golden(&schemas.join("journal.v1.json"), &schema_text(Format::Journal));
    assert_golden(&schemas.join("report.v1.json"), &schema_text(Format::Report));
    assert_golden(&schemas.join("findings.v1alpha1.json"), &schema_text(Format::Findings));
}

#[test]
fn the_reference_page_is_that_of_the_types() {
    assert_golden(&root().join("docs/reference/drill.md"), &reference::drill_page());
}

/// What is wrong with a drill in which some words are others.
fn wrong(changes: &[(&str, &str)]) -> String {
    let file = root().join("tests/data/drill/passed-before-settled.yaml");
    let mut text = fs::read_to_string(file).unwrap().replace("settle: 9s", "settle: 7s");
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    drill::load("d.yaml", &text, &ParameterValues::default())
        .map_or_else(|e| e.to_string(), |_| String::new())
}

#[test]
fn values_at_either_end_of_a_range_are_taken() {
    assert_eq!(wrong(&[]), "");
    for (from, good, bad) in [
        ("settle: 7s", "settle: 0ms", "settle: 25h"),
        ("settle: 7s", "settle: 7s, maxLag: 100ms", "settle: 7s, maxLag: 99ms"),
        (
            "{name: lost-writes, within: 10s}",
            "{name: lost-writes, within: 0ms}",
            "{name: lost-writes, within: 25h}",
        ),
    ] {
        assert_eq!(wrong(&[(from, good)]), "", "{good}");
        assert!(wrong(&[(from, bad)]).contains("is out of range"), "{bad}");
    }
    let objective = "noClientOnLostTimeline: {name: true-views, settle: 7s}";
    for (budget, good) in [(0, false), (1, true), (100_000_000, true), (100_000_001, false)] {
        let with = format!("{objective}\n    - linearizable: {{budget: {budget}}}");
        let wrong = wrong(&[(objective, &with)]);
        assert_eq!(wrong.is_empty(), good, "{wrong}");
    }
}

#[test]
fn clients_must_be_observed_for_longer_than_they_may_take_to_settle() {
    // 12 s after the old revision was passed, which takes 8 s.
    let long = ("for: $(hold)", "for: 20s");
    assert_eq!(wrong(&[long, ("settle: 7s", "settle: 11999ms")]), "");
    let as_long = wrong(&[long, ("settle: 7s", "settle: 12s")]);
    assert!(
        as_long.contains(
            "clients may converge for 12s (`settle` of `true-views`), but are observed for 12s only"
        ),
        "{as_long}"
    );
    // What is observed for another reason may be short.
    let observe = "- observe: {until: revisionPassedLost";
    let ready = format!("- observe: {{until: apiReady, atMost: 60s, then: 1s}}\n    {observe}");
    assert_eq!(wrong(&[(observe, &ready)]), "");
    assert_eq!(wrong(&[("settle: 7s", "settle: 7999ms")]), "");
    let passed = wrong(&[("settle: 7s", "settle: 8s")]);
    assert!(passed.contains("the old revision is passed about 8s after the restore"), "{passed}");
}

#[test]
fn two_leaders_can_be_had_of_one_lease_with_two_candidates() {
    let (client, objective) = ("- watcher: {name: watch}", "- rpo: {name: lost-writes, within: 10s}");
    let with = |electors: &str| {
        let client = (client, format!("{client}{electors}"));
        let objective = (objective, format!("{objective}\n    - noTwoLeaders: {{}}"));
        wrong(&[(client.0, &client.1), (objective.0, &objective.1)])
    };
    let alone = "\n    - leaderElector: {name: alone, candidates: 1}";
    let pair = "\n    - leaderElector: {name: pair, candidates: 2}";
    let rival = "\n    - leaderElector: {name: rival, lease: alone, candidates: 1}";
    assert!(with(alone).contains("no Lease has two candidates"), "{}", with(alone));
    assert_eq!(with(&format!("{alone}{pair}")), "");
    assert_eq!(with(&format!("{alone}{rival}")), "");
}

fn as_json(text: &str) -> serde_json::Value {
    serde_saphyr::from_str(text).unwrap()
}

/// A scenario that does what it is warned of, to show what comes of it.
fn is_what_it_shows(scenario: &str, warning: &str) -> bool {
    scenario.ends_with("apf/borrowing-not-zero.yaml") && warning.contains("it is no jail")
}

#[test]
fn every_scenario_is_good_with_every_profile_and_matches_the_schema() {
    let validator = jsonschema::draft7::new(&schema_for(Format::Drill)).unwrap();
    let scenarios = yaml_files(&root().join("scenarios"));
    assert!(scenarios.len() >= 2);
    for scenario in scenarios {
        let text = fs::read_to_string(&scenario).unwrap();
        let name = scenario.to_string_lossy();
        let loaded = drill::load(&name, &text, &ParameterValues::default()).unwrap_or_else(|e| panic!("{e}"));
        let warnings = loaded.warnings.iter().filter(|problem| !is_what_it_shows(&name, &problem.title));
        assert_eq!(warnings.count(), 0, "{name}: {:?}", loaded.warnings);
        for profile in loaded.drill.spec.profiles.keys() {
            let values = ParameterValues { profile: Some(profile.clone()), set: BTreeMap::new() };
            drill::load(&name, &text, &values).unwrap_or_else(|e| panic!("{profile}: {e}"));
        }
        let errors: Vec<String> =
            validator.iter_errors(&as_json(&text)).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(errors, [] as [String; 0], "{name}");
        assert!(text.starts_with("# yaml-language-server: $schema="), "{name} has no schema line");
        for said in ["What it proves", "Expected verdict", "How long it takes"] {
            assert!(text.contains(said), "the header of {name} does not say: {said}");
        }
    }
}

#[test]
fn the_schema_takes_references_for_scalars_and_refuses_what_the_reader_refuses() {
    let validator = jsonschema::draft7::new(&schema_for(Format::Drill)).unwrap();
    let text = fs::read_to_string(root().join("scenarios/etcd/restore-without-bump.yaml")).unwrap();
    let valid = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        validator.is_valid(&as_json(&text.replace(from, to)))
    };
    assert!(valid("apiServers: false", "apiServers: $(hold)"));
    assert!(valid("bumpRevision: none", "bumpRevision: $(hold)"));
    assert!(valid("etcd: 1,", "etcd: $(hold),"));
    assert!(valid("rate: 50/s", "rate: $(hold)"));
    assert!(valid("bumpRevision: none", "bumpRevision: 17"));
    for (from, to) in [
        ("etcd: 1,", "etcd: 2,"),
        ("rate: 50/s", "rate: 50"),
        ("atMost: 60s", "atMost: 60"),
        ("members: all", "members: some"),
        ("apiServers: false", "apiServers: maybe"),
        ("bumpRevision: none", "bumpRevision: 0"),
        ("until: revisionPassedLost", "untill: revisionPassedLost"),
        ("limit: 500", "limit: 0"),
        ("kind: Drill", "kind: Dril"),
    ] {
        assert!(!valid(from, to), "the schema takes `{to}`");
        let broken = text.replace(from, to);
        assert!(
            drill::load("d.yaml", &broken, &ParameterValues::default()).is_err(),
            "the reader takes `{to}`"
        );
    }
}

fn checked(paths: Vec<PathBuf>) -> (ExitCode, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::check::run(&cli::check::Args { paths }, &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn check_goes_through_directories_and_fails_on_errors_only() {
    let (code, out, err) = checked(vec![root().join("scenarios")]);
    assert_eq!(code, ExitCode::Ok);
    assert_eq!(err.matches("warning: ").count(), 1, "{err}");
    assert_eq!(out.lines().filter(|l| l.ends_with(": ok")).count(), out.lines().count());
    let warned = root().join("tests/data/drill/warning-unused-parameter.yaml");
    let (code, _, err) = checked(vec![warned]);
    assert_eq!(code, ExitCode::Ok);
    assert!(err.starts_with("warning: "), "{err}");
    let (code, out, err) =
        checked(vec![root().join("tests/data/drill/unknown-step.yaml"), root().join("scenarios")]);
    assert_eq!(code, ExitCode::Usage);
    assert!(err.contains("unknown step") && out.contains(": ok"), "one bad file does not hide the good ones");
    assert_eq!(checked(vec![root().join("no-such-file.yaml")]).0, ExitCode::Usage);
    assert_eq!(checked(vec![root().join("schemas")]).0, ExitCode::Usage, "a directory without drills");
}

fn planned(drill: &str, overrides: cli::plan::Overrides, json: bool) -> (ExitCode, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = cli::plan::Args { drill: root().join(drill), overrides, json };
    let code = cli::plan::run(&args, &[], &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn plan_prints_the_plan_file_or_a_table_and_refuses_bad_drills() {
    let scenario = "scenarios/etcd/restore-without-bump.yaml";
    let (code, json, err) = planned(scenario, cli::plan::Overrides::default(), true);
    assert_eq!((code, err.as_str()), (ExitCode::Ok, ""));
    let plan: quakeproof::plan::Plan = serde_json::from_str(&json).unwrap();
    let (_, table, _) = planned(scenario, cli::plan::Overrides::default(), false);
    assert!(table.contains(&quakeproof::plan::digest::plan_digest(&plan)));
    let twice = vec![("hold".to_owned(), "4s".to_owned()), ("hold".to_owned(), "6s".to_owned())];
    let overrides = cli::plan::Overrides { set: twice, ..cli::plan::Overrides::default() };
    let (code, out, err) = planned(scenario, overrides, false);
    assert_eq!((code, out.as_str()), (ExitCode::Usage, ""));
    assert!(err.contains("set twice"), "{err}");
    let (code, _, err) =
        planned("tests/data/drill/unknown-step.yaml", cli::plan::Overrides::default(), false);
    assert_eq!(code, ExitCode::Usage);
    assert!(err.contains("unknown step"));
}

const SCENARIO: &str = include_str!("../scenarios/etcd/restore-without-bump.yaml");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mutated_drill_is_read_or_refused_but_never_panics(
        cuts in prop::collection::vec((0usize..SCENARIO.len(), 0usize..40, ".{0,12}|[\\[\\]{}:,&*!|>'\"$() \\n\\t-]{1,6}"), 1..6),
        set in prop::option::of(".{0,20}"),
    ) {
        let mut text = SCENARIO.to_owned();
        for (at, length, with) in cuts {
            let floor = |i: usize| (0..=i.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            let (from, to) = (floor(at), floor(at + length));
            text.replace_range(from..to, &with);
        }
        let mut values = ParameterValues::default();
        if let Some(value) = set {
            values.set.insert("hold".to_owned(), value);
        }
        if let Err(errors) = drill::load("d.yaml", &text, &values) {
            let shown = errors.to_string();
            prop_assert!(shown.starts_with("error: ") || shown.starts_with("warning: "), "{shown}");
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(\\PC|\\n){0,200}") {
        let _ = drill::load("d.yaml", &text, &ParameterValues::default());
    }
}
