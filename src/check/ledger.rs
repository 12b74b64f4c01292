//! What became of every write: kept, lost, indeterminate, or never asked for.

use crate::clock::MonoNs;
use crate::history::ids::IdSet;
use crate::history::kind::ClientKind;
use crate::timeline::Timeline;
use crate::timeline::clients::ClientLog;
use crate::timeline::truth::{Side, Truth, side};
use crate::timeline::writes::{Told, Write};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The ledger after the drill. Figures are `None` where the evidence does not
/// give them; `reason` then says why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerAccount {
    /// Writes acknowledged in all.
    pub acked: u64,
    /// Of those, before the loss: `kept` and `lost` add up to it.
    pub acked_before_loss: u64,
    /// Of those, after the restore.
    pub acked_after_restore: u64,
    /// Acknowledged before the loss and in etcd after the restore.
    pub kept: Option<u64>,
    /// Acknowledged before the loss and not in etcd after the restore.
    pub lost: Option<u64>,
    /// Acknowledged after the restore and yet not in etcd: no restore explains that.
    pub lost_after_restore: Option<u64>,
    /// Writes that were refused: certain not to have taken effect.
    pub refused: u64,
    /// Writes without a definite answer.
    pub indeterminate: u64,
    /// Of those, in etcd: they took effect.
    pub applied: Option<u64>,
    /// Of those, not in etcd.
    pub not_applied: Option<u64>,
    /// Writes of either kind that no reading of etcd came late enough to settle.
    pub unsettled: Option<u64>,
    /// In etcd, but never asked for or definitely refused.
    pub phantom: Option<u64>,
    /// Why a figure is missing.
    pub reason: Option<String>,
}

/// How much time's worth of acknowledged writes was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTime {
    /// Best estimate; `None` when no write was kept.
    pub observed: Option<u64>,
    /// Not less than this.
    pub lower: u64,
    /// Not more; `None` when no write was kept.
    pub upper: Option<u64>,
    /// The last write that was kept, as far as they were kept without a hole.
    pub last_kept: Option<Write>,
    /// The last write that was acknowledged before the loss.
    pub last_acked: Option<Write>,
}

/// The account with the lost writes themselves.
#[derive(Debug, Clone, Default)]
pub struct Accounting {
    /// Figures.
    pub account: LedgerAccount,
    /// Lost time; `None` when it can't be told.
    pub lost_time: Option<LostTime>,
    /// Ids that were acknowledged before the loss and are gone.
    pub lost_ids: IdSet,
    /// Lines of the first and last lost write.
    pub evidence: Vec<String>,
}

/// Settles every write of the ledger against etcd's state after the restore.
#[must_use]
pub fn accounting(timeline: &Timeline, logs: &[ClientLog]) -> Accounting {
    let acked = |w: &&Write| matches!(w.told, Told::Acked(_));
    let mut account = LedgerAccount {
        acked: timeline.writes.iter().filter(acked).count() as u64,
        refused: timeline.writes.iter().filter(|w| w.told == Told::Refused).count() as u64,
        indeterminate: timeline.writes.iter().filter(|w| w.told == Told::Unknown).count() as u64,
        ..LedgerAccount::default()
    };
    // Without a writer's history nothing says what was acknowledged: none lost is not known either.
    let mut writers = logs.iter().filter(|log| log.kind() == ClientKind::LedgerWriter);
    if let Some(missing) = writers.find(|log| log.records.is_empty()) {
        let empty = || format!("the history of {} is empty", missing.name());
        account.reason = Some(missing.incomplete().filter(|_| missing.cut.is_some()).unwrap_or_else(empty));
        return Accounting { account, ..Accounting::default() };
    }
    let Some(restored) = &timeline.restored else {
        account.acked_before_loss = account.acked;
        if timeline.boundaries.restores.is_empty() {
            return unbroken(timeline, logs, account);
        }
        account.reason = timeline.boundaries.restore().err();
        return Accounting { account, ..Accounting::default() };
    };
    let before: Vec<&Write> =
        timeline.writes.iter().filter(acked).filter(|w| !restored.has_taken(w)).collect();
    account.acked_before_loss = before.len() as u64;
    account.acked_after_restore = account.acked - account.acked_before_loss;
    let truth = match &restored.truth {
        Ok(truth) => truth,
        Err(reason) => {
            account.reason = Some(reason.clone());
            return Accounting { account, ..Accounting::default() };
        }
    };
    let (kept, lost): (Vec<&Write>, Vec<&Write>) =
        before.into_iter().partition(|w| truth.revision_of(w.id).is_some());
    account.kept = Some(kept.len() as u64);
    account.lost = Some(lost.len() as u64);
    settle_the_rest(timeline, truth, restored.since, &mut account);
    account.phantom = phantoms(timeline, truth, logs);
    if account.phantom.is_none() {
        account.reason =
            Some("writes under way when a writer's history broke off can't be told from phantoms".to_owned());
    }
    let evidence = match (lost.first(), lost.last()) {
        (Some(first), Some(last)) if first.line != last.line => vec![first.line.clone(), last.line.clone()],
        (Some(first), _) => vec![first.line.clone()],
        _ => Vec::new(),
    };
    let lost_ids = lost.iter().map(|w| w.id).collect();
    Accounting { lost_time: lost_time(&kept, &lost), account, lost_ids, evidence }
}

/// The account of a run that restored nothing. There is one timeline, so whatever was
/// acknowledged on it has to be there: before the fault, during it, or after it.
fn unbroken(timeline: &Timeline, logs: &[ClientLog], mut account: LedgerAccount) -> Accounting {
    let truth = match Truth::unbroken(logs, &timeline.writes) {
        Ok(truth) => truth,
        Err(reason) => {
            account.reason = Some(reason);
            return Accounting { account, ..Accounting::default() };
        }
    };
    let acked = timeline.writes.iter().filter(|w| matches!(w.told, Told::Acked(_)));
    let (kept, missing): (Vec<&Write>, Vec<&Write>) = acked.partition(|w| truth.revision_of(w.id).is_some());
    let (lost, unsettled): (Vec<&Write>, Vec<&Write>) =
        missing.into_iter().partition(|w| truth.read_after(w.ret));
    settle_the_rest(timeline, &truth, MonoNs(u64::MAX), &mut account);
    account.kept = Some(kept.len() as u64);
    account.lost = Some(lost.len() as u64);
    account.unsettled = account.unsettled.map(|n| n + unsettled.len() as u64);
    account.phantom = phantoms(timeline, &truth, logs);
    let evidence = lost.first().map(|w| w.line.clone()).into_iter().collect();
    let lost_ids = lost.iter().map(|w| w.id).collect();
    Accounting { lost_time: lost_time(&kept, &lost), account, lost_ids, evidence }
}

fn settle_the_rest(timeline: &Timeline, truth: &Truth, since: MonoNs, account: &mut LedgerAccount) {
    let (mut lost_after, mut applied, mut not_applied, mut unsettled) = (0, 0, 0, 0);
    for write in &timeline.writes {
        let there = truth.revision_of(write.id).is_some();
        let settled = there || truth.read_after(write.ret);
        match write.told {
            Told::Acked(_) if side(since, write.call, write.ret) == Side::Restored => {
                lost_after += u64::from(!there && settled);
                unsettled += u64::from(!settled);
            }
            Told::Unknown => {
                applied += u64::from(there);
                not_applied += u64::from(!there && settled);
                unsettled += u64::from(!settled);
            }
            Told::Acked(_) | Told::Refused => {}
        }
    }
    account.lost_after_restore = Some(lost_after);
    account.applied = Some(applied);
    account.not_applied = Some(not_applied);
    account.unsettled = Some(unsettled);
}

/// Objects that nobody is on record to have written. A history that broke off may
/// hide the last writes, so ids beyond the last recorded one are then not counted.
fn phantoms(timeline: &Timeline, truth: &Truth, logs: &[ClientLog]) -> Option<u64> {
    let mut writers = logs.iter().filter(|l| l.kind() == ClientKind::LedgerWriter);
    let mut refused: BTreeMap<u64, bool> = BTreeMap::new();
    for write in &timeline.writes {
        *refused.entry(write.id).or_insert(true) &= write.told == Told::Refused;
    }
    let stray: Vec<u64> =
        truth.objects().keys().copied().filter(|id| refused.get(id).copied().unwrap_or(true)).collect();
    let last = refused.keys().next_back().copied();
    if stray.iter().any(|id| Some(*id) > last) && writers.any(|log| log.incomplete().is_some()) {
        return None;
    }
    Some(stray.len() as u64)
}

fn lost_time(kept: &[&Write], lost: &[&Write]) -> Option<LostTime> {
    let revision = |w: &&Write| match w.told {
        Told::Acked(revision) => revision,
        _ => None,
    };
    if lost.is_empty() {
        let last = kept.iter().max_by_key(|w| w.ret).map(|w| (*w).clone());
        return Some(LostTime {
            observed: Some(0),
            lower: 0,
            upper: Some(0),
            last_kept: last.clone(),
            last_acked: last,
        });
    }
    let last_acked = *kept.iter().chain(lost).max_by_key(|w| w.ret)?;
    // A kept write behind a lost one does not bring the lost one back.
    let first_hole = lost.iter().filter_map(revision).min();
    let last_kept = kept
        .iter()
        .filter(|w| match (revision(w), first_hole) {
            (Some(own), Some(hole)) => own < hole,
            _ => true,
        })
        .max_by_key(|w| w.ret)
        .copied();
    Some(match last_kept {
        Some(kept) => LostTime {
            observed: Some(last_acked.ret.since(kept.ret)),
            lower: last_acked.call.since(kept.ret),
            upper: Some(last_acked.ret.since(kept.call)),
            last_kept: Some(kept.clone()),
            last_acked: Some(last_acked.clone()),
        },
        None => LostTime {
            observed: None,
            lower: lost.iter().map(|w| w.ret).min().map_or(0, |first| last_acked.call.since(first)),
            upper: None,
            last_kept: None,
            last_acked: Some(last_acked.clone()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(id: u64, at: u64, revision: Option<u64>) -> Write {
        let (call, ret) = (MonoNs(at), MonoNs(at + 1));
        Write { id, call, ret, told: Told::Acked(revision), line: format!("histories/orders.jsonl#{id}") }
    }

    #[test]
    fn a_kept_write_whose_revision_is_above_a_lost_one_does_not_bring_that_back() {
        let last_kept = |kept: Option<u64>| {
            let (kept, lost) = (acked(1, 30, kept), acked(2, 20, Some(5)));
            lost_time(&[&kept], &[&lost]).unwrap().last_kept
        };
        assert!(last_kept(Some(4)).is_some());
        assert!(last_kept(Some(6)).is_none());
        assert!(last_kept(None).is_some());
    }
}
