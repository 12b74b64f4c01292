//! Predictions of a restore: whether what was seen agrees with them on both sides.
//!
//! A prediction that no longer holds is a change of behaviour. Whether it is for the worse, objectives say: what
//! was predicted may have been harm.

use super::interval::{Interval, Relation, relate};
use super::item::{About, Item, Outcome, Ruling, SAME, Value, ruled};
use super::{Run, Sides};
use crate::check::restore_facts::PredictionOutcome;

/// An item per prediction.
pub(super) fn items(runs: &Sides<Run>) -> Vec<Item> {
    let names = runs.names(|run| run.predictions.iter().map(name));
    names.into_iter().map(|name| of_prediction(runs, name)).collect()
}

type Name<'a> = (&'a str, &'a str);

fn name(prediction: &PredictionOutcome) -> Name<'_> {
    (&prediction.subject, &prediction.what)
}

fn find<'a>(run: &'a Run, wanted: Name<'_>) -> Option<&'a PredictionOutcome> {
    run.predictions.iter().find(|prediction| name(prediction) == wanted)
}

fn of_prediction(runs: &Sides<Run>, wanted: Name<'_>) -> Item {
    let about = About {
        area: "prediction",
        subject: wanted.0.to_owned(),
        what: wanted.1.to_owned(),
        unit: String::new(),
    };
    match runs.present(|run| find(run, wanted)) {
        Some(found) => {
            let values = found.map(|prediction| Value::word(words(prediction)));
            about.item(values, ruling(&found))
        }
        None => about.missing(&runs.map(|run| find(run, wanted).is_some())),
    }
}

fn words(prediction: &PredictionOutcome) -> String {
    match prediction.agrees {
        Some(true) => format!("{}, as predicted", prediction.observed),
        Some(false) => format!("{}, predicted: {}", prediction.observed, prediction.predicted),
        None => prediction.observed.clone(),
    }
}

fn ruling(found: &Sides<&PredictionOutcome>) -> Ruling {
    let agree = found.present(|prediction| prediction.agrees);
    let Some(agree) = agree else {
        return ruled(Outcome::NotDistinguishable, "it can't be told on both sides whether it came true");
    };
    match relate(&agree.map(|agrees| Interval::exactly(u64::from(!agrees)))) {
        Relation::Equal => SAME,
        Relation::Higher => ruled(Outcome::Changed, "it came true on A and not on B"),
        Relation::Lower => ruled(Outcome::Changed, "it came true on B and not on A"),
        Relation::Overlapping => {
            ruled(Outcome::NotDistinguishable, "the runs of one side do not agree with each other")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{prediction, run, sides};

    fn outcome(a: Option<bool>, b: Option<bool>) -> Outcome {
        let with = |agrees| {
            let mut run = run();
            run.predictions = vec![prediction("lister", agrees)];
            run
        };
        items(&sides(with(a), with(b)))[0].outcome
    }

    #[test]
    fn agreement_is_compared_and_the_unknown_is_never_the_same() {
        assert_eq!(outcome(Some(true), Some(true)), Outcome::Same);
        assert_eq!(outcome(Some(false), Some(false)), Outcome::Same);
        assert_eq!(outcome(Some(true), Some(false)), Outcome::Changed);
        assert_eq!(outcome(Some(false), Some(true)), Outcome::Changed);
        assert_eq!(outcome(None, Some(true)), Outcome::NotDistinguishable);
        assert_eq!(outcome(None, None), Outcome::NotDistinguishable);
    }

    #[test]
    fn a_prediction_of_one_side_only_is_not_the_same() {
        let mut without = run();
        without.predictions.clear();
        let found = items(&sides(run(), without));
        assert!(found.iter().all(|item| item.outcome == Outcome::NotDistinguishable), "{found:?}");
    }
}
