//! The `quakeproof` command.

use clap::Parser;
use quakeproof::cli::cluster::{self, ClusterArgs};
use quakeproof::provider::local;
use quakeproof::state::StateDir;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "quakeproof", version)]
enum Command {
    /// Makes, lists and removes embedded clusters.
    Cluster(ClusterArgs),
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_ref().and_then(|word| word.to_str()) {
        // These leave or enter namespaces, so no other thread may exist yet.
        Some("__supervisor") => return local::supervisor_main(args),
        Some("__agent") => return local::agent_main(args),
        _ => {}
    }
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => {
            let code = if error.use_stderr() {
                quakeproof::exit::ExitCode::Usage
            } else {
                quakeproof::exit::ExitCode::Ok
            };
            return match error.print() {
                Ok(()) => code.into(),
                Err(_) => quakeproof::exit::ExitCode::Internal.into(),
            };
        }
    };
    match command {
        Command::Cluster(args) => match StateDir::locate(|name| std::env::var_os(name)) {
            Ok(state) => cluster::run(args, state.path()).into(),
            Err(error) => {
                eprintln!("error: {error}");
                quakeproof::exit::ExitCode::Refused.into()
            }
        },
    }
}
