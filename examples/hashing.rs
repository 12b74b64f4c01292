//! Digests of files as evidence takes them, printed as `sha256sum` does: what `benches/hashing.sh` times.

use std::process::ExitCode;

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        match quakeproof::digest::sha256_of_file(path.as_ref()) {
            Ok((_, digest)) => println!("{digest}  {path}"),
            Err(e) => {
                eprintln!("{path}: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
