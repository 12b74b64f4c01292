//! Runs of one drill held against each other: whether side B is worse than side A.
//!
//! Pure: it sees what judging made of plan, journal and histories, opens no connection and reads no clock. One
//! run can't tell chance from change, so only what can't be chance counts as a difference: bounds that have no
//! figure in common, a verdict, a count that left its prediction. The rest is not distinguishable, and unknown
//! is never the same.

mod ended;
mod interval;
mod item;
mod levels;
mod objectives;
mod predictions;
mod run;
mod sides;

#[cfg(test)]
mod tests;

pub use item::{Item, Outcome, Value};
pub use run::{Head, Run};
pub use sides::Sides;

use crate::escape::terminal;
use crate::report::JUDGE;
use serde::Serialize;
use std::collections::BTreeSet;

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// Everything is the same on both sides, or better on B.
    Same,
    /// Something is worse on B.
    Worse,
    /// Nothing is worse as far as can be told, and not all can.
    NotDistinguishable,
}

/// Two sides held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What it comes to.
    pub overall: Overall,
    /// One sentence on it.
    pub reason: String,
    /// Name of the drill that all runs are of.
    pub drill: String,
    /// Which judge judged both sides, whoever had judged them before.
    pub judge: &'static str,
    /// Runs of side A.
    pub a: Vec<Head>,
    /// Runs of side B.
    pub b: Vec<Head>,
    /// What differs besides what is compared, such as the text of the drill.
    pub notes: Vec<String>,
    /// What was compared, in the order of the plan.
    pub items: Vec<Item>,
}

/// Only runs of one drill promise the same things.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the runs are of different drills: {0}\n  hint: give runs of one drill; `quakeproof runs` lists which are of which"
)]
pub struct DifferentDrills(String);

/// Holds side B against side A.
///
/// # Errors
/// [`DifferentDrills`] when not all runs are of drills of one name.
pub fn compare(runs: &Sides<Run>) -> Result<Comparison, DifferentDrills> {
    let drill = only_drill(runs)?;
    let objectives = objectives::items(runs);
    let levels = levels::items(runs, &objectives::decided(&objectives));
    let mut items = vec![ended::item(runs)];
    items.extend(objectives);
    items.extend(levels);
    items.extend(predictions::items(runs));
    let (overall, reason) = sum_up(&items);
    let heads = |runs: &[Run]| runs.iter().map(|run| run.head.clone()).collect();
    Ok(Comparison {
        overall,
        reason,
        drill,
        judge: JUDGE,
        a: heads(&runs.a),
        b: heads(&runs.b),
        notes: notes(runs),
        items,
    })
}

fn only_drill(runs: &Sides<Run>) -> Result<String, DifferentDrills> {
    let names: BTreeSet<&str> = runs.iter().map(|run| run.head.drill.as_str()).collect();
    match names.first() {
        Some(name) if names.len() == 1 => Ok((*name).to_owned()),
        _ => {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", terminal(name))).collect();
            Err(DifferentDrills(quoted.join(", ")))
        }
    }
}

fn notes(runs: &Sides<Run>) -> Vec<String> {
    let mut notes = Vec::new();
    let digests: BTreeSet<&str> = runs.iter().map(|run| run.head.drill_digest.as_str()).collect();
    if digests.len() > 1 {
        notes.push("the runs are of different texts of the drill (see drillDigest)".to_owned());
    }
    let names = runs.names(|run| run.head.settings().into_keys());
    let differ = names.into_iter().filter(|name| !runs.agree(|run| run.head.settings().get(name).copied()));
    let differ: Vec<String> = differ.map(|name| format!("`{name}`")).collect();
    if !differ.is_empty() {
        notes.push(format!("the runs were given different {}", differ.join(", ")));
    }
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&str> =
        runs.iter().map(|run| run.head.run.as_str()).filter(|run| !seen.insert(*run)).collect();
    notes.extend(twice.iter().map(|run| format!("run {run} was given more than once")));
    notes
}

fn sum_up(items: &[Item]) -> (Overall, String) {
    let of = |outcome: Outcome| items.iter().filter(move |item| item.outcome == outcome);
    let count = |outcome: Outcome| of(outcome).count();
    let total = items.len();
    if items.iter().all(|item| item.area == ended::AREA) {
        return (Overall::NotDistinguishable, "the drill promises nothing that could be compared".to_owned());
    }
    let words = [Outcome::Better, Outcome::Changed, Outcome::NotDistinguishable, Outcome::Same]
        .map(|outcome| (count(outcome), outcome.word()));
    let rest: Vec<String> =
        words.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let rest = rest.join(", ");
    if count(Outcome::Worse) > 0 {
        let named: Vec<String> =
            of(Outcome::Worse).map(|item| format!("{} ({})", item.subject, item.what)).collect();
        let others = if rest.is_empty() { rest } else { format!("; of the others: {rest}") };
        return (
            Overall::Worse,
            format!("B is worse in {} of {total}: {}{others}", named.len(), named.join(", ")),
        );
    }
    // What changed and is called neither better nor worse is not known to be as good.
    if count(Outcome::NotDistinguishable) + count(Outcome::Changed) > 0 {
        return (Overall::NotDistinguishable, format!("nothing of {total} is known to be worse: {rest}"));
    }
    (Overall::Same, format!("nothing of {total} is worse: {rest}"))
}
