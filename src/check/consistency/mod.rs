//! Whether a run's histories can be those of one store.
//!
//! Revisions are a witness of the order in which things happened, so most is decided
//! by [`witness`] without search; [`search`] is for objects that revisions leave
//! open, on a budget of explored states. A restore splits a run into [`epochs`].
//! Everything here is pure.

pub mod epochs;
pub mod export;
pub mod minimise;
pub mod model;
pub mod residue;
pub mod search;
pub mod sessions;
pub mod versions;
pub mod violation;
pub mod watches;
pub mod witness;

use super::Judge;
use crate::history::kind::ClientKind;
use epochs::{Epoch, Run, WrongValue};
use model::{Action, Name, Operation};
use residue::Residue;
use std::collections::BTreeMap;
use versions::Versions;
use violation::{Rule, Violation};

/// What checking one epoch's operations came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is proven impossible, earliest first.
    pub violations: Vec<Violation>,
    /// Objects that could not be decided, with the reason.
    pub undecided: BTreeMap<u64, String>,
    /// Objects that had to be searched.
    pub searched: u64,
}

/// Checks the operations of one epoch, taking explored states from `budget`.
#[must_use]
pub fn operations(epoch: &Epoch, versions: &Versions, budget: &mut u64) -> Checked {
    let mut violations = witness::check(epoch, versions);
    let Residue { violations: illegal, undecided, searched } = residue::check(epoch, versions, budget);
    violations.extend(illegal);
    violations.sort_by(Violation::by_time);
    Checked { violations, undecided, searched }
}

/// What checking a whole run came to.
#[derive(Debug, Clone, Default)]
pub struct Consistency {
    /// The run in epochs.
    pub run: Run,
    /// What is proven impossible, earliest first.
    pub violations: Vec<Violation>,
    /// What could not be decided, in words.
    pub undecided: Vec<String>,
    /// Operations that were checked.
    pub operations: u64,
    /// Watch events that were checked.
    pub events: u64,
    /// Objects that had to be searched.
    pub searched: u64,
    /// Explored states.
    pub states: u64,
    /// LISTs after a restore that are not the store's state at their revision.
    pub false_lists: u64,
}

impl Consistency {
    /// Checks a run with a budget of explored states.
    ///
    /// # Errors
    /// When its epochs can't be told.
    pub fn of(judge: &Judge, budget: u64) -> Result<Self, String> {
        let run = Run::of(judge)?;
        let mut left = budget;
        let mut all = Self::default();
        for (epoch, versions) in run.epochs.iter().zip(&run.versions) {
            let checked = operations(epoch, versions, &mut left);
            all.violations.extend(checked.violations);
            let undecided =
                |(key, why): (u64, String)| format!("{} of epoch {}: {why}", Name(key), epoch.number);
            all.undecided.extend(checked.undecided.into_iter().map(undecided));
            all.operations += epoch.operations.len() as u64;
            all.searched += checked.searched;
        }
        all.states = budget - left;
        let watches = watches::check(&run, &judge.logs);
        all.events = watches.events;
        all.violations.extend(watches.violations);
        all.violations.extend(sessions::check(&run, &judge.logs));
        all.strays(judge, &run);
        all.false_lists = false_lists(&run);
        all.violations.extend(run.wrong_values.iter().map(|wrong| wrong_value(&run, wrong)));
        all.violations.sort_by(Violation::by_time);
        all.run = run;
        Ok(all)
    }

    /// Versions that nobody is on record to have written: lost ones that were read
    /// after the restore, or objects out of nowhere.
    fn strays(&mut self, judge: &Judge, run: &Run) {
        let broken_off = judge
            .logs
            .iter()
            .filter(|log| log.kind() == ClientKind::LedgerWriter)
            .find_map(|log| log.incomplete());
        for (at, versions) in run.versions.iter().enumerate() {
            for stray in &versions.strays {
                let (key, name, revision) = (stray.key, Name(stray.key), stray.revision);
                let lost = at.checked_sub(1).and_then(|before| {
                    run.versions[before].of_key(key).iter().find(|v| v.revision == revision)
                });
                let (rule, what, mut records) = match (lost, &broken_off) {
                    (Some(lost), _) => {
                        let what = format!("{name} was read at revision {revision}, which the restore lost");
                        (Rule::LostValue, what, vec![lost.line.clone()])
                    }
                    (None, Some(why)) => {
                        self.undecided.push(format!("{name} of revision {revision}: {why}"));
                        continue;
                    }
                    (None, None) => {
                        let what = match stray.present {
                            true => {
                                format!("{name} of revision {revision} was written by nobody on record")
                            }
                            false => {
                                format!("{name} was deleted at revision {revision} by nobody on record")
                            }
                        };
                        (Rule::Unwritten, what, Vec::new())
                    }
                };
                records.push(stray.line.clone());
                self.violations.push(Violation {
                    rule,
                    epoch: at + 1,
                    key: Some(key),
                    at: stray.at,
                    what,
                    records,
                });
            }
        }
    }
}

fn wrong_value(run: &Run, wrong: &WrongValue) -> Violation {
    let WrongValue { key, at, line } = wrong.clone();
    let (rule, epoch) = (Rule::WrongValue, run.answered_in(at));
    let what = format!("{} was read with a value that was never written to it", Name(key));
    Violation { rule, epoch, key: Some(key), at, what, records: vec![line] }
}

fn false_lists(run: &Run) -> u64 {
    let is_false = |o: &&Operation| match (&o.action, run.versions.last()) {
        (Action::Range(range), Some(versions)) => witness::differs(range, versions).is_some(),
        _ => false,
    };
    run.lists.iter().filter(is_false).count() as u64
}
