//! Findings: beside what was sealed, never part of it.

use crate::bundle::{bundle, copy_of};
use quakeproof::digest::sha256_hex;
use quakeproof::evidence::layout::RunDir;
use quakeproof::evidence::publish::{judge, publish};
use quakeproof::evidence::signature::key::SigningKey;
use quakeproof::evidence::verify::{Proof, verify};
use quakeproof::findings::{AttachError, Bundle, attach, draft, markdown, open_for, past, read};
use quakeproof::plan::Versions;
use std::fs;
use tempfile::TempDir;

const LATER: &str = "01990000-0000-7000-8000-00000000000b";

fn published(key: Option<&SigningKey>) -> (TempDir, RunDir) {
    let (root, dir) = copy_of(&bundle());
    publish(&dir, &[], key).unwrap();
    (root, dir)
}

/// A filled-in file for this bundle.
fn filled_in(dir: &RunDir) -> String {
    let bundle = Bundle::of(dir).unwrap();
    format!(
        "apiVersion: quakeproof.dev/v1alpha1\nkind: Findings\nrun: {}\nmanifestDigest: {}\n\
         reviewed: {{by: Ada, on: 2026-12-01}}\nnextDue: 2027-03-01\nfindings:\n\
         \x20 - name: no-drill\n    title: nothing was asked of the cluster\n    owner: platform\n    due: 2027-01-31\n\
         \x20   scope: v1.37.2\n    closedWhen: a run with objectives passes\n\
         \x20   acceptance: {{by: Grace, on: 2026-12-01, until: 2027-01-31, reason: no time}}\n",
        bundle.run, bundle.manifest_digest
    )
}

#[test]
fn attached_findings_leave_the_bundle_valid_and_are_told_for_what_they_are() {
    let key = SigningKey::generate().unwrap();
    let (_root, dir) = published(Some(&key));
    let text = filled_in(&dir);
    attach(&dir, "f.yaml", &text, false).unwrap();
    let verified = verify(dir.path(), &judge(), Some(&key.verifying())).unwrap();
    assert!(verified.is_valid() && verified.origin.proof == Proof::Proven, "{:?}", verified.first_difference);
    let attached = verified.attached.unwrap();
    assert_eq!(attached.sha256, sha256_hex(text.as_bytes()));
    assert!(attached.detail.contains("not part of what was sealed"), "{}", attached.detail);
    assert!(attached.detail.ends_with("1 findings, 1 open"), "{}", attached.detail);

    // Whoever changes them changes nothing that anybody vouched for, and that is said as well.
    fs::write(dir.findings(), "garbage").unwrap();
    let verified = verify(dir.path(), &judge(), Some(&key.verifying())).unwrap();
    assert!(verified.is_valid());
    assert!(verified.attached.unwrap().detail.contains("not findings of this bundle"));
}

#[test]
fn other_findings_are_replaced_only_when_that_is_said() {
    let (_root, dir) = published(None);
    let first = filled_in(&dir);
    attach(&dir, "f.yaml", &first, false).unwrap();
    attach(&dir, "f.yaml", &first, false).unwrap();
    let closed = format!("{first}    closedBy: {LATER}\n");
    assert!(matches!(attach(&dir, "f.yaml", &closed, false), Err(AttachError::Exists)));
    assert_eq!(fs::read_to_string(dir.findings()).unwrap(), first);
    attach(&dir, "f.yaml", &closed, true).unwrap();
    assert_eq!(fs::read_to_string(dir.findings()).unwrap(), closed);
}

#[test]
fn a_secret_does_not_become_part_of_a_bundle_by_way_of_findings() {
    let (_root, dir) = published(None);
    let text = filled_in(&dir).replace("no time", "\"password: correcthorse\"");
    let error = attach(&dir, "f.yaml", &text, false).unwrap_err();
    assert!(matches!(error, AttachError::Secret { .. }), "{error}");
    assert!(!dir.findings().exists() && !error.to_string().contains("correcthorse"), "{error}");
}

#[test]
fn a_draft_has_what_is_known_and_asks_for_the_rest() {
    let (_root, dir) = published(None);
    let bundle = Bundle { objectives: vec!["api-again".to_owned()], ..Bundle::of(&dir).unwrap() };
    let report = serde_json::json!({
        "run": {"drill": "lose-etcd"},
        "clusters": [{"versions": {"kubernetes": "v1.37.2", "etcd": "v3.7.3"}}],
        "objectives": [
            {"name": "lost-writes", "verdict": "pass", "reason": "none"},
            {"name": "api-again", "verdict": "fail", "reason": "took \"long\": 40 s # really\nyes"},
        ],
    });
    let text = draft(&bundle, &report);
    let errors = read("draft.yaml", &text, Some(&bundle)).unwrap_err();
    // A day that is not given is a mistake of form, which is told before what is missing in words.
    assert!(errors.to_string().contains("write it like `2027-01-31`"), "{errors}");
    let text = text.replace("due: \"\"", "due: 2027-01-31");
    let errors = read("draft.yaml", &text, Some(&bundle)).unwrap_err();
    assert!(errors.to_string().contains("name the person or team"), "{errors}");
    let findings =
        read("draft.yaml", &text.replace("owner: \"\"", "owner: platform"), Some(&bundle)).unwrap();
    assert_eq!(findings.findings.len(), 1, "what was met needs nobody to own it");
    assert_eq!(findings.findings[0].title, "took \"long\": 40 s # really\\nyes");
    assert_eq!(findings.findings[0].scope, "drill lose-etcd on Kubernetes v1.37.2, etcd v3.7.3");
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let (_root, dir) = published(None);
    let good = filled_in(&dir);
    let bundle = Bundle::of(&dir).unwrap();
    for (from, to, said, at) in [
        ("kind: Findings", "kind: Drill", "`Drill` is not Findings", "Drill"),
        ("owner: platform", "ower: platform", "unknown key `ower`", "ower"),
        ("owner: platform", "owner: ' '", "still to be filled in", "' '"),
        ("due: 2027-01-31", "due: soon", "`soon` is not a day", "soon"),
        ("due: 2027-01-31", "due: 2027-02-30", "is not a day", "2027-02-30"),
        ("    scope: v1.37.2\n", "", "key `scope` is missing", "name: no-drill"),
        ("until: 2027-01-31", "until: 2026-11-30", "ends before it begins", "2026-11-30"),
        ("name: no-drill", "name: No Drill", "is not a name", "No Drill"),
        ("    scope:", "    objective: speed\n    scope:", "no objective `speed`", "speed"),
        ("    scope:", "    closedBy: tomorrow\n    scope:", "not the id of a run", "tomorrow"),
        (&*bundle.manifest_digest, "00", "another bundle of this run", "00"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let shown = read("f.yaml", &text, Some(&bundle)).unwrap_err().to_string();
        assert!(shown.contains(said) && shown.contains("f.yaml:"), "{shown}");
        let line = shown.lines().find(|l| l.contains('^')).expect("carets");
        let marked = shown.lines().nth(3).unwrap();
        assert!(marked.contains(at) || line.contains('^'), "{shown}");
    }
    let own = format!("{good}    closedBy: {}\n", bundle.run);
    assert!(read("f.yaml", &own, None).unwrap_err().to_string().contains("found itself"));
    let other = good.replacen(&bundle.run, LATER, 1);
    assert!(read("f.yaml", &other, Some(&bundle)).unwrap_err().to_string().contains("are of run"));
    assert!(read("f.yaml", "", None).unwrap_err().to_string().contains("findings draft"));
    let twice = format!("{good}{}", &good[good.find("  - name").unwrap()..]);
    assert!(read("f.yaml", &twice, None).unwrap_err().to_string().contains("stands here twice"));
}

#[test]
fn what_is_open_on_the_same_versions_is_found_and_nothing_else() {
    let (_root, dir) = published(None);
    let versions = Versions { kubernetes: "v1.37.2".to_owned(), etcd: "v3.7.3".to_owned() };
    let open = || {
        let (all, unusable) = past([dir.path().to_owned()]);
        (open_for(&all, &versions).len(), unusable.len())
    };
    assert_eq!(open(), (0, 0));
    let text = filled_in(&dir);
    attach(&dir, "f.yaml", &text, false).unwrap();
    assert_eq!(open(), (1, 0), "an accepted finding is known, not gone");
    let (all, _) = past([dir.path().to_owned()]);
    let older = Versions { kubernetes: "v1.30.4".to_owned(), etcd: "v3.5.21".to_owned() };
    assert_eq!(open_for(&all, &older), []);
    attach(&dir, "f.yaml", &format!("{text}    closedBy: {LATER}\n"), true).unwrap();
    assert_eq!(open(), (0, 0));
    fs::write(dir.findings(), "garbage").unwrap();
    assert_eq!(open(), (0, 1));
}

#[test]
fn findings_in_markdown_stay_text() {
    let (_root, dir) = published(None);
    let text = filled_in(&dir).replace("owner: platform", "owner: \"|<b>[x](http://e.example)`\"");
    let shown = markdown(&read("f.yaml", &text, None).unwrap());
    assert!(shown.contains("Attached later: not part of what was sealed"), "{shown}");
    let active = shown.replace("\\]", "");
    assert!(!shown.contains("<b>") && !active.contains("](") && !shown.contains("http:"), "{shown}");
}
