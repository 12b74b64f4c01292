//! Many small runs at once.

use std::sync::Mutex;
use std::thread;

/// Runs side by side in one test. Most of a run is spent waiting for disks and processes.
const AT_ONCE: usize = 4;

/// Results of `work`, in the order of `items`.
pub fn each<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let items = Mutex::new(items.into_iter().enumerate().collect::<Vec<_>>().into_iter());
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = items.lock().expect("taking an item can't panic").next();
                    let Some((index, item)) = next else { return };
                    let result = work(item);
                    results.lock().expect("pushing can't panic").push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("pushing can't panic");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
