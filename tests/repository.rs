//! Rules that hold for the repository as a whole: licences, banned crates, unsafe code, what building needs.

use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines of a list in `ci/`, without comments.
fn listed(name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("ci").join(name)).expect("the list is checked in");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Every package that is built for this platform.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// Whether an SPDX expression can be satisfied with licences from `allowed`.
/// Knows `OR`, `AND`, `WITH`, parentheses, and `/` as cargo's old way of writing OR.
fn satisfiable(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let value = alternatives(&mut rest, allowed);
    value && rest.is_empty()
}

fn alternatives(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut value = conjunction(rest, allowed);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        value |= conjunction(rest, allowed);
    }
    value
}

fn conjunction(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut value = licence(rest, allowed);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        value &= licence(rest, allowed);
    }
    value
}

fn licence(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let Some((first, after)) = rest.split_first() else { return false };
    *rest = after;
    if *first == "(" {
        let value = alternatives(rest, allowed);
        return match rest.split_first() {
            Some((&")", after)) => {
                *rest = after;
                value
            }
            _ => false,
        };
    }
    if let ["WITH", exception, after @ ..] = *rest {
        let with = format!("{first} WITH {exception}");
        *rest = after;
        return allowed.contains(&with);
    }
    allowed.contains(*first)
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed: BTreeSet<String> =
        ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(str::to_owned).into();
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        "GPL-3.0 AND MIT OR Apache-2.0",
    ] {
        assert!(satisfiable(good, &allowed), "{good}");
    }
    for bad in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR GPL-3.0) AND ISC",
        "MIT WITH LLVM-exception",
        "GPL-3.0 AND (MIT OR Apache-2.0)",
        "(MIT",
        "MIT MIT",
        "",
    ] {
        assert!(!satisfiable(bad, &allowed), "{bad}");
    }
}

#[test]
fn every_dependency_has_a_licence_from_the_list() {
    let allowed = listed("allowed-licences.txt");
    let packages = packages();
    assert!(packages.len() > 10, "cargo metadata lists the dependencies");
    let bad: Vec<String> = packages
        .iter()
        .filter(|p| !p["license"].as_str().is_some_and(|l| satisfiable(l, &allowed)))
        .map(|p| format!("{} {}: {}", p["name"], p["version"], p["license"]))
        .collect();
    assert!(bad.is_empty(), "not in ci/allowed-licences.txt:\n{}", bad.join("\n"));
}

#[test]
fn banned_crates_stay_out() {
    let present: BTreeSet<String> =
        packages().iter().filter_map(|p| p["name"].as_str().map(str::to_owned)).collect();
    for line in listed("banned-crates.txt") {
        let (name, why) = line.split_once(char::is_whitespace).expect("a crate and the reason");
        assert!(!present.contains(name), "{name} came in: {}", why.trim());
    }
    assert!(present.contains("ring"), "the names are read");
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_modules_that_are_named_for_it() {
    let named = listed("unsafe-modules.txt");
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    let is_unsafe = |line: &&str| {
        let code = line.split("//").next().unwrap_or("");
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.into_iter().any(|word| word == "unsafe") || code.contains("allow(unsafe_code)")
    };
    let with: BTreeSet<String> = files
        .iter()
        .filter(|path| std::fs::read_to_string(path).expect("reads").lines().any(|l| is_unsafe(&l)))
        .map(|path| path.strip_prefix(root()).expect("below the root").display().to_string())
        .collect();
    assert_eq!(with, named, "left: files with unsafe code; right: ci/unsafe-modules.txt");
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).expect("reads");
    assert!(lib.contains("#![deny(unsafe_code)]"));
}

/// What `ci/packages.sh build` asks Debian's package manager for, on a machine whose protoc behaves as `protoc` does,
/// and whether it is content.
fn asked_for(protoc: &str) -> (String, bool) {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, behaves_as) in [("cc", "true"), ("protoc", protoc), ("apt-get", "echo"), ("sudo", "false")] {
        symlink(Path::new("/bin").join(behaves_as), dir.path().join(name)).expect("links");
    }
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").expect("PATH is set"));
    let script = root().join("ci/packages.sh");
    let mut build = Command::new(script);
    build.arg("build").env("PATH", path).env_remove("PROTOC").env_remove("PROTOC_INCLUDE");
    let run = build.stdin(Stdio::null()).output().expect("runs");
    (String::from_utf8(run.stderr).expect("text"), run.status.success())
}

#[test]
fn a_compiler_of_protocol_buffers_that_lacks_the_well_known_types_is_missing() {
    assert_eq!(asked_for("true"), (String::new(), true));
    let (asked, content) = asked_for("false");
    assert!(asked.contains("libprotobuf-dev protobuf-compiler"), "{asked}");
    assert!(!content, "it still lacks them: {asked}");
}
