//! What a report promises: every format from one model, the same bytes every
//! time, nothing hostile let through.
//!
//! Golden files lie in `tests/report/golden/`; `QUAKEPROOF_BLESS=1 cargo test
//! --test report` writes them anew.

#[path = "report/fixture.rs"]
mod fixture;
#[path = "report/junit_rules.rs"]
mod junit_rules;
#[path = "report/openmetrics_rules.rs"]
mod openmetrics_rules;
#[allow(dead_code, reason = "shared with the tests of the checkers, which use all of it")]
#[path = "checkers/world.rs"]
mod world;

use fixture::{Case, HEAD};
use quakeproof::check::unit::Unit;
use quakeproof::clock::MonoNs;
use quakeproof::history::record::Record;
use quakeproof::report::{Prepared, Report, html, json, junit, markdown, openmetrics, prepare, terminal};
use quakeproof::schema::{Format, schema_for};
use quakeproof::timeline::EvidenceInput;
use std::path::PathBuf;
use world::World;

const PLAIN: terminal::Options = terminal::Options { colour: false, width: 100 };

fn model(case: &Case) -> Report {
    case.prepared().report
}

fn page(case: &Case) -> String {
    html::render(&case.prepared())
}

fn cases() -> Vec<(&'static str, Case)> {
    vec![
        ("fail", fixture::restore_without_bump()),
        ("pass", fixture::restore_bump_and_mark()),
        ("inconclusive", fixture::inconclusive()),
        ("refused", fixture::refused()),
    ]
}

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a checked-in file, or writes it when blessing.
fn golden(path: &str, actual: &str) {
    let file = root(path);
    if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let line = expected.lines().zip(actual.lines()).position(|(e, a)| e != a);
    assert!(
        expected == actual,
        "{path} differs from line {:?}; if that is meant: QUAKEPROOF_BLESS=1 cargo test --test report",
        line.map(|n| n + 1)
    );
}

#[test]
fn every_format_looks_as_it_did() {
    for (name, case) in cases() {
        let report = model(&case);
        golden(&format!("tests/report/golden/{name}.json"), &json::render(&report));
        golden(&format!("tests/report/golden/{name}.xml"), &junit::render(&report));
        golden(&format!("tests/report/golden/{name}.txt"), &terminal::render(&report, PLAIN));
        golden(&format!("tests/report/golden/{name}.md"), &markdown::render(&case.prepared()));
        golden(&format!("tests/report/golden/{name}.openmetrics"), &openmetrics::render(&report));
        golden(&format!("tests/report/golden/{name}.html"), &page(&case));
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for (_, case) in cases() {
        let (once, again) = (model(&case), model(&case));
        assert_eq!(json::render(&once), json::render(&again));
        assert_eq!(junit::render(&once), junit::render(&again));
        assert_eq!(openmetrics::render(&once), openmetrics::render(&again));
        assert_eq!(markdown::render(&case.prepared()), markdown::render(&case.prepared()));
        assert_eq!(page(&case), page(&case));
    }
}

#[test]
fn reports_obey_their_schema() {
    let validator = jsonschema::validator_for(&schema_for(Format::Report)).unwrap();
    for (name, case) in cases() {
        let value = serde_json::from_str(&json::render(&model(&case))).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
    let mut broken: serde_json::Value =
        serde_json::from_str(&json::render(&model(&fixture::restore_without_bump()))).unwrap();
    broken["verdict"] = "maybe".into();
    assert!(!validator.is_valid(&broken), "the schema must be able to refuse");
}

#[test]
fn a_report_survives_the_way_through_json() {
    for (_, case) in cases() {
        let report = model(&case);
        assert_eq!(serde_json::from_str::<Report>(&json::render(&report)).unwrap(), report);
    }
}

#[test]
fn every_objective_for_lost_writes_stands_with_the_loss() {
    let mut case = fixture::restore_without_bump();
    let findings = &mut case.judgement.findings;
    let in_time = findings.iter().position(|f| f.kind == "rpo").unwrap();
    let mut in_writes = findings[in_time].clone();
    "lost-count".clone_into(&mut in_writes.name);
    "251 of them".clone_into(&mut in_writes.reason);
    (in_writes.unit, in_writes.target, in_writes.observed) = (Unit::Writes, Some(300), Some(251));
    (in_writes.lower, in_writes.upper, in_writes.from, in_writes.to) = (Some(251), Some(251), None, None);
    findings.insert(in_time, in_writes);
    let html = page(&case);
    let loss = html.split("class=\"loss\"").nth(1).and_then(|rest| rest.split("</section>").next()).unwrap();
    for part in [
        "251 of them",
        "lost-count: 251 writes (exact); at most 300 writes",
        "lost-writes: 5.019 s",
        "Last kept write",
    ] {
        assert!(loss.contains(part), "{part} is not in {loss}");
    }
}

const HOSTILE: &str = "</text></script><script>alert(1)</script>\"'><img src=x onerror=y>&\u{1b}[31m\u{202e}\u{0}\u{FFFE}\n| a |\n# h\n![i](http://e.example)`";

#[test]
fn hostile_text_is_harmless_in_every_format() {
    let case = fixture::hostile(HOSTILE);
    let report = model(&case);
    let acting = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{FFFE}');

    let html = page(&case);
    assert!(!html.contains("<script") && !html.contains("<img"), "an element came through");
    assert!(!html.contains(acting));
    assert!(html.contains("&lt;script&gt;") || html.contains("&#60;script&#62;"), "the text itself is shown");
    well_formed_tags(&html);

    let xml = junit::render(&report);
    assert!(!xml.contains("<script") && !xml.contains("<img") && !xml.contains(acting));

    let text = terminal::render(&report, PLAIN);
    assert!(!text.contains(acting));

    let md = markdown::render(&case.prepared());
    assert!(!md.contains(acting));
    assert!(!md.lines().any(|l| l.starts_with("# h")), "a heading came through");
    let active = active_markdown(&md);
    assert!(!active.contains("](") && !active.contains("<img") && !active.contains("http:"), "{active}");
}

/// Markdown without escaped characters and without code, which does nothing.
fn active_markdown(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let run = |from: usize| chars[from..].iter().take_while(|c| **c == '`').count();
    let mut out = String::new();
    let mut i = 0;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '`' => {
                let fence = run(i);
                i += fence;
                while i < chars.len() && run(i) != fence {
                    i += run(i).max(1);
                }
                i += fence;
            }
            c => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

/// Opening and closing tags of the page match, so no text has broken its structure.
fn well_formed_tags(html: &str) {
    const VOID: [&str; 3] = ["meta", "!doctype", "col"];
    let mut open: Vec<String> = Vec::new();
    let body = html.find("</style>").map_or(html, |i| &html[i + 8..]);
    for piece in body.split('<').skip(1) {
        let tag = piece.split('>').next().unwrap();
        let name: String = tag.trim_start_matches('/').chars().take_while(|c| c.is_alphanumeric()).collect();
        if tag.starts_with('/') {
            if name == "head" || name == "html" {
                continue;
            }
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "near `<{tag}>`");
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn the_page_asks_for_nothing_and_runs_nothing() {
    for (name, case) in cases() {
        let html = page(&case);
        for forbidden in
            ["<script", "src=", "href=", "@import", "http-equiv=\"refresh\"", "url(http", "url(\"http"]
        {
            assert!(!html.contains(forbidden), "{name}: {forbidden}");
        }
        well_formed_tags(&html);
        assert!(html.len() < 300 * 1024, "{name}: {} bytes", html.len());
    }
}

#[test]
fn a_long_history_is_sampled_and_says_so() {
    let short = page(&fixture::restore_without_bump());
    assert!(!short.contains("are sampled"));
    let long = page(&fixture::long_history(200_000));
    assert!(long.contains("each column shows the worst"));
    assert!(long.len() < 300 * 1024, "{} bytes", long.len());
}

/// Every report that the tests have, hostile ones too.
fn all_reports() -> Vec<(&'static str, Report)> {
    let judged = [("honest", World::honest()), ("kept", World::api_server_kept())];
    let judged = judged.map(|(name, world)| (name, prepare(&world.input(), HEAD).report));
    let hostile = ("hostile", model(&fixture::hostile(HOSTILE)));
    cases().into_iter().map(|(name, case)| (name, model(&case))).chain(judged).chain([hostile]).collect()
}

#[test]
fn junit_keeps_the_rules_that_both_common_schemas_have() {
    for (_, report) in all_reports() {
        junit_rules::check(&junit::render(&report));
    }
    let odd = Report {
        run: quakeproof::report::model::Run {
            started_at: None,
            operator: None,
            ..model(&fixture::refused()).run
        },
        ..model(&fixture::refused())
    };
    junit_rules::check(&junit::render(&odd));
    let root = junit_rules::parse(&junit::render(&model(&fixture::restore_without_bump())));
    let out = root.children[0].children.iter().find(|c| c.tag == "system-out").unwrap();
    assert!(out.text.starts_with("writes-again: "), "what was met has its figures too: {}", out.text);
}

#[test]
fn openmetrics_keep_the_rules_of_the_text_format() {
    for (name, report) in all_reports() {
        let text = openmetrics::render(&report);
        let samples = openmetrics_rules::read(&text).unwrap_or_else(|what| panic!("{name}: {what}"));
        assert!(
            samples.iter().all(|s| s.labels["run"] == quakeproof::escape::visible(&report.run.id)),
            "{name}"
        );
    }
    let text = openmetrics::render(&model(&fixture::restore_without_bump()));
    let samples = openmetrics_rules::read(&text).unwrap();
    let value = |name: &str, labels: &[(&str, &str)]| {
        let fits = |s: &&openmetrics_rules::Sample| {
            s.name == name && labels.iter().all(|(key, value)| s.labels.get(*key).is_some_and(|v| v == value))
        };
        samples.iter().find(fits).map(|s| s.value)
    };
    assert_eq!(value("quakeproof_run_verdict", &[("quakeproof_run_verdict", "fail")]), Some(1.0));
    assert_eq!(value("quakeproof_run_verdict", &[("quakeproof_run_verdict", "pass")]), Some(0.0));
    let writes = |figure| [("objective", "writes-again"), ("figure", figure)];
    assert_eq!(value("quakeproof_objective_seconds", &writes("observed")), Some(1.053));
    assert_eq!(value("quakeproof_objective_seconds", &writes("target")), Some(30.0));
    let list = [("objective", "lists-true-again"), ("figure", "observed")];
    assert_eq!(value("quakeproof_objective_seconds", &list), None, "what is unknown has no sample");
    assert_eq!(
        value("quakeproof_ledger_writes", &[("state", "phantom")]),
        Some(0.0),
        "0 is measured as none"
    );
}

#[test]
fn the_strict_reader_of_openmetrics_refuses_what_breaks_a_rule() {
    let good = openmetrics::render(&model(&fixture::restore_without_bump()));
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF"),
        ("# UNIT quakeproof_run_duration_seconds seconds", "# UNIT quakeproof_run_duration_seconds ms"),
        ("# TYPE quakeproof_run info", "# TYPE quakeproof_run counter"),
        ("quakeproof_run_info{", "quakeproof_run{"),
        ("\"} 1\n", "\"} 2\n"),
        ("run=\"", "run=\"\\x"),
        ("run=\"", "run=\"\""),
        ("{run=", "{1run="),
        ("# HELP quakeproof_run ", "# HELLO quakeproof_run "),
    ] {
        let broken = good.replacen(from, to, 1);
        assert_ne!(broken, good, "{from}");
        assert!(openmetrics_rules::read(&broken).is_err(), "{to:?} was taken");
    }
}

#[test]
fn inconclusive_is_never_shown_as_passed() {
    let case = fixture::inconclusive();
    let report = model(&case);
    assert!(junit::render(&report).contains("<error"));
    assert!(terminal::render(&report, PLAIN).starts_with("INCONCLUSIVE"));
    assert!(page(&case).contains("class=\"verdict inconclusive\""));
    let refused = junit::render(&model(&fixture::refused()));
    assert!(refused.contains("errors=\"1\""), "a run that judged nothing is not a green suite");
}

#[test]
fn colour_only_repeats_what_the_words_say() {
    let report = model(&fixture::restore_without_bump());
    let coloured = terminal::render(&report, terminal::Options { colour: true, width: 100 });
    assert!(coloured.contains("\u{1b}["));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find("\u{1b}[") {
        stripped.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find('m').unwrap() + 1..];
    }
    stripped.push_str(rest);
    assert_eq!(stripped, terminal::render(&report, PLAIN));
}

#[test]
fn an_unknown_figure_is_null_with_its_reason_and_never_zero() {
    let report = model(&fixture::restore_without_bump());
    let json: serde_json::Value = serde_json::from_str(&json::render(&report)).unwrap();
    let list = &json["objectives"][1];
    assert!(list["observed"].is_null() && list["reason"].as_str().unwrap().contains("no LIST"));
    let mark = json["marks"].as_array().unwrap().iter().find(|m| m["name"] == "firstTrueList").unwrap();
    assert!(mark["monoNs"].is_null() && mark["at"].is_null() && mark["reason"].is_string());
    assert_eq!(json["facts"]["etcdRestore"][0]["ledger"]["phantom"], 0);
    assert!(json["evidence"]["manifestDigest"].is_null() && json["evidence"]["reason"].is_string());
}

#[test]
fn wall_times_of_marks_follow_from_the_journal() {
    let report = model(&fixture::restore_without_bump());
    let command = report.marks.iter().find(|m| m.name == "restoreCommand").unwrap();
    assert_eq!(command.at.as_ref().unwrap().0, "2026-11-29T18:00:18.437000Z");
}

// Evidence that the judge itself has judged.

fn every_format(prepared: &Prepared<'_>) -> [String; 6] {
    let report = &prepared.report;
    [
        json::render(report),
        html::render(prepared),
        junit::render(report),
        markdown::render(prepared),
        openmetrics::render(report),
        terminal::render(report, PLAIN),
    ]
}

/// A world whose run ended before its histories were closed.
fn cut_short() -> EvidenceInput {
    let mut input = World::api_server_kept().input();
    input.journal.truncate(input.journal.len() / 2);
    for records in input.histories.values_mut() {
        records.truncate(records.len() / 2);
    }
    input
}

#[test]
fn what_the_judge_says_is_reported_in_every_format() {
    let validator = jsonschema::validator_for(&schema_for(Format::Report)).unwrap();
    for (word, input) in [
        ("pass", World::honest().input()),
        ("fail", World::api_server_kept().input()),
        ("inconclusive", cut_short()),
    ] {
        let prepared = prepare(&input, HEAD);
        assert_eq!(quakeproof::report::figure::verdict(prepared.report.verdict), word);
        let value = serde_json::to_value(&prepared.report).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{word}: {errors:?}");
        let texts = every_format(&prepared);
        assert_eq!(texts, every_format(&prepare(&input, HEAD)), "{word}: not the same bytes");
        well_formed_tags(&texts[1]);
        for lane in &prepared.lanes {
            assert!(texts[1].contains(&format!(">{}<", lane.client)), "{word}: no lane of {}", lane.client);
        }
    }
}

#[test]
fn a_run_that_was_never_closed_has_no_outcome_and_says_why() {
    let report = prepare(&cut_short(), HEAD).report;
    assert_eq!(report.outcome, None);
    assert!(report.outcome_reason.unwrap().contains("before the run was closed"));
    assert!(report.summary.starts_with("The run was never closed."), "{}", report.summary);
}

/// The names that other programs rely on.
#[test]
fn the_figures_of_a_restore_have_their_promised_names() {
    let input = World::api_server_kept().input();
    let report: serde_json::Value =
        serde_json::from_str(&json::render(&prepare(&input, HEAD).report)).unwrap();
    let has = |value: &serde_json::Value, keys: &[&str]| {
        let object = value.as_object().unwrap();
        for key in keys {
            assert!(object.contains_key(*key), "no `{key}` among {:?}", object.keys());
        }
    };
    has(
        &report,
        &[
            "formatVersion",
            "judge",
            "run",
            "clusters",
            "outcome",
            "verdict",
            "reason",
            "objectives",
            "marks",
            "faults",
            "facts",
            "recorder",
            "evidence",
        ],
    );
    let facts = &report["facts"]["etcdRestore"][0];
    has(
        facts,
        &[
            "cluster",
            "snapshot",
            "revisionBefore",
            "revisionAfter",
            "revisionsLost",
            "bump",
            "revisionsReused",
            "apiServersRestarted",
            "ledger",
            "clients",
        ],
    );
    has(&facts["snapshot"], &["revision", "sizeBytes", "takenAt"]);
    has(&facts["snapshot"]["takenAt"], &["at", "monoNs"]);
    has(&facts["ledger"], &["acked", "kept", "lost", "indeterminate", "phantom"]);
    for client in facts["clients"].as_array().unwrap() {
        has(
            client,
            &[
                "name",
                "kind",
                "operations",
                "staleReads",
                "getListDisagreements",
                "silentForNs",
                "eventsMissed",
                "phantomObjects",
                "absentObjects",
                "gone410",
                "relists",
                "rvRegressions",
                "casOnLostState",
                "errors",
            ],
        );
    }
    has(&report["recorder"], &["scheduled", "recorded", "late", "lost"]);
    has(&report["marks"][0], &["name", "cluster", "at", "monoNs", "lowerNs", "upperNs", "source"]);
}

#[test]
fn instants_at_the_end_of_all_time_are_drawn_and_not_computed_over() {
    let good = World::api_server_kept().input();
    for (client, records) in &good.histories {
        let moments = [records.len() / 2, records.len() * 3 / 5, records.len() * 4 / 5, records.len() - 2];
        for (index, at) in moments.into_iter().flat_map(|index| [(index, 0), (index, u64::MAX)]) {
            let mut input = good.clone();
            match &mut input.histories.get_mut(client).unwrap()[index] {
                Record::Op(op) => op.return_ns = MonoNs(at),
                Record::Event(event) => event.at_ns = MonoNs(at),
                Record::Opened { .. } | Record::Closed { .. } => {}
            }
            let prepared = prepare(&input, HEAD);
            for text in [html::render(&prepared), markdown::render(&prepared)] {
                assert!(!text.contains("which is a bug"), "{client} line {} at {at}", index + 1);
            }
        }
    }
}

#[test]
fn the_summary_counts_the_clients_that_the_objective_counts() {
    let input = World::api_server_kept().input();
    let report = prepare(&input, HEAD).report;
    let objective = report.objectives.iter().find(|o| o.kind == "noClientOnLostTimeline").unwrap();
    let lying = report.facts.etcd_restore[0].clients.iter().filter(|c| c.on_lost_timeline() == Some(true));
    assert_eq!(objective.observed, Some(lying.count() as u64));
    assert!(report.summary.contains("3 of 4 clients"), "{}", report.summary);
}
