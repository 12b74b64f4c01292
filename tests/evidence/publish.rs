//! From a closed run to a sealed bundle, through this version's judge.

use crate::bundle::{bundle, copy_of, reseal};
use quakeproof::evidence::EvidenceError;
use quakeproof::evidence::manifest::Manifest;
use quakeproof::evidence::publish::{judge, publish};
use quakeproof::evidence::verify::verify;
use quakeproof::exit::ExitCode;
use quakeproof::report::JUDGE;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

#[test]
fn a_published_bundle_verifies_and_publishing_again_changes_nothing() {
    let (_root, dir) = copy_of(&bundle());
    let report = publish(&dir, &[], None).unwrap();
    assert_eq!(report.judge, JUDGE);
    let verified = verify(dir.path(), &judge(), None).unwrap();
    assert!(verified.is_valid(), "{:?}", verified.first_difference);
    assert!(verified.other_opinion.is_none());
    let contents = || {
        let files = dir.files().unwrap().into_iter().chain(["manifest.json".to_owned()]);
        files.map(|f| (fs::read(dir.path().join(&f)).unwrap(), f)).collect::<Vec<_>>()
    };
    let before = contents();
    for name in ["report.json", "report.html", "junit.xml"] {
        assert!(before.iter().any(|(bytes, f)| f == name && !bytes.is_empty()), "{name}");
    }
    publish(&dir, &[], None).unwrap();
    assert_eq!(before, contents());
}

#[test]
fn a_finding_that_does_not_follow_from_the_records_is_named() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    let text = fs::read_to_string(dir.report_json()).unwrap();
    let changed = text.replace("\"verdict\": \"inconclusive\"", "\"verdict\": \"pass\"");
    assert_ne!(text, changed);
    fs::write(dir.report_json(), changed).unwrap();
    reseal(&dir);
    let verified = verify(dir.path(), &judge(), None).unwrap();
    assert!(verified.first_difference.unwrap().contains("$.verdict"));
}

#[test]
fn a_report_for_people_that_says_other_than_the_findings_is_named() {
    for (name, from, to) in
        [("report.html", "inconclusive", "pass"), ("junit.xml", "<testsuites", "<!-- --><testsuites")]
    {
        let (_root, dir) = copy_of(&bundle());
        publish(&dir, &[], None).unwrap();
        let path = dir.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}");
        fs::write(&path, text.replace(from, to)).unwrap();
        reseal(&dir);
        let difference = verify(dir.path(), &judge(), None).unwrap().first_difference;
        assert!(difference.as_ref().is_some_and(|d| d.starts_with(name)), "{name}: {difference:?}");
    }
}

#[test]
fn a_bundle_with_a_secret_is_left_unsealed_even_if_it_was_sealed_before() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    fs::write(dir.logs().join("more.log"), "key planted-canary\n").unwrap();
    assert!(matches!(publish(&dir, &["planted-canary"], None), Err(EvidenceError::Leaks { .. })));
    assert_eq!(Manifest::read(&dir).unwrap(), None);
}

fn report(run: &Path, rest: &[&str]) -> ExitCode {
    let mut args: Vec<OsString> = vec!["quakeproof".into(), "report".into(), run.into()];
    args.extend(rest.iter().map(OsString::from));
    quakeproof::cli::main(args)
}

#[test]
fn the_report_command_writes_the_bytes_that_the_bundle_holds() {
    let (root, dir) = copy_of(&bundle());
    publish(&dir, &[], None).unwrap();
    let out = root.path().join("out");
    for (format, stored) in [("json", dir.report_json()), ("html", dir.report_html()), ("junit", dir.junit())]
    {
        let code = report(dir.path(), &["--format", format, "--out", out.to_str().unwrap()]);
        assert_eq!(code, ExitCode::Ok);
        assert_eq!(fs::read(&out).unwrap(), fs::read(stored).unwrap());
    }
    assert_eq!(report(&root.path().join("none"), &["--format", "json"]), ExitCode::Usage);
    fs::write(dir.journal(), "{}\n{}\n").unwrap();
    assert_eq!(report(dir.path(), &["--format", "json"]), ExitCode::Invalid);
}
