//! The report as OpenMetrics text (version 1.0.0), for a textfile collector or a push gateway.
//!
//! Every sample names its run and drill. What is unknown has no sample; 0 is measured as none.

use super::ladder::{self, Rise};
use super::model::{Objective, Report};
use crate::check::unit::Unit;
use crate::escape::visible;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The report as OpenMetrics text.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = Exposition {
        text: String::new(),
        common: vec![("run", report.run.id.clone()), ("drill", report.run.drill.clone())],
    };
    run(&mut out, report);
    objectives(&mut out, report);
    recovery(&mut out, report);
    restores(&mut out, report);
    predictions(&mut out, report);
    recorders(&mut out, report);
    out.text.push_str("# EOF\n");
    out.text
}

/// Kinds of metric families that a report needs.
#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Info,
    StateSet,
}

type Labels<'a> = Vec<(&'a str, String)>;

struct Exposition {
    text: String,
    common: Labels<'static>,
}

impl Exposition {
    /// One metric family; nothing when it has no samples. A unit must be the end of the name. Names in evidence
    /// may be forged to be alike: of samples with the same labels, which the format forbids, the first is kept.
    fn family(&mut self, name: &str, kind: Kind, unit: &str, help: &str, samples: &[(Labels<'_>, String)]) {
        if samples.is_empty() {
            return;
        }
        let word = match kind {
            Kind::Gauge => "gauge",
            Kind::Info => "info",
            Kind::StateSet => "stateset",
        };
        let _ = writeln!(self.text, "# TYPE {name} {word}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
        let mut told = BTreeSet::new();
        let suffix = if matches!(kind, Kind::Info) { "_info" } else { "" };
        for (labels, value) in samples {
            let labels: Vec<String> = self
                .common
                .iter()
                .chain(labels)
                .map(|(key, text)| format!("{key}=\"{}\"", escaped(text)))
                .collect();
            let labels = labels.join(",");
            if told.insert(labels.clone()) {
                let _ = writeln!(self.text, "{name}{suffix}{{{labels}}} {value}");
            }
        }
    }

    /// Which of its states something is in; none of them when it is unknown.
    fn states(&mut self, name: &str, help: &str, states: &[&str], of: &[(Labels<'_>, Option<String>)]) {
        let mut samples = Vec::new();
        for (labels, state) in of {
            for candidate in states {
                let mut labels = labels.clone();
                labels.push((name, (*candidate).to_owned()));
                let set = u8::from(state.as_deref() == Some(candidate));
                samples.push((labels, set.to_string()));
            }
        }
        self.family(name, Kind::StateSet, "", help, &samples);
    }
}

/// Backslash, quote and line feed, as both label values and help texts have them. What acts is written out first.
fn escaped(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Nanoseconds as seconds, exactly.
fn seconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:09}").trim_end_matches('0').to_owned() }
}

fn run(out: &mut Exposition, report: &Report) {
    let run = &report.run;
    let or_unknown = |text: Option<&String>| text.cloned().unwrap_or_else(|| "unknown".to_owned());
    let infos: Vec<(Labels<'_>, String)> = report
        .clusters
        .iter()
        .map(|cluster| {
            let labels = vec![
                ("cluster", cluster.name.clone()),
                ("provider", cluster.provider.clone()),
                ("kubernetes", cluster.versions.kubernetes.clone()),
                ("etcd", cluster.versions.etcd.clone()),
                ("profile", run.profile.clone().unwrap_or_else(|| "real".to_owned())),
                ("plan_digest", or_unknown(run.plan_digest.as_ref())),
                ("operator", or_unknown(run.operator.as_ref())),
                ("judge", report.judge.clone()),
            ];
            (labels, "1".to_owned())
        })
        .collect();
    out.family("quakeproof_run", Kind::Info, "", "What was run on what, and who judged it.", &infos);
    let verdict = report.verdict.map(|v| super::build::word(&v));
    out.states(
        "quakeproof_run_verdict",
        "What the run proved.",
        &["pass", "fail", "inconclusive"],
        &[(Vec::new(), verdict)],
    );
    let outcome = report.outcome.as_ref().map(super::build::word);
    out.states(
        "quakeproof_run_outcome",
        "How the run ended, whatever it proved.",
        &["completed", "recovered", "aborted", "refused", "faulted"],
        &[(Vec::new(), outcome)],
    );
    let started = run.started_at.as_ref().and_then(|start| start.at.0.parse::<jiff::Timestamp>().ok());
    let started = started.and_then(|at| u64::try_from(at.as_nanosecond()).ok());
    let started: Vec<_> = started.map(|ns| (Vec::new(), seconds(ns))).into_iter().collect();
    out.family(
        "quakeproof_run_started_timestamp_seconds",
        Kind::Gauge,
        "seconds",
        "When the run began.",
        &started,
    );
    let took = run.started_at.as_ref().zip(run.finished_at.as_ref());
    let took: Vec<_> = took
        .map(|(start, end)| (Vec::new(), seconds(end.mono_ns.since(start.mono_ns))))
        .into_iter()
        .collect();
    out.family(
        "quakeproof_run_duration_seconds",
        Kind::Gauge,
        "seconds",
        "From the first to the last line of the journal.",
        &took,
    );
}

fn objectives(out: &mut Exposition, report: &Report) {
    let labels = |o: &Objective| -> Labels<'static> {
        vec![("objective", o.name.clone()), ("kind", o.kind.clone()), ("cluster", o.cluster.clone())]
    };
    let verdicts: Vec<_> =
        report.objectives.iter().map(|o| (labels(o), Some(super::build::word(&o.verdict)))).collect();
    out.states(
        "quakeproof_objective_verdict",
        "Whether the objective was met.",
        &["pass", "fail", "inconclusive"],
        &verdicts,
    );
    let mut durations = Vec::new();
    let mut counts = Vec::new();
    for o in &report.objectives {
        for (figure, value) in
            [("target", o.target), ("observed", o.observed), ("lower", o.lower), ("upper", o.upper)]
        {
            let Some(value) = value else { continue };
            let mut labels = labels(o);
            labels.push(("figure", figure.to_owned()));
            if o.unit == Unit::Nanoseconds {
                durations.push((labels, seconds(value)));
            } else {
                labels.push(("unit", o.unit.to_string()));
                counts.push((labels, value.to_string()));
            }
        }
    }
    out.family(
        "quakeproof_objective_seconds",
        Kind::Gauge,
        "seconds",
        "Figures of objectives that are durations: the limit, the best estimate, and what the true value does not leave.",
        &durations,
    );
    out.family(
        "quakeproof_objective_count",
        Kind::Gauge,
        "",
        "Figures of objectives that are counts, in the unit that the label names.",
        &counts,
    );
}

fn recovery(out: &mut Exposition, report: &Report) {
    let mut samples = Vec::new();
    for rung in ladder::rungs(report) {
        for (from, rise) in [("fault", &rung.from_fault), ("restoreCommand", &rung.from_command)] {
            let Rise::Between(lower, upper) = rise else { continue };
            for (bound, value) in [("lower", lower), ("upper", upper)] {
                let labels = vec![
                    ("capability", rung.mark.to_owned()),
                    ("from", from.to_owned()),
                    ("bound", bound.to_owned()),
                ];
                samples.push((labels, seconds(*value)));
            }
        }
    }
    out.family(
        "quakeproof_recovery_seconds",
        Kind::Gauge,
        "seconds",
        "How long a capability was away, not shorter and not longer.",
        &samples,
    );
}

fn restores(out: &mut Exposition, report: &Report) {
    let (mut writes, mut views, mut revisions) = (Vec::new(), Vec::new(), Vec::new());
    for (index, facts) in report.facts.etcd_restore.iter().enumerate() {
        let restore = || vec![("cluster", facts.cluster.clone()), ("restore", index.to_string())];
        let l = &facts.ledger;
        for (state, count) in [
            ("acked", Some(l.acked)),
            ("kept", l.kept),
            ("lost", l.lost),
            ("indeterminate", Some(l.indeterminate)),
            ("phantom", l.phantom),
        ] {
            let Some(count) = count else { continue };
            let mut labels = restore();
            labels.push(("state", state.to_owned()));
            writes.push((labels, count.to_string()));
        }
        for (at, revision) in [
            ("before", facts.revision_before),
            ("highestSeen", facts.highest_revision_seen),
            ("after", Some(facts.revision_after)),
        ] {
            let Some(revision) = revision else { continue };
            let mut labels = restore();
            labels.push(("at", at.to_owned()));
            revisions.push((labels, revision.to_string()));
        }
        for client in &facts.clients {
            let Some(lost) = client.on_lost_timeline() else { continue };
            let mut labels = restore();
            labels.extend([("client", client.name.clone()), ("kind", super::build::word(&client.kind))]);
            views.push((labels, u8::from(lost).to_string()));
        }
    }
    out.family("quakeproof_ledger_writes", Kind::Gauge, "", "What became of the writes.", &writes);
    out.family(
        "quakeproof_etcd_revision",
        Kind::Gauge,
        "",
        "Revision of etcd around the restore.",
        &revisions,
    );
    out.family(
        "quakeproof_client_on_lost_timeline",
        Kind::Gauge,
        "",
        "Whether the client was shown something else than the state of etcd.",
        &views,
    );
}

fn predictions(out: &mut Exposition, report: &Report) {
    if report.predictions.is_empty() {
        return;
    }
    let samples: Vec<_> = [("yes", Some(true)), ("no", Some(false)), ("unknown", None)]
        .into_iter()
        .map(|(word, agrees)| {
            let count = report.predictions.iter().filter(|p| p.agrees == agrees).count();
            (vec![("agrees", word.to_owned())], count.to_string())
        })
        .collect();
    out.family(
        "quakeproof_predictions",
        Kind::Gauge,
        "",
        "Predictions of the plan by whether they came true.",
        &samples,
    );
}

fn recorders(out: &mut Exposition, report: &Report) {
    let r = &report.recorder;
    let samples: Vec<_> =
        [("scheduled", r.scheduled), ("recorded", r.recorded), ("late", r.late), ("lost", r.lost)]
            .into_iter()
            .filter_map(|(state, count)| Some((vec![("state", state.to_owned())], count?.to_string())))
            .collect();
    out.family(
        "quakeproof_recorder_samples",
        Kind::Gauge,
        "",
        "What the recorders of the clients lost.",
        &samples,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        for (ns, text) in
            [(0, "0"), (1, "0.000000001"), (1_500_000_000, "1.5"), (u64::MAX, "18446744073.709551615")]
        {
            assert_eq!(seconds(ns), text);
        }
    }

    #[test]
    fn texts_are_escaped_as_the_format_asks() {
        assert_eq!(escaped("a\\b\"c\nd\u{1b}"), "a\\\\b\\\"c\\\\nd\\\\u{1b}");
    }
}
