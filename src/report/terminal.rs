//! The report on a terminal, or in a log: the same order as the HTML file.

use super::figure;
use super::ladder;
use super::model::Report;
use super::tables;
use crate::check::Verdict;
use crate::escape::terminal as safe;
use owo_colors::{OwoColorize, Style};
use std::fmt::Write as _;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Colours; the caller knows `NO_COLOR` and whether this is a terminal.
    pub colour: bool,
    /// Columns, 40 or more.
    pub width: usize,
}

/// The report as text. Words carry the meaning, colours only repeat it.
#[must_use]
pub fn render(report: &Report, options: Options) -> String {
    let mut page = Page { out: String::new(), colour: options.colour, width: options.width.max(40) };
    page.head(report);
    page.objectives(report);
    page.ladder(report);
    page.clients(report);
    page.tables(report);
    page.predictions(report);
    page.foot(report);
    page.out
}

struct Page {
    out: String,
    colour: bool,
    width: usize,
}

impl Page {
    fn head(&mut self, report: &Report) {
        let word = figure::verdict(report.verdict).to_uppercase();
        let word = self.paint(&word, verdict_style(report.verdict).bold());
        let _ = writeln!(self.out, "{word}  {}", safe(&report.run.drill));
        self.wrapped(&report.summary, 0);
        let versions: Vec<String> = report
            .clusters
            .iter()
            .map(|c| format!("{} kubernetes {} etcd {}", c.provider, c.versions.kubernetes, c.versions.etcd))
            .collect();
        let profile = report.run.profile.as_deref().unwrap_or("real");
        let line = format!("{}, {profile} timings, seed {}", versions.join("; "), report.run.seed);
        self.dim(&line, 0);
        if !report.run.overrides.is_empty() {
            let set: Vec<String> = report.run.overrides.iter().map(|(k, v)| format!("{k}={v}")).collect();
            self.dim(&format!("overridden: {}", set.join(", ")), 0);
        }
    }

    fn objectives(&mut self, report: &Report) {
        if report.objectives.is_empty() {
            return;
        }
        self.title("Objectives");
        let rows: Vec<[String; 4]> = report
            .objectives
            .iter()
            .map(|o| {
                [
                    figure::met(o.verdict).to_owned(),
                    safe(&o.name).into_owned(),
                    safe(&figure::observed(o)).into_owned(),
                    safe(&figure::target(o)).into_owned(),
                ]
            })
            .collect();
        let widths = widths(&rows);
        for (row, objective) in rows.iter().zip(&report.objectives) {
            let verdict = pad(&row[0], widths[0]);
            let verdict = self.paint(&verdict, verdict_style(Some(objective.verdict)));
            let line =
                format!("  {verdict}  {}  {}  {}", pad(&row[1], widths[1]), pad(&row[2], widths[2]), row[3]);
            let _ = writeln!(self.out, "{}", line.trim_end());
            if objective.verdict != Verdict::Pass {
                self.wrapped(&objective.reason, widths[0] + 4);
            }
        }
    }

    fn ladder(&mut self, report: &Report) {
        let rungs = ladder::rungs(report);
        if rungs.is_empty() {
            return;
        }
        self.title("Recovery");
        let mut rows =
            vec![["".to_owned(), "from the fault".to_owned(), "from the restore command".to_owned()]];
        rows.extend(rungs.iter().map(|r| [r.label.to_owned(), r.from_fault.short(), r.from_command.short()]));
        self.table(&rows);
        for rung in &rungs {
            if let ladder::Rise::Unknown(reason) = &rung.from_fault {
                self.wrapped(&format!("{}: {reason}", rung.label), 2);
            }
        }
    }

    fn clients(&mut self, report: &Report) {
        for facts in &report.facts.etcd_restore {
            self.title("Clients");
            let mut rows = vec![
                ["client", "view", "phantom", "absent", "missed", "silent", "410", "went back", "lost swaps"]
                    .map(str::to_owned),
            ];
            rows.extend(facts.clients.iter().map(|c| {
                let number = |n: Option<u64>| n.map_or_else(|| "—".to_owned(), |n| n.to_string());
                [
                    safe(&c.name).into_owned(),
                    c.view().words().to_owned(),
                    number(c.phantom_objects),
                    number(c.absent_objects),
                    number(c.events_missed),
                    c.silent_for_ns.map_or_else(|| "—".to_owned(), figure::duration),
                    c.gone410.to_string(),
                    number(c.rv_regressions),
                    number(c.cas_on_lost_state),
                ]
            }));
            self.table(&rows);
        }
    }

    fn tables(&mut self, report: &Report) {
        for table in tables::of(report) {
            self.title(table.title);
            let mut rows = vec![table.columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()];
            rows.extend(
                table.rows.iter().map(|row| row.iter().map(|cell| safe(cell).into_owned()).collect()),
            );
            self.table(&rows);
        }
    }

    fn predictions(&mut self, report: &Report) {
        let differing: Vec<_> = report.predictions.iter().filter(|p| p.agrees == Some(false)).collect();
        if report.predictions.is_empty() {
            return;
        }
        self.title("Predicted and observed");
        let open = report.predictions.iter().filter(|p| p.agrees.is_none()).count();
        let held = report.predictions.len() - differing.len() - open;
        let _ = writeln!(self.out, "  {held} as predicted, {} different, {open} unknown", differing.len());
        for p in differing {
            let line =
                format!("{}, {}: predicted {}, observed {}", p.subject, p.what, p.predicted, p.observed);
            self.wrapped(&line, 2);
        }
    }

    fn foot(&mut self, report: &Report) {
        for deviation in &report.deviations {
            self.dim(&format!("deviation: {}", deviation.what), 0);
        }
        if let Some(lost) = report.recorder.lost.filter(|n| *n > 0) {
            self.dim(&format!("the recorders lost {lost} samples"), 0);
        }
        let _ = writeln!(self.out);
        self.dim(&format!("run {}, judged by {}", report.run.id, report.judge), 0);
    }

    fn title(&mut self, text: &str) {
        let text = self.paint(text, Style::new().bold());
        let _ = writeln!(self.out, "\n{text}");
    }

    fn table<R: AsRef<[String]>>(&mut self, rows: &[R]) {
        let widths = widths(rows);
        for (index, row) in rows.iter().enumerate() {
            let cells: Vec<String> =
                row.as_ref().iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
            let line = format!("  {}", cells.join("  "));
            let line = line.trim_end();
            let line = if index == 0 { self.paint(line, Style::new().dimmed()) } else { line.to_owned() };
            let _ = writeln!(self.out, "{line}");
        }
    }

    fn wrapped(&mut self, text: &str, indent: usize) {
        for line in wrap(&safe(text), self.width.saturating_sub(indent)) {
            let _ = writeln!(self.out, "{:indent$}{line}", "");
        }
    }

    fn dim(&mut self, text: &str, indent: usize) {
        for line in wrap(&safe(text), self.width.saturating_sub(indent)) {
            let line = self.paint(&line, Style::new().dimmed());
            let _ = writeln!(self.out, "{:indent$}{line}", "");
        }
    }

    fn paint(&self, text: &str, style: Style) -> String {
        if self.colour { text.style(style).to_string() } else { text.to_owned() }
    }
}

fn verdict_style(verdict: Option<Verdict>) -> Style {
    match verdict {
        Some(Verdict::Pass) => Style::new().green(),
        Some(Verdict::Fail) => Style::new().red(),
        Some(Verdict::Inconclusive) | None => Style::new().yellow(),
    }
}

fn widths<R: AsRef<[String]>>(rows: &[R]) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.as_ref().get(column)).map(|cell| cell.chars().count()).max()
    };
    (0..columns).map(|column| widest(column).unwrap_or(0)).collect()
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{:missing$}", "")
}

/// Breaks at spaces; a word longer than a line stands alone on it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
