//! Witness and search against brute force.

use crate::brute::{is_linearizable, is_linearizable_for};
use crate::random::{history, honest};
use proptest::prelude::*;
use quakeproof::check::consistency::epochs::Epoch;
use quakeproof::check::consistency::minimise::minimise;
use quakeproof::check::consistency::model::{Action, Cell, Operation, PENDING, Seen, WriteResult};
use quakeproof::check::consistency::residue::decide;
use quakeproof::check::consistency::search::Searched;
use quakeproof::check::consistency::versions::Versions;
use quakeproof::check::consistency::{operations, witness};

const AMPLE: u64 = 10_000_000;

/// Whether the checker finds the epoch's operations possible.
pub fn is_possible(epoch: &Epoch) -> bool {
    let versions = Versions::of(epoch);
    let checked = operations(epoch, &versions, &mut { AMPLE });
    assert!(checked.undecided.is_empty(), "{:?}", checked.undecided);
    checked.violations.is_empty() && versions.strays.is_empty()
}

fn initial(epoch: &Epoch, key: u64) -> Cell {
    epoch.initial.get(&key).map_or(Cell::absent(), |revision| Cell::at(*revision))
}

fn about(epoch: &Epoch, key: u64) -> Vec<&Operation> {
    epoch.operations.iter().filter(|o| o.key().is_none_or(|of| of == key)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_store_did_is_possible(epoch in honest(6)) {
        prop_assert!(is_linearizable(&epoch), "brute force");
        prop_assert!(is_possible(&epoch), "{:#?}", operations(&epoch, &Versions::of(&epoch), &mut { AMPLE }));
    }

    #[test]
    fn the_checker_agrees_with_brute_force(epoch in history(6)) {
        let possible = is_linearizable(&epoch);
        let versions = Versions::of(&epoch);
        if possible {
            prop_assert!(is_possible(&epoch), "{:#?}", operations(&epoch, &versions, &mut { AMPLE }));
        } else if versions.residue.is_empty() {
            prop_assert!(!is_possible(&epoch));
            let alone = witness::check(&epoch, &versions);
            prop_assert!(!alone.is_empty() || !versions.strays.is_empty(), "by revisions alone");
        } else {
            // Objects are searched one by one: what only their order among each other shows is left out.
            let every = [1, 2].iter().all(|key| is_linearizable_for(&epoch, *key));
            prop_assert!(every || !is_possible(&epoch));
        }
    }

    #[test]
    fn the_search_agrees_with_brute_force_on_each_object(epoch in history(6)) {
        for key in [1, 2] {
            let expected = if is_linearizable_for(&epoch, key) { Searched::Legal } else { Searched::Illegal };
            let found = decide(&about(&epoch, key), key, initial(&epoch, key), &mut { AMPLE });
            prop_assert_eq!(found, expected, "object {}", key);
        }
    }

    #[test]
    fn with_less_budget_the_search_says_the_same_or_nothing(epoch in history(6), budget in 0u64..8) {
        let all = about(&epoch, 1);
        let ample = decide(&all, 1, initial(&epoch, 1), &mut { AMPLE });
        let scarce = decide(&all, 1, initial(&epoch, 1), &mut { budget });
        prop_assert!(scarce == ample || scarce == Searched::Exhausted);
    }

    #[test]
    fn a_minimised_counterexample_is_one_and_needs_each_record(epoch in history(6)) {
        let all = about(&epoch, 1);
        if decide(&all, 1, initial(&epoch, 1), &mut { AMPLE }) != Searched::Illegal {
            return Ok(());
        }
        let kept = minimise(&all, 1, initial(&epoch, 1), &mut { AMPLE });
        prop_assert!(!kept.is_empty());
        // Everything else only as far as it may have happened.
        let weaker = |without: Option<&str>| {
            let operations = all.iter().filter_map(|o| {
                if kept.iter().any(|k| k.line == o.line) && without != Some(o.line.as_str()) {
                    return Some((*o).clone());
                }
                match &o.action {
                    Action::Write { key, change, result: WriteResult::Done(_) | WriteResult::Unknown } => {
                        let action = Action::Write { key: *key, change: *change, result: WriteResult::Unknown };
                        Some(Operation { action, ret: PENDING, ..(*o).clone() })
                    }
                    _ => None,
                }
            });
            Epoch { operations: operations.collect(), ..epoch.clone() }
        };
        prop_assert!(!is_linearizable_for(&weaker(None), 1), "{:#?}", weaker(None));
        for record in &kept {
            prop_assert!(is_linearizable_for(&weaker(Some(&record.line)), 1), "{} is not needed", record.line);
        }
    }
}

#[test]
fn random_histories_are_of_every_kind() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut possible, mut impossible, mut residue, mut unknown) = (0, 0, 0, 0);
    for _ in 0..2000 {
        let epoch = history(6).new_tree(&mut runner).unwrap().current();
        *(if is_linearizable(&epoch) { &mut possible } else { &mut impossible }) += 1;
        residue += usize::from(!Versions::of(&epoch).residue.is_empty());
        unknown += usize::from(epoch.operations.iter().any(Operation::is_optional));
        assert!(
            epoch
                .operations
                .iter()
                .all(|o| !matches!(o.action, Action::Read { seen: Seen::Present(Some(0)), .. }))
        );
    }
    assert!(
        possible > 500 && impossible > 300 && residue > 300 && unknown > 300,
        "{possible} possible, {impossible} not, {residue} with residue, {unknown} with unknown outcomes"
    );
}
