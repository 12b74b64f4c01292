//! Secrets stay out of the evidence (invariant 13).

use crate::drills::Site;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const CANARY: &str = "canary-5d1c7e9b2f";
/// `CANARY` as the API and kubectl write it.
const CANARY_BASE64: &str = "Y2FuYXJ5LTVkMWM3ZTliMmY";
/// First page of a bolt database, which an etcd snapshot is, at offset 16 (little endian).
const BOLT_MAGIC: [u8; 4] = 0xED0C_DAED_u32.to_le_bytes();

#[test]
fn no_key_token_secret_or_snapshot_enters_the_evidence() {
    let site = Site::empty();
    let dir = site.lab.root().join("own");
    let mut run = site.start_in(&dir, "own.yaml", &["--set", "before=4s", "--keep-cluster"], "");
    // Before the snapshot it would be in the snapshot only: it has to pass through everything else too.
    run.reached("stepStarted", 2);
    let (cluster, _) = site.lab.states().remove(0);
    let secret = format!("create secret generic canary -n default --from-literal=value={CANARY}");
    site.lab.kubectl(&cluster, &secret).succeeded();
    let stored = site.lab.kubectl(&cluster, "get secret canary -n default -o jsonpath={.data.value}");
    assert!(stored.succeeded().starts_with(CANARY_BASE64), "the canary is what is looked for");
    site.lab.kubectl(&cluster, "create serviceaccount canary -n default").succeeded();
    let token = site.lab.kubectl(&cluster, "create token canary -n default").succeeded();
    run.ended_with(0);
    site.verify(&run);

    let mut forbidden: Vec<String> =
        [CANARY, CANARY_BASE64, "PRIVATE KEY", "Bearer ", "eyJhbGciOi", token.trim()]
            .map(str::to_owned)
            .into();
    let keys = private_keys(&site.lab.cluster_dir(&cluster).join("pki"));
    assert!(keys.len() > 10, "too few lines of keys: {keys:?}");
    forbidden.extend(keys);
    let files = files_below(&dir);
    for expected in ["journal.jsonl", "report.html", "logs/kube-apiserver-1.log", "histories/orders.jsonl"] {
        assert!(files.contains(&dir.join(expected)), "no {expected} in {files:?}");
    }
    for file in files {
        let bytes = fs::read(&file).unwrap();
        for text in &forbidden {
            let found = bytes.windows(text.len()).any(|w| w == text.as_bytes());
            assert!(!found, "{} holds {text:?}", file.display());
        }
        assert_ne!(bytes.get(16..20), Some(&BOLT_MAGIC[..]), "{} is a database", file.display());
    }
    site.lap("the evidence was searched");
}

/// A piece of a key without its frame looks like nothing in particular: only who knows the key finds it.
#[test]
fn a_piece_of_a_private_key_in_a_log_keeps_the_bundle_unsealed() {
    let site = Site::empty();
    let dir = site.lab.root().join("own");
    let mut run = site.start_in(&dir, "own.yaml", &["--keep-cluster"], "");
    run.reached("stepStarted", 2);
    let (cluster, _) = site.lab.states().remove(0);
    let cluster = site.lab.cluster_dir(&cluster);
    let mut logs = files_below(&cluster).into_iter();
    let log = logs.find(|path| path.ends_with("kube-scheduler-1.log")).expect("the scheduler's log");
    let key = private_keys(&cluster.join("pki")).remove(0);
    let mut log = fs::File::options().append(true).open(log).unwrap();
    writeln!(log, "{key}").unwrap();
    let said = run.ended_with(70).stderr;
    assert!(said.contains("logs/kube-scheduler-1.log") && said.contains("known secret"), "{said}");
    assert!(!said.contains(&key), "the secret itself is told");
    assert!(!dir.join("manifest.json").exists(), "the bundle was sealed");
    site.lap("the bundle was left unsealed");
}

/// Lines of base64 in every private key below `pki`.
fn private_keys(pki: &Path) -> Vec<String> {
    let keys = files_below(pki).into_iter().filter(|path| path.extension().is_some_and(|e| e == "key"));
    let bodies = keys.map(|path| fs::read_to_string(path).unwrap());
    let lines = bodies.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    // The first line of a P-256 key is its algorithm, the same in every key; secrets are in the others too.
    lines.filter(|line| line.len() > 30 && !line.starts_with("-----")).collect()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
