//! Everything the page shows, as text that is already free of characters that
//! act; the template escapes markup.

use super::clients::{self, ClientView};
use super::{agreement, arrivals, audit, bars, difference_rank, queue, timeline};
use crate::check::Verdict;
use crate::check::apf::fill::queue_fills;
use crate::check::restore_facts::EtcdRestoreFacts;
use crate::clock::WallTime;
use crate::escape::visible;
use crate::report::model::{Instant, Objective, Report};
use crate::report::prepared::Prepared;
use crate::report::tables::Table;
use crate::report::{advice, build::word, figure, ladder, tables};
use crate::timeline::EvidenceInput;
use crate::timeline::boundaries::Boundaries;
use crate::timeline::clients::ClientLog;
use askama::Template;

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
pub(in crate::report) struct Page {
    title: String,
    drill: String,
    verdict: &'static str,
    summary: String,
    pub(in crate::report) outcome: String,
    pub(in crate::report) outcome_reason: String,
    pub(in crate::report) facts: Vec<(&'static str, String)>,
    pub(in crate::report) overrides: Vec<String>,
    objectives: Vec<ObjectiveView>,
    drawings: Vec<DrawingView>,
    pub(in crate::report) unreached: Vec<(String, String)>,
    pub(in crate::report) marks: Vec<[String; 4]>,
    rulers: [String; 2],
    rungs: Vec<RungView>,
    pub(in crate::report) stop_methods: String,
    predictions: Vec<PredictionView>,
    rules: Vec<String>,
    pub(in crate::report) clients: Vec<ClientView>,
    pub(in crate::report) tables: Vec<Table>,
    pub(in crate::report) loss: Vec<LossView>,
    pub(in crate::report) changed: Vec<String>,
    advice: Vec<AdviceView>,
    pub(in crate::report) steps: Vec<audit::Step>,
    pub(in crate::report) faults: Vec<audit::Injection>,
    pub(in crate::report) scope: Vec<(&'static str, String)>,
    pub(in crate::report) deviations: Vec<(String, String)>,
    pub(in crate::report) recorder: Vec<[String; 5]>,
    pub(in crate::report) recorder_total: [String; 4],
    pub(in crate::report) recorder_note: String,
    pub(in crate::report) identity: Vec<(&'static str, String)>,
    pub(in crate::report) machine: Vec<(String, String)>,
    pub(in crate::report) register: Vec<[String; 3]>,
    judge: String,
}

/// Cells with nothing in them that acts.
fn clean_table(table: Table) -> Table {
    let cells = |row: Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    Table { rows: table.rows.into_iter().map(cells).collect(), ..table }
}

struct ObjectiveView {
    class: &'static str,
    word: &'static str,
    name: String,
    figure: String,
    target: String,
    reason: String,
    predicted: String,
    span: String,
}

struct DrawingView {
    heading: &'static str,
    svg: String,
    note: String,
}

struct RungView {
    label: &'static str,
    mark: &'static str,
    fault_bar: String,
    fault: String,
    command_bar: String,
    command: String,
}

struct PredictionView {
    class: &'static str,
    word: &'static str,
    subject: String,
    what: String,
    predicted: String,
    observed: String,
    rule: usize,
}

pub(in crate::report) struct LossView {
    pub(in crate::report) cluster: String,
    pub(in crate::report) sentence: String,
    pub(in crate::report) rows: Vec<(&'static str, String)>,
}

struct AdviceView {
    title: String,
    why: String,
    commands: String,
}

pub(super) fn clean(text: &str) -> String {
    visible(text).into_owned()
}

pub(super) fn unknown(value: Option<&String>, reason: Option<&String>) -> String {
    match (value, reason) {
        (Some(value), _) => clean(value),
        (None, Some(reason)) => format!("unknown: {}", visible(reason)),
        (None, None) => "unknown".to_owned(),
    }
}

fn figure_or(value: Option<u64>, reason: Option<&String>) -> String {
    value.map_or_else(|| unknown(None, reason), |n| n.to_string())
}

/// Builds the page.
pub(in crate::report) fn page(prepared: &Prepared<'_>) -> Page {
    let Prepared { report, input, lanes, boundaries } = prepared;
    let lanes = timeline::drawn(lanes);
    let zero = timeline::zero(report, &lanes);
    let rungs = ladder::rungs(report);
    let end = bars::scale(&rungs);
    let (predictions, rules) = predictions(report);
    Page {
        title: clean(&report.run.title),
        drill: clean(&report.run.drill),
        verdict: figure::verdict(report.verdict),
        summary: clean(&report.summary),
        outcome: report.outcome.as_ref().map_or_else(|| "unknown".to_owned(), word),
        outcome_reason: report.outcome_reason.as_deref().map(clean).unwrap_or_default(),
        facts: first_screen(report),
        overrides: report.run.overrides.iter().map(|(k, v)| clean(&format!("{k}={v}"))).collect(),
        objectives: objectives(report),
        drawings: drawings(report, &lanes, zero)
            .into_iter()
            .chain(arrivals(input, boundaries, zero))
            .collect(),
        // Without capabilities that could come back their marks say nothing.
        unreached: if rungs.is_empty() { Vec::new() } else { unreached(report) },
        marks: marks(report, zero),
        rulers: ["ruler-f", "ruler-c"].map(|id| bars::ruler(id, end)),
        rungs: rungs
            .iter()
            .enumerate()
            .map(|(i, r)| RungView {
                label: r.label,
                mark: r.mark,
                fault_bar: bars::bar(&format!("bar-f{i}"), &r.from_fault, end),
                fault: clean(&r.from_fault.text()),
                command_bar: bars::bar(&format!("bar-c{i}"), &r.from_command, end),
                command: clean(&r.from_command.text()),
            })
            .collect(),
        stop_methods: stop_methods(report),
        predictions,
        rules,
        tables: tables::of(report).into_iter().map(clean_table).collect(),
        clients: report
            .facts
            .etcd_restore
            .iter()
            .flat_map(|f| clients::views(report, f, input, zero))
            .collect(),
        loss: report.facts.etcd_restore.iter().map(|f| loss(report, f, zero)).collect(),
        changed: report.facts.etcd_restore.iter().flat_map(|f| changed(report, f)).collect(),
        advice: advice::of(report)
            .into_iter()
            .map(|a| AdviceView {
                title: clean(&a.title),
                why: clean(&a.why),
                commands: a.commands.iter().map(|c| clean(c)).collect::<Vec<_>>().join("\n"),
            })
            .collect(),
        steps: audit::steps(report, zero),
        faults: report.faults.iter().map(|f| audit::fault(f, zero)).collect(),
        scope: audit::scope(report),
        deviations: report
            .deviations
            .iter()
            .map(|d| {
                let when = d.at.as_ref().map_or("whole run".to_owned(), |i| since(i, zero));
                (when, clean(&d.what))
            })
            .collect(),
        recorder: audit::recorders(input),
        recorder_total: [
            report.recorder.scheduled,
            report.recorder.recorded,
            report.recorder.late,
            report.recorder.lost,
        ]
        .map(|n| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string())),
        recorder_note: report.recorder.reason.as_deref().map(clean).unwrap_or_default(),
        identity: audit::identity(report),
        machine: report.clusters.iter().flat_map(|c| &c.machine).map(|(k, v)| (clean(k), clean(v))).collect(),
        register: audit::register(report),
        judge: clean(&report.judge),
    }
}

pub(super) fn since(instant: &Instant, zero: u64) -> String {
    figure::offset(instant.mono_ns.0, zero)
}

fn first_screen(report: &Report) -> Vec<(&'static str, String)> {
    let run = &report.run;
    let mut out = Vec::new();
    for c in &report.clusters {
        out.push(("Kubernetes", clean(&c.versions.kubernetes)));
        out.push(("etcd", clean(&c.versions.etcd)));
        out.push(("Cluster", format!("{}, provider {}", visible(&c.name), visible(&c.provider))));
    }
    let profile =
        run.profile.as_deref().map_or("real".to_owned(), |p| format!("{} (not real ones)", visible(p)));
    out.push(("Timings", profile));
    out.push(("Started", run.started_at.as_ref().map_or("unknown".to_owned(), |i| wall(&i.at))));
    let took = run.started_at.as_ref().zip(run.finished_at.as_ref());
    out.push((
        "Whole run",
        took.map_or("unknown".to_owned(), |(s, e)| figure::duration(e.mono_ns.since(s.mono_ns))),
    ));
    out.push(("Operator", unknown(run.operator.as_ref(), run.reason.as_ref())));
    out.push(("Run", clean(&run.id)));
    out
}

/// `2026-11-29T19:00:00.123456Z` as `2026-11-29 19:00:00 UTC`.
fn wall(at: &WallTime) -> String {
    at.to_second().map_or_else(|| clean(&at.0), |second| clean(&format!("{second} UTC")))
}

fn class(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Pass) => "pass",
        Some(Verdict::Fail) => "fail",
        Some(Verdict::Inconclusive) | None => "inconclusive",
    }
}

fn objectives(report: &Report) -> Vec<ObjectiveView> {
    report
        .objectives
        .iter()
        .map(|o| ObjectiveView {
            class: class(Some(o.verdict)),
            word: figure::met(o.verdict),
            name: clean(&o.name),
            figure: clean(&figure::observed(o)),
            target: clean(&figure::target(o)),
            reason: clean(&o.reason),
            predicted: o.predicted.as_ref().map_or("nothing".to_owned(), |p| clean(&p.text)),
            span: match (&o.from, &o.to) {
                (Some(from), Some(to)) => format!("{} → {}", visible(&from.mark), visible(&to.mark)),
                _ => String::new(),
            },
        })
        .collect()
}

fn drawings(report: &Report, lanes: &[timeline::DrawnLane], zero: u64) -> Vec<DrawingView> {
    let Some(whole) = timeline::whole(lanes) else { return Vec::new() };
    let close_up = timeline::close_up(report, whole).map(|w| ("Around the fault", w, "timeline-close"));
    let mut out = Vec::new();
    for (heading, window, id) in
        close_up.into_iter().chain([("The whole recording", whole, "timeline-whole")])
    {
        let drawing = timeline::draw(report, lanes, window, zero, id, heading);
        let mut note =
            format!("Linear time axis, {} long.", figure::duration(window.to.saturating_sub(window.from)));
        if drawing.sampled {
            note.push_str(
                " Lanes with more than 400 stretches are sampled to 466 columns; each column shows the worst \
                 that happened within it.",
            );
        }
        out.push(DrawingView { heading, svg: drawing.svg, note });
    }
    out
}

/// Loads have a drawing of their own: a lane shows one state at a time, a load has many requests out.
fn arrivals(input: &EvidenceInput, boundaries: &Boundaries, zero: u64) -> Option<DrawingView> {
    let logs = ClientLog::all(input, boundaries.boot.as_ref());
    let (loads, queues) = (arrivals::loads(input, &logs), queue_fills(input, &logs));
    let svg = arrivals::draw(&loads, &queues, arrivals::window(&loads)?, zero);
    let note = match queues.as_slice() {
        [] => arrivals::LEGEND.to_owned(),
        _ => format!("{} {}", arrivals::LEGEND, queue::LEGEND),
    };
    Some(DrawingView { heading: "Requests of loads", svg, note })
}

fn unreached(report: &Report) -> Vec<(String, String)> {
    report
        .marks
        .iter()
        .filter(|m| m.lower_ns.is_none())
        .map(|m| (clean(&m.name), m.reason.as_deref().map_or("unknown".to_owned(), clean)))
        .collect()
}

fn marks(report: &Report, zero: u64) -> Vec<[String; 4]> {
    let at = |m: &crate::report::model::Mark| {
        let (lower, upper) = (m.lower_ns?, m.upper_ns?);
        Some([
            clean(&m.name),
            format!("{} to {}", figure::offset(lower.0, zero), figure::offset(upper.0, zero)),
            m.at.as_ref().map_or("unknown".to_owned(), |w| clean(&w.0)),
            m.source.as_deref().map(clean).unwrap_or_default(),
        ])
    };
    report.marks.iter().filter_map(at).collect()
}

fn stop_methods(report: &Report) -> String {
    let how: Vec<String> = report
        .faults
        .iter()
        .filter_map(|f| f.stop_method.as_ref().map(|m| format!("{} by {m}", f.target.join(", "))))
        .collect();
    if how.is_empty() { String::new() } else { clean(&format!("Stopped: {}.", how.join("; "))) }
}

/// Predictions, differences first, and the rules behind them, each once.
fn predictions(report: &Report) -> (Vec<PredictionView>, Vec<String>) {
    let mut rows: Vec<_> = report.predictions.iter().collect();
    rows.sort_by_key(|p| difference_rank(p.agrees));
    let mut rules: Vec<String> = Vec::new();
    let mut number = |source: &str| {
        let source = clean(source);
        let known = rules.iter().position(|r| *r == source);
        known.unwrap_or_else(|| {
            rules.push(source);
            rules.len() - 1
        }) + 1
    };
    let views = rows
        .into_iter()
        .map(|p| PredictionView {
            class: match p.agrees {
                Some(true) => "pass",
                Some(false) => "fail",
                None => "inconclusive",
            },
            word: agreement(p.agrees),
            subject: clean(&p.subject),
            what: clean(&p.what),
            predicted: clean(&p.predicted),
            observed: clean(&p.observed),
            rule: number(&p.source),
        })
        .collect();
    (views, rules)
}

fn loss(report: &Report, f: &EtcdRestoreFacts, zero: u64) -> LossView {
    let l = &f.ledger;
    let why = l.reason.as_ref();
    let missing = f.reason.as_ref();
    let limits: Vec<&Objective> =
        report.objectives.iter().filter(|o| o.kind == "rpo" && o.cluster == f.cluster).collect();
    let sentence = if limits.is_empty() {
        "The drill sets no objective for lost writes.".to_owned()
    } else {
        limits.iter().map(|o| clean(&o.reason)).collect::<Vec<_>>().join("; ")
    };
    let mut rows = vec![
        ("Acknowledged writes", l.acked.to_string()),
        ("Of those, before the loss", l.acked_before_loss.to_string()),
        ("Kept", figure_or(l.kept, why)),
        ("Lost", figure_or(l.lost, why)),
        ("Lost ids", if f.lost_ids.is_empty() { "none".to_owned() } else { clean(&f.lost_ids) }),
        ("Acknowledged after the restore and gone", figure_or(l.lost_after_restore, why)),
        ("Never answered", l.indeterminate.to_string()),
        ("Of those, took effect", figure_or(l.applied, why)),
        ("Present though refused or never sent", figure_or(l.phantom, why)),
    ];
    // One in time says between which writes; all of a drill say the same.
    if let Some(o) = limits.iter().find(|o| o.to.is_some()) {
        for (label, mark) in [("Last kept write", &o.from), ("Last acknowledged write", &o.to)] {
            if let Some(m) = mark {
                let range = format!(
                    "{} to {}",
                    figure::offset(m.lower_ns.0, zero),
                    figure::offset(m.upper_ns.0, zero)
                );
                rows.push((label, range));
            }
        }
    }
    for o in &limits {
        let name = if limits.len() > 1 { format!("{}: ", clean(&o.name)) } else { String::new() };
        let figure = format!("{name}{}; {}", figure::observed(o), figure::target(o));
        rows.push(("Loss against the objective", figure));
    }
    if let Some(s) = &f.snapshot {
        rows.push((
            "Snapshot",
            format!(
                "revision {}, {}{}, {}, taken {}",
                s.revision,
                s.keys.map_or(String::new(), |keys| format!("{keys} keys, ")),
                figure::size(s.size_bytes),
                if s.sha256_ok == Some(true) { "digest right" } else { "no digest checked" },
                s.taken_at.at.as_ref().map_or_else(|| figure::offset(s.taken_at.mono_ns.0, zero), wall)
            ),
        ));
    }
    rows.push(("Revision before the loss", figure_or(f.revision_before, missing)));
    rows.push(("Highest revision that anyone saw", figure_or(f.highest_revision_seen, missing)));
    rows.push(("Revision after the restore", f.revision_after.to_string()));
    rows.push(("Revisions lost", figure_or(f.revisions_lost, missing)));
    rows.push(("Revisions seen with two contents, at least", figure_or(f.revisions_reused, missing)));
    LossView { cluster: clean(&f.cluster), sentence, rows }
}

fn changed(report: &Report, f: &EtcdRestoreFacts) -> Vec<String> {
    let mut out = Vec::new();
    let after = f.revision_after;
    if let Some(before) = f.highest_revision_seen.or(f.revision_before) {
        let how = if after < before {
            "went back: revisions above the new one are used a second time, with other content"
        } else {
            "went forward"
        };
        out.push(format!("etcd’s revision {how} (from {before} to {after})."));
    }
    out.push(match f.bump {
        Some(bump) => format!("The restore added {bump} revisions and marked the old ones compacted."),
        None => "The restore added no revisions.".to_owned(),
    });
    let servers = if f.api_servers_restarted { "were restarted" } else { "kept running, with their caches" };
    out.push(format!("The API servers {servers}."));
    for fault in &report.faults {
        if let Some(undo) = &fault.undo {
            out.push(clean(&format!("Undo of {}: {undo}.", fault.injection)));
        }
    }
    out
}
