//! A drill that changes flow control is cut off: what it made is gone, what it changed is as it was, and nothing else
//! has changed.

use crate::drills::{LONG, Run, STANDING, Site, block_on, name};
use crate::lab::{Ran, eventually, pinned};
use quakeproof::agent::protocol::HeldState;
use quakeproof::clock::SystemClock;
use quakeproof::component::network::OBSERVER_USER;
use quakeproof::component::{ComponentId, StopMethod};
use quakeproof::journal::entry::JournalEvent;
use quakeproof::load::connections::Connections;
use quakeproof::load::exchange::Outgoing;
use quakeproof::provider::Cluster;
use quakeproof::wire::connection::{Connector, Protocol};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// After which entry the runner dies: before anything is made, half way, with requests in the queue, with the share
/// given back, and with the level gone.
const DEATHS: [(&str, usize); 8] = [
    ("undoArmed", 1),
    ("injecting", 1),
    ("injected", 1),
    ("injectionVerified", 1),
    ("stepFinished", 2),
    ("stepStarted", 4),
    ("stepFinished", 4),
    ("endVerified", 1),
];

/// Of a level that was there before: before and after it is changed, with requests in its queue, and put back.
const DEATHS_OF_CHANGED: [(&str, usize); 5] =
    [("undoArmed", 1), ("injecting", 1), ("injected", 1), ("stepFinished", 2), ("endVerified", 1)];

#[test]
fn nobody_stays_jailed_whenever_the_runner_dies() {
    let site = Site::standing();
    survives(&site, "jailed.yaml", &DEATHS);
    assert_eq!(level_of_observer(&site), "exempt");
}

/// `workload-low` is one of those that API servers keep as they ship it unless its annotation says otherwise.
#[test]
fn a_level_of_the_cluster_is_put_back_whenever_the_runner_dies() {
    let site = Site::standing();
    let updated = |objects: &Objects| objects.values().any(|what| what[1][AUTOUPDATE] == "true");
    assert!(updated(&flow_control(&site)));
    survives(&site, "starved.yaml", &DEATHS_OF_CHANGED);
}

const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Nothing is left of a drill that is not cut off, that dies after these entries, or that nobody recovers.
fn survives(site: &Site, drill: &str, deaths: &[(&str, usize)]) {
    let (before, rights_before) = (flow_control(site), rights(site));
    let mut whole = start(site, drill, "whole", "");
    whole.ended_with(0);
    assert_eq!((flow_control(site), rights(site)), (before.clone(), rights_before.clone()));
    for (event, nth) in deaths {
        let mut run = start(site, drill, &format!("{event}-{nth}"), &format!("{event}:{nth}"));
        let end = run.ended(LONG);
        assert_eq!(end.code, None, "it was not killed: {}", end.stderr);
        assert_eq!(run.journal().last().map(name).as_deref(), Some(*event));
        site.recover(&run, 2);
        assert_eq!(flow_control(site), before, "killed after {event}:{nth}");
        assert_eq!(rights(site), rights_before, "killed after {event}:{nth}");
        site.lap(&format!("killed after {event}:{nth}, recovered"));
    }
    without_anybody(site, drill, &before);
}

/// The dead-man undoes it, with requests in the queue.
fn without_anybody(site: &Site, drill: &str, before: &Objects) {
    let mut run = start(site, drill, "dead-man", "stepFinished:2");
    run.ended(LONG);
    assert_ne!(flow_control(site), *before, "the level is there");
    let lapsed = HeldState::Undone { by_lapse: true };
    eventually("the dead-man has acted", Duration::from_secs(60), || {
        site.held_by_agent(&run.id()).is_some_and(|held| held.state == lapsed)
    });
    assert_eq!(flow_control(site), *before);
    site.recover(&run, 2);
    let adopted = run.journal().iter().find(|e| name(e) == "runAdopted").unwrap().mono_ns;
    let ended = run.report()["faults"][0]["ended"]["monoNs"].as_u64().unwrap();
    assert!(ended < adopted.0, "the fault ended when the dead-man had undone it, not when somebody asked");
    site.lap("ended by the dead-man");
}

/// Somebody edits the level while requests wait in it: the run is ended and the level removed, edited or not.
#[test]
fn a_level_that_somebody_else_changes_ends_the_run_and_is_removed() {
    let site = Site::standing();
    let before = flow_control(&site);
    let mut run = start(&site, "jailed.yaml", "edited", "");
    run.reached("stepFinished", 2);
    let level = format!("quakeproof-jail-{}", run.id().rsplit('-').next().unwrap());
    let patch = r#"{"spec":{"limited":{"nominalConcurrencyShares":7}}}"#;
    let kind = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
    site.lab.kubectl(STANDING, &format!("patch {kind} {level} --type merge -p '{patch}'")).succeeded();
    let end = run.ended(LONG);
    assert_ne!(end.code, Some(0), "{}", end.stderr);
    let failed = run.journal().iter().find_map(|entry| match &entry.event {
        JournalEvent::StepFailed { step, reason } => Some((*step, reason.clone())),
        _ => None,
    });
    let (step, reason) = failed.unwrap();
    assert!(step == 3 && reason.contains("somebody else changed"), "{step}: {reason}");
    assert_eq!(run.report()["outcome"], "aborted");
    assert_eq!(run.report()["verdict"], "inconclusive");
    assert_eq!(flow_control(&site), before);
    site.verify(&run);
}

/// Its counters begin anew and its queues are gone: that proves nothing, neither way.
#[test]
fn an_api_server_that_is_started_again_while_requests_wait_makes_the_drill_inconclusive() {
    let site = Site::standing();
    let before = flow_control(&site);
    let dir = site.lab.root().join("restarted");
    let mut run = site.start_in(&dir, "jailed.yaml", &["--set", "held=12s"], "");
    run.reached("stepFinished", 2);
    let cluster = site.lab.attach(STANDING);
    let server = ComponentId("kube-apiserver-1".to_owned());
    block_on(async {
        let control = cluster.control();
        control.stop(&server, StopMethod::Kill).await.unwrap();
        control.start(&server).await.unwrap();
    });
    run.ended_with(2);
    let report = run.report();
    assert_eq!((&report["outcome"], &report["verdict"]), (&"completed".into(), &"inconclusive".into()));
    let reason = report["objectives"].to_string();
    assert!(reason.contains("started again"), "{reason}");
    assert_eq!(flow_control(&site), before);
    site.verify(&run);
}

/// The API of flow control is served all the same, so only the servers' own metrics tell.
#[test]
fn a_server_without_flow_control_is_refused_before_anything_is_made() {
    let site = Site::empty();
    let dir = site.lab.root().join("bin");
    without_flow_control(&dir);
    let up = ["up", STANDING, "--controller-managers", "0", "--schedulers", "0"];
    Ran::of(site.lab.command(up).env("QUAKEPROOF_BIN_DIR", &dir)).succeeded();
    let before = flow_control(&site);
    let mut run = start(&site, "jailed.yaml", "off", "");
    refused(&mut run, "API Priority and Fairness is off");
    assert_eq!(flow_control(&site), before);
    site.verify(&run);
}

/// Found before any client has started, and not by the step that would change it.
#[test]
fn a_level_that_is_not_there_is_refused_before_anything_is_made() {
    let site = Site::standing();
    let drill = fs::read_to_string("tests/data/interruption/starved.yaml").unwrap();
    let file = site.lab.root().join("ghost.yaml");
    fs::write(&file, drill.replace("workload-low", "ghost")).unwrap();
    let mut run = start(&site, file.to_str().unwrap(), "ghost", "");
    refused(&mut run, "step 0 (apfLevel) does not fit the cluster");
    site.verify(&run);
}

/// By preflight, which names a reason.
fn refused(run: &mut Run, because: &str) {
    run.ended_with(5);
    let journal = run.journal();
    let reason = journal.iter().find_map(|entry| match &entry.event {
        JournalEvent::RunClosed { reason, .. } => reason.clone(),
        _ => None,
    });
    assert!(reason.as_ref().is_some_and(|reason| reason.contains(because)), "{reason:?}");
    let begun = ["undoArmed", "stepStarted"].map(String::from);
    assert!(!journal.iter().any(|entry| begun.contains(&name(entry))), "nothing was made");
}

/// The pinned binaries, with an API server that is told not to have flow control.
fn without_flow_control(dir: &Path) {
    let (versions, binaries) = pinned(0);
    let lay_down = |release: String, tools: &[&str]| {
        let release = dir.join(release);
        fs::create_dir_all(&release).unwrap();
        for tool in tools {
            symlink(binaries.path(tool), release.join(tool)).unwrap();
        }
        release
    };
    lay_down(format!("etcd-{}", versions.etcd), &["etcd", "etcdctl", "etcdutl"]);
    let others = ["kube-controller-manager", "kube-scheduler", "kubectl"];
    let path = lay_down(format!("kubernetes-{}", versions.kubernetes), &others).join("kube-apiserver");
    let server = binaries.path("kube-apiserver");
    let script =
        format!("#!/bin/sh\nexec {} --enable-priority-and-fairness=false \"$@\"\n", server.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn start(site: &Site, drill: &str, name: &str, killed_after: &str) -> Run {
    site.start_in(&site.lab.root().join(name), drill, &[], killed_after)
}

/// Names of all that gives rights outside of the namespaces that drills make.
fn rights(site: &Site) -> String {
    let cluster = site.lab.kubectl(STANDING, "get clusterroles,clusterrolebindings -o name").succeeded();
    cluster + &site.lab.kubectl(STANDING, "get roles,rolebindings -n kube-system -o name").succeeded()
}

/// UID, annotations, labels and spec by kind and name.
type Objects = BTreeMap<String, Value>;

/// Every object of flow control, seen from outside.
fn flow_control(site: &Site) -> Objects {
    let kinds =
        "flowschemas.flowcontrol.apiserver.k8s.io,prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
    let text = site.lab.kubectl(STANDING, &format!("get {kinds} -o json")).succeeded();
    let list: Value = serde_json::from_str(&text).unwrap();
    let object = |item: &Value| {
        let meta = &item["metadata"];
        let what = serde_json::json!([meta["uid"], meta["annotations"], meta["labels"], item["spec"]]);
        (format!("{} {}", item["kind"], meta["name"]), what)
    };
    list["items"].as_array().unwrap().iter().map(object).collect()
}

/// Where requests of the one go who undoes: no level of a drill can hold them up.
fn level_of_observer(site: &Site) -> String {
    let cluster = site.lab.attach(STANDING);
    let server = ComponentId("kube-apiserver-1".to_owned());
    let identity = cluster.identity(OBSERVER_USER, &[]).unwrap();
    let endpoint = cluster.endpoint(&server).unwrap();
    let uid = block_on(async {
        let connector = Connector::new(cluster.dialer(), &endpoint, &identity, Protocol::Http2).unwrap();
        let connections = Connections::new(connector, Protocol::Http2, 1, Arc::new(SystemClock::new()));
        connections.exchange(Outgoing::get("/version".to_owned())).await.seen.level.unwrap()
    });
    let levels = flow_control(site).into_iter().filter(|(name, _)| name.contains("PriorityLevel"));
    let (name, _) = levels.into_iter().find(|(_, what)| what[0] == uid.as_str()).unwrap();
    name.rsplit(' ').next().unwrap().trim_matches('"').to_owned()
}
