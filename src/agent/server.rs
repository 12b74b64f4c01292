//! The agent process: one actor owns log and leases; connections send it requests,
//! undos run beside it and report their end.

use super::execute::{UndoOps, execute};
use super::log::{LogEntry, LogEvent};
use super::machine::{Answer, Decision, Keep, LeaseKey, Machine};
use super::protocol::{Request, Response};
use super::store::{OnRecorded, Store, StoreError};
use crate::clock::Clock;
use crate::unix_socket;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Longest line that either side reads.
pub const MAX_LINE_BYTES: u64 = 4 << 20;

/// Longest sleep while a lease runs: timers stop while the machine is suspended,
/// leases (on CLOCK_BOOTTIME) don't.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Directory of the agent's log within the cluster's.
#[must_use]
pub fn agent_dir(cluster_dir: &Path) -> PathBuf {
    cluster_dir.join("agent")
}

/// Socket of the agent of a cluster.
#[must_use]
pub fn socket_path(cluster_dir: &Path) -> PathBuf {
    cluster_dir.join("agent.sock")
}

/// Why the agent can't serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Its log can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its socket or runtime can't be made.
    #[error("the agent can't {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Serves the cluster in `cluster_dir` on a single-threaded runtime until the process is
/// killed. `ops` is called within the runtime; `on_recorded` sees each entry of the log
/// once it is durable.
///
/// # Errors
/// When it can't begin to serve. Never returns `Ok`.
pub fn main(
    cluster_dir: &Path,
    clock: Arc<dyn Clock>,
    ops: impl FnOnce() -> UndoOps,
    on_recorded: impl Fn(&LogEntry) + Send + 'static,
) -> Result<std::convert::Infallible, AgentError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| AgentError::Io { what: "start its runtime", source })?;
    runtime.block_on(async { serve(cluster_dir, clock, ops(), Box::new(on_recorded)).await })
}

/// Serves within a runtime; see [`main`].
///
/// # Errors
/// When it can't begin to serve. Never returns `Ok`.
pub async fn serve(
    cluster_dir: &Path,
    clock: Arc<dyn Clock>,
    ops: UndoOps,
    on_recorded: OnRecorded,
) -> Result<std::convert::Infallible, AgentError> {
    let (store, entries) = Store::open(&agent_dir(cluster_dir), clock.clone(), on_recorded)?;
    let machine = Machine::rebuild(&entries, &clock.boot());
    drop(entries);
    // The log is locked by now, so a socket that lies there is a dead agent's.
    let listener = bind(&socket_path(cluster_dir))
        .map_err(|source| AgentError::Io { what: "listen on its socket", source })?;
    let (requests, inbox) = mpsc::channel(16);
    tokio::spawn(accept(listener, requests));
    let (ended, endings) = mpsc::unbounded_channel();
    let server = Server { machine, store, clock, ops, waiters: BTreeMap::new(), ended };
    Ok(server.run(inbox, endings).await)
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = unix_socket::listen(path)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

type Asked = (Request, oneshot::Sender<Response>);
type Ended = (LeaseKey, Result<(), String>);

async fn accept(listener: UnixListener, requests: mpsc::Sender<Asked>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, requests.clone()));
            }
            // Out of descriptors, most likely; connections that end give some back.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn converse(stream: UnixStream, requests: mpsc::Sender<Asked>) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        match (&mut read).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(_) if line.ends_with(b"\n") => {}
            _ => return,
        }
        let response = match serde_json::from_slice(&line) {
            Ok(request) => {
                let (reply, answer) = oneshot::channel();
                if requests.send((request, reply)).await.is_err() {
                    return;
                }
                let Ok(response) = answer.await else { return };
                response
            }
            Err(error) => Response::Error { message: format!("not a request to the agent: {error}") },
        };
        let Ok(mut line) = serde_json::to_vec(&response) else { return };
        line.push(b'\n');
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}

struct Server {
    machine: Machine,
    store: Store,
    clock: Arc<dyn Clock>,
    ops: UndoOps,
    waiters: BTreeMap<LeaseKey, Vec<oneshot::Sender<Response>>>,
    ended: mpsc::UnboundedSender<Ended>,
}

impl Server {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Asked>,
        mut endings: mpsc::UnboundedReceiver<Ended>,
    ) -> std::convert::Infallible {
        loop {
            self.tick();
            let pause = self.pause();
            tokio::select! {
                Some((request, reply)) = inbox.recv() => {
                    // Time has passed since the last tick: what lapsed meanwhile comes first.
                    self.tick();
                    let decision = self.machine.request(&request, self.clock.mono());
                    self.answer(decision, reply);
                }
                Some((key, outcome)) = endings.recv() => self.finish(&key, outcome),
                () = async { match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                } } => {}
            }
        }
    }

    fn pause(&self) -> Option<Duration> {
        let wake = self.machine.next_wake()?;
        Some(Duration::from_nanos(wake.since(self.clock.mono())).min(LONGEST_SLEEP))
    }

    fn tick(&mut self) {
        let decision = self.machine.tick(self.clock.mono());
        self.record(decision.events).expect("time alone brings about nothing that must be recorded");
        self.begin(decision.begin);
    }

    fn answer(&mut self, decision: Decision, reply: oneshot::Sender<Response>) {
        if let Err(error) = self.record(decision.events) {
            let message = format!("refused, because it could not be recorded: {error}");
            // Who asked may be gone; then nobody misses the answer.
            let _ = reply.send(Response::Error { message });
            return;
        }
        self.begin(decision.begin);
        match decision.answer {
            Answer::Now(response) => drop(reply.send(response)),
            Answer::WhenUndone(key) => self.waiters.entry(key).or_default().push(reply),
        }
    }

    fn record(&mut self, events: Vec<(Keep, LogEvent)>) -> Result<(), StoreError> {
        for (keep, event) in events {
            let stamp = match keep {
                Keep::Must => self.store.must(event.clone())?,
                Keep::Attempt => self.store.attempt(event.clone()),
                Keep::Memory => self.store.now(),
            };
            self.machine.apply(&stamp, &event, keep);
        }
        Ok(())
    }

    fn begin(&mut self, keys: Vec<LeaseKey>) {
        for key in keys {
            let undo = self.machine.undo(&key).expect("only known leases are begun").clone();
            let (ops, clock, ended) = (self.ops.clone(), self.clock.clone(), self.ended.clone());
            let undoing = tokio::spawn(async move { execute(&undo, &ops, &*clock).await });
            tokio::spawn(async move {
                let outcome = match undoing.await {
                    Ok(outcome) => outcome.map_err(|e| e.to_string()),
                    Err(error) => Err(format!("the undo broke off, which is a bug: {error}")),
                };
                // The actor lives as long as the process.
                let _ = ended.send((key, outcome));
            });
        }
    }

    fn finish(&mut self, key: &LeaseKey, outcome: Result<(), String>) {
        let event = Machine::finished(key, outcome);
        let stamp = self.store.attempt(event.clone());
        self.machine.apply(&stamp, &event, Keep::Attempt);
        let response = self.machine.outcome(key);
        for waiter in self.waiters.remove(key).unwrap_or_default() {
            let _ = waiter.send(response.clone());
        }
    }
}
