//! `quakeproof keygen`: a pair of keys to sign evidence with.

use super::{Failure, output};
use crate::durable::sync_parent;
use crate::evidence::signature::key::SigningKey;
use crate::exit::ExitCode;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Make a pair of ed25519 keys to sign evidence with
///
/// The private key (PKCS#8, PEM) is readable by its owner alone; the public one (PEM) lies beside it with
/// `.pub` behind its name. Nothing is ever overwritten. Prints the key id: the SHA-256 of the public key's
/// DER. Exit codes: 0 made, 3 a file exists already or can't be written.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the private key goes.
    #[arg(long, value_name = "FILE", default_value = "quakeproof.key")]
    out: PathBuf,
}

/// Makes the keys.
///
/// # Errors
/// When a file is there already or can't be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let key = SigningKey::generate().map_err(|e| Failure::new(ExitCode::Internal, &e))?;
    let public_path = beside(&args.out);
    // The public key first: if the private one can't be written, what is left behind is no secret.
    create(&public_path, 0o644, &key.verifying().pem())?;
    if let Err(failure) = create(&args.out, 0o600, key.pem()) {
        let _ = std::fs::remove_file(&public_path);
        return Err(failure);
    }
    output::say(&format!(
        "private key {}: keep it to yourself, `run --sign` takes it\n\
         public key {}: give it to whoever verifies, `verify --key` takes it\n\
         id of the key:",
        args.out.display(),
        public_path.display()
    ));
    Ok(output::print(Ok(format!("{}\n", key.verifying().id()))))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        sync_parent(path)
    };
    write().map_err(|e| Failure {
        exit: ExitCode::Usage,
        message: match (e.kind(), path.parent()) {
            (io::ErrorKind::NotFound, Some(dir)) => {
                format!(
                    "error: there is no directory {}\n  hint: make it, or name another with `--out`",
                    dir.display()
                )
            }
            _ => format!("error: {}: {e}\n  hint: choose another file with `--out`", path.display()),
        },
    })
}
