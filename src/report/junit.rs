//! `junit.xml`: one suite per drill, one case per objective, reasons inline.
//!
//! A missed objective is a `failure`. An inconclusive one is an `error`: the
//! test did not reach an answer, and a CI system must not show it as passed or
//! skipped. A run that judged nothing has one case, `run`, with its outcome.
//!
//! There is no standard. What is written is in the common part of the two schemas that are
//! taken for one: that of Ant's JUnit task (windyroad/JUnit-Schema, `JUnit.xsd`) and that of the
//! Jenkins xUnit plugin (`junit-10.xsd`). So figures are properties of the suite, and what a met
//! objective has to say stands in the suite's `system-out`.

use super::figure;
use super::model::{Objective, Report};
use crate::check::Verdict;
use crate::escape::xml_text;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::io;

/// What a suite without a readable start is dated: the schemas know no unknown time.
const NO_TIME: &str = "1970-01-01T00:00:00";

/// The report as JUnit XML.
///
/// # Panics
/// Never: writing to memory does not fail.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = Out(Writer::new_with_indent(Vec::new(), b' ', 4));
    write(report, &mut out).expect("writing to memory does not fail");
    let mut text = String::from_utf8(out.0.into_inner()).expect("text was written");
    text.push('\n');
    text
}

/// A case before it is written.
struct Case {
    name: String,
    class: String,
    /// `failure` or `error`, its type, message and text; absent for what passed.
    trouble: Option<(&'static str, String, String, String)>,
}

fn write(report: &Report, out: &mut Out) -> io::Result<()> {
    let cases = cases(report);
    let count = |tag: &str| {
        cases.iter().filter(|c| c.trouble.as_ref().is_some_and(|t| t.0 == tag)).count().to_string()
    };
    out.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    out.open("testsuites", &[])?;
    out.open(
        "testsuite",
        &[
            ("name", &report.run.drill),
            ("package", "quakeproof"),
            ("id", "0"),
            ("timestamp", &timestamp(report)),
            ("hostname", host(report)),
            ("tests", &cases.len().to_string()),
            ("failures", &count("failure")),
            ("errors", &count("error")),
            ("skipped", "0"),
            ("time", &seconds(report)),
        ],
    )?;
    out.open("properties", &[])?;
    for (name, value) in properties(report) {
        out.empty("property", &[("name", &name), ("value", &value)])?;
    }
    out.close("properties")?;
    for case in &cases {
        // An objective is judged, which takes no time of the drill.
        let attributes = [("name", &*case.name), ("classname", &case.class), ("time", "0.000")];
        match &case.trouble {
            None => out.empty("testcase", &attributes)?,
            Some((tag, kind, message, text)) => {
                out.open("testcase", &attributes)?;
                out.text(tag, &[("type", kind), ("message", message)], text)?;
                out.close("testcase")?;
            }
        }
    }
    let passed = report.objectives.iter().filter(|o| o.verdict == Verdict::Pass);
    let lines: Vec<String> =
        passed.map(|o| format!("{}: {}", xml_text(&o.name), xml_text(&line(o)))).collect();
    out.written("system-out", &lines.join("\n"))?;
    out.written("system-err", "")?;
    out.close("testsuite")?;
    out.close("testsuites")
}

fn cases(report: &Report) -> Vec<Case> {
    if report.objectives.is_empty() {
        let trouble = ("error", outcome(report), report.reason.clone(), report.reason.clone());
        return vec![Case {
            name: "run".to_owned(),
            class: report.run.drill.clone(),
            trouble: Some(trouble),
        }];
    }
    let case = |o: &Objective| {
        let tag = match o.verdict {
            Verdict::Pass => None,
            Verdict::Fail => Some("failure"),
            Verdict::Inconclusive => Some("error"),
        };
        let evidence = || format!("evidence: {}", o.evidence.join(", "));
        Case {
            name: o.name.clone(),
            class: format!("{}.{}", report.run.drill, o.kind),
            trouble: tag.map(|tag| (tag, figure::met(o.verdict).to_owned(), line(o), evidence())),
        }
    };
    report.objectives.iter().map(case).collect()
}

fn line(objective: &Objective) -> String {
    let (observed, target) = (figure::observed(objective), figure::target(objective));
    format!("{}: observed {observed}, target {target}", objective.reason)
}

/// Ant's schema knows neither zones nor fractions.
fn timestamp(report: &Report) -> String {
    let at = report.run.started_at.as_ref().and_then(|start| start.at.0.parse::<jiff::Timestamp>().ok());
    at.map_or_else(|| NO_TIME.to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

fn host(report: &Report) -> &str {
    let host = report.run.operator.as_deref().and_then(|operator| operator.rsplit_once('@'));
    host.map(|(_, host)| host).filter(|host| !host.trim().is_empty()).unwrap_or("localhost")
}

fn seconds(report: &Report) -> String {
    let took = report.run.started_at.as_ref().zip(report.run.finished_at.as_ref());
    let ms = took.map_or(0, |(start, end)| end.mono_ns.since(start.mono_ns) / 1_000_000);
    format!("{}.{:03}", ms / 1000, ms % 1000)
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
    for o in &report.objectives {
        for (key, value) in [("observed", o.observed), ("lower", o.lower), ("upper", o.upper)] {
            if let Some(value) = value {
                out.push((format!("objective.{}.{key}", o.name), format!("{value} {}", o.unit)));
            }
        }
    }
    out
}

/// Writes elements whose text and attributes are free of what XML forbids or what misleads.
struct Out(Writer<Vec<u8>>);

impl Out {
    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        self.0.write_event(event)
    }

    fn start(tag: &str, attributes: &[(&str, &str)]) -> BytesStart<'static> {
        let mut start = BytesStart::new(tag.to_owned());
        for (name, value) in attributes {
            start.push_attribute((*name, &*xml_text(value)));
        }
        start
    }

    fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) -> io::Result<()> {
        self.event(Event::Start(Self::start(tag, attributes)))
    }

    fn close(&mut self, tag: &str) -> io::Result<()> {
        self.event(Event::End(BytesEnd::new(tag)))
    }

    fn empty(&mut self, tag: &str, attributes: &[(&str, &str)]) -> io::Result<()> {
        self.event(Event::Empty(Self::start(tag, attributes)))
    }

    fn text(&mut self, tag: &str, attributes: &[(&str, &str)], text: &str) -> io::Result<()> {
        self.open(tag, attributes)?;
        self.event(Event::Text(BytesText::new(&xml_text(text))))?;
        self.close(tag)
    }

    /// An element of lines that are free of what acts already.
    fn written(&mut self, tag: &str, lines: &str) -> io::Result<()> {
        self.open(tag, &[])?;
        self.event(Event::Text(BytesText::new(lines)))?;
        self.close(tag)
    }
}
