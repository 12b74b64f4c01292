//! Whether the standing cluster is whole, seen from outside and without the harness's own views:
//! with kubectl, and with etcdctl on the member's host.

use crate::drills::{Run, STANDING, Site};
use crate::lab::eventually;
use quakeproof::history::reader;
use quakeproof::history::record::{Op, Outcome, Record};
use quakeproof::journal::entry::JournalEvent;
use quakeproof::runner::lifecycle::ledger_namespace;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// ConfigMaps by `namespace/name`, with the revision of each.
type Objects = BTreeMap<String, u64>;

/// Ready, takes writes, and both kinds of LIST are what etcd holds.
pub fn assert_healthy(site: &Site) {
    assert_eq!(site.lab.kubectl(STANDING, "get --raw /readyz").succeeded(), "ok");
    let name = format!("written-{}", uuid::Uuid::now_v7());
    site.lab.kubectl(STANDING, &format!("create configmap -n default {name}")).succeeded();
    for query in ["", "?resourceVersion=0"] {
        // A LIST from the cache may be a moment behind; a lying one stays so.
        eventually(&format!("LIST{query} equals etcd"), Duration::from_secs(10), || {
            listed(site, query) == stored(site)
        });
    }
    assert!(stored(site).contains_key(&format!("default/{name}")));
}

fn listed(site: &Site, query: &str) -> Objects {
    let text = site.lab.kubectl(STANDING, &format!("get --raw '/api/v1/configmaps{query}'")).succeeded();
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    let word = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let object = |item: &serde_json::Value| {
        let meta = &item["metadata"];
        let name = format!("{}/{}", word(&meta["namespace"]), word(&meta["name"]));
        (name, word(&meta["resourceVersion"]).parse().unwrap())
    };
    list["items"].as_array().unwrap().iter().map(object).collect()
}

/// What etcd holds.
pub fn stored(site: &Site) -> Objects {
    let pki = |file: &str| site.lab.cluster_dir(STANDING).join("pki").join(file).display().to_string();
    let etcdctl = crate::lab::pinned(0).1.path("etcdctl").display().to_string();
    let prefix = "/registry/configmaps/";
    let answer = site
        .lab
        .cluster([
            "exec",
            STANDING,
            "etcd-1",
            "--",
            &etcdctl,
            "--endpoints=https://127.0.0.1:2379",
            &format!("--cacert={}", pki("etcd-ca.crt")),
            &format!("--cert={}", pki("apiserver-etcd-client.crt")),
            &format!("--key={}", pki("apiserver-etcd-client.key")),
            "get",
            "--prefix",
            prefix,
            "--write-out=fields",
        ])
        .succeeded();
    let field = |name: &str| {
        let start = format!("\"{name}\" : ");
        answer.lines().filter_map(move |line| line.strip_prefix(&start)).collect::<Vec<_>>()
    };
    let names =
        field("Key").into_iter().map(|k| k.trim_matches('"').strip_prefix(prefix).unwrap().to_owned());
    names.zip(field("ModRevision").into_iter().map(|r| r.parse().unwrap())).collect()
}

/// Ledger objects that the run's writer was told are written: before the loss, if there was one.
fn acknowledged(run: &Run) -> BTreeSet<u64> {
    let lost = run.journal().into_iter().find_map(|entry| match entry.event {
        JournalEvent::Injecting { .. } => Some(entry.mono_ns),
        _ => None,
    });
    let history = reader::read(&run.dir.join("histories/orders.jsonl")).unwrap();
    let acked = |record: Record| match record {
        Record::Op(op) if matches!(op.outcome, Outcome::Ok(_)) && lost.is_none_or(|l| op.return_ns < l) => {
            match op.op {
                Op::Create { id } => Some(id),
                _ => None,
            }
        }
        _ => None,
    };
    let acked: BTreeSet<u64> = history.records.into_iter().filter_map(acked).collect();
    // What a runner had not written down when it died can't be looked for; by the loss much was.
    assert!(lost.is_none() || acked.len() > 5, "only {acked:?} acknowledged before the loss");
    acked
}

/// Of what was acknowledged, before the loss if there was one, what etcd does not hold.
pub fn missing(site: &Site, run: &Run) -> BTreeSet<u64> {
    let acked = acknowledged(run);
    let prefix = format!("{}/ledger-", ledger_namespace(&run.id()));
    let kept: BTreeSet<u64> =
        stored(site).keys().filter_map(|k| k.strip_prefix(&prefix)?.parse().ok()).collect();
    acked.difference(&kept).copied().collect()
}
