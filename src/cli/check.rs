//! `quakeproof check`: lints drill files; needs no cluster.

use crate::drill::{self, parameters::ParameterValues};
use crate::escape;
use crate::exit::ExitCode;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check drill files; needs no cluster
///
/// Exit codes: 0 every file is a good drill, 3 one is not. Warnings don't fail.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Drill files, or directories of them (every `*.yaml` and `*.yml` below).
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
}

/// Checks every file with its defaults and with each of its profiles. Verdicts go to
/// `out`, what is wrong to `err`. Warnings don't fail.
///
/// # Errors
/// When `out` or `err` can't be written to.
pub fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<ExitCode> {
    let mut code = ExitCode::Ok;
    for path in &args.paths {
        let files = match drill_files(path) {
            Ok(files) => files,
            Err(reason) => {
                writeln!(err, "error: {}: {}", shown(path), escape::terminal(&reason))?;
                code = ExitCode::Usage;
                continue;
            }
        };
        for file in files {
            if !check_file(&file, out, err)? {
                code = ExitCode::Usage;
            }
        }
    }
    Ok(code)
}

fn check_file(path: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let text = match drill::file::read(path) {
        Ok(text) => text,
        Err(e) => {
            writeln!(err, "error: {}: {e}", shown(path))?;
            return Ok(false);
        }
    };
    let name = path.to_string_lossy();
    let loaded = match drill::load(&name, &text, &ParameterValues::default()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            writeln!(err, "{errors}")?;
            return Ok(false);
        }
    };
    for warning in &loaded.warnings {
        writeln!(err, "{}", warning.render(&name, &text))?;
    }
    for profile in loaded.drill.spec.profiles.keys() {
        let values = ParameterValues { profile: Some(profile.clone()), ..ParameterValues::default() };
        if let Err(errors) = drill::load(&name, &text, &values) {
            writeln!(err, "with profile `{}`:\n{errors}", escape::terminal(profile))?;
            return Ok(false);
        }
    }
    writeln!(out, "{}: ok", shown(path))?;
    Ok(true)
}

/// The file itself, or every drill file below a directory, in order of name.
fn drill_files(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, &mut files, 0).map_err(|e| format!("can't be listed: {e}"))?;
    if files.is_empty() {
        return Err("no drill file (`*.yaml`, `*.yml`) in this directory".to_owned());
    }
    files.sort();
    Ok(files)
}

/// Deepest nesting of directories that is followed.
const MAX_DEPTH: usize = 16;

fn collect(dir: &Path, files: &mut Vec<PathBuf>, depth: usize) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let (entry, path) = entry.map(|e| (e.file_type(), e.path()))?;
        if entry?.is_dir() {
            if depth < MAX_DEPTH {
                collect(&path, files, depth + 1)?;
            }
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "yml") && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    escape::terminal(&path.to_string_lossy()).into_owned()
}
