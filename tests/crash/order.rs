//! Several injections are open at once: the newest one is undone first.

use crate::bench::{Bench, RUN, Setup, block_on};
use quakeproof::agent::protocol::{Request, Response};
use quakeproof::agent::undo::{InjectionId, OnLapse, Undo, UndoOp};
use quakeproof::client::context::ClientSignal;
use quakeproof::clock::SystemClock;
use quakeproof::component::{ComponentId, StopMethod};
use quakeproof::dispatch::dispatcher::{Dispatcher, Watcher};
use quakeproof::journal::entry::{Entry, JournalEvent};
use quakeproof::journal::writer::JournalWriter;
use quakeproof::provider::Provider;
use quakeproof::step::undo::{Settled, settle};
use std::sync::{Arc, Mutex};

/// What the undos do, in the order in which it must be done.
const DONE: [&str; 3] = ["stop kube-scheduler-1", "stop kube-controller-manager-1", "stop kube-apiserver-2"];

/// Sees which undos begin.
#[derive(Default)]
struct Begun(Mutex<Vec<InjectionId>>);

impl Watcher for Begun {
    fn entry(&self, entry: &Entry) {
        if let JournalEvent::UndoStarted { injection, .. } = &entry.event {
            self.0.lock().expect("nobody panics with it").push(injection.clone());
        }
    }

    fn signal(&self, _: &ClientSignal) {}

    fn note(&self, _: &str) {}
}

fn undo(injection: &str, component: &str) -> Undo {
    let ops = vec![UndoOp::Stop { component: ComponentId(component.to_owned()), how: StopMethod::Kill }];
    let injection = InjectionId(injection.to_owned());
    Undo { injection, on_lapse: OnLapse::Revert, ops, within_ns: 60_000_000_000 }
}

#[test]
fn of_several_open_injections_the_newest_is_undone_first() {
    let bench = Bench::new(Setup::STANDING);
    let (dir, _) = bench.make_run_dir();
    let undos = [
        undo("2-first", "kube-apiserver-2"),
        undo("3-second", "kube-controller-manager-1"),
        undo("4-third", "kube-scheduler-1"),
    ];
    let known: Vec<InjectionId> = undos.iter().map(|undo| undo.injection.clone()).collect();
    let begun = Arc::new(Begun::default());
    let settled = block_on(async {
        let cluster = bench.provider().attach(bench.cluster()).await.expect("it stands");
        for undo in undos {
            let arm = Request::Arm { run: RUN.to_owned(), undo, ttl_ns: 300_000_000_000 };
            assert!(matches!(cluster.agent(&arm).await, Ok(Response::Done)));
        }
        let clock = Arc::new(SystemClock::new());
        let journal = JournalWriter::create(&dir.journal(), clock.clone()).expect("there is space");
        let (dispatcher, journalist) = Dispatcher::new(journal, clock, begun.clone());
        let running = tokio::spawn(dispatcher.run());
        let settled = settle(RUN, &known, cluster.as_ref(), &journalist, "abort").await;
        drop(journalist);
        running.await.expect("it ends with its last handle");
        settled.expect("there is space")
    });
    assert_eq!(settled, Settled::Clean);
    let begun = begun.0.lock().expect("nobody panics with it");
    assert!(begun.iter().eq(known.iter().rev()), "{begun:?}");
    let state = bench.state().expect("the cluster stands");
    let done: Vec<&str> = state.operations.iter().map(|operation| operation.what.as_str()).collect();
    assert_eq!(done, DONE);
}
