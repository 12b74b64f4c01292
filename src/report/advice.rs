//! What would have prevented the harm, as commands for the versions at hand.

use super::model::Report;
use crate::check::restore_facts::EtcdRestoreFacts;

/// A way that the harm would not have come about.
pub(super) struct Advice {
    /// What to do.
    pub(super) title: String,
    /// Why it helps.
    pub(super) why: String,
    /// Commands, one a line.
    pub(super) commands: Vec<String>,
}

/// Revisions that etcd's documentation takes to cover a week at 1500 writes/s.
const USUAL_BUMP: u64 = 1_000_000_000;

/// Advice for every restore that left a client on the lost timeline.
pub(super) fn of(report: &Report) -> Vec<Advice> {
    let mut out = Vec::new();
    for facts in &report.facts.etcd_restore {
        out.extend(key(report));
        let harmed = facts.clients.iter().any(|c| c.on_lost_timeline() == Some(true));
        let cluster = report.clusters.iter().find(|c| c.name == facts.cluster);
        let (true, Some(cluster)) = (harmed, cluster) else { continue };
        out.extend(bump(facts, &cluster.versions.etcd));
        out.push(restart(facts));
    }
    out
}

/// Advice for a restore whose Secrets could not be decrypted.
fn key(report: &Report) -> Option<Advice> {
    let taken = report.steps.iter().any(|step| {
        step.kind == "restoreSnapshot"
            && step.planned["encryptionKey"].as_str().is_some_and(|key| key != "present")
    });
    taken.then(|| Advice {
        title: "Keep the encryption key apart from what it encrypts, and restore it with the snapshot".to_owned(),
        why: "A snapshot holds Secrets as the API servers encrypted them, and never the key. Without it, or with \
              another one under the same name, Secrets can be neither read nor listed, and API servers are not \
              ready; everything that is not encrypted works."
            .to_owned(),
        commands: vec![
            "# what --encryption-provider-config names, from every control plane machine, into a vault:".to_owned(),
            "sha256sum ENCRYPTION_CONFIG    # the same on every machine, and in the vault".to_owned(),
            "# before API servers are started on restored data: put it back at the same path".to_owned(),
        ],
    })
}

fn bump(facts: &EtcdRestoreFacts, etcd: &str) -> Option<Advice> {
    let lost = facts.revisions_lost;
    let enough = facts.bump.is_some_and(|bump| lost.is_some_and(|lost| bump > lost));
    if enough {
        return None;
    }
    let tool = restore_tool(etcd);
    let amount = USUAL_BUMP.max(lost.unwrap_or(0).saturating_mul(2));
    let lost = lost.map_or("an unknown number of".to_owned(), |n| n.to_string());
    Some(Advice {
        title: "Move the revision past everything that clients have seen, and mark the old ones compacted".to_owned(),
        why: format!(
            "This restore reused revisions that clients had already seen with other content ({lost} revisions \
             were lost). With both flags every watch at an old revision ends with 410 and its client lists \
             again; the API servers' caches are rebuilt as well. {tool} refuses either flag alone. A new token \
             keeps members of the lost cluster out."
        ),
        commands: vec![
            format!("{tool} snapshot restore SNAPSHOT.db \\"),
            "    --data-dir NEW_DATA_DIR --name MEMBER \\".to_owned(),
            "    --initial-cluster MEMBER=https://PEER:2380 --initial-advertise-peer-urls https://PEER:2380 \\".to_owned(),
            "    --initial-cluster-token NEW_TOKEN \\".to_owned(),
            format!("    --bump-revision {amount} --mark-compacted"),
            format!("{tool} version    # this run used {etcd}; the flags exist since etcd 3.4.27 (etcdctl) and 3.5.10"),
        ],
    })
}

/// `snapshot restore` moved from etcdctl to etcdutl with etcd 3.5.
fn restore_tool(etcd: &str) -> &'static str {
    let minor = etcd
        .trim_start_matches('v')
        .strip_prefix("3.")
        .and_then(|rest| rest.split('.').next().and_then(|minor| minor.parse::<u32>().ok()));
    if minor.is_some_and(|m| m < 5) { "etcdctl" } else { "etcdutl" }
}

fn restart(facts: &EtcdRestoreFacts) -> Advice {
    let here = if facts.api_servers_restarted {
        "Here the API servers were restarted, but clients kept watches at revisions of the lost timeline."
    } else {
        "Here the API servers kept running, and went on serving their caches of the lost timeline."
    };
    Advice {
        title: "Let nothing that remembers the lost timeline live through the restore".to_owned(),
        why: format!(
            "{here} A restart of the API servers rebuilds their caches; controllers, schedulers and kubelets \
             must be restarted too, because a watch that is merely reconnected resumes at the lost revision."
        ),
        commands: vec![
            "# 1. stop every kube-apiserver".to_owned(),
            "# 2. restore every etcd member from the same file, start etcd".to_owned(),
            "# 3. start every kube-apiserver".to_owned(),
            "# 4. restart every kube-controller-manager, kube-scheduler and kubelet, then your own controllers"
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::restore_tool;

    #[test]
    fn the_restore_command_is_of_the_tool_that_has_it() {
        assert_eq!(restore_tool("v3.4.36"), "etcdctl");
        assert_eq!(restore_tool("v3.5.21"), "etcdutl");
        assert_eq!(restore_tool("v3.7.3"), "etcdutl");
    }
}
