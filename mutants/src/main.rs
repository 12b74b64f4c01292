//! Mutation testing of the code that judges: every change of a comparison, a constant, a condition, a body… is
//! compiled in behind a switch, and the tests that reach it must fail when it is on.
//!
//! Survivors that are known are in `explained.tsv`, with the reason; any other is an error. `results.tsv` in the
//! scratch directory keeps what became of each, so that `--again` runs only those that were not killed before. Beginnings
//! of paths, such as `src/check/apf`, leave out all others.

mod cargo;
mod explained;
mod mutant;
mod site;
mod tests;
mod weave;

use explained::Explained;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use tests::Fate;

/// Folders whose code is changed.
const FOLDERS: [&str; 6] = ["src/apf", "src/chained", "src/check", "src/etcd", "src/journal", "src/timeline"];
/// Suites that need no cluster, beside the tests in the library.
const SUITES: [&str; 11] = [
    "apf",
    "checkers",
    "compare",
    "consistency",
    "drill",
    "evidence",
    "judged",
    "planned",
    "report",
    "samples",
    "snapshot",
];

/// What is asked for on the command line.
struct Asked {
    /// Those that were killed the last time are not run again.
    again: bool,
    /// Only mutants whose keys begin with one of these; none: all.
    beginnings: Vec<String>,
}

impl Asked {
    fn includes(&self, key: &str) -> bool {
        self.beginnings.is_empty() || self.beginnings.iter().any(|beginning| key.starts_with(beginning))
    }
}

fn main() -> ExitCode {
    let (flags, beginnings): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let asked = Asked { again: flags == ["--again"], beginnings };
    if !asked.again && !flags.is_empty() {
        eprintln!("mutants: the only option is --again, and then beginnings of paths, as `src/check/apf`");
        return ExitCode::from(2);
    }
    let repository =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository");
    match run(repository, &asked) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("mutants: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(repository: &Path, asked: &Asked) -> Result<bool, String> {
    let scratch = repository.join("target/mutants");
    let (tree, target, results) = (scratch.join("tree"), scratch.join("target"), scratch.join("results.tsv"));
    let earlier = match fs::read_to_string(&results) {
        Ok(table) => table,
        Err(e) if asked.again => return Err(format!("{}: {e}", results.display())),
        Err(_) => String::new(),
    };
    let killed = if asked.again { killed(&earlier) } else { BTreeSet::new() };
    copy(repository, &tree)?;
    let (sources, mut mutants) = mutant::all(&tree, &FOLDERS)?;
    eprintln!("{} changes", mutants.len());
    cargo::until_it_compiles(&tree, &target, &sources, &mut mutants)?;
    let binaries = cargo::test_binaries(&tree, &target, &SUITES)?;
    let tests = tests::reach(&tree, &scratch, &binaries)?;
    eprintln!("{} tests", tests.len());

    let included = |number: &usize| mutants[*number].compiles && asked.includes(&mutants[*number].key);
    let (known, wanted): (Vec<usize>, Vec<usize>) = (0..mutants.len())
        .filter(included)
        .partition(|&number| killed.contains(mutants[number].key.as_str()));
    let mut fates = tests::fates(&tree, &tests, &mutants, &wanted);
    fates.extend(known.into_iter().map(|number| (number, Fate::Killed)));

    let mut table = String::new();
    let mut figures: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (&number, &fate) in &fates {
        let key = &mutants[number].key;
        let _ = writeln!(table, "{fate:?}\t{key}");
        let folder = FOLDERS.iter().find(|folder| key.starts_with(**folder)).expect("it was found in one");
        figures.entry(folder).or_default()[fate as usize] += 1;
    }
    // What was not asked for this time is as it was.
    let asked_before = |line: &&str| line.split_once('\t').is_some_and(|(_, key)| !asked.includes(key));
    let kept: String = earlier.lines().filter(asked_before).map(|line| format!("{line}\n")).collect();
    fs::write(&results, table + &kept).map_err(|e| format!("{}: {e}", results.display()))?;
    for (folder, [killed, survived, unreached]) in &figures {
        println!("{folder}: {killed} killed, {survived} survived, {unreached} reached by no test");
    }

    let list = fs::read_to_string(repository.join("mutants/explained.tsv"))
        .map_err(|e| format!("explained.tsv: {e}"))?;
    let survivors: Vec<&str> = fates
        .iter()
        .filter(|&(_, &fate)| fate != Fate::Killed)
        .map(|(&number, _)| mutants[number].key.as_str())
        .collect();
    let (new, mut stale) = Explained::read(&list).against(&survivors);
    stale.retain(|line| asked.includes(line));
    for key in &new {
        println!("not explained: {key}");
    }
    for line in &stale {
        println!("explained, but killed or gone: {line}");
    }
    println!(
        "{} explained, {} not explained, {} lines too many",
        survivors.len() - new.len(),
        new.len(),
        stale.len()
    );
    Ok(new.is_empty() && stale.is_empty())
}

/// Keys of the mutants that a table says were killed.
fn killed(table: &str) -> BTreeSet<&str> {
    table.lines().filter_map(|line| line.strip_prefix("Killed\t")).collect()
}

/// Makes `tree` what git knows of the repository as it lies there, with the switch added to the library.
fn copy(repository: &Path, tree: &Path) -> Result<(), String> {
    let script = "rm -rf \"$1\" && mkdir -p \"$1\" && \
                  git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C \"$1\"";
    let status = Command::new("sh").args(["-c", script, "sh"]).arg(tree).current_dir(repository).status();
    if !status.map_err(|e| format!("sh: {e}"))?.success() {
        return Err("the tree could not be copied".to_owned());
    }
    let library = tree.join("src/lib.rs");
    let text = fs::read_to_string(&library).map_err(|e| e.to_string())?;
    // What is woven in is no good style.
    fs::write(&library, format!("#![allow(warnings, arithmetic_overflow)]\n{text}pub mod mutants;\n"))
        .map_err(|e| e.to_string())?;
    fs::write(tree.join("src/mutants.rs"), include_str!("switch.rs")).map_err(|e| e.to_string())
}
