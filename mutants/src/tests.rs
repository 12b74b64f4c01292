//! Runs tests: once each to learn what it reaches, then, for each mutant, those that reach it.

use crate::mutant::Mutant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A test that takes longer is left out: what it alone would notice has to be explained, or tested by a quicker one.
const SLOW: Duration = Duration::from_secs(20);
/// Tests that are run before all others: most mutants are killed by those that killed others beside them.
const FIRST: usize = 12;

/// One test, how long it takes, and the mutants that it reaches.
pub struct Test {
    binary: PathBuf,
    name: String,
    took: Duration,
    reach: BTreeSet<usize>,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A test failed, or went on for ever.
    Killed,
    /// Every test that reaches it passed.
    Survived,
    /// No test reaches it.
    Unreached,
}

/// Runs every test by itself, with no mutant on. Those that fail or are slow are named and left out.
pub fn reach(tree: &Path, scratch: &Path, binaries: &[PathBuf]) -> Result<Vec<Test>, String> {
    let mut names = Vec::new();
    for binary in binaries {
        let output = command(tree, binary).args(["--list", "--format", "terse"]).output();
        let listed =
            String::from_utf8(output.map_err(|e| e.to_string())?.stdout).map_err(|e| e.to_string())?;
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        names.extend(tests.map(|test| (binary.clone(), test.to_owned())));
    }
    let run = |(at, (binary, name)): (usize, &(PathBuf, String))| {
        let file = scratch.join(format!("reach-{at}"));
        let _ = fs::remove_file(&file);
        let begun = Instant::now();
        let mut command = command(tree, binary);
        command.args(["--exact", name]).env("MUTANT_REACH", &file);
        if run(command, SLOW).is_err() {
            eprintln!("left out, it fails or is slow: {name}");
            return None;
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        let reach = text.lines().filter_map(|line| line.parse().ok()).collect();
        Some(Test { binary: binary.clone(), name: name.clone(), took: begun.elapsed(), reach })
    };
    Ok(in_parallel(names.iter().enumerate().collect(), run).into_iter().flatten().collect())
}

/// How many mutants of a file each test has killed, by file and name of the test. Tests that killed others of a file
/// are run first.
type Kills = Mutex<BTreeMap<String, BTreeMap<String, usize>>>;

/// What becomes of each of the mutants that are `wanted`.
pub fn fates(tree: &Path, tests: &[Test], mutants: &[Mutant], wanted: &[usize]) -> BTreeMap<usize, Fate> {
    let done = AtomicUsize::new(0);
    let kills = Kills::default();
    let told = in_parallel(wanted.to_vec(), |number| {
        let fate = fate(tree, tests, file_of(&mutants[number].key), number, &kills);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} of {}", wanted.len());
        }
        (number, fate)
    });
    told.into_iter().collect()
}

fn fate(tree: &Path, tests: &[Test], file: &str, number: usize, kills: &Kills) -> Fate {
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reach.contains(&number)).collect();
    if reaching.is_empty() {
        return Fate::Unreached;
    }
    let beside = module(file);
    {
        let kills = kills.lock().expect("no panic");
        let of_file = kills.get(file);
        let killed = |test: &Test| of_file.and_then(|of_file| of_file.get(&test.name)).copied().unwrap_or(0);
        reaching.sort_by_key(|test| (Reverse(killed(test)), !test.name.starts_with(&beside), test.took));
    }
    let mut rest = reaching.split_off(reaching.len().min(FIRST));
    rest.sort_by_key(|test| test.took);
    let slow = rest.split_off(rest.len() / 2);
    let survives = [reaching, rest, slow].into_iter().flat_map(batches).all(|(binary, tests)| {
        let limit = Duration::from_secs(10) + weight(&tests) * 5;
        let mut command = command(tree, binary);
        command.arg("--exact").args(tests.iter().map(|test| &test.name)).env("MUTANT", number.to_string());
        let Err(failed) = run(command, limit) else { return true };
        let mut kills = kills.lock().expect("no panic");
        let of_file = kills.entry(file.to_owned()).or_default();
        failed.into_iter().for_each(|name| *of_file.entry(name).or_default() += 1);
        false
    });
    if survives { Fate::Survived } else { Fate::Killed }
}

/// Tests by binary, so that one process runs all of it; the quickest first.
fn batches(tests: Vec<&Test>) -> Vec<(&Path, Vec<&Test>)> {
    let mut of_binary: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
    for test in tests {
        of_binary.entry(&test.binary).or_default().push(test);
    }
    let mut batches: Vec<_> = of_binary.into_iter().collect();
    batches.sort_by_key(|(_, tests)| weight(tests));
    batches
}

fn weight(tests: &[&Test]) -> Duration {
    tests.iter().map(|test| test.took).sum()
}

fn file_of(key: &str) -> &str {
    key.split('\t').next().unwrap_or_default()
}

/// The module that a file is.
fn module(file: &str) -> String {
    let path = file.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    path.replace('/', "::")
}

fn command(tree: &Path, binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .current_dir(tree)
        .env("PROPTEST_CASES", "48")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("QUAKEPROOF_OFFLINE", "1")
        // No test that is run here needs a cluster; none may begin to build what one is made of.
        .env("QUAKEPROOF_BIN_DIR", tree.join("no-binaries"))
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs tests. An error names those that failed; none where the process was killed, because it took too long.
fn run(mut command: Command, limit: Duration) -> Result<(), Vec<String>> {
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else { return Err(Vec::new()) };
    let mut stdout = child.stdout.take().expect("it is piped");
    let told = std::thread::spawn(move || {
        let mut told = Vec::new();
        let _ = stdout.read_to_end(&mut told);
        told
    });
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => break,
            Ok(None) if begun.elapsed() < limit => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            _ => {
                // With whatever it has started.
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
                let _ = child.wait();
                break;
            }
        }
    }
    let told = String::from_utf8_lossy(&told.join().expect("no panic")).into_owned();
    let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    Err(told.lines().filter_map(name).collect())
}

/// Applies `work` to all items, on as many threads as there are processors.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (items, done) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    let Some(item) = items.lock().expect("no panic").next() else { break };
                    let made = work(item);
                    done.lock().expect("no panic").push(made);
                }
            });
        }
    });
    done.into_inner().expect("no panic")
}
