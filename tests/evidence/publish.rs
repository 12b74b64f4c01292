//! From a closed run to a sealed bundle, through this version's judge.

use crate::bundle::{bundle, copy_of, reseal};
use quakeproof::cli::report::{Format, ReportArgs, run};
use quakeproof::evidence::EvidenceError;
use quakeproof::evidence::manifest::Manifest;
use quakeproof::evidence::publish::{judge, publish};
use quakeproof::evidence::verify::verify;
use quakeproof::exit::ExitCode;
use quakeproof::report::JUDGE;
use quakeproof::state::StateDir;
use std::fs;

#[test]
fn a_published_bundle_verifies_and_publishing_again_changes_nothing() {
    let (_root, dir) = copy_of(&bundle());
    let report = publish(&dir, &[]).unwrap();
    assert_eq!(report.judge, JUDGE);
    let verified = verify(dir.path(), &judge()).unwrap();
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
    publish(&dir, &[]).unwrap();
    assert_eq!(before, contents());
}

#[test]
fn a_finding_that_does_not_follow_from_the_records_is_named() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[]).unwrap();
    let text = fs::read_to_string(dir.report_json()).unwrap();
    let changed = text.replace("\"verdict\": \"inconclusive\"", "\"verdict\": \"pass\"");
    assert_ne!(text, changed);
    fs::write(dir.report_json(), changed).unwrap();
    reseal(&dir);
    let verified = verify(dir.path(), &judge()).unwrap();
    assert!(verified.first_difference.unwrap().contains("$.verdict"));
}

#[test]
fn a_bundle_with_a_secret_is_left_unsealed_even_if_it_was_sealed_before() {
    let (_root, dir) = copy_of(&bundle());
    publish(&dir, &[]).unwrap();
    fs::write(dir.logs().join("more.log"), "key planted-canary\n").unwrap();
    assert!(matches!(publish(&dir, &["planted-canary"]), Err(EvidenceError::Leaks { .. })));
    assert_eq!(Manifest::read(&dir).unwrap(), None);
}

#[test]
fn the_report_command_writes_the_bytes_that_the_bundle_holds() {
    let (root, dir) = copy_of(&bundle());
    publish(&dir, &[]).unwrap();
    let state = StateDir::at(&root.path().join("state"));
    for (format, stored) in
        [(Format::Json, dir.report_json()), (Format::Html, dir.report_html()), (Format::Junit, dir.junit())]
    {
        let out = root.path().join("out");
        let args =
            ReportArgs { run: dir.path().to_str().unwrap().to_owned(), format, out: Some(out.clone()) };
        assert_eq!(run(&args, &state), ExitCode::Ok);
        assert_eq!(fs::read(out).unwrap(), fs::read(stored).unwrap());
    }
    let nowhere = ReportArgs { run: "no-such-run".to_owned(), format: Format::Json, out: None };
    assert_eq!(run(&nowhere, &state), ExitCode::Usage);
    fs::write(dir.journal(), "{}\n{}\n").unwrap();
    let damaged =
        ReportArgs { run: dir.path().to_str().unwrap().to_owned(), format: Format::Json, out: None };
    assert_eq!(run(&damaged, &state), ExitCode::Invalid);
}
