//! The binary as people, scripts and attackers call it. No cluster is needed.

#[allow(dead_code, reason = "shared with the tests of evidence, which use all of it")]
#[path = "evidence/bundle.rs"]
mod bundle;

use assert_cmd::Command;
use bundle::{bundle, copy_of, reseal};
use quakeproof::clock::FakeClock;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::publish::publish;
use quakeproof::evidence::signature::key::SigningKey;
use quakeproof::guard::lock::DrillLock;
use quakeproof::journal::writer::JournalWriter;
use quakeproof::state::StateDir;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const DRILL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/etcd/restore-without-bump.yaml");

/// Longest that a command without a cluster may take, on a busy machine and without optimisation.
const SOON: Duration = Duration::from_secs(60);

struct Called {
    code: i32,
    out: String,
    err: String,
}

fn command(state: &Path) -> Command {
    let mut command = Command::cargo_bin("quakeproof").unwrap();
    command.env("QUAKEPROOF_STATE", state).env_remove("QUAKEPROOF_BIN_DIR").timeout(SOON);
    command
}

fn call(state: &TempDir, args: &[&str]) -> Called {
    let Output { status, stdout, stderr } = command(state.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let called = Called { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) };
    assert!(!called.err.contains("panicked"), "{args:?}: {}", called.err);
    called
}

fn published() -> (TempDir, RunDir) {
    let (root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    (root, dir)
}

/// A writer whose reader has gone already.
fn broken_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn run_with(state: &Path, args: &[&str], out: Stdio, err: Stdio) -> Option<i32> {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("quakeproof"));
    command.env("QUAKEPROOF_STATE", state).args(args).stdin(Stdio::null()).stdout(out).stderr(err);
    command.status().unwrap().code()
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let run = dir.path().to_str().unwrap();
    let wrong = state.path().join("wrong.yaml");
    fs::write(&wrong, "kind: Drill\n").unwrap();
    for (args, code) in [
        (vec!["plan", DRILL], 0),
        (vec!["plan", DRILL, "--json"], 0),
        (vec!["check", DRILL], 0),
        (vec!["check", DRILL, wrong.to_str().unwrap()], 3),
        (vec!["schema", "journal"], 0),
        (vec!["toolchain", "list"], 0),
        (vec!["cluster", "list"], 0),
        (vec!["runs", "--json"], 0),
        (vec!["show", run], 0),
        (vec!["report", run], 0),
        (vec!["verify", run], 0),
        (vec!["run", "--help"], 0),
    ] {
        assert_eq!(run_with(state.path(), &args, broken_pipe(), Stdio::null()), Some(code), "{args:?}");
    }
}

#[test]
fn talk_that_nobody_can_hear_changes_no_exit_code() {
    let state = TempDir::new().unwrap();
    for (args, code) in [
        (vec!["plan", "none.yaml"], 3),
        (vec!["check", "none.yaml"], 3),
        (vec!["run", "none.yaml"], 3),
        (vec!["verify", "none"], 3),
        (vec!["recover"], 3),
        (vec!["abort"], 3),
        (vec!["cluster", "env", "none"], 5),
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(run_with(state.path(), &args, Stdio::null(), full.into()), Some(code), "{args:?}");
        assert_eq!(run_with(state.path(), &args, Stdio::null(), broken_pipe()), Some(code), "{args:?}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let state = TempDir::new().unwrap();
    for args in [["schema", "report"], ["plan", DRILL], ["cluster", "list"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let code = run_with(state.path(), &args, full.into(), Stdio::null());
        assert_eq!(code, Some(70), "{args:?}");
    }
}

#[test]
fn every_command_says_what_it_does_and_what_its_exit_codes_mean() {
    let state = TempDir::new().unwrap();
    let help = call(&state, &["--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "check",
        "plan",
        "run",
        "recover",
        "abort",
        "runs",
        "show",
        "report",
        "verify",
        "doctor",
        "cluster",
        "toolchain",
    ] {
        assert!(help.out.contains(&format!("\n  {command} ")), "{command} is not listed: {}", help.out);
        let own = call(&state, &[command, "--help"]);
        assert_eq!(own.code, 0, "{command}");
        let documented = own.out.contains("Exit codes: ") || command == "runs";
        assert!(documented, "{command}: {}", own.out);
    }
    assert_eq!(call(&state, &["help", "run"]).code, 0);
    assert_eq!(call(&state, &[]).code, 3);
    assert_eq!(call(&state, &["no-such-command"]).code, 3);
}

#[test]
fn as_a_plugin_of_kubectl_it_goes_by_the_name_that_people_type() {
    let state = TempDir::new().unwrap();
    let plugin = state.path().join("kubectl-quakeproof");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("quakeproof"), &plugin).unwrap();
    let help = |program: &Path| {
        let output = std::process::Command::new(program).args(["run", "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help(&plugin).contains("Usage: kubectl quakeproof run "), "{}", help(&plugin));
    let other = state.path().join("renamed");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("quakeproof"), &other).unwrap();
    assert!(help(&other).contains("Usage: quakeproof run "), "{}", help(&other));
}

#[test]
fn what_is_no_text_or_has_no_end_is_refused_as_a_drill() {
    let state = TempDir::new().unwrap();
    let latin = state.path().join("latin.yaml");
    fs::write(&latin, b"kind: Drill\nmetadata: {name: caf\xe9}\n").unwrap();
    let word = state.path().join("word.yaml");
    fs::write(&word, "a".repeat(900_000)).unwrap();
    let directory = state.path().to_str().unwrap();
    for command in ["check", "plan", "run"] {
        for (path, said) in [
            (latin.to_str().unwrap(), "line 2 is not UTF-8 text"),
            ("/dev/zero", "the file is larger than 1048576 bytes"),
            ("none.yaml", "none.yaml: can't be read: No such file"),
            (word.to_str().unwrap(), "expected a mapping"),
        ] {
            let called = call(&state, &[command, path]);
            assert_eq!(called.code, 3, "{command} {path}");
            assert!(called.err.starts_with("error: ") && called.err.contains(said), "{}", called.err);
            assert!(called.err.len() < 2_000, "{command} {path}: {} bytes", called.err.len());
            assert_eq!(called.out, "");
        }
    }
    assert!(call(&state, &["plan", directory]).err.contains("Is a directory"));
}

#[test]
fn a_call_with_several_drills_never_mixes_with_what_is_there() {
    let state = TempDir::new().unwrap();
    let out = state.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("index.json"), "{}").unwrap();
    let args = ["run", "one.yaml", "two.yaml", "--out", out.to_str().unwrap()];
    let called = call(&state, &args);
    assert_eq!(called.code, 5);
    assert!(called.err.contains("not empty") && called.err.contains("--out"), "{}", called.err);
    assert_eq!(fs::read_to_string(out.join("index.json")).unwrap(), "{}");
    fs::remove_file(out.join("index.json")).unwrap();
    let called = call(&state, &args);
    assert_eq!(called.code, 3);
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("index.json")).unwrap()).unwrap();
    assert_eq!(index["runs"].as_array().unwrap().len(), 2);
    assert_eq!(index["runs"][1]["exitCode"], 3);
}

#[test]
fn a_run_that_has_ended_is_left_as_it_is() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let run = dir.path().to_str().unwrap();
    let orders = dir.histories().join("orders.jsonl");
    fs::remove_file(&orders).unwrap();
    let contents = || {
        let files = dir.files().unwrap().into_iter().chain(["manifest.json".to_owned()]);
        files.map(|f| (fs::read(dir.path().join(&f)).unwrap(), f)).collect::<Vec<_>>()
    };
    let before = contents();
    for command in ["recover", "abort"] {
        let called = call(&state, &[command, run]);
        assert!(called.err.contains("has ended"), "{command}: {}", called.err);
        assert!(before == contents(), "{command} changed the evidence");
    }
    assert_eq!(call(&state, &["verify", run]).code, 6, "what was removed stays missing");
}

#[test]
fn hostile_text_in_a_bundle_stays_text_on_the_terminal() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let text = fs::read_to_string(dir.manifest()).unwrap();
    let hostile = text.replacen("\"formatVersion\": \"1.0\"", "\"formatVersion\": \"\\u001b[2J9.0\"", 1);
    assert_ne!(text, hostile);
    fs::write(dir.manifest(), hostile).unwrap();
    let called = call(&state, &["verify", dir.path().to_str().unwrap()]);
    assert_eq!(called.code, 3);
    assert!(called.err.contains("u{1b}") && !called.err.contains('\u{1b}'), "{:?}", called.err);
}

#[test]
fn a_trap_in_a_bundle_ends_no_command_in_waiting() {
    let state = TempDir::new().unwrap();
    for file in ["manifest.json", "plan.json", "binding.json", "report.json", "histories/orders.jsonl"] {
        let (_root, dir) = published();
        let path = dir.path().join(file);
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let run = dir.path().to_str().unwrap();
        assert_eq!(call(&state, &["verify", run]).code, 6, "{file}");
        for command in [vec!["report", run], vec!["show", run], vec!["runs"]] {
            assert!([0, 3, 6].contains(&call(&state, &command).code), "{file} {command:?}");
        }
    }
}

#[test]
fn a_file_that_grew_beyond_measure_is_found_at_once() {
    let state = TempDir::new().unwrap();
    for file in ["drill.yaml", "plan.json", "binding.json", "report.json", "histories/orders.jsonl"] {
        let (_root, dir) = published();
        fs::File::options().write(true).open(dir.path().join(file)).unwrap().set_len(1 << 40).unwrap();
        let called = call(&state, &["verify", dir.path().to_str().unwrap()]);
        assert_eq!(called.code, 6, "{file}");
        assert!(called.out.contains(file), "{}", called.out);
    }
}

#[test]
fn a_forged_range_of_ids_is_damage_and_no_hunger_for_memory() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let lines = format!(
        "{}{}",
        r#"{"opened":{"client":"greedy","kind":"listReader","identity":"i","target":"api/a","at":"2026-01-01T00:00:00Z","monoNs":1,"boot":"b"}}"#,
        "\n"
    );
    let bomb = r#"{"op":{"seq":1,"boot":"b","callNs":1,"returnNs":2,"op":{"list":{"list":1,"page":0}},"outcome":{"ok":{"revision":5,"ids":"0-50000000"}}}}"#;
    fs::write(dir.histories().join("greedy.jsonl"), format!("{lines}{bomb}\n")).unwrap();
    reseal(&dir);
    let called = call(&state, &["verify", dir.path().to_str().unwrap()]);
    assert_eq!(called.code, 6);
    assert!(called.out.contains("greedy.jsonl line 2") && called.out.contains("ids"), "{}", called.out);
}

#[test]
fn commands_for_a_run_say_so_when_there_is_none() {
    let state = TempDir::new().unwrap();
    for command in ["recover", "abort", "show", "verify", "report"] {
        let called = call(&state, &[command, "no-such-run"]);
        assert_eq!(called.code, 3, "{command}");
        assert!(called.err.contains("hint: `quakeproof runs`"), "{command}: {}", called.err);
    }
    for command in ["recover", "abort"] {
        assert_eq!(call(&state, &[command]).code, 3, "{command}");
    }
    assert_eq!(call(&state, &["runs", "--json"]).out.trim(), "[]");
}

#[test]
fn a_cluster_with_a_hostile_name_is_refused_before_anything_is_made() {
    let state = TempDir::new().unwrap();
    for name in ["../../etc", "a/b", ".", "..", "", "\u{1b}[31m", "UPPER", "with space", &"x".repeat(300)] {
        let called = call(&state, &["cluster", "up", "--", name]);
        assert_eq!(called.code, 3, "cluster up {name:?}: {}", called.err);
        if name == "UPPER" {
            continue;
        }
        for command in ["down", "env", "logs"] {
            let called = call(&state, &["cluster", command, "--", name]);
            assert!([3, 5].contains(&called.code), "cluster {command} {name:?}: {}", called.code);
            assert!(!called.err.contains('\u{1b}'), "{:?}", called.err);
        }
    }
    let made = fs::read_dir(state.path().join("clusters")).unwrap().count();
    assert_eq!(made, 0);
}

#[test]
fn a_cluster_is_not_taken_from_under_a_running_drill() {
    let state = TempDir::new().unwrap();
    let at = StateDir::at(state.path());
    at.create().unwrap();
    let clock = FakeClock::new();
    let dir = state.path().join("run");
    fs::create_dir(&dir).unwrap();
    let lock = DrillLock::acquire(&at, "standing", "run-1", &dir, &clock).unwrap();
    let runner = JournalWriter::create(&dir.join("journal.jsonl"), Arc::new(clock)).unwrap();
    let called = call(&state, &["cluster", "down", "standing"]);
    assert_eq!(called.code, 5, "{}", called.err);
    assert!(called.err.contains("quakeproof abort run-1"), "{}", called.err);
    drop((runner, lock));
    assert_eq!(call(&state, &["cluster", "down", "standing"]).code, 0, "a dead run's cluster may go");
}

/// Files of other tools that bear the names of this one's, and what is of a newer format.
#[test]
fn a_bundle_of_another_tool_or_a_newer_format_is_told_apart_from_a_damaged_one() {
    let state = TempDir::new().unwrap();
    let foreign = [
        ("manifest.json", "{\"schemaVersion\": 2, \"layers\": []}"),
        ("journal.jsonl", "{\"MESSAGE\": \"started\", \"_PID\": \"1\"}\n"),
        ("journal.jsonl", "\u{0}\u{1}binary\n"),
    ];
    for (file, text) in foreign {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(file), text).unwrap();
        for command in ["verify", "report", "show", "recover"] {
            let called = call(&state, &[command, dir.path().to_str().unwrap()]);
            assert_eq!(called.code, 3, "{command} {file}: {}", called.err);
            let said = called.err.contains("was not written by quakeproof") && called.err.contains("hint: ");
            assert!(said || command == "show", "{command} {file}: {}", called.err);
        }
    }
    for file in ["manifest.json", "plan.json", "journal.jsonl"] {
        let (_root, dir) = published();
        let path = dir.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let newer = text.replacen("\"1.0\"", "\"2.0\"", 1);
        assert_ne!(text, newer, "{file}");
        fs::write(&path, newer).unwrap();
        let called = call(&state, &["verify", dir.path().to_str().unwrap()]);
        // A plan of a newer format in a bundle of this one is no such bundle: it was changed.
        assert_eq!(called.code, if file == "plan.json" { 6 } else { 3 }, "{file}: {}", called.err);
    }
    let (_root, dir) = published();
    fs::write(dir.journal(), "{\"MESSAGE\": \"started\"}\n").unwrap();
    assert_eq!(call(&state, &["verify", dir.path().to_str().unwrap()]).code, 6, "damaged, not foreign");
}

#[test]
fn a_report_that_can_not_be_written_is_wrong_usage_with_a_hint() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let out = state.path().join("no-such-directory/report.html");
    let called = call(&state, &["report", dir.path().to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(called.code, 3);
    assert!(called.err.contains("no-such-directory") && called.err.contains("hint: "), "{}", called.err);
}

#[test]
fn keys_are_private_and_never_overwritten() {
    let state = TempDir::new().unwrap();
    let key = state.path().join("team.key");
    let out = ["keygen", "--out", key.to_str().unwrap()];
    let made = call(&state, &out);
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(made.out.trim().len(), 64);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let public = state.path().join("team.key.pub");
    assert_eq!((mode(&key), mode(&public)), (0o600, 0o644));
    let before = (fs::read(&key).unwrap(), fs::read(&public).unwrap());
    for gone in [None, Some(&public), Some(&key)] {
        if let Some(path) = gone {
            fs::remove_file(path).unwrap();
        }
        let again = call(&state, &out);
        assert_eq!(again.code, 3);
        assert!(again.err.contains("hint: "), "{}", again.err);
        assert!(fs::read(&key).is_ok_and(|bytes| bytes == before.0) || gone == Some(&key));
        if let Some(path) = gone {
            assert!(!path.exists(), "half a pair was made");
            fs::write(path, if path == &key { &before.0 } else { &before.1 }).unwrap();
        }
    }
}

#[test]
fn a_run_that_could_not_be_signed_does_not_begin() {
    let state = TempDir::new().unwrap();
    let not_a_key = state.path().join("not-a-key");
    fs::write(&not_a_key, "secret?").unwrap();
    for key in ["no-such-file", not_a_key.to_str().unwrap()] {
        for args in
            [vec!["run", DRILL, "--sign", key], vec!["recover", "--sign", key], vec!["abort", "--sign", key]]
        {
            let called = call(&state, &args);
            assert_eq!(called.code, 3, "{args:?}");
            assert!(called.err.contains(key) && called.err.contains("keygen"), "{}", called.err);
            assert!(!state.path().join("runs").exists(), "something was begun");
        }
    }
}

#[test]
fn verify_asks_for_the_key_that_it_was_given() {
    let state = TempDir::new().unwrap();
    let keys = ["ours", "theirs"].map(|name| {
        let path = state.path().join(name).to_str().unwrap().to_owned();
        (call(&state, &["keygen", "--out", &path]).out.trim().to_owned(), path)
    });
    let key = SigningKey::read(Path::new(&keys[0].1)).unwrap();
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[], Some(&key)).unwrap();
    let run = dir.path().to_str().unwrap();
    let unchecked = call(&state, &["verify", run]);
    assert_eq!(unchecked.code, 0);
    assert!(unchecked.out.contains(&format!("signed by key id {}", keys[0].0)), "{}", unchecked.out);
    for ((_, path), code) in keys.iter().zip([0, 6]) {
        assert_eq!(call(&state, &["verify", run, "--key", &format!("{path}.pub")]).code, code);
    }
    assert_eq!(call(&state, &["verify", run, "--key", &keys[0].1]).code, 3, "that is the private key");
    let json = call(&state, &["verify", run, "--json", "--key", &format!("{}.pub", keys[0].1)]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (json["origin"]["proof"].as_str(), json["origin"]["keyId"].as_str()),
        (Some("proven"), Some(&*keys[0].0))
    );
    publish(&dir, &[], None).unwrap();
    assert_eq!(
        call(&state, &["verify", run, "--key", &format!("{}.pub", keys[0].1)]).code,
        6,
        "nobody signed"
    );
}

#[test]
fn findings_go_from_a_draft_into_the_plan_of_the_next_run() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let run = dir.path().to_str().unwrap();
    StateDir::at(state.path()).create().unwrap();
    StateDir::at(state.path()).register("01990000-0000-7000-8000-00000000000a", dir.path()).unwrap();
    let before = call(&state, &["plan", DRILL]);
    assert!(before.out.contains("none are known here"), "{}", before.out);
    let draft = call(&state, &["findings", "draft", run]);
    assert_eq!(draft.code, 0, "{}", draft.err);
    let finding =
        "findings:\n  - {name: slow, title: it was slow, owner: ops, due: 2027-01-31, scope: all}\n";
    let filled = draft.out.replace("findings: []\n", finding);
    assert_ne!(filled, draft.out, "{}", draft.out);
    let file = state.path().join("filled.yaml");
    fs::write(&file, filled.replace("owner: ops", "owner: ''")).unwrap();
    let attach = ["findings", "attach", run, file.to_str().unwrap()];
    let refused = call(&state, &attach);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains("filled.yaml:") && refused.err.contains("^^"), "{}", refused.err);
    fs::write(&file, &filled).unwrap();
    assert_eq!(call(&state, &attach).code, 0);
    let verified = call(&state, &["verify", run]);
    assert_eq!(verified.code, 0);
    assert!(
        verified.out.contains("findings.yaml: attached later, not part of what was sealed"),
        "{}",
        verified.out
    );
    let plan = call(&state, &["plan", DRILL]);
    assert!(plan.out.contains("Open findings") && plan.out.contains("it was slow"), "{}", plan.out);
    let json = call(&state, &["plan", DRILL, "--json"]);
    assert!(json.err.contains("it was slow") && !json.out.contains("it was slow"));
    let other = call(&state, &["plan", DRILL, "--kubernetes", "v1.30.4"]);
    assert!(!other.out.contains("it was slow"), "other versions");
    let listed = call(&state, &["findings", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed[0]["finding"]["owner"], "ops");
    let markdown = call(&state, &["report", run, "--format", "markdown"]);
    assert!(markdown.out.contains("## Findings") && markdown.out.contains("it was slow"), "{}", markdown.out);
}

#[test]
fn a_run_that_has_ended_is_sealed_again_without_its_cluster_and_signed_by_nobody() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    std::fs::remove_file(dir.manifest()).unwrap();
    let key = state.path().join("key");
    assert_eq!(call(&state, &["keygen", "--out", key.to_str().unwrap()]).code, 0);
    let run = dir.path().to_str().unwrap();
    let refused = call(&state, &["recover", run, "--sign", key.to_str().unwrap()]);
    assert_eq!(refused.code, 5, "{}", refused.err);
    assert!(refused.err.contains("nobody can vouch for them now"), "{}", refused.err);
    assert!(!dir.manifest().exists());
    // Were its binaries needed, there would be none: the cache is empty and nothing may be built.
    let sealed = call(&state, &["recover", run]);
    assert_eq!(sealed.code, 2, "{}", sealed.err);
    assert_eq!(call(&state, &["verify", run]).code, 0);
}

#[test]
fn a_report_never_takes_the_place_of_evidence() {
    let state = TempDir::new().unwrap();
    let (_root, dir) = published();
    let before = std::fs::read(dir.journal()).unwrap();
    for out in [dir.journal(), dir.path().join("new.json")] {
        let run = dir.path().to_str().unwrap();
        let called = call(&state, &["report", run, "--format", "json", "--out", out.to_str().unwrap()]);
        assert_eq!(called.code, 3, "{}", called.err);
        assert!(called.err.contains("evidence is never overwritten"), "{}", called.err);
    }
    assert_eq!(std::fs::read(dir.journal()).unwrap(), before);
    assert_eq!(call(&state, &["verify", dir.path().to_str().unwrap()]).code, 0);
}
