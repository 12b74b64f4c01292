//! `run`: carry out drills and judge them.

use super::{Failure, environment, output, plan, session};
use crate::clock::{Clock, SystemClock};
use crate::digest::sha256_hex;
use crate::dispatch::interrupt::Interrupt;
use crate::drill::file;
use crate::durable::write_atomically;
use crate::evidence::layout::RunDir;
use crate::evidence::secrets::KnownSecrets;
use crate::evidence::signature::key::SigningKey;
use crate::exit::ExitCode;
use crate::guard::lock::DrillLock;
use crate::journal::entry::RunOutcome;
use crate::plan::resolve::{PlanError, resolve};
use crate::plan::{Plan, digest};
use crate::report::model::Report;
use crate::runner::lifecycle::{self, RunError, RunRequest};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Run drills and judge them
///
/// Exit codes: 0 every objective met, 1 an objective missed, 2 inconclusive, 3 bad drill or usage,
/// 4 something is left faulted, 5 refused before anything was harmed, 70 internal error,
/// 130 interrupted and everything reverted. Of several drills, the first of 4, 70, 6, 1, 2, 5, 3, 130
/// that occurred.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Drill files.
    #[arg(required = true, value_name = "DRILL")]
    drills: Vec<PathBuf>,
    /// Where the evidence goes: one run in this directory, several in one subdirectory each
    /// with an index.json. Default: the state directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overrides: plan::Overrides,
    /// Keep a cluster that was made for the run, in order and unfaulted.
    #[arg(long)]
    keep_cluster: bool,
    /// What happens while it happens, for programs: one JSON document per line on stdout.
    #[arg(long, value_name = "FORMAT")]
    events: Option<EventFormat>,
    /// Never download anything.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    signing: session::Signing,
}

/// How `--events` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EventFormat {
    /// One JSON document per line.
    Json,
}

/// One drill's end, for the index.
struct Ended {
    drill: PathBuf,
    dir: Option<PathBuf>,
    exit: ExitCode,
}

/// Runs the drills in order.
///
/// # Errors
/// With a single drill: why it could not be run.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let signer = args.signing.key()?;
    let signer = signer.as_ref();
    if let [drill] = args.drills.as_slice() {
        return Ok(run_one(drill, args.out.clone(), args, signer)?.exit);
    }
    if let Some(out) = &args.out {
        make_empty(out)?;
    }
    let names = subdirectories(&args.drills);
    let mut ends = Vec::new();
    for (drill, name) in args.drills.iter().zip(names) {
        let out = args.out.as_ref().map(|out| out.join(name));
        let ended = run_one(drill, out, args, signer).unwrap_or_else(|failure| {
            failure.show();
            Ended { drill: drill.clone(), dir: None, exit: failure.exit }
        });
        let interrupted = ended.exit == ExitCode::Interrupted;
        ends.push(ended);
        // Whoever interrupts means the call, not only the drill at hand.
        if interrupted {
            break;
        }
    }
    let mut codes: Vec<_> = ends.iter().map(|e| e.exit).collect();
    if let Some(out) = &args.out
        && let Err(failure) = write_index(out, &args.drills, &ends)
    {
        failure.show();
        codes.push(failure.exit);
    }
    Ok(ExitCode::merge(&codes))
}

/// One directory holds the runs of one call; an index must not take another's place.
fn make_empty(out: &Path) -> Result<(), Failure> {
    let refused = |what: String| Failure {
        exit: ExitCode::Refused,
        message: format!("error: {}: {what}\n  hint: choose another directory with `--out`", out.display()),
    };
    std::fs::create_dir_all(out).map_err(|e| refused(e.to_string()))?;
    match std::fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(refused("the directory is not empty".to_owned())),
        Err(e) => Err(refused(e.to_string())),
    }
}

/// A name for each drill's run: that of its file, numbered where several share it.
fn subdirectories(drills: &[PathBuf]) -> Vec<OsString> {
    let mut names: Vec<OsString> = Vec::new();
    for drill in drills {
        let stem = drill.file_stem().unwrap_or(OsStr::new("drill"));
        let numbered = (2..).map(|n: u32| {
            let mut name = stem.to_owned();
            name.push(format!("-{n}"));
            name
        });
        let free = std::iter::once(stem.to_owned()).chain(numbered).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

/// A drill that the call did not come to has neither directory nor exit code.
fn write_index(out: &Path, drills: &[PathBuf], ends: &[Ended]) -> Result<(), Failure> {
    let ended = ends.iter().map(|e| json!({"drill": e.drill, "dir": e.dir, "exitCode": e.exit as u8}));
    let left = drills[ends.len()..].iter().map(|d| json!({"drill": d, "dir": null, "exitCode": null}));
    let runs: Vec<_> = ended.chain(left).collect();
    let text = format!("{:#}\n", json!({"formatVersion": "1.0", "runs": runs}));
    let path = out.join("index.json");
    write_atomically(&path, text.as_bytes())
        .map_err(|e| Failure { exit: ExitCode::Internal, message: format!("error: {}: {e}", path.display()) })
}

fn run_one(
    drill: &Path,
    out: Option<PathBuf>,
    args: &Args,
    signer: Option<&SigningKey>,
) -> Result<Ended, Failure> {
    let (text, plan) = resolve_file(drill, &args.overrides)?;
    let state = environment::state_dir()?;
    let id = uuid::Uuid::now_v7().to_string();
    let provider = session::provider(&plan, &state, args.offline)?;
    let cluster = session::cluster_name(&plan, &id);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let refused = |e: &dyn std::error::Error| Failure::new(ExitCode::Refused, e);
    let path = out.unwrap_or_else(|| state.run(&id));
    session::ensure_space(&state, &path)?;
    let dir = RunDir::create(&path).map_err(|e| refused(&e))?;
    let lock = DrillLock::acquire(&state, &cluster, &id, &path, clock.as_ref()).map_err(|e| {
        discard(&dir);
        refused(&e)
    })?;
    let bytes = digest::canonical_bytes(&plan);
    write_atomically(&dir.drill(), text.as_bytes())
        .and_then(|()| write_atomically(&dir.plan(), &bytes))
        .map_err(|e| refused(&e))?;
    state.register(&id, &path).map_err(|e| refused(&e))?;
    let (feed, display) = session::display(&plan, &dir, args.events.is_some());
    let interrupt = Interrupt::new();
    let secrets = KnownSecrets::default();
    let request = RunRequest {
        run: id.clone(),
        plan_digest: sha256_hex(&bytes),
        plan: Arc::new(plan),
        dir: dir.clone(),
        cluster,
        lock,
        provider,
        view: session::view,
        keep_cluster: args.keep_cluster,
        clock,
        watcher: feed.clone(),
        interrupt: interrupt.clone(),
        operator: environment::operator(),
        secrets: secrets.clone(),
    };
    let (end, lock) = environment::runtime()?.block_on(async {
        let signals = tokio::spawn(heed_signals(interrupt, id.clone()));
        let end = lifecycle::run(request).await;
        signals.abort();
        end
    });
    if let Err(error @ RunError::NotBegun(_)) = &end {
        // Nothing was done, so nothing keeps the next run off the cluster.
        lock.release().map_err(|e| refused(&e))?;
        return Err(refused(error));
    }
    let end = end.map_err(|e| Failure {
        exit: ExitCode::Faulted,
        message: format!(
            "{e}\n  hint: what was injected is taken back by now or by the dead-man; \
             `quakeproof recover {id}` finishes the evidence"
        ),
    })?;
    let report = session::finish(&dir, lock, &end, &feed, &secrets, signer)?;
    drop(display);
    if args.events.is_none() {
        session::print_report(&report, &dir);
    }
    let exit = exit_code(end.outcome, session::interrupted_by(&dir).is_some(), &report);
    Ok(Ended { drill: drill.to_path_buf(), dir: Some(path), exit })
}

fn resolve_file(drill: &Path, overrides: &plan::Overrides) -> Result<(String, Plan), Failure> {
    let name = drill.to_string_lossy();
    let usage = |message: String| Failure { exit: ExitCode::Usage, message };
    let text = file::read(drill).map_err(|e| usage(format!("error: {name}: {e}")))?;
    let plan = overrides.input(&name, &text).and_then(resolve).map_err(|error| match &error {
        PlanError::Drill(errors) => Failure::laid_out(error.exit_code(), errors.to_string()),
        other => Failure::new(error.exit_code(), other),
    })?;
    Ok((text, plan))
}

/// Removes a run directory in which nothing was written yet.
fn discard(dir: &RunDir) {
    for below in [dir.agent(), dir.histories(), dir.logs()] {
        let _ = std::fs::remove_dir(below);
    }
    let _ = std::fs::remove_dir(dir.path());
}

/// The exit code of a run that ended.
fn exit_code(outcome: RunOutcome, interrupted: bool, report: &Report) -> ExitCode {
    match outcome {
        RunOutcome::Faulted => ExitCode::Faulted,
        RunOutcome::Refused => ExitCode::Refused,
        RunOutcome::Aborted if interrupted => ExitCode::Interrupted,
        RunOutcome::Aborted | RunOutcome::Completed | RunOutcome::Recovered => session::judged(report),
    }
}

/// The first SIGINT, SIGTERM or SIGHUP ends the run in order; a second SIGINT
/// leaves everything to the dead-man and to `recover`.
async fn heed_signals(interrupt: Interrupt, run: String) {
    let streams =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut int), Ok(mut term), Ok(mut hup)) = streams else { return };
    loop {
        tokio::select! {
            _ = int.recv() => {
                if interrupt.by().is_some() {
                    output::say(&format!(
                        "left as it is; the dead-man reverts what is injected, `quakeproof recover {run}` finishes the evidence"
                    ));
                    std::process::exit(ExitCode::Faulted as i32);
                }
                output::say("ending the fault and finishing the evidence; once more leaves it to `recover`");
                interrupt.ask("SIGINT");
            }
            _ = term.recv() => interrupt.ask("SIGTERM"),
            _ = hup.recv() => interrupt.ask("SIGHUP"),
        }
    }
}
