//! Runs held against other runs: recorded on real clusters, twins of them, and whole bundles through the command.

#[allow(dead_code, reason = "shared with the tests of evidence, which use all of it")]
#[path = "evidence/bundle.rs"]
mod bundle;
#[path = "support/recorded_run.rs"]
mod recorded_run;

use assert_cmd::Command;
use bundle::{bundle, copy_of};
use quakeproof::apf::answer::Class;
use quakeproof::compare::{Comparison, Outcome, Overall, Run, Sides, compare};
use quakeproof::evidence::publish::publish;
use quakeproof::history::record::{Answer, OpRecord, Outcome as Answered, Record};
use quakeproof::journal::entry::{Fact, JournalEvent};
use quakeproof::timeline::EvidenceInput;
use recorded_run::recorded_run;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const REJECT: [&str; 2] = ["zero-seat-reject-v1.30.4", "zero-seat-reject-v1.37.2"];
const QUEUE: [&str; 2] = ["seed-450-v1.30.4", "seed-450-v1.37.2"];

fn recorded(name: &str) -> EvidenceInput {
    recorded_run("apf", name)
}

fn held(a: &[&EvidenceInput], b: &[&EvidenceInput]) -> Comparison {
    let side = |inputs: &[&EvidenceInput]| inputs.iter().map(|input| Run::of(input)).collect();
    compare(&Sides { a: side(a), b: side(b) }).unwrap()
}

/// Subject and what of everything with this outcome.
fn those(comparison: &Comparison, outcome: Outcome) -> Vec<(&str, &str)> {
    let items = comparison.items.iter().filter(|item| item.outcome == outcome);
    items.map(|item| (item.subject.as_str(), item.what.as_str())).collect()
}

/// Requests of a client, in the order of recording.
fn requests<'a>(input: &'a mut EvidenceInput, client: &str) -> Vec<&'a mut OpRecord> {
    let records = input.histories.get_mut(client).unwrap().iter_mut();
    records.filter_map(|record| if let Record::Op(op) = record { Some(op) } else { None }).collect()
}

/// As if these had been executed; by the server's count too.
fn let_through(input: &mut EvidenceInput, client: &str, which: &[usize], server: &str, reason: &str) {
    let mut all = requests(input, client);
    for index in which {
        all[*index].exchange.as_mut().unwrap().class = Some(Class::Ok);
        all[*index].outcome = Answered::Ok(Answer::default());
    }
    let readings = input.journal.iter_mut().filter_map(|entry| match &mut entry.event {
        JournalEvent::Fact { fact: Fact::FlowMetrics { server: of, requests, .. } } if of.0 == server => {
            Some(requests)
        }
        _ => None,
    });
    let counts = readings.last().unwrap();
    for (name, more) in
        [("dispatched", true), ("waitsExecuteTrue", true), ("waitsExecuteFalse", false), (reason, false)]
    {
        let count = counts.get_mut(name).unwrap();
        let n = which.len() as u64;
        *count = if more { *count + n } else { *count - n };
    }
}

#[test]
fn a_recorded_run_is_the_same_as_itself() {
    for name in REJECT.iter().chain(&QUEUE) {
        let input = recorded(name);
        let found = held(&[&input], &[&input]);
        assert_eq!(found.overall, Overall::Same, "{name}: {}", found.reason);
        assert!(found.items.len() > 10, "{name}: {}", found.items.len());
    }
}

#[test]
fn both_versions_queue_alike() {
    let [old, new] = QUEUE.map(recorded);
    let found = held(&[&old], &[&new]);
    assert_eq!(found.overall, Overall::Same, "{}", found.reason);
    let versions = [&found.a[0], &found.b[0]].map(|head| head.versions.kubernetes.as_str());
    assert_eq!(versions, ["v1.30.4", "v1.37.2"]);
}

/// What comes through of a burst proves nothing, as the drill says, and so it makes neither version worse.
#[test]
fn what_no_objective_judges_is_a_change_and_makes_nothing_worse() {
    let [old, new] = REJECT.map(recorded);
    for (a, b) in [(&old, &new), (&new, &old)] {
        let found = held(&[a], &[b]);
        assert_eq!(found.overall, Overall::NotDistinguishable, "{}", found.reason);
        assert!(found.items.iter().all(|item| {
            let burst = item.subject == "burst on jail";
            item.outcome
                == if burst && item.outcome != Outcome::Same { Outcome::Changed } else { Outcome::Same }
        }));
        assert!(those(&found, Outcome::Changed).contains(&("burst on jail", "ok")));
    }
}

#[test]
fn a_jail_that_leaks_more_is_worse_and_the_other_way_round_better() {
    let good = recorded(REJECT[1]);
    let mut leaking = good.clone();
    let_through(&mut leaking, "held-1", &[7], "kube-apiserver-1", "rejected:concurrency-limit");
    let found = held(&[&good], &[&leaking]);
    assert_eq!(found.overall, Overall::Worse, "{}", found.reason);
    let worse = those(&found, Outcome::Worse);
    for expected in [
        ("leaks-one-at-a-time", "verdict"),
        ("held-1 on jail", "okWithoutShares"),
        ("kube-apiserver-1 on jail", "admitted while held"),
        ("kube-apiserver-1 on jail", "concurrent"),
    ] {
        assert!(worse.contains(&expected), "{expected:?} of {worse:?}");
    }
    let back = held(&[&leaking], &[&good]);
    assert_eq!(back.overall, Overall::Same, "{}", back.reason);
    assert_eq!(those(&back, Outcome::Better), worse);
}

#[test]
fn a_queue_that_lets_more_through_than_waited_is_worse() {
    let good = recorded(QUEUE[1]);
    let mut leaking = good.clone();
    let at_once: Vec<usize> = requests(&mut leaking, "batch")
        .iter()
        .enumerate()
        .filter(|(_, op)| {
            op.exchange.as_ref().unwrap().class == Some(Class::FlowControl)
                && op.return_ns.since(op.call_ns) < 1_000_000_000
        })
        .map(|(index, _)| index)
        .take(20)
        .collect();
    let_through(&mut leaking, "batch", &at_once, "kube-apiserver-1", "rejected:queue-full");
    let found = held(&[&good], &[&leaking]);
    assert_eq!(found.overall, Overall::Worse, "{}", found.reason);
    let worse = those(&found, Outcome::Worse);
    assert!(worse.contains(&("batch on jail", "queueFull")), "{worse:?}");
}

#[test]
fn one_answer_that_did_not_come_is_worse_though_the_objective_is_only_inconclusive() {
    let good = recorded(REJECT[1]);
    let mut unanswered = good.clone();
    requests(&mut unanswered, "after-1")[0].exchange.as_mut().unwrap().class = None;
    let found = held(&[&good], &[&unanswered]);
    assert_eq!(found.overall, Overall::Worse, "{}", found.reason);
    assert_eq!(those(&found, Outcome::Worse), [("after-1 on jail", "unanswered")]);
    assert!(
        those(&found, Outcome::NotDistinguishable).contains(&("leaks-one-at-a-time", "verdict")),
        "{found:?}"
    );
}

#[test]
fn a_run_that_proves_less_is_not_distinguishable() {
    let good = recorded(REJECT[1]);
    let mut late = good.clone();
    let exchange = requests(&mut late, "held-2").swap_remove(2).exchange.as_mut().unwrap();
    exchange.sent_ns = exchange.sent_ns.map(|sent| sent.plus(200_000_000));
    for (a, b) in [(&good, &late), (&late, &good), (&late, &late)] {
        let found = held(&[a], &[b]);
        assert_eq!(found.overall, Overall::NotDistinguishable, "{}", found.reason);
    }
}

#[test]
fn one_bad_run_of_several_is_not_told_from_chance_and_only_bad_ones_are() {
    let good = recorded(REJECT[1]);
    let mut leaking = good.clone();
    let_through(&mut leaking, "held-1", &[7], "kube-apiserver-1", "rejected:concurrency-limit");
    let mixed = held(&[&good, &good], &[&good, &leaking]);
    assert_eq!(mixed.overall, Overall::NotDistinguishable, "{}", mixed.reason);
    let bad = held(&[&good, &good], &[&leaking, &leaking]);
    assert_eq!(bad.overall, Overall::Worse, "{}", bad.reason);
}

#[test]
fn different_drills_are_refused() {
    let (a, b) = (Run::of(&recorded(REJECT[0])), Run::of(&recorded(QUEUE[0])));
    let refused = compare(&Sides { a: vec![a], b: vec![b] }).unwrap_err();
    assert!(refused.to_string().contains("`seed-450`, `zero-seat-reject`"), "{refused}");
}

struct Called {
    code: Option<i32>,
    out: String,
    err: String,
}

fn called(args: &[&str]) -> Called {
    let state = TempDir::new().unwrap();
    let mut command = Command::cargo_bin("quakeproof").unwrap();
    let output = command.env("QUAKEPROOF_STATE", state.path()).arg("compare").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Called { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn sample(verdict: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/samples").join(verdict);
    dir.to_str().unwrap().to_owned()
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn copy_of_sample(root: &TempDir, verdict: &str) -> PathBuf {
    let dir = root.path().join(verdict);
    copied(Path::new(&sample(verdict)), &dir);
    dir
}

#[test]
fn a_sample_is_the_same_as_itself_and_both_sides_are_named() {
    let pass = sample("pass");
    let Called { code, out, err } = called(&[&pass, "--with", &pass]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.starts_with("drill sample-restore, judged anew by quakeproof"), "{out}");
    assert!(out.contains("  A  ") && out.contains("  B  ") && out.contains("seed"), "{out}");
    assert!(out.lines().last().unwrap().starts_with("same: "), "{out}");
}

#[test]
fn a_restore_that_leaves_clients_on_the_lost_timeline_is_worse_than_one_that_does_not() {
    let (pass, fail) = (sample("pass"), sample("fail"));
    let Called { code, out, err } = called(&[&pass, "--with", &fail, "--json"]);
    assert_eq!(code, Some(1), "{out}{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["overall"], "worse");
    let items = json["items"].as_array().unwrap();
    let verdict = items.iter().find(|item| item["subject"] == "no-client-on-lost-timeline").unwrap();
    assert_eq!((&verdict["outcome"], &verdict["a"][0]["text"]), (&"worse".into(), &"met".into()));
    let rto =
        items.iter().find(|item| item["subject"] == "writes-again" && item["what"] == "figure").unwrap();
    assert_eq!(rto["outcome"], "not-distinguishable", "bounds overlap: {rto}");
    assert!(rto["a"][0]["upper"].as_u64() > rto["b"][0]["lower"].as_u64());
    assert!(json["notes"].to_string().contains("`bump`"), "{}", json["notes"]);
}

#[test]
fn a_run_that_was_interrupted_is_not_distinguishable_from_a_whole_one() {
    let Called { code, out, err } = called(&[&sample("pass"), "--with", &sample("inconclusive")]);
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(out.contains("not distinguishable"), "{out}");
}

#[test]
fn what_is_no_run_is_wrong_usage_with_a_hint() {
    let nowhere = TempDir::new().unwrap();
    let Called { code, out, err } =
        called(&[&sample("pass"), "--with", nowhere.path().to_str().unwrap(), "no-such-run"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.is_empty() && err.matches("error: ").count() == 2 && err.contains("hint:"), "{err}");
    assert_eq!(called(&[&sample("pass")]).code, Some(3));
}

#[test]
fn a_bundle_that_was_tampered_with_is_not_compared() {
    let root = TempDir::new().unwrap();
    let dir = copy_of_sample(&root, "fail");
    let history = dir.join("histories/orders.jsonl");
    let text = fs::read_to_string(&history).unwrap();
    let (kept, _) = text.trim_end().rsplit_once('\n').unwrap();
    fs::write(&history, format!("{kept}\n")).unwrap();
    let Called { code, out, err } = called(&[&sample("pass"), "--with", dir.to_str().unwrap()]);
    assert_eq!(code, Some(6), "{err}");
    assert!(out.is_empty() && err.contains("does not verify: histories/orders.jsonl"), "{err}");
    assert!(err.contains("hint: `quakeproof verify"), "{err}");
}

#[test]
fn bundles_of_different_drills_are_refused_by_the_command() {
    let (_root, other) = copy_of(&bundle());
    publish(&other, &[], None).unwrap();
    let other = other.path().to_str().unwrap();
    let Called { code, err, .. } = called(&[&sample("pass"), "--with", other]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("different drills: `lose-etcd`, `sample-restore`"), "{err}");
    let Called { code, out, err } = called(&[other, "--with", other]);
    assert_eq!(code, Some(2), "a drill that promises nothing: {out}{err}");
}
