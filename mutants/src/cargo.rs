//! What cargo makes of the woven tree: which changes it does not compile, and the binaries with the tests.

use crate::mutant::{Mutant, Source};
use crate::weave::Woven;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Leaves out changes until the library compiles. Each round learns of those that the compiler complains about; it
/// stops early in a round, so several are needed.
pub fn until_it_compiles(
    tree: &Path,
    target: &Path,
    sources: &[Source],
    mutants: &mut [Mutant],
) -> Result<(), String> {
    loop {
        let woven: Vec<Woven> = sources.iter().map(|source| source.woven(mutants)).collect();
        for (source, woven) in sources.iter().zip(&woven) {
            // A file that is written anew is compiled anew.
            let failed = |e: std::io::Error| format!("{}: {e}", source.path.display());
            if fs::read_to_string(&source.path).map_err(failed)? != woven.text {
                fs::write(&source.path, &woven.text).map_err(failed)?;
            }
        }
        let (fine, messages) = messages(tree, target, &["check", "--lib"])?;
        if fine {
            return Ok(());
        }
        let mut dropped = 0;
        for message in messages.iter().filter(|m| m["message"]["level"] == "error") {
            for number in blamed(tree, &message["message"], sources, &woven) {
                dropped += usize::from(mutants[number].compiles);
                mutants[number].compiles = false;
            }
        }
        if dropped == 0 {
            let told = rendered(&messages);
            return Err(format!("the tree does not compile, and no change is to blame:\n{told}"));
        }
        eprintln!("{dropped} changes do not compile");
    }
}

/// The changes that an error is about: the one whose text it points at, else all of the innermost site around it.
fn blamed(tree: &Path, message: &Value, sources: &[Source], woven: &[Woven]) -> Vec<usize> {
    let mut blamed = Vec::new();
    let spans = message["spans"].as_array().into_iter().flatten();
    let (primary, others): (Vec<_>, Vec<_>) = spans.partition(|span| span["is_primary"] == true);
    for span in primary.into_iter().chain(others) {
        let Some(name) = span["file_name"].as_str() else { continue };
        let Some(which) = sources.iter().position(|source| source.path == tree.join(name)) else { continue };
        let woven = &woven[which];
        let (start, end) = (offset(&span["byte_start"]), offset(&span["byte_end"]));
        if let Some((_, number)) =
            woven.changes.iter().find(|(range, _)| range.start <= start && end <= range.end)
        {
            return vec![*number];
        }
        let around = woven.sites.iter().filter(|(range, _)| range.start <= start && end <= range.end);
        if let Some((_, numbers)) = around.min_by_key(|(range, _)| range.len())
            && blamed.is_empty()
        {
            blamed.clone_from(numbers);
        }
    }
    blamed
}

/// What the compiler says to people.
fn rendered(messages: &[Value]) -> String {
    messages.iter().filter_map(|message| message["message"]["rendered"].as_str()).collect()
}

fn offset(value: &Value) -> usize {
    value.as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or_default()
}

/// The binaries with the tests: the library's own, and those named.
pub fn test_binaries(tree: &Path, target: &Path, suites: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut arguments = vec!["test", "--no-run", "--lib"];
    arguments.extend(suites.iter().flat_map(|&suite| ["--test", suite]));
    let (fine, messages) = messages(tree, target, &arguments)?;
    if !fine {
        return Err(format!("the tests do not compile with the changes:\n{}", rendered(&messages)));
    }
    let made = messages.iter().filter(|message| message["profile"]["test"] == true);
    Ok(made.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect())
}

fn messages(tree: &Path, target: &Path, arguments: &[&str]) -> Result<(bool, Vec<Value>), String> {
    let output = Command::new("cargo")
        .args(arguments)
        .args(["--locked", "--message-format=json"])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let lines = output.stdout.split(|&byte| byte == b'\n');
    Ok((output.status.success(), lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()))
}
