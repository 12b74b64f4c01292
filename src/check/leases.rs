//! What became of raw etcd leases: gone, or back with all of their time.

use super::Judge;
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{LeaseAction, Op, OpRecord, Outcome};
use crate::timeline::boundaries::SnapshotTaken;
use crate::timeline::clients::ClientLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Class of an answer that says that there is no such lease.
const NOT_FOUND: &str = "lease-not-found";

/// Two readings of whole seconds, rounded down, and the way there: what a lease may
/// seem to have gained without having been given it.
const ROUNDING_SECONDS: u64 = 2;

/// Where the grant of a lease lies from the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Granted {
    /// Acknowledged before the snapshot was begun, or written to by then.
    BeforeSnapshot,
    /// Asked for after the snapshot was there.
    AfterSnapshot,
    /// While it was taken.
    Meanwhile,
}

/// One etcd lease that the loss or the restore did something to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseFacts {
    /// Client that held it.
    pub client: String,
    /// Its id, hexadecimal.
    pub id: String,
    /// Seconds that it was granted for.
    pub granted_ttl_seconds: u64,
    /// Where its grant lies from the snapshot.
    pub granted: Granted,
    /// It had been given back before the loss.
    pub given_back_before_loss: bool,
    /// Seconds left at the last reading before the loss.
    pub ttl_before_seconds: Option<u64>,
    /// Seconds left at the first reading after the restore.
    pub ttl_after_seconds: Option<u64>,
    /// The restore gave it all of its time again: it had been given back, or had less left.
    pub came_back_with_full_ttl: Option<bool>,
    /// etcd said after the restore that there is no such lease.
    pub not_found: Option<bool>,
    /// Lines that this rests on.
    pub evidence: Vec<String>,
    /// Why figures above are `null`.
    pub reason: Option<String>,
}

struct Lease {
    granted_call: MonoNs,
    granted_ret: MonoNs,
    ttl: u64,
    attached_at: Option<u64>,
    given_back: Option<MonoNs>,
    before: Option<(MonoNs, u64)>,
    after: Option<(MonoNs, u64)>,
    kept_after: bool,
    not_found: Option<MonoNs>,
    lines: Vec<String>,
}

/// Leases granted before the restore that were there at the snapshot or at the loss, oldest first.
#[must_use]
pub fn lease_facts(judge: &Judge) -> Vec<LeaseFacts> {
    let boundaries = judge.boundaries();
    let Ok(restore) = boundaries.restore() else { return Vec::new() };
    let snapshot = boundaries.snapshots.iter().rfind(|s| s.name == restore.from);
    let Some(snapshot) = snapshot else { return Vec::new() };
    let keepers = judge.logs.iter().filter(|log| log.kind() == ClientKind::LeaseKeeper);
    keepers.flat_map(|log| of_keeper(log, snapshot, restore.restored_ns)).collect()
}

fn of_keeper(log: &ClientLog, snapshot: &SnapshotTaken, restored: MonoNs) -> Vec<LeaseFacts> {
    let mut leases: BTreeMap<&str, Lease> = BTreeMap::new();
    for (index, op) in log.ops() {
        take(&mut leases, op, restored, || log.line(index));
    }
    let mut leases: Vec<(&str, Lease)> = leases.into_iter().collect();
    leases.retain(|(_, l)| {
        let over = l.given_back.is_some_and(|at| at <= snapshot.call_ns);
        l.granted_ret < restored && (!over || l.after.is_some())
    });
    leases.sort_by_key(|(id, l)| (l.granted_ret, *id));
    leases.into_iter().map(|(id, l)| facts(log, id, l, snapshot, restored)).collect()
}

fn take<'a>(
    leases: &mut BTreeMap<&'a str, Lease>,
    op: &'a OpRecord,
    restored: MonoNs,
    line: impl FnOnce() -> String,
) {
    let Op::EtcdLease { action, lease, .. } = &op.op else { return };
    if let (LeaseAction::Grant, Outcome::Ok(answer)) = (action, &op.outcome) {
        let (Some(id), Some(ttl)) = (&answer.lease, answer.granted_ttl_seconds) else { return };
        let lease = Lease {
            granted_call: op.call_ns,
            granted_ret: op.return_ns,
            ttl,
            attached_at: None,
            given_back: None,
            before: None,
            after: None,
            kept_after: false,
            not_found: None,
            lines: vec![line()],
        };
        leases.insert(id, lease);
        return;
    }
    let Some(lease) = lease.as_ref().and_then(|id| leases.get_mut(id.as_str())) else { return };
    let after = op.call_ns >= restored;
    match (action, &op.outcome) {
        (LeaseAction::Attach, Outcome::Ok(answer)) => lease.attached_at = answer.revision,
        (LeaseAction::Revoke, Outcome::Ok(_)) if !after => {
            lease.given_back = Some(op.return_ns);
            lease.lines.push(line());
        }
        (LeaseAction::KeepAlive, Outcome::Ok(answer)) => {
            if after {
                lease.kept_after = true;
            } else if let Some(seconds) = answer.ttl_seconds {
                lease.before = Some((op.return_ns, seconds));
            }
        }
        (LeaseAction::TimeToLive, Outcome::Ok(answer)) => {
            let Some(seconds) = answer.ttl_seconds else { return };
            if !after {
                lease.before = Some((op.return_ns, seconds));
            } else if lease.after.is_none() && !lease.kept_after && lease.not_found.is_none() {
                lease.after = Some((op.return_ns, seconds));
                lease.lines.push(line());
            }
        }
        (_, Outcome::Failed { reason, .. }) if reason == NOT_FOUND && after && lease.not_found.is_none() => {
            lease.not_found = Some(op.return_ns);
            lease.lines.push(line());
        }
        _ => {}
    }
}

fn facts(log: &ClientLog, id: &str, l: Lease, snapshot: &SnapshotTaken, restored: MonoNs) -> LeaseFacts {
    let written_by_then = l.attached_at.is_some_and(|revision| revision <= snapshot.revision);
    let granted = if written_by_then || l.granted_ret <= snapshot.call_ns {
        Granted::BeforeSnapshot
    } else if l.granted_call >= snapshot.return_ns {
        Granted::AfterSnapshot
    } else {
        Granted::Meanwhile
    };
    let given_back_before_loss = l.given_back.is_some();
    let came_back_with_full_ttl = match (l.after, l.not_found) {
        (None, Some(_)) => Some(false),
        (None, None) => None,
        (Some((at, left)), _) => {
            let full = left.saturating_add(at.since(restored) / 1_000_000_000 + ROUNDING_SECONDS) >= l.ttl;
            let gained = given_back_before_loss
                || l.before.is_none_or(|(then, had)| {
                    let would_have = had.saturating_sub(at.since(then) / 1_000_000_000);
                    left > would_have.saturating_add(ROUNDING_SECONDS)
                });
            // Full either way: one that was kept alive a moment before the loss shows nothing.
            if full && !gained && l.before.is_some_and(|(_, had)| had + ROUNDING_SECONDS >= l.ttl) {
                None
            } else {
                Some(full && gained)
            }
        }
    };
    let not_found = match (l.not_found, l.after) {
        (Some(gone), Some((there, _))) => Some(gone < there),
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        (None, None) => None,
    };
    let reason = match (not_found, came_back_with_full_ttl) {
        (None, _) if given_back_before_loss => {
            Some("it had been given back and was not listed after the restore".to_owned())
        }
        (None, _) => Some("it was not asked for after the restore".to_owned()),
        (Some(false), None) => Some("it had all of its time before the loss too".to_owned()),
        _ => None,
    };
    LeaseFacts {
        client: log.name().to_owned(),
        id: id.to_owned(),
        granted_ttl_seconds: l.ttl,
        granted,
        given_back_before_loss,
        ttl_before_seconds: l.before.filter(|_| !given_back_before_loss).map(|(_, seconds)| seconds),
        ttl_after_seconds: l.after.map(|(_, seconds)| seconds),
        came_back_with_full_ttl,
        not_found,
        evidence: l.lines,
        reason,
    }
}
