//! How the runs ended. Objectives may all be met by a run that left something faulted.

use super::interval::{Interval, Relation, relate};
use super::item::{About, Item, Outcome, Ruling, SAME, Value, ruled};
use super::{Run, Sides};
use crate::journal::entry::RunOutcome;

/// What it says of itself promises nothing: it can't make up for a drill without objectives.
pub(super) const AREA: &str = "run";

/// How the runs ended.
pub(super) fn item(runs: &Sides<Run>) -> Item {
    let outcomes = runs.map(|run| run.head.outcome);
    let about =
        About { area: AREA, subject: "the run".to_owned(), what: "outcome".to_owned(), unit: String::new() };
    about.item(outcomes.map(|outcome| Value::word(word(*outcome))), ruling(&outcomes))
}

fn word(outcome: Option<RunOutcome>) -> &'static str {
    match outcome {
        Some(RunOutcome::Completed) => "completed",
        Some(RunOutcome::Recovered) => "recovered",
        Some(RunOutcome::Aborted) => "aborted",
        Some(RunOutcome::Refused) => "refused",
        Some(RunOutcome::Faulted) => "faulted",
        None => "unknown",
    }
}

fn ruling(outcomes: &Sides<Option<RunOutcome>>) -> Ruling {
    let Some(known) = outcomes.present(|outcome| *outcome) else {
        return ruled(Outcome::NotDistinguishable, "a journal ends before the run was closed");
    };
    if known.agree(|outcome| *outcome) {
        return SAME;
    }
    match relate(&known.map(|outcome| Interval::exactly(u64::from(*outcome == RunOutcome::Faulted)))) {
        Relation::Higher => ruled(Outcome::Worse, "an undo failed: B left something faulted"),
        Relation::Lower => ruled(Outcome::Better, "an undo failed: A left something faulted"),
        Relation::Equal | Relation::Overlapping => {
            ruled(Outcome::NotDistinguishable, "the runs did not end in the same way")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RunOutcome::{Aborted, Completed, Faulted};

    fn ruled_of(a: &[RunOutcome], b: &[RunOutcome]) -> Outcome {
        let side = |side: &[RunOutcome]| side.iter().copied().map(Some).collect();
        ruling(&Sides { a: side(a), b: side(b) }).0
    }

    #[test]
    fn what_is_left_faulted_is_worse_whatever_was_met() {
        assert_eq!(ruled_of(&[Completed], &[Completed, Completed]), Outcome::Same);
        assert_eq!(ruled_of(&[Completed], &[Faulted]), Outcome::Worse);
        assert_eq!(ruled_of(&[Faulted], &[Aborted]), Outcome::Better);
        assert_eq!(ruled_of(&[Completed], &[Aborted]), Outcome::NotDistinguishable);
        assert_eq!(ruled_of(&[Completed], &[Completed, Faulted]), Outcome::NotDistinguishable);
        assert_eq!(ruling(&Sides { a: vec![None], b: vec![None] }).0, Outcome::NotDistinguishable);
    }
}
