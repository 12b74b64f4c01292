//! The sample bundles in `reports/samples/`: whole, signed, of each verdict, and judged as they were.
//!
//! `ci/samples.sh` makes them anew from real runs. `QUAKEPROOF_BLESS=1 cargo test --test samples` only judges
//! the same evidence again and writes its reports, which is enough while the judge's version stays.
//! When that goes up, the bundles move to `tests/data/bundles/<judge>.tar.gz` and are still verified here.

use assert_cmd::Command;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::load::load_with_head;
use quakeproof::evidence::manifest::Manifest;
use quakeproof::evidence::publish::{judge, publish};
use quakeproof::evidence::signature::key::{SigningKey, VerifyingKey};
use quakeproof::evidence::verify::{Proof, verify};
use quakeproof::findings::Bundle;
use quakeproof::report::{JUDGE, json, prepare};
use std::fs;
use std::path::{Path, PathBuf};

/// Samples are looked at in a browser and cloned by everybody.
const MOST_BYTES: u64 = 1_500_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn samples() -> PathBuf {
    root().join("reports/samples")
}

fn sample(verdict: &str) -> RunDir {
    let dir = RunDir::open(&samples().join(verdict)).unwrap();
    if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
        judged_again(&dir);
    }
    dir
}

fn judged_again(dir: &RunDir) {
    let before = Manifest::read(dir).unwrap().map(|_| Bundle::of(dir).unwrap().manifest_digest);
    let key = SigningKey::read(&root().join("tests/data/samples/key.pem")).unwrap();
    publish(dir, &[key.pem().lines().nth(1).unwrap()], Some(&key)).unwrap();
    if let (Some(before), Ok(findings)) = (before, fs::read_to_string(dir.findings())) {
        let after = Bundle::of(dir).unwrap().manifest_digest;
        fs::write(dir.findings(), findings.replace(&before, &after)).unwrap();
    }
}

fn key() -> VerifyingKey {
    VerifyingKey::read(&samples().join("key.pub")).unwrap()
}

fn json_of(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn is_as_it_was_judged(verdict: &str) {
    let dir = sample(verdict);
    let verified = verify(dir.path(), &judge(), Some(&key())).unwrap();
    assert!(verified.is_valid(), "{verdict}: {:?}", verified.first_difference);
    assert_eq!(verified.origin.proof, Proof::Proven);
    assert_eq!(verified.other_opinion, None, "{verdict}: of this judge");
    let stored = fs::read(dir.report_json()).unwrap();
    assert_eq!(json_of(&dir.report_json())["verdict"], verdict);
    assert_eq!(json_of(&dir.report_json())["judge"], JUDGE);
    let loaded = load_with_head(dir.path()).unwrap();
    let again = json::render(&prepare(&loaded.input, &loaded.journal_head).report);
    assert!(again.as_bytes() == stored, "{verdict}: report.json is not the same bytes");
}

#[test]
fn the_sample_that_passed_is_valid_and_judged_as_it_was() {
    is_as_it_was_judged("pass");
}

#[test]
fn the_sample_that_failed_is_filled_in_as_a_protocol() {
    is_as_it_was_judged("fail");
    let dir = RunDir::open(&samples().join("fail")).unwrap();
    let verified = verify(dir.path(), &judge(), Some(&key())).unwrap();
    let attached = verified.attached.expect("findings are attached");
    assert!(attached.detail.contains(" open"), "{}", attached.detail);
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("quakeproof").unwrap();
    command.env("QUAKEPROOF_STATE", state.path()).args(["report", "--format", "markdown"]).arg(dir.path());
    let written = command.output().unwrap();
    assert!(written.status.success());
    let protocol = samples().join("protocol.md");
    if std::env::var_os("QUAKEPROOF_BLESS").is_some() {
        fs::write(&protocol, &written.stdout).unwrap();
    }
    assert!(fs::read(&protocol).unwrap() == written.stdout, "protocol.md is not what is written today");
    let text = String::from_utf8(written.stdout).unwrap();
    for part in ["# FAIL", "## Timeline", "## For the auditor", "## Findings", "platform-team", "2027-01-31"]
    {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn the_sample_that_was_interrupted_is_inconclusive_and_valid() {
    is_as_it_was_judged("inconclusive");
}

/// Bundles that older judges judged: as whole as ever, whatever this judge thinks of them.
#[test]
fn bundles_of_older_judges_stay_valid() {
    let below = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let unpacked = tempfile::tempdir().unwrap();
    for file in below(&root().join("tests/data/bundles")) {
        let judge = unpacked.path().join(file.file_name().unwrap());
        let unzipped = flate2::read::GzDecoder::new(fs::File::open(&file).unwrap());
        tar::Archive::new(unzipped).unpack(judge).unwrap();
    }
    let kept: Vec<PathBuf> = below(unpacked.path()).iter().flat_map(|judge| below(judge)).collect();
    assert!(kept.len() >= 6, "those of judges 2 and 3: {kept:?}");
    for bundle in kept {
        let verified = verify(&bundle, &judge(), Some(&key())).unwrap();
        assert!(verified.is_valid(), "{}: {:?}", bundle.display(), verified.first_difference);
    }
}

#[test]
fn samples_stay_small() {
    fn size(path: &Path) -> u64 {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        entries
            .map(
                |entry| {
                    if entry.path().is_dir() { size(&entry.path()) } else { entry.metadata().unwrap().len() }
                },
            )
            .sum()
    }
    let size = size(&samples());
    assert!(size <= MOST_BYTES, "{size} bytes");
}
