//! How long checking takes. `cargo test --release --test consistency speed -- --ignored --nocapture` prints it.

use quakeproof::check::consistency::epochs::Epoch;
use quakeproof::check::consistency::model::{Action, Change, Operation, RangeRead, Seen, WriteResult};
use quakeproof::check::consistency::operations;
use quakeproof::check::consistency::versions::Versions;
use std::time::Instant;

/// `count` operations of an honest store: of ten, four create, five read one object, and
/// each thousandth reads all. Ten are always under way at once.
fn many(count: u64) -> Epoch {
    let mut epoch = Epoch { number: 1, ..Epoch::default() };
    let (mut written, mut revision) = (0u64, 0u64);
    for n in 0..count {
        let action = match n % 10 {
            _ if n % 1000 == 999 => Action::Range(RangeRead {
                head: revision,
                at: revision,
                fresh: true,
                objects: (1..=written).map(|key| (key, Some(key))).collect(),
            }),
            0 | 2 | 4 | 6 => {
                (written, revision) = (written + 1, revision + 1);
                Action::Write {
                    key: written,
                    change: Change::Create,
                    result: WriteResult::Done(Some(revision)),
                }
            }
            _ => {
                let key = (n * 7_919) % written + 1;
                Action::Read { key, seen: Seen::Present(Some(key)) }
            }
        };
        let instant = 1_000 + n * 10;
        let line = format!("histories/many.jsonl#{n}");
        epoch.operations.push(Operation { client: 0, line, call: instant - 50, ret: instant + 50, action });
    }
    epoch
}

#[test]
fn ten_thousand_operations_of_an_honest_store_are_possible() {
    let epoch = many(10_000);
    let checked = operations(&epoch, &Versions::of(&epoch), &mut 0);
    assert_eq!((checked.violations.len(), checked.searched), (0, 0));
}

#[test]
#[ignore = "measures, asserts nothing about time"]
fn speed_of_the_witness() {
    for count in [10_000, 100_000] {
        let epoch = many(count);
        let start = Instant::now();
        let versions = Versions::of(&epoch);
        let checked = operations(&epoch, &versions, &mut 0);
        println!("{count} operations: {:?}, {} violations", start.elapsed(), checked.violations.len());
    }
}
