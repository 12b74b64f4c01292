//! One file per command; the only code that prints, reads the environment, or exits.

pub mod abort;
pub mod check;
pub mod cluster;
pub mod compare;
pub mod doctor;
mod environment;
pub mod findings;
pub mod keygen;
mod output;
pub mod plan;
pub mod recover;
pub mod report;
pub mod run;
pub mod runs;
pub mod schema;
mod session;
pub mod show;
pub mod snapshot;
pub mod toolchain;
pub mod verify;

use crate::exit::ExitCode;
use crate::provider::local;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;

/// Chaos and disaster-recovery drills for Kubernetes, with evidence that can be verified offline.
///
/// Exit codes of every command: 0 done, 3 wrong usage or a bad file, 5 refused before anything was
/// harmed, 70 a bug in quakeproof. Of those that judge: 1 an objective missed or a run worse than another,
/// 2 inconclusive, 4 something is left faulted, 6 invalid evidence, 130 interrupted.
/// `quakeproof <COMMAND> --help` has the details.
#[derive(Debug, Parser)]
#[command(name = "quakeproof", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// What a command does stands on its arguments, beside its exit codes.
#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Plan(plan::Args),
    Run(run::Args),
    Recover(recover::Args),
    Abort(abort::Args),
    Runs(runs::RunsArgs),
    Show(show::ShowArgs),
    Report(report::ReportArgs),
    Verify(verify::VerifyArgs),
    Compare(compare::CompareArgs),
    Snapshot(snapshot::SnapshotArgs),
    Findings(findings::Args),
    Keygen(keygen::Args),
    Schema(schema::Args),
    Doctor(doctor::DoctorArgs),
    Cluster(cluster::ClusterArgs),
    Toolchain(toolchain::ToolchainArgs),
}

/// What went wrong, for people, and the exit code for programs.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: ExitCode,
    /// What, and what to do.
    pub message: String,
}

impl Failure {
    /// A failure with this code; the error's sources are told as well.
    pub fn new(exit: ExitCode, error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self { exit, message: format!("error: {message}") }
    }

    /// A failure whose message has its own layout, escaped already.
    pub fn laid_out(exit: ExitCode, message: String) -> Self {
        Self { exit, message }
    }

    fn show(&self) {
        output::say(&self.message);
    }
}

/// Runs the command line and returns the exit code. Processes of an embedded
/// cluster are dispatched first: they join namespaces, which needs a process
/// that has no other thread yet.
#[must_use]
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = part_of_cluster(&args) {
        return code;
    }
    let mut parser = Cli::command().bin_name(called_as(&args));
    let parsed = parser
        .try_get_matches_from_mut(args)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut parser)));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    execute(cli.command).unwrap_or_else(|failure| {
        failure.show();
        failure.exit
    })
}

/// What a person types to come here: kubectl finds its plugins by the names of their files.
fn called_as(args: &[OsString]) -> &'static str {
    let file = args.first().map(Path::new).and_then(Path::file_name);
    match file.and_then(|name| name.to_str()) {
        Some("kubectl-quakeproof") => "kubectl quakeproof",
        _ => "quakeproof",
    }
}

/// Whether this process is to be the supervisor or agent of an embedded cluster.
fn part_of_cluster(args: &[OsString]) -> Option<ExitCode> {
    let role = args.get(1)?.to_str()?;
    let rest = args.iter().skip(2).cloned();
    match role {
        "__supervisor" => Some(local::supervisor_main(rest)),
        "__agent" => Some(local::agent_main(rest)),
        doctor::namespaces::PROBE_COMMAND => Some(doctor::namespaces::probe()),
        _ => None,
    }
}

fn execute(command: Command) -> Result<ExitCode, Failure> {
    let (out, err) = (&mut output::Data, &mut output::Talk);
    let io = |e: std::io::Error| Failure::new(ExitCode::Internal, &e);
    match command {
        Command::Check(args) => check::run(&args, out, err).map_err(io),
        Command::Plan(args) => plan::run(&args, &findings::of_past_runs()?, out, err).map_err(io),
        Command::Findings(args) => findings::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Schema(args) => schema::run(&args, out).map_err(io),
        Command::Doctor(args) => doctor::run(&args, out).map_err(io),
        Command::Run(args) => run::run(&args),
        Command::Recover(args) => recover::run(&args),
        Command::Abort(args) => abort::run(&args),
        Command::Runs(args) => Ok(runs::run(&args, &environment::state_dir()?)),
        Command::Show(args) => Ok(show::run(&args, &environment::state_for(&args.run)?)),
        Command::Report(args) => Ok(report::run(&args, &environment::state_for(&args.run)?)),
        Command::Verify(args) => Ok(verify::run(&args, &environment::state_for(&args.run)?)),
        Command::Compare(args) => Ok(compare::run(&args, &environment::state_for(args.wanted())?)),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Cluster(args) => {
            let state = environment::state_dir()?;
            Ok(cluster::run(args, state.path()))
        }
        Command::Toolchain(args) => toolchain::run(&args).map_err(|e| Failure::new(e.exit_code(), &e)),
    }
}
