//! A run from its first journal entry to its last.

use super::cleanup::{Cleanup, emergency};
use super::clients::{self, Clients};
use super::preflight::{self, PreflightError};
use crate::agent::protocol::{Request, Response};
use crate::agent::view::ClusterView;
use crate::client::load::LoadGate;
use crate::clock::Clock;
use crate::dispatch::dispatcher::{Dispatcher, Journalist, Watcher};
use crate::dispatch::interrupt::Interrupt;
use crate::durable::write_atomically;
use crate::evidence::layout::RunDir;
use crate::evidence::redact::copy_log;
use crate::evidence::secrets::KnownSecrets;
use crate::guard::lock::DrillLock;
use crate::guard::{self, GuardError};
use crate::history::kind::ClientKind;
use crate::journal::entry::{DEAD_MAN, JournalEvent, Phase, RunOutcome};
use crate::journal::writer::JournalWriter;
use crate::journal::{self, JournalError};
use crate::plan::{Binding, Plan};
use crate::provider::{Cluster, Provider, ProviderError};
use crate::step::{self, Memory, StepContext, StepError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What a run is given.
pub struct RunRequest {
    /// Run id, UUID version 7.
    pub run: String,
    /// What is carried out.
    pub plan: Arc<Plan>,
    /// SHA-256 of `plan.json`.
    pub plan_digest: String,
    /// Where the evidence goes; `drill.yaml` and `plan.json` are there already.
    pub dir: RunDir,
    /// Name of the cluster in the state directory.
    pub cluster: String,
    /// The lock on that cluster, held.
    pub lock: DrillLock,
    /// Owns the cluster's life cycle.
    pub provider: Arc<dyn Provider>,
    /// Observes a cluster independently of its control.
    pub view: fn(Arc<dyn Cluster>) -> Arc<dyn ClusterView>,
    /// A cluster made for the run is kept after it.
    pub keep_cluster: bool,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// Sees what happens while it happens.
    pub watcher: Arc<dyn Watcher>,
    /// Ends the run early.
    pub interrupt: Interrupt,
    /// User and host name.
    pub operator: String,
    /// Learns the secrets of the cluster while it exists.
    pub secrets: KnownSecrets,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// How it ended (not what it proved).
    pub outcome: RunOutcome,
    /// Why, where it is not `completed`.
    pub reason: Option<String>,
}

/// Why a run could not even be written down.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The journal can't be begun; nothing was done.
    #[error("{0}")]
    NotBegun(#[source] JournalError),
    /// The journal can't be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Why a run did not get to its end.
#[derive(Debug, Error)]
enum Cut {
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("step {step} ({kind}): {error}")]
    Step { step: usize, kind: &'static str, error: StepError },
    #[error("the clients did not see enough before the fault: {0}")]
    Baseline(String),
    #[error("interrupted by {0}")]
    Interrupted(String),
}

/// Carries out a plan. Whatever happens, what was injected is undone or owed to
/// the agent, and the journal says which. An error only when the journal itself
/// can't be written. The lock is given back: it is released once the evidence is complete.
pub async fn run(request: RunRequest) -> (Result<RunEnd, RunError>, DrillLock) {
    let journal = match JournalWriter::create(&request.dir.journal(), Arc::clone(&request.clock)) {
        Ok(journal) => journal,
        Err(error) => return (Err(RunError::NotBegun(error)), request.lock),
    };
    let (dispatcher, journalist) =
        Dispatcher::new(journal, Arc::clone(&request.clock), Arc::clone(&request.watcher));
    let dispatcher = tokio::spawn(dispatcher.run());
    let run = Run { request, journalist };
    let end = run.carry_out().await;
    if end.is_err() {
        let request = &run.request;
        let removable = run.removable();
        emergency(&request.run, &request.cluster, removable, request.provider.as_ref()).await;
    }
    let Run { request, journalist } = run;
    // Without its journalists the dispatcher ends, with the last entry on disk.
    drop(journalist);
    let _ = dispatcher.await;
    (end.map_err(RunError::from), request.lock)
}

struct Run {
    request: RunRequest,
    journalist: Journalist,
}

impl Run {
    /// The cluster was made for the run and is not to be kept.
    fn removable(&self) -> bool {
        self.request.plan.cluster.standing.is_none() && !self.request.keep_cluster
    }

    async fn carry_out(&self) -> Result<RunEnd, JournalError> {
        let request = &self.request;
        self.journalist
            .record(JournalEvent::RunOpened {
                format_version: journal::entry::FORMAT_VERSION.to_owned(),
                run: request.run.clone(),
                drill: request.plan.drill.metadata.name.clone(),
                drill_digest: request.plan.drill_digest.clone(),
                plan_digest: request.plan_digest.clone(),
                tool: format!("quakeproof {}", env!("CARGO_PKG_VERSION")),
                operator: request.operator.clone(),
            })
            .await?;
        let limit =
            tokio::spawn(watch_duration(request.plan.limits.max_duration.0, request.interrupt.clone()));
        let end = match self.provision().await {
            Ok(cluster) => self.on_cluster(cluster).await,
            Err(cut) => self.close_refused(None, &cut).await,
        };
        limit.abort();
        end
    }

    async fn phase(&self, phase: Phase) -> Result<(), JournalError> {
        self.journalist.record(JournalEvent::Phase { phase }).await.map(|_| ())
    }

    /// Attaches to the standing cluster, or makes one: in that case its removal
    /// is owed from before the first effect.
    async fn provision(&self) -> Result<Arc<dyn Cluster>, Cut> {
        self.phase(Phase::Provision).await?;
        let request = &self.request;
        let name = &request.cluster;
        if request.plan.cluster.standing.is_some() {
            return Ok(request.provider.attach(name).await?);
        }
        self.journalist.record(JournalEvent::ClusterCreating { cluster: name.clone() }).await?;
        let told = |line: &str| request.watcher.note(line);
        tokio::select! {
            up = request.provider.up(name, &request.plan.cluster, &told) => Ok(up?),
            by = request.interrupt.asked() => Err(Cut::Interrupted(by)),
        }
    }

    async fn on_cluster(&self, cluster: Arc<dyn Cluster>) -> Result<RunEnd, JournalError> {
        let request = &self.request;
        cluster.secret_files().iter().for_each(|file| request.secrets.learn_file(file));
        let namespace = ledger_namespace(&request.run);
        let binding = match self.preflight(&cluster, &namespace).await {
            Ok(binding) => binding,
            Err(cut) => return self.close_refused(Some(cluster), &cut).await,
        };
        let mut memory = Memory::default();
        let cut = self.disturb(&cluster, &binding, &namespace, &mut memory).await.err();
        self.close(cluster, &namespace, cut).await
    }

    async fn preflight(&self, cluster: &Arc<dyn Cluster>, namespace: &str) -> Result<Binding, Cut> {
        self.phase(Phase::Preflight).await?;
        let request = &self.request;
        let view = (request.view)(Arc::clone(cluster));
        preflight::examine(&request.plan, cluster, view.as_ref(), namespace, &self.journalist).await?;
        let mut binding = cluster.binding().await?;
        binding.ledger_namespace = namespace.to_owned();
        let text = serde_json::to_vec_pretty(&binding).map_err(std::io::Error::from);
        text.and_then(|text| write_atomically(&request.dir.binding(), &text))
            .map_err(|source| ProviderError::Io { what: "write binding.json".to_owned(), source })?;
        self.journalist.record(JournalEvent::Bound { binding: Box::new(binding.clone()) }).await?;
        Ok(binding)
    }

    /// Baseline, steps, recovery and collection. The clients are always ended in order.
    async fn disturb(
        &self,
        cluster: &Arc<dyn Cluster>,
        binding: &Binding,
        namespace: &str,
        memory: &mut Memory,
    ) -> Result<(), Cut> {
        let request = &self.request;
        self.phase(Phase::Baseline).await?;
        let dir = request.dir.path();
        let clients = clients::start(
            &request.plan,
            cluster.as_ref(),
            &self.journalist,
            &request.clock,
            dir,
            namespace,
        )?;
        let renewing = tokio::spawn(renew(
            request.run.clone(),
            Arc::clone(cluster),
            self.journalist.clone(),
            request.plan.limits.dead_man.0 / 4,
            request.interrupt.clone(),
        ));
        let disturbed = self.under_load(cluster, binding, clients.loads(), memory).await;
        if let Some(by) = request.interrupt.by() {
            self.journalist.record(JournalEvent::Interrupted { by }).await?;
        }
        let ended = self.end_clients(clients, disturbed.is_err(), cluster).await;
        renewing.abort();
        disturbed.and(ended)
    }

    async fn under_load(
        &self,
        cluster: &Arc<dyn Cluster>,
        binding: &Binding,
        loads: BTreeMap<String, LoadGate>,
        memory: &mut Memory,
    ) -> Result<(), Cut> {
        self.baseline().await?;
        self.phase(Phase::Steps).await?;
        let request = &self.request;
        let statuses = cluster.control().list().await.map_err(ProviderError::from)?;
        let guard = guard::authorize(&request.plan, &request.cluster, &request.lock, &statuses)?;
        let mut ctx = StepContext {
            run: request.run.clone(),
            plan: Arc::clone(&request.plan),
            cluster: Arc::clone(cluster),
            view: (request.view)(Arc::clone(cluster)),
            journalist: self.journalist.clone(),
            clock: Arc::clone(&request.clock),
            interrupt: request.interrupt.clone(),
            guard,
            loads,
            namespace: binding.ledger_namespace.clone(),
            memory: Memory { incarnations: binding.incarnations.clone(), ..std::mem::take(memory) },
        };
        let done = self.steps(&mut ctx).await;
        *memory = ctx.memory;
        done?;
        self.recovery().await
    }

    /// Until every client has as many good operations as the plan asks for, and the service is good.
    async fn baseline(&self) -> Result<(), Cut> {
        let request = &self.request;
        let mut observations = self.journalist.observations.clone();
        let wait = observations.wait_for(|seen| {
            clients::baseline_reached(&request.plan, seen) && clients::service_good(&request.plan, seen)
        });
        let reached = tokio::select! {
            reached = tokio::time::timeout(request.plan.limits.recovery.0, wait) => matches!(reached, Ok(Ok(_))),
            by = request.interrupt.asked() => return Err(Cut::Interrupted(by)),
        };
        if reached {
            return Ok(());
        }
        let seen = self.journalist.observations.borrow().clone();
        Err(Cut::Baseline(clients::missing_from_baseline(&request.plan, &seen).join("; ")))
    }

    async fn steps(&self, ctx: &mut StepContext) -> Result<(), Cut> {
        let plan = Arc::clone(&ctx.plan);
        for planned in &plan.steps {
            let step = planned.index;
            let kind = planned.step.key();
            self.journalist.record(JournalEvent::StepStarted { step, kind: kind.to_owned() }).await?;
            if let Err(error) = step::execute(planned, ctx).await {
                let reason = error.to_string();
                self.journalist.record(JournalEvent::StepFailed { step, reason }).await?;
                return Err(Cut::Step { step, kind, error });
            }
            self.journalist.record(JournalEvent::StepFinished { step }).await?;
        }
        Ok(())
    }

    /// Waits for sustained good; that it did not come is for the checkers to say.
    async fn recovery(&self) -> Result<(), Cut> {
        self.phase(Phase::Recovery).await?;
        let request = &self.request;
        // Only what is good from here on counts as recovered.
        self.journalist.forget_streaks(request.clock.mono());
        let mut observations = self.journalist.observations.clone();
        let wait = observations.wait_for(|seen| clients::service_good(&request.plan, seen));
        let held = tokio::select! {
            held = tokio::time::timeout(request.plan.limits.recovery.0, wait) => matches!(held, Ok(Ok(_))),
            by = request.interrupt.asked() => return Err(Cut::Interrupted(by)),
        };
        let writes = request.plan.clients.iter().any(|client| client.kind == ClientKind::LedgerWriter);
        let good = if writes { "ready probes and ledger writer" } else { "ready probes" };
        let detail = format!("{good}, sustained");
        let condition = "recovered".to_owned();
        self.journalist.record(JournalEvent::SteadyState { condition, held, detail }).await?;
        Ok(())
    }

    /// Ends the clients. After a cut the fault is undone first, so that the
    /// histories show the cluster recover.
    async fn end_clients(&self, clients: Clients, cut: bool, cluster: &Arc<dyn Cluster>) -> Result<(), Cut> {
        if cut {
            self.cleanup().settle(cluster.as_ref(), "abort").await?;
        }
        self.phase(Phase::Collect).await?;
        clients.stop(&self.journalist, self.request.clock.as_ref()).await;
        for (component, log) in cluster.logs() {
            // A log that can't be copied is missed in the report, not in the verdict.
            let _ = copy_log(&log, &self.request.dir.logs().join(format!("{component}.log")));
        }
        Ok(())
    }

    fn cleanup(&self) -> Cleanup<'_> {
        let request = &self.request;
        Cleanup {
            run: &request.run,
            plan: &request.plan,
            dir: &request.dir,
            cluster: &request.cluster,
            provider: request.provider.as_ref(),
            keep_cluster: request.keep_cluster,
            journalist: &self.journalist,
        }
    }

    async fn close(
        &self,
        cluster: Arc<dyn Cluster>,
        namespace: &str,
        cut: Option<Cut>,
    ) -> Result<RunEnd, JournalError> {
        self.phase(Phase::Cleanup).await?;
        let (mut outcome, mut reason) = match &cut {
            None => (RunOutcome::Completed, None),
            Some(cut) => (RunOutcome::Aborted, Some(cut.to_string())),
        };
        if let Err(failure) = self.cleanup().clean_up(cluster.as_ref(), namespace, "runEnd").await? {
            (outcome, reason) = (RunOutcome::Faulted, Some(failure));
        }
        self.finish(outcome, reason).await
    }

    async fn close_refused(
        &self,
        cluster: Option<Arc<dyn Cluster>>,
        cut: &Cut,
    ) -> Result<RunEnd, JournalError> {
        self.phase(Phase::Cleanup).await?;
        let request = &self.request;
        if let Some(by) = request.interrupt.by() {
            self.journalist.record(JournalEvent::Interrupted { by }).await?;
        }
        let mut outcome =
            if request.interrupt.by().is_some() { RunOutcome::Aborted } else { RunOutcome::Refused };
        let mut reason = cut.to_string();
        let cleaned = match cluster {
            _ if request.plan.cluster.standing.is_none() => self.cleanup().remove_cluster().await?,
            Some(cluster) => {
                let namespace = ledger_namespace(&request.run);
                // On an unhealthy cluster this may fail; nothing was harmed, so it is still a refusal.
                let _ = preflight::remove_namespace(&request.plan, cluster.as_ref(), &namespace).await;
                Ok(())
            }
            None => Ok(()),
        };
        if let Err(failure) = cleaned {
            outcome = RunOutcome::Faulted;
            reason = format!("{reason}; {failure}");
        }
        self.finish(outcome, Some(reason)).await
    }

    async fn finish(&self, outcome: RunOutcome, reason: Option<String>) -> Result<RunEnd, JournalError> {
        self.journalist.record(JournalEvent::RunClosed { outcome, reason: reason.clone() }).await?;
        Ok(RunEnd { outcome, reason })
    }
}

/// Namespace of a run's objects: the random part of the run id, short enough for names.
#[must_use]
pub fn ledger_namespace(run: &str) -> String {
    format!("quakeproof-{}", run.rsplit('-').next().unwrap_or(run))
}

async fn watch_duration(limit: Duration, interrupt: Interrupt) {
    tokio::time::sleep(limit).await;
    interrupt.ask("maxDuration");
}

/// Keeps the leases alive. That it can't is written down; the agent then acts by itself,
/// and a run whose fault was ended without it is ended too.
async fn renew(
    run: String,
    cluster: Arc<dyn Cluster>,
    journalist: Journalist,
    every: Duration,
    interrupt: Interrupt,
) {
    let mut tick = tokio::time::interval(every);
    let mut failing = false;
    loop {
        tick.tick().await;
        let failure = match cluster.agent(&Request::Renew { run: run.clone() }).await {
            Ok(Response::Error { message }) => {
                interrupt.ask(DEAD_MAN);
                Some(message)
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let fails = failure.is_some();
        if let (Some(reason), false) = (failure, failing) {
            let _ = journalist.record(JournalEvent::RenewFailed { reason }).await;
        }
        failing = fails;
    }
}
