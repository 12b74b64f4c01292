//! Whatever is changed in a bundle, verification fails and names the file.

use crate::bundle::{bundle, copy_of, judge_and_reseal, reseal, verified, verified_by};
use proptest::prelude::*;
use proptest::sample::Index;
use quakeproof::clock::FakeClock;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::load::load;
use quakeproof::evidence::manifest::seal;
use quakeproof::evidence::publish::publish;
use quakeproof::evidence::{EvidenceError, secrets};
use quakeproof::exit::ExitCode;
use quakeproof::journal::entry::JournalEvent;
use quakeproof::journal::reader;
use quakeproof::journal::writer::JournalWriter;
use std::fs;
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;

static BUNDLE: LazyLock<TempDir> = LazyLock::new(bundle);

const FILES: [&str; 8] = [
    "journal.jsonl",
    "histories/orders.jsonl",
    "histories/reader.jsonl",
    "plan.json",
    "drill.yaml",
    "binding.json",
    "report.json",
    "agent/main.jsonl",
];

/// Files whose contents are vouched for by something else than the manifest.
const CROSS_CHECKED: [&str; 6] = [
    "histories/orders.jsonl",
    "histories/reader.jsonl",
    "plan.json",
    "drill.yaml",
    "binding.json",
    "report.json",
];

/// The first difference must name the file; a bundle that can't be read at all must as well.
fn assert_names(dir: &RunDir, file: &str) -> Result<(), TestCaseError> {
    let said = match verified(dir.path()) {
        Ok(report) => {
            prop_assert!(!report.is_valid(), "{file} was changed and nobody noticed");
            report.first_difference.unwrap_or_default()
        }
        Err(e) => e.to_string(),
    };
    prop_assert!(said.contains(file), "{file} was changed, verify says: {said}");
    Ok(())
}

fn change(dir: &RunDir, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = dir.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_untouched_bundle_is_valid_and_claims_no_origin() {
    let (_root, dir) = copy_of(&BUNDLE);
    let report = verified(dir.path()).unwrap();
    assert!(report.is_valid(), "{:?}", report.first_difference);
    assert_eq!(report.statement, "unsigned: integrity only, origin unproven");
    assert!(report.checks.iter().any(|c| c.detail.contains("every record anchored")));
    assert_eq!(report, verified(dir.path()).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_changed_byte_is_found(file in 0..FILES.len(), at in any::<Index>(), by in 1u8..) {
        let (_root, dir) = copy_of(&BUNDLE);
        change(&dir, FILES[file], |bytes| {
            let at = at.index(bytes.len());
            bytes[at] = bytes[at].wrapping_add(by);
        });
        assert_names(&dir, FILES[file])?;
    }

    #[test]
    fn any_changed_byte_is_found_even_when_the_manifest_was_made_to_fit(
        file in 0..CROSS_CHECKED.len(), at in any::<Index>(), by in 1u8..
    ) {
        let (_root, dir) = copy_of(&BUNDLE);
        change(&dir, CROSS_CHECKED[file], |bytes| {
            let at = at.index(bytes.len());
            bytes[at] = bytes[at].wrapping_add(by);
        });
        reseal(&dir);
        let report = verified(dir.path());
        // A report that claims another judge is another opinion, which is shown and not hidden.
        if let Ok(report) = &report && report.is_valid() {
            prop_assert_eq!(CROSS_CHECKED[file], "report.json");
            let stored: serde_json::Value = serde_json::from_slice(&fs::read(dir.report_json()).unwrap()).unwrap();
            prop_assert_ne!(stored["judge"].as_str(), Some(crate::bundle::JUDGE));
        } else {
            assert_names(&dir, CROSS_CHECKED[file])?;
        }
    }

    #[test]
    fn any_dropped_doubled_or_swapped_line_is_found(
        file in 0..3usize, at in any::<Index>(), how in 0..3u8, resealed in any::<bool>()
    ) {
        let (_root, dir) = copy_of(&BUNDLE);
        let path = dir.path().join(FILES[file]);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let at = at.index(lines.len() - 1);
        match how {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at]),
            _ => lines.swap(at, at + 1),
        }
        fs::write(&path, lines.concat()).unwrap();
        // A damaged journal can't be sealed at all.
        if resealed && file > 0 {
            reseal(&dir);
        }
        assert_names(&dir, FILES[file])?;
    }

    #[test]
    fn any_cut_is_found(file in 0..FILES.len(), at in any::<Index>()) {
        let (_root, dir) = copy_of(&BUNDLE);
        change(&dir, FILES[file], |bytes| bytes.truncate(at.index(bytes.len())));
        assert_names(&dir, FILES[file])?;
    }
}

#[test]
fn a_missing_and_an_extra_file_are_named() {
    for file in FILES {
        let (_root, dir) = copy_of(&BUNDLE);
        fs::remove_file(dir.path().join(file)).unwrap();
        let report = verified(dir.path()).unwrap();
        assert_eq!(report.first_difference.unwrap(), format!("{file}: missing"));
    }
    let (_root, dir) = copy_of(&BUNDLE);
    fs::write(dir.logs().join("extra.log"), "x").unwrap();
    assert_eq!(
        verified(dir.path()).unwrap().first_difference.unwrap(),
        "logs/extra.log: not in the manifest"
    );
}

#[test]
fn a_symbolic_link_is_no_evidence() {
    let (_root, dir) = copy_of(&BUNDLE);
    fs::remove_file(dir.drill()).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", dir.drill()).unwrap();
    let difference = verified(dir.path()).unwrap().first_difference.unwrap();
    assert!(difference.contains("drill.yaml") && difference.contains("neither a file"), "{difference}");
}

#[test]
fn a_history_under_another_name_is_named() {
    let (_root, dir) = copy_of(&BUNDLE);
    let orders = dir.histories().join("orders.jsonl");
    fs::copy(&orders, dir.histories().join("unasked.jsonl")).unwrap();
    reseal(&dir);
    let difference = verified(dir.path()).unwrap().first_difference.unwrap();
    assert!(difference.contains("histories/unasked.jsonl line 1"), "{difference}");
}

#[test]
fn a_changed_finding_is_named_by_its_path() {
    let (_root, dir) = copy_of(&BUNDLE);
    let text = fs::read_to_string(dir.report_json()).unwrap();
    fs::write(dir.report_json(), text.replacen("\"observed\": 6", "\"observed\": 8", 1)).unwrap();
    reseal(&dir);
    let report = verified(dir.path()).unwrap();
    assert_eq!(
        report.first_difference.unwrap(),
        "report.json $.objectives[0].observed: it says 8, recomputed 6"
    );
}

#[test]
fn another_judge_version_is_another_opinion_and_no_integrity_failure() {
    let (_root, dir) = copy_of(&BUNDLE);
    let same = verified_by(dir.path(), "test/judge 2").unwrap();
    assert!(same.is_valid() && same.other_opinion.is_none(), "agreement needs no second column");
    let text = fs::read_to_string(dir.report_json()).unwrap().replace("\"observed\": 6", "\"observed\": 5");
    fs::write(dir.report_json(), text).unwrap();
    reseal(&dir);
    let report = verified_by(dir.path(), "test/judge 2").unwrap();
    assert!(report.is_valid());
    let opinion = report.other_opinion.unwrap();
    assert_eq!((opinion.judge.as_str(), opinion.ours.as_str()), ("test/judge 1", "test/judge 2"));
    assert_eq!(opinion.differences.len(), 2);
    assert_eq!(opinion.differences[0].path, "$.objectives[0].observed");
}

/// Writes the journal anew, changed, with a chain and a manifest that fit.
fn rewritten(change: impl FnOnce(&mut Vec<JournalEvent>)) -> (TempDir, RunDir) {
    let (root, dir) = copy_of(&BUNDLE);
    let mut events: Vec<JournalEvent> =
        reader::read(&dir.journal()).unwrap().entries.into_iter().map(|e| e.event).collect();
    change(&mut events);
    fs::remove_file(dir.journal()).unwrap();
    let mut journal = JournalWriter::create(&dir.journal(), Arc::new(FakeClock::new())).unwrap();
    for event in events {
        journal.append(event).unwrap();
    }
    drop(journal);
    judge_and_reseal(&dir).expect("it can be judged");
    (root, dir)
}

fn first_difference(dir: &RunDir) -> String {
    verified(dir.path()).unwrap().first_difference.expect("it is invalid")
}

#[test]
fn a_journal_made_anew_by_a_forger_still_has_to_tell_a_whole_story() {
    let (_root, dir) = rewritten(|_| {});
    assert_eq!(verified(dir.path()).unwrap().first_difference, None, "nothing was changed");
    let (_root, dir) = rewritten(|events| {
        let again = events[0].clone();
        events.insert(3, again);
    });
    assert!(first_difference(&dir).contains("opened a second time"));
    let settles = |e: &JournalEvent| {
        matches!(
            e,
            JournalEvent::Discharged { .. }
                | JournalEvent::UndoFinished { .. }
                | JournalEvent::ClusterRemoved { .. }
        )
    };
    let (_root, dir) = rewritten(|events| events.retain(|e| !settles(e)));
    assert!(first_difference(&dir).contains("is owed"));
    let (_root, dir) =
        rewritten(|events| events.retain(|e| !matches!(e, JournalEvent::HistoryAnchored { .. })));
    assert!(first_difference(&dir).contains("behind the last anchor"));
}

#[test]
fn a_judge_that_is_not_known_here_is_no_opinion() {
    for (by, words) in [("nobody", "is no judge that is known here"), ("test/judge x", "is no judge")] {
        let (_root, dir) = copy_of(&BUNDLE);
        let text = fs::read_to_string(dir.report_json()).unwrap().replace("test/judge 1", by);
        fs::write(dir.report_json(), text).unwrap();
        reseal(&dir);
        assert!(first_difference(&dir).contains(words));
    }
    let (_root, dir) = copy_of(&BUNDLE);
    let text = fs::read_to_string(dir.report_json()).unwrap().replace("test/judge 1", "test/judge 7");
    fs::write(dir.report_json(), text).unwrap();
    reseal(&dir);
    let newer = verified(dir.path()).unwrap_err().to_string();
    assert!(newer.contains("test/judge 7") && newer.contains("or a later one"), "{newer}");
    // An older one is shown, and nobody is told that its reports were checked.
    let (_root, dir) = copy_of(&BUNDLE);
    let report = verified_by(dir.path(), "test/judge 2").unwrap();
    let reports = report.checks.iter().find(|c| c.name == "reports").unwrap();
    assert!(reports.detail.starts_with("not checked"), "{}", reports.detail);
}

#[test]
fn exit_codes_tell_valid_invalid_and_no_bundle_apart() {
    let (root, dir) = copy_of(&BUNDLE);
    publish(&dir, &[], None).unwrap();
    let code = |dir: &std::path::Path| {
        quakeproof::cli::main(vec!["quakeproof".into(), "verify".into(), dir.into(), "--json".into()])
    };
    assert_eq!(code(dir.path()), ExitCode::Ok);
    assert_eq!(code(root.path()), ExitCode::Usage);
    change(&dir, "drill.yaml", |bytes| bytes.push(b'\n'));
    assert_eq!(code(dir.path()), ExitCode::Invalid);
}

#[test]
fn newer_formats_are_refused_with_the_way_out() {
    for (file, from, to) in [
        ("manifest.json", "\"formatVersion\": \"1.0\"", "\"formatVersion\": \"2.0\""),
        ("journal.jsonl", "\"formatVersion\":\"1.0\"", "\"formatVersion\":\"2.0\""),
    ] {
        let (_root, dir) = copy_of(&BUNDLE);
        let path = dir.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = verified(dir.path()).unwrap_err();
        assert!(matches!(error, EvidenceError::Newer { .. }), "{error}");
        assert!(error.to_string().contains("hint: use the quakeproof version"), "{error}");
    }
}

#[test]
fn torn_last_lines_can_still_be_judged_but_not_pass_as_finished() {
    let (_root, dir) = copy_of(&BUNDLE);
    fs::remove_file(dir.manifest()).unwrap();
    let whole = load(dir.path()).unwrap();
    change(&dir, "journal.jsonl", |bytes| bytes.extend(b"{\"prev\":\"00"));
    change(&dir, "histories/orders.jsonl", |bytes| bytes.extend(b"{\"op\":{\"se"));
    let torn = load(dir.path()).unwrap();
    assert_eq!(torn.journal, whole.journal);
    assert_eq!(torn.histories, whole.histories);
    let report = verified(dir.path()).unwrap();
    assert!(!report.is_valid());
    assert!(report.first_difference.as_ref().unwrap().contains("quakeproof recover"), "{report:?}");
    let histories = report.checks.iter().find(|c| c.name == "histories").unwrap();
    assert!(!histories.ok, "a run that was completed has nothing behind its last anchor");
    assert!(histories.detail.contains("histories/orders.jsonl: 0 records, 10 bytes"), "{}", histories.detail);
}

#[test]
fn planted_canaries_are_found_and_keep_the_bundle_unsealed() {
    let canary = "planted-canary-5c1e";
    let pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----\n";
    let places = [
        ("logs/etcd-1.log", canary.to_owned(), "known secret"),
        ("logs/kube-apiserver-1.log", pem.to_owned(), "private key"),
        ("histories/orders.jsonl", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln".to_owned(), "JSON Web Token"),
        ("agent/main.jsonl", "client-key-data: c2VjcmV0c2VjcmV0".to_owned(), "secret value"),
    ];
    let (_root, clean) = copy_of(&BUNDLE);
    assert_eq!(secrets::scan(&clean, &[canary]).unwrap(), []);
    for (file, planted, what) in places {
        let (_root, dir) = copy_of(&BUNDLE);
        fs::remove_file(dir.manifest()).unwrap();
        let mut bytes = fs::read(dir.path().join(file)).unwrap_or_default();
        bytes.extend(planted.as_bytes());
        fs::write(dir.path().join(file), bytes).unwrap();
        let leaks = secrets::scan(&dir, &[canary]).unwrap();
        assert_eq!((leaks[0].file.as_str(), leaks[0].what), (file, what));
        let error = seal(&dir, &[canary], None).unwrap_err();
        assert!(matches!(error, EvidenceError::Leaks { .. }), "{error}");
        assert!(error.to_string().contains(file) && !error.to_string().contains(canary), "{error}");
        assert!(!dir.manifest().exists());
    }
}
