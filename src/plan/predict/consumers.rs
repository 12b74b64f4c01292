//! What leases, leaders and the cluster's own consumers are predicted to do.
//!
//! The rules, and how each was established:
//! * etcd keeps leases in the snapshot and starts each with all of its time when a member
//!   becomes leader; a lease granted later is gone, whatever the procedure (executed on
//!   etcd 3.4.23, 3.5.21 and 3.7.3).
//! * An API server caches the etcd lease of its Events for up to 60 s. Whether it was
//!   granted before the snapshot can't be told in advance; a restarted API server has none
//!   (source of `lease_manager.go`).
//! * A leader whose own record comes back carries on; if the snapshot names an earlier
//!   leader that still runs, that one finds the record its own and leads too, until the
//!   later one has failed to renew for `renewDeadline` (source of client-go's
//!   `leaderelection`).
//! * Controllers learn of new objects through watches, so they share the fate of any
//!   plain watch: without a bump past the old revision, what is made before the restored
//!   store has passed it is never delivered to them. A restarted one lists again, and
//!   sees what is there if the API server that it asks was restarted too. So does one
//!   that is kept, if that API server refuses its watch outright while it starts.

use super::{Past, Procedure};
use crate::drill::spec::{Client, Drill, LeaderElector};
use crate::plan::{ConsumerPrediction, Expected, PlannedClient, Question, Versions};
use crate::step::restart::{Restart, Which};

/// Every prediction about clients that hold no view of the ledger.
pub(in crate::plan) fn predictions(
    drill: &Drill,
    versions: &Versions,
    clients: &[PlannedClient],
) -> Vec<ConsumerPrediction> {
    let (Some(procedure), Some((restore, _))) = (Procedure::of(drill, versions), super::restore(drill))
    else {
        return Vec::new();
    };
    let own = clients.iter().filter_map(|planned| Some((planned.spec.as_ref()?, &planned.target)));
    own.flat_map(|(client, target)| of(client, &procedure.with(target), &restore.restart)).collect()
}

fn of(client: &Client, procedure: &Procedure<'_>, restart: &Restart) -> Vec<ConsumerPrediction> {
    let rows: Vec<(Question, Expected, String)> = match client {
        Client::LeaseKeeper(_) => {
            let seen = "executed on etcd 3.4.23, 3.5.21 and 3.7.3";
            vec![
                (
                    Question::LeasesComeBack,
                    Expected::Yes,
                    format!(
                        "the snapshot holds the lease, and a new etcd leader gives it all of its time ({seen})"
                    ),
                ),
                (
                    Question::LeasesAreGone,
                    Expected::Yes,
                    format!("the snapshot does not hold the lease ({seen})"),
                ),
            ]
        }
        Client::LeaderElector(elector) => vec![two_leaders(elector)],
        Client::EventWriter(_) => vec![events(procedure)],
        Client::Deployer(_) => vec![acts(procedure, &restart.controller_managers)],
        Client::PodCreator(_) => vec![acts(procedure, &restart.schedulers)],
        _ => Vec::new(),
    };
    let client = client.name();
    rows.into_iter()
        .map(|(question, expected, source)| ConsumerPrediction {
            client: client.to_owned(),
            question,
            expected,
            source,
        })
        .collect()
}

fn two_leaders(elector: &LeaderElector) -> (Question, Expected, String) {
    let from = "source of client-go's leaderelection";
    match elector.hand_over {
        None => (
            Question::TwoLead,
            Expected::No,
            format!(
                "the snapshot names the leader that still leads, which finds the record its own ({from})"
            ),
        ),
        Some(after) => (
            Question::TwoLead,
            Expected::Perhaps,
            format!(
                "the Lease is handed over every {after}: if that falls between snapshot and loss, the earlier \
                 leader finds the restored record its own while the later one believes on for up to {} ({from})",
                elector.renew_deadline
            ),
        ),
    }
}

fn events(procedure: &Procedure<'_>) -> (Question, Expected, String) {
    let from = "source of the API server's lease manager";
    if procedure.api_server_restarted {
        let why = format!("a restarted API server takes a new etcd lease for its Events ({from})");
        return (Question::EventsRefused, Expected::No, why);
    }
    let why = format!(
        "an API server uses one etcd lease for up to 60 s: if it was granted after the snapshot it is gone, and \
         Events are refused until the next one; if before, it came back ({from})"
    );
    (Question::EventsRefused, Expected::Perhaps, why)
}

fn acts(procedure: &Procedure<'_>, restarted: &Which) -> (Question, Expected, String) {
    let (expected, why) = match procedure.past {
        Past::No | Past::Perhaps if *restarted != Which::None && procedure.api_server_restarted => {
            (Expected::Yes, "it is restarted and lists again through an API server that is restarted too")
        }
        Past::Yes => (Expected::Yes, "its watches end with 410 and it lists again"),
        Past::No | Past::Perhaps if procedure.api_server_restarted => (
            Expected::Perhaps,
            "its watches wait for a revision that the restored store has not reached; but one that the API server \
             refuses while it starts (403 until its RBAC cache is filled; seen on 1.37.2) is followed by a list, \
             which heals it",
        ),
        Past::No => (
            Expected::No,
            "its watches wait for a revision that the restored store has not reached, and what is made before is \
             never delivered to it",
        ),
        Past::Perhaps => (
            Expected::Perhaps,
            "whether its watches end with 410 or wait in silence depends on how many revisions are lost",
        ),
    };
    (Question::ActsOnAll, expected, format!("{why} (rule of plain watches)"))
}

/// The objective `noTwoLeaders` in words.
pub(crate) fn leaders(drill: &Drill) -> Option<String> {
    super::restore(drill)?;
    let hand_over = drill
        .spec
        .clients
        .iter()
        .any(|client| matches!(client, Client::LeaderElector(LeaderElector { hand_over: Some(_), .. })));
    Some(if hand_over {
        "missed, if the Lease is handed over between snapshot and loss: the restored record names a leader that \
         has stepped down, and it leads beside the one that has not noticed"
            .to_owned()
    } else {
        "met: the leader at the loss is the one that the snapshot names".to_owned()
    })
}
