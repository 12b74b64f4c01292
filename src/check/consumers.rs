//! What the cluster's own consumers did: acted on what was made, and on nothing that was lost.

use super::Judge;
use super::leases::Granted;
use super::restore_facts::{EtcdRestoreFacts, PredictionOutcome};
use crate::clock::MonoNs;
use crate::history::kind::ClientKind;
use crate::history::record::{Made, Op, Outcome};
use crate::plan::{Expected, Question};
use crate::timeline::clients::ClientLog;
use crate::timeline::consumed::{Item, items};
use crate::timeline::truth::{Side, side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object made so shortly before the end of the record may not have had its turn.
const AT_THE_END_NS: u64 = 5_000_000_000;

/// An object that was last looked at so long before the end of the record may have had it since.
const LAST_LOOK_NS: u64 = 10_000_000_000;

/// What one client saw of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerFacts {
    /// Client name.
    pub client: String,
    /// Kind: a `deployer` watches the controller manager, a `podCreator` the scheduler.
    pub kind: ClientKind,
    /// Objects made after the restore.
    pub made_after: u64,
    /// Of those, acted upon before the record ends.
    pub acted_after: u64,
    /// Of those, not seen acted upon, but made in the last 5 s of the record or last looked at more than
    /// 10 s before its end: it is not known.
    pub undecided: u64,
    /// Longest time from the creation of an object after the restore to the look that
    /// found it acted upon, nanoseconds; `null` when none was.
    pub slowest_after_ns: Option<u64>,
    /// The same before the fault.
    pub slowest_before_ns: Option<u64>,
    /// Objects acknowledged before the restore that were seen to be gone after it.
    pub lost: u64,
    /// Of those, with a ReplicaSet that was seen after they were gone; `null` for Pods,
    /// for which nothing is made.
    pub acted_on_lost: Option<u64>,
    /// Objects acknowledged before the snapshot was begun, and gone after the restore:
    /// somebody deleted them.
    pub deleted: u64,
    /// Lines that show an action on a lost object, or a deletion.
    pub evidence: Vec<String>,
}

/// Facts of every `deployer` and `podCreator`.
#[must_use]
pub fn consumer_facts(judge: &Judge) -> Vec<ConsumerFacts> {
    let kinds = [ClientKind::Deployer, ClientKind::PodCreator];
    judge.logs.iter().filter(|log| kinds.contains(&log.kind())).filter_map(|log| of(judge, log)).collect()
}

fn of(judge: &Judge, log: &ClientLog) -> Option<ConsumerFacts> {
    let boundaries = judge.boundaries();
    let restore = boundaries.restore().ok()?;
    let snapshot = boundaries.snapshots.iter().rfind(|s| s.name == restore.from);
    let fault = boundaries.fault()?.injecting.as_ref()?.mono_ns;
    let since = restore.restored_ns;
    let items = items(log);
    let on = |wanted: Side| items.values().filter(move |i| side(since, i.made.call, i.made.ret) == wanted);
    let slowest = |all: &mut dyn Iterator<Item = &Item>| {
        all.filter_map(|i| Some(i.acted.as_ref()?.ret.since(i.made.ret))).max()
    };
    let gone = |i: &&Item| i.gone.as_ref().is_some_and(|g| g.call >= since);
    let kept = |i: &&Item| snapshot.is_some_and(|s| i.made.ret <= s.call_ns);
    let acted_on_lost: Vec<&Item> = on(Side::Lost).filter(|i| !i.acted_while_gone.is_empty()).collect();
    let deleted: Vec<&Item> = on(Side::Lost).filter(gone).filter(kept).collect();
    let mut evidence: Vec<String> =
        acted_on_lost.iter().filter_map(|i| i.acted_while_gone.first()).map(|l| l.line.clone()).collect();
    evidence.extend(deleted.iter().filter_map(|i| i.gone.as_ref()).map(|l| l.line.clone()));
    Some(ConsumerFacts {
        client: log.name().to_owned(),
        kind: log.kind(),
        made_after: on(Side::Restored).count() as u64,
        acted_after: on(Side::Restored).filter(|i| i.acted.is_some()).count() as u64,
        undecided: on(Side::Restored).filter(|i| is_undecided(i, log.end())).count() as u64,
        slowest_after_ns: slowest(&mut on(Side::Restored)),
        slowest_before_ns: slowest(&mut items.values().filter(|i| i.made.ret < fault)),
        lost: on(Side::Lost).filter(gone).count() as u64,
        acted_on_lost: (log.kind() == ClientKind::Deployer).then_some(acted_on_lost.len() as u64),
        deleted: deleted.len() as u64,
        evidence,
    })
}

fn is_undecided(item: &Item, end: Option<MonoNs>) -> bool {
    let looked = item.there.as_ref().map_or(item.made.ret, |look| look.call);
    item.acted.is_none()
        && end.is_none_or(|end| end.since(item.made.ret) < AT_THE_END_NS || end.since(looked) > LAST_LOOK_NS)
}

/// Predictions about leases, leaders and consumers, held against what was seen.
#[must_use]
pub fn predictions(judge: &Judge, facts: &EtcdRestoreFacts) -> Vec<PredictionOutcome> {
    let plan = &judge.input.plan;
    let row = |p: &crate::plan::ConsumerPrediction| {
        let seen = judge.log(&p.client).map_or_else(
            || Err("it left no history".to_owned()),
            |log| answer(judge, log, p.question, facts),
        );
        let (yes, no) = words(p.question);
        PredictionOutcome {
            subject: p.client.clone(),
            what: topic(p.question).to_owned(),
            predicted: match p.expected {
                Expected::Yes => yes.to_owned(),
                Expected::No => no.to_owned(),
                Expected::Perhaps => format!("{yes}, or {no}"),
            },
            observed: match &seen {
                Ok(true) => yes.to_owned(),
                Ok(false) => no.to_owned(),
                Err(why) => format!("unknown: {why}"),
            },
            agrees: seen.ok().map(|seen| match p.expected {
                Expected::Yes => seen,
                Expected::No => !seen,
                Expected::Perhaps => true,
            }),
            source: p.source.clone(),
        }
    };
    plan.consumers.iter().map(row).collect()
}

fn topic(question: Question) -> &'static str {
    match question {
        Question::LeasesComeBack => "etcd leases given back after the snapshot",
        Question::LeasesAreGone => "etcd leases granted after the snapshot",
        Question::TwoLead => "leaders of the Lease",
        Question::EventsRefused => "Events after the restore",
        Question::ActsOnAll => "objects made after the restore",
    }
}

/// What was so, and what was not.
fn words(question: Question) -> (&'static str, &'static str) {
    match question {
        Question::LeasesComeBack => ("back with all of their time", "not back with all of their time"),
        Question::LeasesAreGone => ("not found", "found"),
        Question::TwoLead => ("two at once", "one at a time"),
        Question::EventsRefused => ("refused for a lease that is gone", "not refused for their lease"),
        Question::ActsOnAll => ("all acted upon", "not all acted upon"),
    }
}

fn answer(
    judge: &Judge,
    log: &ClientLog,
    question: Question,
    facts: &EtcdRestoreFacts,
) -> Result<bool, String> {
    let own = || facts.leases.iter().filter(|l| l.client == log.name());
    match question {
        Question::LeasesComeBack => {
            let back = own().filter(|l| l.granted == Granted::BeforeSnapshot && l.given_back_before_loss);
            // One that is not listed any more is not back.
            all(
                back.map(|l| Some(l.came_back_with_full_ttl == Some(true))),
                "none was given back after the snapshot",
            )
        }
        Question::LeasesAreGone => {
            let later = own().filter(|l| l.granted == Granted::AfterSnapshot && !l.given_back_before_loss);
            all(later.map(|l| l.not_found), "none was granted after the snapshot and held at the loss")
        }
        Question::TwoLead => {
            let mut leaders = facts.leaders.iter().filter(|l| l.clients.iter().any(|c| c == log.name()));
            let leader = leaders.next().ok_or("nobody stood for election")?;
            match (leader.overlap_ns, log.incomplete()) {
                (Some(overlap), _) if overlap > 0 => Ok(true),
                (_, Some(why)) => Err(why),
                (overlap, None) => overlap.map(|_| false).ok_or_else(|| "beliefs are not known".to_owned()),
            }
        }
        Question::EventsRefused => {
            let since = judge.boundaries().restore()?.restored_ns;
            let events = |(_, op): &(usize, &crate::history::record::OpRecord)| {
                op.call_ns >= since && matches!(op.op, Op::Make { what: Made::Event, .. })
            };
            let refused = |outcome: &Outcome| matches!(outcome, Outcome::Failed { reason, .. } if reason == "lease-not-found");
            if log.ops().filter(events).any(|(_, op)| refused(&op.outcome)) {
                return Ok(true);
            }
            let written = log.ops().filter(events).any(|(_, op)| matches!(op.outcome, Outcome::Ok(_)));
            written.then_some(false).ok_or_else(|| "no Event was written after the restore".to_owned())
        }
        Question::ActsOnAll => {
            let consumer = facts.consumers.iter().find(|c| c.client == log.name());
            let consumer = consumer.ok_or("nothing is known of it")?;
            if consumer.made_after == 0 {
                return Err("nothing was made after the restore".to_owned());
            }
            let waiting = consumer.made_after - consumer.acted_after;
            if waiting > consumer.undecided {
                return Ok(false);
            }
            if consumer.acted_after == 0 {
                return Err("it is not known of any object that was made after the restore".to_owned());
            }
            Ok(true)
        }
    }
}

/// Whether it is so for all; an unknown one leaves it open unless another is not so.
fn all(each: impl Iterator<Item = Option<bool>>, none: &str) -> Result<bool, String> {
    let each: Vec<Option<bool>> = each.collect();
    match each.as_slice() {
        [] => Err(none.to_owned()),
        each if each.contains(&Some(false)) => Ok(false),
        each if each.contains(&None) => Err("not all were asked for after the restore".to_owned()),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::consumed::Look;

    const S: u64 = 1_000_000_000;

    fn look(second: u64) -> Look {
        Look {
            call: MonoNs(second * S),
            ret: MonoNs(second * S),
            line: "histories/deployer.jsonl#2".to_owned(),
        }
    }

    fn item(made: u64, looked: Option<u64>, acted: Option<u64>) -> Item {
        Item {
            made: look(made),
            acted: acted.map(look),
            gone: None,
            there: looked.map(look),
            acted_while_gone: Vec::new(),
        }
    }

    #[test]
    fn an_object_that_nobody_looked_at_lately_proves_nothing() {
        let end = Some(MonoNs(60 * S));
        assert!(!is_undecided(&item(20, Some(55), None), end), "seen to wait for 35 s");
        assert!(is_undecided(&item(20, Some(24), None), end), "it may have had its turn since");
        assert!(is_undecided(&item(20, None, None), end), "never looked at");
        assert!(is_undecided(&item(57, Some(59), None), end), "made a moment ago");
        assert!(is_undecided(&item(20, Some(55), None), None), "a record without an end");
        assert!(!is_undecided(&item(20, Some(24), Some(23)), end), "acted upon");
    }

    #[test]
    fn five_seconds_are_a_turn_and_a_look_ten_seconds_ago_is_not_too_old() {
        let end = Some(MonoNs(60 * S));
        assert!(!is_undecided(&item(55, Some(59), None), end));
        assert!(!is_undecided(&item(20, Some(50), None), end));
        let (mut late, mut old) = (item(55, Some(59), None), item(20, Some(50), None));
        late.made.ret.0 += 1;
        old.there.as_mut().unwrap().call.0 -= 1;
        assert!(is_undecided(&late, end) && is_undecided(&old, end));
    }

    #[test]
    fn one_that_is_not_so_settles_it_whatever_is_not_known() {
        let of = |each: &[Option<bool>]| all(each.iter().copied(), "none");
        assert_eq!(of(&[]), Err("none".to_owned()));
        assert_eq!(of(&[Some(true), Some(true)]), Ok(true));
        assert_eq!(of(&[Some(true), None, Some(false)]), Ok(false));
        assert_eq!(of(&[Some(true), None]), Err("not all were asked for after the restore".to_owned()));
    }
}
