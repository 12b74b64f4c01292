//! The `quakeproof` binary, also `kubectl quakeproof` when it is on PATH as `kubectl-quakeproof`.

use std::process::ExitCode;

fn main() -> ExitCode {
    quakeproof::cli::main(std::env::args_os().collect()).into()
}
