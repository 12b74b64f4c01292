//! `quakeproof compare`: whether runs of a drill are worse than other runs of it.

use super::output::{print, say};
use super::runs::word;
use crate::compare::{Comparison, Head, Item, Outcome, Overall, Run, Sides, Value, compare};
use crate::escape::terminal;
use crate::evidence::load::load;
use crate::evidence::publish::judge;
use crate::evidence::verify::verify;
use crate::exit::ExitCode;
use crate::report::figure;
use crate::state::StateDir;
use clap::Args;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use tabled::builder::Builder;
use tabled::settings::Style;

/// Compare runs of a drill with other runs of it, as before and after an upgrade; opens no connection
///
/// Every run is verified and judged anew first. Then B is held against A: how it ended, the verdict of each objective,
/// its figure with its bounds, the requests, seats and leaks of each priority level, and whether predictions came true.
/// Recovery times and lost time differ only when their bounds have nothing in common; of several runs a side, when
/// that holds for all of them. A count that is as predicted on both sides is not told apart, and neither is
/// anything that is inconclusive, and a percentile of latency is the same while its verdict is; latencies that no
/// objective judges are not compared. What is better on B is shown, and is as good as the same.
///
/// Exit codes: 0 the same or better, 1 something is worse on B, 2 not distinguishable, or changed and neither
/// better nor worse, 3 no such run, of a newer format, or runs of different drills, 6 a run does not verify.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Runs to compare with: directories, ids, or the beginnings of ids
    #[arg(value_name = "A", required = true)]
    pub a: Vec<String>,
    /// Runs to compare with them
    #[arg(long = "with", value_name = "B", required = true, num_args = 1..)]
    pub b: Vec<String>,
    /// Print JSON, with what is the same
    #[arg(long)]
    pub json: bool,
}

impl CompareArgs {
    /// A run that only the state directory can tell where it is, if there is one.
    #[must_use]
    pub fn wanted(&self) -> &str {
        let mut all = self.a.iter().chain(&self.b).map(String::as_str);
        let first = all.clone().next().unwrap_or_default();
        all.find(|run| !Path::new(run).is_dir()).unwrap_or(first)
    }
}

/// Compares runs. Opens no connection, reads no clock.
///
/// Exit codes: as [`CompareArgs`] says.
#[must_use]
pub fn run(args: &CompareArgs, state: &StateDir) -> ExitCode {
    let comparison = judged(args, state).and_then(|runs| {
        compare(&runs).map_err(|e| {
            say(&format!("error: {e}"));
            ExitCode::Usage
        })
    });
    let comparison = match comparison {
        Ok(comparison) => comparison,
        Err(code) => return code,
    };
    let text = if args.json {
        serde_json::to_string_pretty(&comparison).map(|json| json + "\n").map_err(io::Error::from)
    } else {
        Ok(render(&comparison))
    };
    match (print(text), comparison.overall) {
        // Whether or not somebody could read it.
        (_, Overall::Worse) => ExitCode::Missed,
        (ExitCode::Ok, Overall::NotDistinguishable) => ExitCode::Inconclusive,
        (code, _) => code,
    }
}

/// Every run that can't be compared is told of, not only the first.
fn judged(args: &CompareArgs, state: &StateDir) -> Result<Sides<Run>, ExitCode> {
    let mut codes = Vec::new();
    let mut side = |wanted: &[String]| {
        let mut runs = Vec::new();
        for run in wanted {
            match judged_anew(run, state) {
                Ok(run) => runs.push(run),
                Err((code, message)) => {
                    say(&format!("error: {message}"));
                    codes.push(code);
                }
            }
        }
        runs
    };
    let runs = Sides { a: side(&args.a), b: side(&args.b) };
    if codes.is_empty() { Ok(runs) } else { Err(ExitCode::merge(&codes)) }
}

/// A run whose evidence is whole. Its histories are let go of, so that many runs take no more memory than one.
fn judged_anew(wanted: &str, state: &StateDir) -> Result<Run, (ExitCode, String)> {
    let usage = |e: &dyn std::error::Error| (ExitCode::Usage, e.to_string());
    let dir = state.resolve_run(wanted).map_err(|e| usage(&e))?;
    let verified = verify(&dir, &judge(), None).map_err(|e| usage(&e))?;
    if let Some(first) = &verified.first_difference {
        let dir = dir.display();
        let first = terminal(&first.replace("\n  hint:", "; hint:")).into_owned();
        let hint = format!("`quakeproof verify {dir}` shows every check");
        return Err((ExitCode::Invalid, format!("{dir} does not verify: {first}\n  hint: {hint}")));
    }
    if let Some(opinion) = &verified.other_opinion {
        let theirs = terminal(&opinion.judge);
        say(&format!("{}: judged by {theirs}, judged anew by {}", dir.display(), opinion.ours));
    }
    let input = load(&dir).map_err(|e| (ExitCode::Invalid, e.to_string()))?;
    Ok(Run::of(&input))
}

/// The result for people: what differs, and how much is the same.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "{}", terminal(text));
    };
    line(&format!("drill {}, judged anew by {}", comparison.drill, comparison.judge));
    for (side, heads) in [("A", &comparison.a), ("B", &comparison.b)] {
        for run in heads {
            line(&format!("  {side}  {}", head(run)));
        }
    }
    for note in &comparison.notes {
        line(&format!("note: {note}"));
    }
    let differing: Vec<&Item> =
        comparison.items.iter().filter(|item| item.outcome != Outcome::Same).collect();
    if !differing.is_empty() {
        let _ = write!(out, "\n{}\n", table(&differing));
    }
    let _ = writeln!(out, "{}: {}", title(comparison.overall), terminal(&comparison.reason));
    out
}

fn title(overall: Overall) -> &'static str {
    match overall {
        Overall::Same => "same",
        Overall::Worse => "worse",
        Overall::NotDistinguishable => "not distinguishable",
    }
}

fn head(run: &Head) -> String {
    format!(
        "{}: kubernetes {}, etcd {}, seed {}, {}, {}",
        run.run,
        run.versions.kubernetes,
        run.versions.etcd,
        run.seed,
        word(run.outcome),
        figure::verdict(run.verdict)
    )
}

fn table(items: &[&Item]) -> String {
    let mut builder = Builder::default();
    builder.push_record(["IS", "SUBJECT", "WHAT", "A", "B"]);
    for item in items {
        let row = [item.outcome.word(), &item.subject, &item.what, &values(&item.a), &values(&item.b)];
        builder.push_record(row.map(|cell| terminal(cell).into_owned()));
    }
    let rows = builder.build().with(Style::blank()).to_string();
    // Reasons quote findings, which are sentences: under the row they have room.
    let reasons = items.iter().map(|item| item.reason.as_deref().unwrap_or_default());
    let mut text = String::new();
    for (index, row) in rows.lines().enumerate() {
        let _ = writeln!(text, "{}", row.trim_end());
        if let Some(reason) = index.checked_sub(1).and_then(|index| reasons.clone().nth(index)) {
            let _ = writeln!(text, "     {}", terminal(reason));
        }
    }
    text
}

fn values(side: &[Value]) -> String {
    let mut texts: Vec<&str> = side.iter().map(|value| value.text.as_str()).collect();
    texts.dedup();
    texts.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Versions;
    use clap::Parser;
    use std::collections::BTreeMap;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn parsed(line: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
        let words = ["compare"].iter().chain(line);
        Line::try_parse_from(words).ok().map(|line| (line.args.a, line.args.b))
    }

    #[test]
    fn several_runs_stand_on_each_side_and_none_may_be_empty() {
        let words = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parsed(&["x", "y", "--with", "z", "w"]), Some((words(&["x", "y"]), words(&["z", "w"]))));
        assert_eq!(parsed(&["x", "--with", "z", "--json"]), Some((words(&["x"]), words(&["z"]))));
        assert_eq!(parsed(&["x"]), None);
        assert_eq!(parsed(&["--with", "z"]), None);
        assert_eq!(parsed(&["x", "--with"]), None);
    }

    fn head_of(run: &str) -> Head {
        Head {
            run: run.to_owned(),
            drill: "jail".to_owned(),
            drill_digest: String::new(),
            parameters: BTreeMap::new(),
            overrides: BTreeMap::new(),
            profile: None,
            versions: Versions { kubernetes: "v1.30.4".to_owned(), etcd: "v3.5.21".to_owned() },
            seed: 7,
            outcome: None,
            verdict: None,
            reason: String::new(),
        }
    }

    fn item(outcome: Outcome, reason: Option<&str>) -> Item {
        let value = |text: &str| Value { text: text.to_owned(), lower: None, upper: None };
        Item {
            area: "objective",
            subject: "lost\u{1b}[2J".to_owned(),
            what: "verdict".to_owned(),
            unit: String::new(),
            outcome,
            reason: reason.map(str::to_owned),
            a: vec![value("met")],
            b: vec![value("missed"), value("missed")],
        }
    }

    #[test]
    fn differences_are_shown_with_their_reasons_and_hostile_text_stays_text() {
        let comparison = Comparison {
            overall: Overall::Worse,
            reason: "B is worse".to_owned(),
            drill: "jail\n\u{1b}[31m".to_owned(),
            judge: "judge",
            a: vec![head_of("0199aaaa")],
            b: vec![head_of("0199bbbb")],
            notes: vec!["evil\u{202e}".to_owned()],
            items: vec![item(Outcome::Worse, Some("it\nbroke\u{1b}")), item(Outcome::Same, None)],
        };
        let text = render(&comparison);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(text.contains("B  0199bbbb: kubernetes v1.30.4, etcd v3.5.21, seed 7"), "{text}");
        assert!(text.contains("it\\nbroke") && text.ends_with("worse: B is worse\n"), "{text}");
        assert_eq!(text.matches("verdict").count(), 1, "{text}");
        assert_eq!(text.matches("missed").count(), 1, "{text}");
    }
}
