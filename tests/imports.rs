//! Which folder of `src/` may import which: data flows one way, and who judges sees neither clusters nor clients.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Small things that every folder may use.
const EVERYWHERE: &str =
    "clock digest durable escape exit regular_file unix_socket version component::capability";

/// Folder: what it may import, whole folders or single modules of them. Below come those above.
const MAY_IMPORT: [(&str, &str); 30] = [
    // Words and bytes.
    ("chained", ""),
    ("component", ""),
    ("apf", ""),
    ("history", "apf::answer chained::lines"),
    ("ledger", ""),
    ("wire", "component history::record"),
    ("agent", "chained component"),
    // What a drill says, and what follows from it. `drill::spec` names every kind, see `KINDS`.
    ("drill", "apf check client fault probe step"),
    (
        "plan",
        "agent::undo apf check client component drill fault history::kind probe provider::binaries step::bump \
         step::restart wire::failure",
    ),
    ("journal", "agent::undo chained component plan"),
    ("state", "journal"),
    ("guard", "component drill::spec journal plan state"),
    // What is done to clusters, and who lives through it.
    ("load", "apf::answer drill::values history::record wire"),
    ("etcd", "component::network ledger wire"),
    ("provider", "agent component drill::spec etcd plan wire"),
    ("client", "component drill::lint drill::values etcd history ledger load plan wire"),
    ("probe", "client component drill::spec drill::values etcd history load::pacer provider wire"),
    ("dispatch", "client::context drill::spec history journal"),
    ("fault", "agent apf component drill::lint drill::spec drill::suggest guard plan step::kind"),
    (
        "step",
        "agent apf client component dispatch drill etcd::snapshot fault guard history::kind journal load plan \
         provider wire::connection",
    ),
    (
        "runner",
        "agent client component dispatch drill::spec evidence fault guard history journal ledger plan probe provider \
         step wire::http",
    ),
    // Who judges: the plan, the journal and the histories, and the words in which they are written.
    ("timeline", "agent::log agent::undo component drill::spec history journal::entry plan"),
    (
        "check",
        "apf client::load_spec component drill fault::apf_level history journal::entry plan step::bump \
         step::injection_id step::observe timeline wire::failure",
    ),
    ("report", "apf::range check fault::apf_level history journal::entry plan timeline"),
    ("compare", "apf::range check journal::entry plan report timeline"),
    ("evidence", "agent::log chained::format findings history journal plan report timeline"),
    ("findings", "drill::lint drill::parse drill::problem drill::source evidence plan"),
    // What people see.
    ("progress", "check client::context dispatch journal::entry plan report::figure"),
    ("schema", "drill::spec findings journal::entry report"),
    (
        "cli",
        "agent::view check compare component dispatch::interrupt drill etcd::snapshot evidence findings guard \
         journal plan progress provider report runner schema state",
    ),
];

/// Folders that import each other. A kind of step, client or objective has one file, with its spec, what it needs of a
/// drill, and what it does; `drill::spec` lists the specs. Each other pair is a debt and says which.
const BOTH_WAYS: [(&str, &str); 12] = [
    ("check", "drill"),
    ("check", "plan"),
    ("client", "drill"),
    ("client", "plan"),
    ("drill", "fault"),
    ("drill", "probe"),
    ("drill", "step"),
    ("fault", "plan"),
    ("fault", "step"),
    ("plan", "step"),
    // The versions that are pinned are a table of `provider::binaries`.
    ("plan", "provider"),
    // `verify` says what is attached to a bundle.
    ("evidence", "findings"),
];

/// Folder → what it imports, as `folder::module` or `folder`, and a file that does.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn no_folder_imports_what_it_may_not() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> = MAY_IMPORT
        .iter()
        .map(|(folder, may)| (*folder, may.split_whitespace().chain(EVERYWHERE.split_whitespace()).collect()))
        .collect();
    // What everybody may use uses nothing but its like.
    let leaves: BTreeSet<&str> = EVERYWHERE.split_whitespace().collect();
    let mut wrong = Vec::new();
    for (folder, imports) in imports() {
        let leaf = EVERYWHERE.split_whitespace().any(|leaf| leaf == folder);
        let Some(may) = allowed.get(folder.as_str()).or(leaf.then_some(&leaves)) else {
            wrong.push(format!("`{folder}` is not in MAY_IMPORT"));
            continue;
        };
        for (import, file) in imports {
            let whole = import.split("::").next().unwrap_or_default();
            if !may.contains(import.as_str()) && !may.contains(whole) {
                wrong.push(format!("src/{file}: `{folder}` may not import `{import}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_permission_is_left_that_nobody_needs() {
    let imports = imports();
    let mut idle = Vec::new();
    for (folder, may) in MAY_IMPORT {
        let used = imports.get(folder);
        let needs = |permission: &str| {
            used.is_some_and(|used| {
                used.keys()
                    .any(|import| import == permission || import.starts_with(&format!("{permission}::")))
            })
        };
        idle.extend(may.split_whitespace().filter(|p| !needs(p)).map(|p| format!("{folder}: {p}")));
    }
    assert!(idle.is_empty(), "nobody needs: {}", idle.join(", "));
}

#[test]
fn folders_that_import_each_other_are_known() {
    let imports = imports();
    let imports_of = |a: &str, b: &str| {
        imports.get(a).is_some_and(|used| used.keys().any(|import| import.split("::").next() == Some(b)))
    };
    let mut found = BTreeSet::new();
    for a in imports.keys() {
        for b in imports.keys().filter(|b| a < b) {
            if imports_of(a, b) && imports_of(b, a) {
                found.insert((a.as_str(), b.as_str()));
            }
        }
    }
    assert_eq!(found, BOTH_WAYS.into_iter().collect());
}

#[test]
fn imports_are_found_however_they_are_written() {
    let source = "use crate::a::b::C;\nuse crate::{d::{self, e::F}, g};\nfn f() { crate::h::i::<u8>(); }\n\
                  // crate::comment::x\n#[cfg(test)]\nmod tests {\nuse crate::test::only;\n}";
    let found: Vec<String> = imported_by(source).into_iter().collect();
    assert_eq!(found, ["a::b", "d::e", "d::self", "g", "h::i"]);
}

fn imports() -> Imports {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Imports::new();
    visit(&root, &root, &mut all);
    all
}

fn visit(root: &Path, dir: &Path, all: &mut Imports) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(root, &path, all);
            continue;
        }
        let file = path.strip_prefix(root).unwrap().display().to_string();
        if !file.ends_with(".rs") || is_test(&file) || ["lib.rs", "main.rs"].contains(&file.as_str()) {
            continue;
        }
        let folder = file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        let own = all.entry(folder.clone()).or_default();
        for import in imported_by(&fs::read_to_string(&path).unwrap()) {
            if import.split("::").next() != Some(folder.as_str()) {
                own.entry(import).or_insert_with(|| file.clone());
            }
        }
    }
}

fn is_test(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name == "tests.rs"
        || name.ends_with("_tests.rs")
        || name.ends_with("_properties.rs")
        || file == "journal/samples.rs"
}

/// First two parts of every path that begins with `crate`, outside of comments and tests.
fn imported_by(source: &str) -> BTreeSet<String> {
    let begins_tests = |at: &(usize, &str)| {
        let next = source[at.0..].lines().nth(1).unwrap_or_default();
        next.contains("mod ") && next.ends_with('{')
    };
    let end = source.match_indices("#[cfg(test)]").find(begins_tests).map_or(source.len(), |(at, _)| at);
    let code = &source[..end];
    let code: String =
        code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        expand(&[], part, &mut found);
    }
    found
}

/// Reads one path, or a group in braces, after `prefix`; returns what follows it.
fn expand<'a>(prefix: &[&'a str], text: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('}') {
                return after;
            }
            let before = rest.len();
            rest = expand(prefix, rest, found).trim_start();
            // A name that was given another one.
            if let Some(renamed) = rest.strip_prefix("as ") {
                rest = renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start();
            }
            rest = rest.strip_prefix(',').unwrap_or(rest);
            if rest.len() == before {
                return rest;
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path: Vec<&str> = prefix.iter().copied().chain([name]).collect();
    match rest.strip_prefix("::") {
        Some(deeper) if deeper.starts_with('{') || deeper.starts_with(|c: char| c.is_alphabetic()) => {
            expand(&path, deeper, found)
        }
        _ => {
            let modules = path.iter().filter(|part| part.starts_with(|c: char| c.is_lowercase()));
            let known: Vec<&str> = modules.copied().take(2).collect();
            if !known.is_empty() {
                found.insert(known.join("::"));
            }
            rest
        }
    }
}
