//! `junit.xml`: one suite per drill, one case per objective, reasons inline.
//!
//! A missed objective is a `failure`. An inconclusive one is an `error`: the
//! test did not reach an answer, and a CI system must not show it as passed or
//! skipped. A run that judged nothing has one case, `run`, with its outcome.

use super::escape::xml_text;
use super::figure;
use super::model::{Objective, Report};
use crate::check::Verdict;
use quick_junit::{NonSuccessKind, Property, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The report as JUnit XML.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut suite = TestSuite::new(&*xml_text(&report.run.drill));
    for (name, value) in properties(report) {
        suite.add_property(Property::new(&*xml_text(&name), &*xml_text(&value)));
    }
    if let (Some(start), Some(end)) = (&report.run.started_at, &report.run.finished_at) {
        suite.set_time(Duration::from_nanos(end.mono_ns.since(start.mono_ns)));
    }
    for objective in &report.objectives {
        suite.add_test_case(case(report, objective));
    }
    if report.objectives.is_empty() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let outcome = outcome(report);
        status.set_type(outcome).set_message(&*xml_text(&report.reason));
        let mut case = TestCase::new("run", status);
        case.set_classname(&*xml_text(&report.run.drill));
        suite.add_test_case(case);
    }
    let mut junit = Junit::new("quakeproof");
    junit.add_test_suite(suite);
    let mut text = junit.to_string().expect("text is free of what XML forbids");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn case(report: &Report, objective: &Objective) -> TestCase {
    let line = format!(
        "{}: observed {}, target {}",
        objective.reason,
        figure::observed(objective),
        figure::target(objective)
    );
    let mut status = match objective.verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Inconclusive => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    if objective.verdict != Verdict::Pass {
        status
            .set_type(figure::met(objective.verdict))
            .set_message(&*xml_text(&line))
            .set_description(&*xml_text(&format!("evidence: {}", objective.evidence.join(", "))));
    }
    let mut case = TestCase::new(&*xml_text(&objective.name), status);
    case.set_classname(&*xml_text(&format!("{}.{}", report.run.drill, objective.kind)));
    if objective.verdict == Verdict::Pass {
        case.set_system_out(&*xml_text(&line));
    }
    for (key, value) in
        [("observed", objective.observed), ("lower", objective.lower), ("upper", objective.upper)]
    {
        if let Some(value) = value {
            case.add_property(Property::new(key, format!("{value} {}", xml_text(&objective.unit))));
        }
    }
    case
}

fn outcome(report: &Report) -> String {
    report.outcome.as_ref().map_or_else(|| "unknown".to_owned(), super::build::word)
}

fn properties(report: &Report) -> Vec<(String, String)> {
    let mut out = vec![
        ("runId".to_owned(), report.run.id.clone()),
        ("judge".to_owned(), report.judge.clone()),
        ("verdict".to_owned(), figure::verdict(report.verdict).to_owned()),
        ("outcome".to_owned(), outcome(report)),
        ("summary".to_owned(), report.summary.clone()),
        ("seed".to_owned(), report.run.seed.to_string()),
        ("profile".to_owned(), report.run.profile.clone().unwrap_or_else(|| "real".to_owned())),
    ];
    for cluster in &report.clusters {
        out.push((format!("{}.provider", cluster.name), cluster.provider.clone()));
        out.push((format!("{}.kubernetes", cluster.name), cluster.versions.kubernetes.clone()));
        out.push((format!("{}.etcd", cluster.name), cluster.versions.etcd.clone()));
    }
    for objective in report.objectives.iter().filter(|o| matches!(o.kind.as_str(), "rto" | "rpo")) {
        out.push((format!("{}.{}", objective.kind, objective.name), figure::observed(objective)));
    }
    out
}
