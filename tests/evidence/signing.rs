//! What a signature proves: a forger who knows every format can make the parts of a bundle fit
//! together again, but not under somebody else's key.

use crate::bundle::{JUDGE, bundle, copy_of, judge_and_reseal, verified_by, verified_with};
use proptest::prelude::*;
use proptest::sample::Index;
use quakeproof::chained::chain::Head;
use quakeproof::evidence::EvidenceError;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::manifest::seal;
use quakeproof::evidence::signature::key::SigningKey;
use quakeproof::evidence::verify::{Proof, VerifyReport};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::sync::LazyLock;
use tempfile::TempDir;

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate().unwrap());

/// A finished run, signed.
static SIGNED: LazyLock<TempDir> = LazyLock::new(|| {
    let (root, dir) = copy_of(&bundle());
    fs::remove_file(dir.manifest()).unwrap();
    seal(&dir, &[], Some(&KEY)).unwrap();
    root
});

fn with_key(dir: &RunDir) -> Result<VerifyReport, EvidenceError> {
    verified_with(dir.path(), JUDGE, Some(&KEY.verifying()))
}

fn without_key(dir: &RunDir) -> Result<VerifyReport, EvidenceError> {
    verified_by(dir.path(), JUDGE)
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

/// What a forger does about everything that is recomputed: anchors, chains, digests, findings, manifest.
/// Nothing when what was changed can't be read any more.
fn make_fit(dir: &RunDir) -> Option<()> {
    let text = fs::read_to_string(dir.journal()).ok()?;
    let mut entries: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let digest = |name: &str| Some(hex(&fs::read(dir.path().join(name)).ok()?));
    for entry in &mut entries {
        let event = &mut entry["event"];
        if let Some(anchor) = event.get_mut("historyAnchored") {
            let file = anchor["file"].as_str()?.to_owned();
            let bytes = fs::read(dir.path().join(&file)).ok()?;
            *anchor = json!({
                "file": file, "bytes": bytes.len(), "records": lines(&bytes).len(), "sha256": hex(&bytes),
            });
        }
        if let Some(opened) = event.get_mut("runOpened") {
            opened["drillDigest"] = json!(digest("drill.yaml")?);
            opened["planDigest"] = json!(digest("plan.json")?);
        }
    }
    let mut head = Head::START;
    let mut journal = Vec::new();
    for (seq, entry) in entries.iter_mut().enumerate() {
        entry["prev"] = json!(head.to_string());
        entry["seq"] = json!(seq);
        let line = serde_json::to_vec(entry).ok()?;
        head = head.then(&line);
        journal.extend(line);
        journal.push(b'\n');
    }
    fs::write(dir.journal(), journal).ok()?;
    judge_and_reseal(dir)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn a_signed_bundle_says_who_signed_and_what_that_proves() {
    let (_root, dir) = copy_of(&SIGNED);
    let id = KEY.verifying().id().to_string();
    let proven = with_key(&dir).unwrap();
    assert!(proven.is_valid(), "{:?}", proven.first_difference);
    assert_eq!((proven.origin.proof, proven.origin.key_id.as_deref()), (Proof::Proven, Some(id.as_str())));
    assert_eq!(proven.statement, format!("signed by key {id}: integrity and origin proven"));
    let unproven = without_key(&dir).unwrap();
    assert!(unproven.is_valid());
    assert_eq!(unproven.origin.proof, Proof::Unproven);
    assert!(
        unproven.statement.contains(&format!("signed by key id {id}: integrity only, origin unproven until"))
    );
}

#[test]
fn a_missing_signature_and_another_key_are_named() {
    let (_root, dir) = copy_of(&SIGNED);
    let other = SigningKey::generate().unwrap();
    let report = verified_with(dir.path(), JUDGE, Some(&other.verifying())).unwrap();
    assert!(!report.is_valid() && report.origin.proof == Proof::Failed);
    let said = report.first_difference.unwrap();
    assert!(said.contains("signed by key") && said.contains(other.verifying().id().as_str()), "{said}");
    assert_eq!(report.statement, "invalid: the origin is not what was asked for");

    fs::remove_file(dir.attestation()).unwrap();
    let report = with_key(&dir).unwrap();
    assert_eq!(report.origin.proof, Proof::Failed);
    assert!(report.first_difference.unwrap().starts_with("attestation.dsse.json: missing"));
    let stripped = without_key(&dir).unwrap();
    assert!(stripped.is_valid());
    assert_eq!(stripped.statement, "unsigned: integrity only, origin unproven");
}

#[test]
fn an_attestation_of_another_bundle_vouches_for_nothing_here() {
    let (_root, dir) = copy_of(&SIGNED);
    let (_other_root, other) = copy_of(&SIGNED);
    fs::write(other.logs().join("etcd-1.log"), "another run\n").unwrap();
    seal(&other, &[], Some(&KEY)).unwrap();
    fs::copy(other.attestation(), dir.attestation()).unwrap();
    for report in [with_key(&dir).unwrap(), without_key(&dir).unwrap()] {
        let said = report.first_difference.unwrap();
        assert!(said.starts_with("logs/etcd-1.log: SHA-256 is"), "{said}");
    }
}

#[test]
fn a_statement_of_a_newer_version_is_refused_and_one_of_another_tool_is_no_vouching() {
    let (_root, dir) = copy_of(&SIGNED);
    let envelope: Value = serde_json::from_slice(&fs::read(dir.attestation()).unwrap()).unwrap();
    let with_predicate = |version: &str| {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
        let payload = String::from_utf8(payload)
            .unwrap()
            .replace("https://quakeproof.dev/attestation/drill-result/v1", version);
        let mut envelope = envelope.clone();
        envelope["payload"] = json!(STANDARD.encode(payload));
        fs::write(dir.attestation(), format!("{envelope:#}\n")).unwrap();
    };
    with_predicate("https://quakeproof.dev/attestation/drill-result/v2");
    let error = without_key(&dir).unwrap_err();
    assert!(matches!(error, EvidenceError::Newer { .. }) && error.to_string().contains("hint:"), "{error}");
    // With a key at hand the signature decides first.
    assert!(!with_key(&dir).unwrap().is_valid());
    with_predicate("https://slsa.dev/provenance/v1");
    assert!(without_key(&dir).unwrap().first_difference.unwrap().contains("another tool"));
}

/// Whatever the forger did: with the key it is found out. Without one, a bundle whose parts fit again is
/// taken for what it is, and claims no origin.
fn assert_found_out(dir: &RunDir, how: &str) -> Result<(), TestCaseError> {
    if let Ok(report) = with_key(dir) {
        prop_assert!(!report.is_valid(), "{how}: nobody noticed");
    }
    fs::remove_file(dir.attestation()).unwrap();
    if let Ok(report) = with_key(dir) {
        prop_assert!(!report.is_valid(), "{how} and the attestation taken away: nobody noticed");
    }
    if let Ok(report) = without_key(dir)
        && report.is_valid()
    {
        prop_assert_eq!(report.statement, "unsigned: integrity only, origin unproven");
    }
    Ok(())
}

/// Files of a bundle in one order, the manifest and the attestation among them.
fn every_file(dir: &RunDir) -> Vec<String> {
    let outside = ["manifest.json", "attestation.dsse.json"].map(str::to_owned);
    dir.files().unwrap().into_iter().chain(outside).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_changed_byte_is_found_out_whatever_was_recomputed(
        file in any::<Index>(), at in any::<Index>(), how in 0..3u8, byte in any::<u8>(), fit in any::<bool>()
    ) {
        let (_root, dir) = copy_of(&SIGNED);
        let files = every_file(&dir);
        let file = &files[file.index(files.len())];
        let path = dir.path().join(file);
        let before = fs::read(&path).unwrap();
        let mut bytes = before.clone();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        prop_assume!(bytes != before);
        fs::write(&path, bytes).unwrap();
        if fit {
            make_fit(&dir);
        }
        // The chain and the manifest may have come back to what they were.
        prop_assume!(fs::read(&path).unwrap() != before);
        assert_found_out(&dir, &format!("{file} byte {at}"))?;
    }

    #[test]
    fn a_dropped_doubled_or_swapped_record_is_found_out_whatever_was_recomputed(
        file in 0..3usize, at in any::<Index>(), how in 0..3u8
    ) {
        let (_root, dir) = copy_of(&SIGNED);
        let file = ["journal.jsonl", "histories/orders.jsonl", "histories/reader.jsonl"][file];
        let path = dir.path().join(file);
        let mut records = lines(&fs::read(&path).unwrap());
        let at = at.index(records.len() - 1);
        match how {
            0 => drop(records.remove(at)),
            1 => records.insert(at, records[at].clone()),
            _ => records.swap(at, at + 1),
        }
        fs::write(&path, records.concat()).unwrap();
        make_fit(&dir);
        assert_found_out(&dir, &format!("{file} line {}", at + 1))?;
    }

    #[test]
    fn a_dropped_added_or_renamed_file_is_found_out_whatever_was_recomputed(
        file in any::<Index>(), how in 0..3u8, fit in any::<bool>()
    ) {
        let (_root, dir) = copy_of(&SIGNED);
        let files = every_file(&dir);
        let file = &files[file.index(files.len())];
        let path = dir.path().join(file);
        match how {
            0 => fs::remove_file(&path).unwrap(),
            1 => drop(fs::copy(&path, path.with_extension("more")).unwrap()),
            _ => fs::rename(&path, path.with_extension("more")).unwrap(),
        }
        if fit {
            make_fit(&dir);
        }
        // A manifest that the forger took away was made anew.
        prop_assume!(how != 0 || !path.exists());
        if dir.attestation().exists() {
            assert_found_out(&dir, file)?;
        } else {
            prop_assert!(with_key(&dir).map_or(true, |report| !report.is_valid()));
        }
    }
}

/// The forger's best work: acknowledged writes made of refused ones, and every part of the bundle made to fit.
#[test]
fn a_perfect_forgery_is_valid_without_a_signature_and_says_what_that_is_worth() {
    let (_root, dir) = copy_of(&SIGNED);
    let path = dir.path().join("histories/orders.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let forged = text.replace(r#"{"unknown":{"reason":"timeout"}}"#, r#"{"ok":{"revision":9}}"#);
    assert_ne!(text, forged);
    fs::write(&path, forged).unwrap();
    make_fit(&dir).unwrap();
    let signed = with_key(&dir).unwrap();
    let said = signed.first_difference.unwrap();
    assert!(said.contains("what was signed says"), "{said}");
    assert!(!without_key(&dir).unwrap().is_valid(), "the attestation is of the files as they were");

    fs::remove_file(dir.attestation()).unwrap();
    let stripped = without_key(&dir).unwrap();
    assert!(stripped.is_valid(), "{:?}", stripped.first_difference);
    assert_eq!(stripped.statement, "unsigned: integrity only, origin unproven");

    fs::remove_file(dir.manifest()).unwrap();
    seal(&dir, &[], Some(&SigningKey::generate().unwrap())).unwrap();
    assert!(!with_key(&dir).unwrap().is_valid(), "the forger's own key is not the one asked for");
    assert_eq!(without_key(&dir).unwrap().origin.proof, Proof::Unproven);
}
