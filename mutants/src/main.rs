//! Mutation testing of the code that judges: every change of a comparison, a constant, a condition, a body… is
//! compiled in behind a switch, and the tests that reach it must fail when it is on.
//!
//! Survivors that are known are in `explained.tsv`, with the reason; any other is an error. `results.tsv` in the
//! scratch directory keeps what became of each, so that `--again` runs only those that were not killed before. Beginnings
//! of paths, such as `src/check/apf`, leave out all others. What was killed is known by its text and its place among
//! those alike in its function: a run of all of them has the last word.

mod cargo;
mod explained;
mod fates;
mod mutant;
mod site;
mod weave;

use explained::Explained;
use fates::Fate;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

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
    if !mutants.iter().any(|mutant| asked.includes(&mutant.key)) {
        let (asked, folders) = (asked.beginnings.join(" or "), FOLDERS.join(", "));
        return Err(format!("nothing begins with {asked}: name a folder or a file below {folders}"));
    }
    cargo::until_it_compiles(&tree, &target, &sources, &mut mutants)?;
    let binaries = cargo::test_binaries(&tree, &target, &SUITES)?;
    let tests = fates::reach(&tree, &scratch, &binaries)?;
    let compiled = mutants.iter().filter(|mutant| mutant.compiles).count();
    eprintln!("{compiled} of {} changes compile; {} tests", mutants.len(), tests.len());

    let included = |number: &usize| mutants[*number].compiles && asked.includes(&mutants[*number].key);
    let (known, wanted): (Vec<usize>, Vec<usize>) = (0..mutants.len())
        .filter(included)
        .partition(|&number| killed.contains(mutants[number].key.as_str()));
    let line = |number: usize, fate: Fate| format!("{fate:?}\t{}\n", mutants[number].key);
    // What was not asked for this time is as it was.
    let kept =
        earlier.lines().filter(|line| line.split_once('\t').is_some_and(|(_, key)| !asked.includes(key)));
    let mut begun: String = kept.map(|line| format!("{line}\n")).collect();
    begun.extend(known.iter().map(|&number| line(number, Fate::Killed)));
    let failed = |e: std::io::Error| format!("{}: {e}", results.display());
    fs::write(&results, begun).map_err(failed)?;
    let file = File::options().append(true).open(&results).map_err(failed)?;
    let told =
        |number, fate| (&file).write_all(line(number, fate).as_bytes()).expect("the table can be written");
    let mut fates = fates::fates(&tree, &tests, &mutants, &wanted, told)?;
    fates.extend(known.into_iter().map(|number| (number, Fate::Killed)));
    let fates: Vec<(&str, Fate)> =
        fates.iter().map(|(&number, &fate)| (mutants[number].key.as_str(), fate)).collect();
    print_figures(&fates);
    let list = repository.join("mutants/explained.tsv");
    let list = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    Ok(all_explained(&fates, &list, asked))
}

/// Prints what became of the mutants of each folder.
fn print_figures(fates: &[(&str, Fate)]) {
    let mut figures: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (key, fate) in fates {
        let folder = FOLDERS.iter().find(|folder| key.starts_with(**folder)).expect("it was found in one");
        figures.entry(folder).or_default()[*fate as usize] += 1;
    }
    for (folder, [killed, survived, unreached]) in &figures {
        println!("{folder}: {killed} killed, {survived} survived, {unreached} reached by no test");
    }
}

/// Whether the list explains all that were not killed, and nothing else that was asked for; prints what differs.
fn all_explained(fates: &[(&str, Fate)], list: &str, asked: &Asked) -> bool {
    let survivors: Vec<&str> =
        fates.iter().filter(|(_, fate)| *fate != Fate::Killed).map(|(key, _)| *key).collect();
    let (new, mut stale) = Explained::read(list).against(&survivors);
    stale.retain(|line| asked.includes(line));
    for key in &new {
        println!("not explained: {key}");
    }
    for line in &stale {
        println!("explained, but killed or gone: {line}");
    }
    let explained = survivors.len() - new.len();
    println!("{explained} explained, {} not explained, {} lines too many", new.len(), stale.len());
    new.is_empty() && stale.is_empty()
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
    let failed = |e: std::io::Error| format!("{}: {e}", tree.display());
    let library = tree.join("src/lib.rs");
    let text = fs::read_to_string(&library).map_err(failed)?;
    // What is woven in is no good style.
    let text = format!("#![allow(warnings, arithmetic_overflow)]\n{text}pub mod mutants;\n");
    fs::write(&library, text).map_err(failed)?;
    fs::write(tree.join("src/mutants.rs"), include_str!("switch.rs")).map_err(failed)
}
