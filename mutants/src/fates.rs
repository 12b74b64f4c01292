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
/// Tests that need binaries of etcd, or Go and its modules.
const NEED_MORE: [&str; 2] = [
    "real_snapshots_of_every_version_read_as_etcdutl_reads_them",
    "porcupine::porcupine_comes_to_the_same_result",
];
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

/// Runs every test by itself, with no mutant on. Those that are slow are named and left out.
///
/// # Errors
/// When a test fails: what it would notice is then not known.
pub fn reach(tree: &Path, scratch: &Path, binaries: &[PathBuf]) -> Result<Vec<Test>, String> {
    let mut names = Vec::new();
    for binary in binaries {
        let listed = command(tree, binary).args(["--list", "--format", "terse"]).output();
        let listed = listed.map_err(|e| format!("{}: {e}", binary.display()))?;
        let listed = String::from_utf8(listed.stdout).map_err(|e| format!("{}: {e}", binary.display()))?;
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests = tests.filter(|test| !NEED_MORE.contains(test));
        names.extend(tests.map(|test| (binary.clone(), test.to_owned())));
    }
    let one = |(at, (binary, name)): (usize, &(PathBuf, String))| {
        let file = scratch.join(format!("reach-{at}"));
        let _ = fs::remove_file(&file);
        let begun = Instant::now();
        let mut command = command(tree, binary);
        command.args(["--exact", name]).env("MUTANT_REACH", &file);
        match run(command, SLOW)? {
            Ran::Passed => {}
            Ran::Failed(_) => return Err(format!("{name} fails without any change")),
            Ran::Endless => {
                eprintln!("left out, it takes more than {} s: {name}", SLOW.as_secs());
                return Ok(None);
            }
        }
        // There is none where it reaches nothing.
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let reach = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Some(Test { binary: binary.clone(), name: name.clone(), took: begun.elapsed(), reach }))
    };
    let tests: Result<Vec<Option<Test>>, String> =
        in_parallel(names.iter().enumerate().collect(), one).into_iter().collect();
    Ok(tests?.into_iter().flatten().collect())
}

/// How many mutants of a file each test has killed, by file and name of the test. Tests that killed others of a file
/// are run first.
type Kills = Mutex<BTreeMap<String, BTreeMap<String, usize>>>;

/// What becomes of each of the mutants that are `wanted`; each is `told` as soon as it is known.
///
/// # Errors
/// When a test cannot be run at all.
pub fn fates(
    tree: &Path,
    tests: &[Test],
    mutants: &[Mutant],
    wanted: &[usize],
    told: impl Fn(usize, Fate) + Sync,
) -> Result<BTreeMap<usize, Fate>, String> {
    let done = AtomicUsize::new(0);
    let kills = Kills::default();
    let fates = in_parallel(wanted.to_vec(), |number| {
        let fate = fate(tree, tests, file_of(&mutants[number].key), number, &kills)?;
        told(number, fate);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} of {}", wanted.len());
        }
        Ok((number, fate))
    });
    fates.into_iter().collect()
}

fn fate(tree: &Path, tests: &[Test], file: &str, number: usize, kills: &Kills) -> Result<Fate, String> {
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reach.contains(&number)).collect();
    if reaching.is_empty() {
        return Ok(Fate::Unreached);
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
    for (binary, tests) in [reaching, rest, slow].into_iter().flat_map(batches) {
        let limit = Duration::from_secs(10) + weight(&tests) * 5;
        let mut command = command(tree, binary);
        command.arg("--exact").args(tests.iter().map(|test| &test.name)).env("MUTANT", number.to_string());
        match run(command, limit)? {
            Ran::Passed => {}
            Ran::Failed(names) => {
                let mut kills = kills.lock().expect("no panic");
                let of_file = kills.entry(file.to_owned()).or_default();
                names.into_iter().for_each(|name| *of_file.entry(name).or_default() += 1);
                return Ok(Fate::Killed);
            }
            Ran::Endless => return Ok(Fate::Killed),
        }
    }
    Ok(Fate::Survived)
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
        // Fewer cases than the 256 of proptest, and the same ones every time: a kill must not be luck.
        .env("PROPTEST_CASES", "48")
        .env("PROPTEST_RNG_SEED", "1")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("QUAKEPROOF_OFFLINE", "1")
        // No test that is run here needs a cluster; none may begin to build what one is made of.
        .env("QUAKEPROOF_BIN_DIR", tree.join("no-binaries"))
        .env_remove("QUAKEPROOF_BLESS")
        .env_remove("QUAKEPROOF_SKIPS")
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// How a run of tests ended.
enum Ran {
    Passed,
    /// These failed.
    Failed(Vec<String>),
    /// It was ended after its time.
    Endless,
}

/// Runs tests.
///
/// # Errors
/// When the system does not let them run.
fn run(mut command: Command, limit: Duration) -> Result<Ran, String> {
    let binary = PathBuf::from(command.get_program());
    let told = |e: std::io::Error| format!("{}: {e}", binary.display());
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(told)?;
    let mut stdout = child.stdout.take().expect("it is piped");
    let lines = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let _ = stdout.read_to_end(&mut lines);
        lines
    });
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().map_err(told)? {
            None if begun.elapsed() < limit => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            status => break status,
        }
    };
    if status.is_some_and(|status| status.success()) {
        return Ok(Ran::Passed);
    }
    // With whatever it has started, which may hold its output open.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    if status.is_none() {
        child.wait().map_err(told)?;
        return Ok(Ran::Endless);
    }
    let lines = String::from_utf8_lossy(&lines.join().expect("no panic")).into_owned();
    let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    Ok(Ran::Failed(lines.lines().filter_map(name).collect()))
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
