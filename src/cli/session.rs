//! What `run`, `recover` and `abort` share: a provider, a display, the end of a run.

use super::{Failure, environment, output, toolchain};
use crate::agent::view::ClusterView;
use crate::check::Verdict;
use crate::clock::SystemClock;
use crate::evidence::layout::RunDir;
use crate::evidence::load::{load_with_head, read_plan};
use crate::evidence::publish::publish;
use crate::evidence::secrets::KnownSecrets;
use crate::evidence::signature::key::SigningKey;
use crate::exit::ExitCode;
use crate::guard::lock::DrillLock;
use crate::journal::entry::{DEAD_MAN, RunOutcome};
use crate::journal::{reader, summary::RunSummary, writer};
use crate::plan::Plan;
use crate::progress::{Display, EventKind, Feed, Mode};
use crate::provider::binaries;
use crate::provider::live_view::LiveView;
use crate::provider::local::LocalProvider;
use crate::provider::{Cluster, Provider};
use crate::report::model::Report;
use crate::report::prepare;
use crate::report::terminal::{self, Options};
use crate::runner::lifecycle::RunEnd;
use crate::runner::recover::{RecoverRequest, recover};
use crate::state::StateDir;
use crate::state::runs::RunState;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Space that a cluster needs at least: a snapshot, and etcd's data twice.
const CLUSTER_BYTES: u64 = 1 << 30;
/// Space that the evidence of the shortest drill needs.
const EVIDENCE_BYTES: u64 = 2 << 20;

/// Who vouches for the evidence of a run; the same for whatever ends one.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Signing {
    /// Signs the evidence with this ed25519 private key (PEM, see `keygen`); it is read before anything is done.
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
}

impl Signing {
    /// The key, if one was asked for. A run that could not be signed in the end must not begin.
    pub fn key(&self) -> Result<Option<SigningKey>, Failure> {
        let read = self.sign.as_deref().map(SigningKey::read).transpose();
        read.map_err(|e| Failure::new(ExitCode::Usage, &e))
    }
}

/// A run that is on disk.
pub struct Found {
    /// Run id.
    pub id: String,
    /// Its evidence.
    pub dir: RunDir,
    /// What was carried out.
    pub plan: Plan,
}

/// Refuses a run that the disk has no room for. Ending one needs next to none and is never refused.
pub fn ensure_space(state: &StateDir, evidence: &Path) -> Result<(), Failure> {
    state
        .ensure_space(CLUSTER_BYTES)
        .and_then(|()| crate::state::ensure_space(evidence, EVIDENCE_BYTES))
        .map_err(|e| Failure::new(ExitCode::Refused, &e))
}

/// The provider of a plan's cluster, with the binaries that it needs.
pub fn provider(plan: &Plan, state: &StateDir, offline: bool) -> Result<Arc<dyn Provider>, Failure> {
    let options = toolchain::options_from_env(offline);
    let set = binaries::provide(&plan.cluster.versions, &options, &output::say)
        .map_err(|e| Failure::new(e.exit_code(), &e))?;
    let local = LocalProvider::new(state.path(), set).map_err(|e| Failure::new(ExitCode::Internal, &e))?;
    Ok(Arc::new(local))
}

/// Name of the cluster in the state directory: the standing one, or one of the run's own.
pub fn cluster_name(plan: &Plan, run: &str) -> String {
    let own = || format!("drill-{}", run.rsplit('-').next().unwrap_or(run));
    plan.cluster.standing.clone().unwrap_or_else(own)
}

/// Observes a cluster independently of its control.
pub fn view(cluster: Arc<dyn Cluster>) -> Arc<dyn ClusterView> {
    Arc::new(LiveView::new(cluster))
}

/// A live display of a run.
pub fn display(plan: &Plan, dir: &RunDir, json: bool) -> (Arc<Feed>, Display) {
    let mode = Mode::choose(json, environment::lively(), false);
    let (handle, display) = Display::start(mode, Arc::new(SystemClock::new()));
    (Arc::new(Feed::new(handle, plan, dir.path().display().to_string())), display)
}

/// Finds a run by id, unique prefix or directory; without a name, the only one that did not end.
pub fn find_run(state: &StateDir, wanted: Option<&str>) -> Result<Found, Failure> {
    let path = match wanted {
        Some(wanted) => state.resolve_run(wanted),
        None => state.only_run(&[RunState::Running, RunState::Unfinished]),
    };
    let path = path.map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    let dir = RunDir::open(&path).map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    let journal = reader::read(&dir.journal()).map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    let plan = read_plan(&dir).map_err(|e| Failure::new(ExitCode::Usage, &e))?;
    Ok(Found { id: RunSummary::of(&journal.entries).run, dir, plan })
}

/// Whether the run's journal is being written by a living process.
pub fn is_alive(found: &Found) -> Result<bool, Failure> {
    writer::is_being_written(&found.dir.journal()).map_err(|e| Failure::new(ExitCode::Refused, &e))
}

/// The report of a run that has ended and was sealed: `None` while there is anything left to end. Its
/// bundle is evidence by now, and to seal it anew would make whatever was done to it since look genuine.
pub fn sealed(found: &Found) -> Result<Option<(RunOutcome, Report)>, Failure> {
    let damaged = |e: &dyn std::error::Error| Failure::new(ExitCode::Invalid, e);
    let loaded = load_with_head(found.dir.path()).map_err(|e| damaged(&e))?;
    let summary = RunSummary::of(&loaded.input.journal);
    match summary.closed.as_ref().map(|closed| closed.outcome) {
        Some(outcome) if summary.is_settled() && found.dir.manifest().exists() => {
            output::say(&format!("run {} has ended already; nothing was changed", found.id));
            Ok(Some((outcome, prepare(&loaded.input, &loaded.journal_head).report)))
        }
        _ => Ok(None),
    }
}

/// How the run ended; `None` while it was not closed.
pub fn outcome(found: &Found) -> Option<RunOutcome> {
    let journal = reader::read(&found.dir.journal()).ok()?;
    RunSummary::of(&journal.entries).closed.map(|closed| closed.outcome)
}

/// Ends a run whose runner is gone, judges it and writes its reports.
pub fn end_run(
    state: &StateDir,
    found: &Found,
    keep_cluster: bool,
    by: &'static str,
    signer: Option<&SigningKey>,
) -> Result<(RunEnd, Report), Failure> {
    let ended = ended(found)?;
    if ended.is_some() && signer.is_some() {
        return Err(Failure::laid_out(
            ExitCode::Refused,
            "error: this run has ended already: what was done to its files since can't be told, so that nobody \
             can vouch for them now\n  hint: `run --sign` signs when a run ends; without `--sign` the bundle is sealed unsigned"
                .to_owned(),
        ));
    }
    let cluster = cluster_name(&found.plan, &found.id);
    let clock = Arc::new(SystemClock::new());
    let path = found.dir.path();
    let lock = DrillLock::adopt(state, &cluster, &found.id, path, clock.as_ref())
        .map_err(|e| Failure::new(ExitCode::Refused, &e))?;
    let secrets = KnownSecrets::default();
    let shown = || display(&found.plan, &found.dir, false);
    let (end, (feed, display)) = match ended {
        // It owes nothing: neither its cluster nor binaries for one are needed.
        Some(end) => (end, shown()),
        None => {
            let provider = provider(&found.plan, state, true)?;
            let (feed, display) = shown();
            let request = RecoverRequest {
                run: found.id.clone(),
                plan: Arc::new(found.plan.clone()),
                dir: found.dir.clone(),
                cluster,
                provider,
                keep_cluster,
                clock,
                watcher: feed.clone(),
                by,
                secrets: secrets.clone(),
            };
            let end = environment::runtime()?.block_on(recover(request));
            (end.map_err(|e| Failure::new(ExitCode::Refused, &e))?, (feed, display))
        }
    };
    let report = finish(&found.dir, lock, &end, &feed, &secrets, signer)?;
    drop(display);
    Ok((end, report))
}

/// How a run ended that was closed and owes nothing; its bundle may not be finished. `None` for any other.
fn ended(found: &Found) -> Result<Option<RunEnd>, Failure> {
    let journal = reader::read(&found.dir.journal()).map_err(|e| Failure::new(ExitCode::Invalid, &e))?;
    let summary = RunSummary::of(&journal.entries);
    let settled = summary.is_settled();
    Ok(summary
        .closed
        .filter(|_| settled)
        .map(|closed| RunEnd { outcome: closed.outcome, reason: closed.reason }))
}

/// Judges a run, writes its reports and frees the cluster, unless something is left faulted.
pub fn finish(
    dir: &RunDir,
    lock: DrillLock,
    end: &RunEnd,
    feed: &Feed,
    secrets: &KnownSecrets,
    signer: Option<&SigningKey>,
) -> Result<Report, Failure> {
    if let Some(key) = signer {
        secrets.learn(key.pem());
    }
    let known = secrets.texts();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let report = publish(dir, &known, signer).map_err(|e| Failure::new(ExitCode::Internal, &e))?;
    if end.outcome != RunOutcome::Faulted {
        lock.release().map_err(|e| Failure::new(ExitCode::Internal, &e))?;
    }
    let text = report.summary.clone();
    feed.send(EventKind::Finished { outcome: end.outcome, verdict: report.verdict, text });
    Ok(report)
}

/// Prints the report, and where the rest of it is.
pub fn print_report(report: &Report, dir: &RunDir) {
    let options = Options { colour: environment::colour(), width: environment::columns() };
    let text = format!(
        "{}\n  report    {}\n  verify    quakeproof verify {}\n",
        terminal::render(report, options),
        shown(dir.report_html()),
        shown(dir.path().to_owned())
    );
    output::print(Ok(text));
}

fn shown(path: PathBuf) -> String {
    crate::escape::terminal(&path.display().to_string()).into_owned()
}

/// The exit code of what a run proved.
pub fn judged(report: &Report) -> ExitCode {
    match report.verdict {
        Some(Verdict::Pass) => ExitCode::Ok,
        Some(Verdict::Fail) => ExitCode::Missed,
        Some(Verdict::Inconclusive) | None => ExitCode::Inconclusive,
    }
}

/// Who asked the run to end; `None` when nobody did, or only its own time limit or lease.
pub fn interrupted_by(dir: &RunDir) -> Option<String> {
    let journal = reader::read(&dir.journal()).ok()?;
    RunSummary::of(&journal.entries).interrupted_by.filter(|by| by != "maxDuration" && by != DEAD_MAN)
}
