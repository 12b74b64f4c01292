//! Who led, before and after, and when two did.

use super::Judge;
use crate::clock::MonoNs;
use crate::drill::spec::Client;
use crate::history::kind::ClientKind;
use crate::history::record::{Event, Op, Outcome};
use crate::timeline::clients::ClientLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One Lease and those who held it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderFacts {
    /// Name of the Lease.
    pub lease: String,
    /// Clients that tell of it.
    pub clients: Vec<String>,
    /// Holder at the last look before the fault.
    pub holder_before: Option<String>,
    /// Holder at the last look of the run.
    pub holder_after: Option<String>,
    /// How often the holder was another one than before, from the fault on.
    pub transitions: Option<u64>,
    /// For how long two or more believed at the same time that they led, nanoseconds.
    pub overlap_ns: Option<u64>,
    /// Each time that two did.
    pub overlaps: Vec<Overlap>,
    /// Why figures above are `null`.
    pub reason: Option<String>,
}

/// A time in which two candidates believed that they led.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overlap {
    /// Begin.
    pub from_ns: MonoNs,
    /// End; when it was not over by then, the end of the record.
    pub to_ns: MonoNs,
    /// Who believed so already.
    pub first: String,
    /// Who believed so too.
    pub second: String,
    /// Lines that this rests on.
    pub evidence: Vec<String>,
}

/// A time in which a candidate believed that it led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belief {
    /// Who.
    pub candidate: String,
    /// From when on.
    pub from: MonoNs,
    /// Until when; the end of the record where that does not say.
    pub to: MonoNs,
    /// Whether the record says when it ended.
    pub ended: bool,
    /// Lines that this rests on.
    pub lines: Vec<String>,
}

/// The Lease that a `leaderElector` competes for.
#[must_use]
pub fn lease_of<'a>(log: &ClientLog<'a>) -> Option<&'a str> {
    match &log.planned.spec {
        Some(Client::LeaderElector(elector)) => Some(elector.lease_name()),
        _ => None,
    }
}

/// Every `leaderElector` of the plan, by the Lease that it competes for.
#[must_use]
pub fn elections<'a, 'b>(logs: &'b [ClientLog<'a>]) -> BTreeMap<&'a str, Vec<&'b ClientLog<'a>>> {
    let mut by_lease: BTreeMap<&str, Vec<&ClientLog>> = BTreeMap::new();
    for log in logs {
        if let Some(lease) = lease_of(log) {
            by_lease.entry(lease).or_default().push(log);
        }
    }
    by_lease
}

/// What the candidates of these clients believed, by begin.
#[must_use]
pub fn beliefs(logs: &[&ClientLog]) -> Vec<Belief> {
    let mut all = Vec::new();
    for log in logs {
        let mut open: BTreeMap<&str, Belief> = BTreeMap::new();
        for (index, event) in log.events() {
            match &event.event {
                Event::Leading { candidate, .. } => {
                    let belief = Belief {
                        candidate: candidate.clone(),
                        from: event.at_ns,
                        to: event.at_ns,
                        ended: false,
                        lines: vec![log.line(index)],
                    };
                    all.extend(open.insert(candidate, belief));
                }
                Event::LeadingEnded { candidate, .. } => {
                    if let Some(mut belief) = open.remove(candidate.as_str()) {
                        (belief.to, belief.ended) = (event.at_ns, true);
                        belief.lines.push(log.line(index));
                        all.push(belief);
                    }
                }
                _ => {}
            }
        }
        let end = log.end();
        all.extend(open.into_values().map(|belief| Belief { to: end.unwrap_or(belief.to), ..belief }));
    }
    all.sort_by_key(|b| (b.from, b.to));
    all
}

/// Every pair of beliefs of different candidates that were held at the same time, by
/// begin. `beliefs` are sorted by begin.
#[must_use]
pub fn overlaps(beliefs: &[Belief]) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (i, first) in beliefs.iter().enumerate() {
        for second in &beliefs[i + 1..] {
            if second.from >= first.to {
                break;
            }
            if first.candidate != second.candidate {
                found.push(Overlap {
                    from_ns: second.from,
                    to_ns: first.to.min(second.to),
                    first: first.candidate.clone(),
                    second: second.candidate.clone(),
                    evidence: first.lines.iter().chain(&second.lines).cloned().collect(),
                });
            }
        }
    }
    found.sort_by_key(|o| (o.from_ns, o.to_ns));
    found
}

/// The time that overlaps take up together: instants that several share count once.
#[must_use]
pub fn total_ns(overlaps: &[Overlap]) -> u64 {
    let mut total = 0;
    let mut covered = MonoNs(0);
    for overlap in overlaps {
        let from = overlap.from_ns.max(covered);
        total += overlap.to_ns.since(from);
        covered = covered.max(overlap.to_ns);
    }
    total
}

/// Every Lease of the drill's own elections and of the cluster's components.
#[must_use]
pub fn leader_facts(judge: &Judge) -> Vec<LeaderFacts> {
    let fault = judge.boundaries().fault().and_then(|f| f.injecting.as_ref()).map(|m| m.mono_ns);
    let own = elections(&judge.logs).into_iter().map(|(lease, logs)| of_election(lease, &logs, fault));
    let watched = judge.logs.iter().filter(|log| log.kind() == ClientKind::LeaderLease);
    own.chain(watched.filter_map(|log| of_component(log, fault))).collect()
}

fn of_election(lease: &str, logs: &[&ClientLog], fault: Option<MonoNs>) -> LeaderFacts {
    let beliefs = beliefs(logs);
    let overlaps = overlaps(&beliefs);
    let incomplete = logs.iter().find_map(|log| log.incomplete());
    let holder_before = fault
        .and_then(|fault| beliefs.iter().rfind(|b| b.from < fault && b.to >= fault))
        .map(|b| &b.candidate);
    let end = logs.iter().filter_map(|log| log.end()).max();
    // The recorder closes just after the last belief is given up.
    let last = beliefs.iter().max_by_key(|b| (b.to, b.from));
    let holder_after = last.filter(|b| end.is_some_and(|end| end.since(b.to) < 1_000_000_000));
    let mut holder = holder_before;
    let mut transitions = 0;
    for belief in beliefs.iter().filter(|b| fault.is_some_and(|fault| b.from >= fault)) {
        transitions += u64::from(holder != Some(&belief.candidate));
        holder = Some(&belief.candidate);
    }
    let reason = incomplete
        .or_else(|| fault.is_none().then(|| "no fault was injected".to_owned()))
        .or_else(|| holder_before.is_none().then(|| "no candidate led at the fault".to_owned()))
        .or_else(|| holder_after.is_none().then(|| "no candidate led at the end of the record".to_owned()));
    LeaderFacts {
        lease: lease.to_owned(),
        clients: logs.iter().map(|log| log.name().to_owned()).collect(),
        holder_before: holder_before.cloned(),
        holder_after: holder_after.map(|b| b.candidate.clone()),
        transitions: fault.map(|_| transitions),
        overlap_ns: Some(total_ns(&overlaps)),
        overlaps,
        reason,
    }
}

fn of_component(log: &ClientLog, fault: Option<MonoNs>) -> Option<LeaderFacts> {
    let mut lease = None;
    let (mut before, mut after): (Option<&str>, Option<&str>) = (None, None);
    let mut transitions = 0;
    let mut last: Option<&str> = None;
    for (_, op) in log.ops() {
        let Op::Lease { name } = &op.op else { continue };
        lease.get_or_insert(name.as_str());
        let Outcome::Ok(answer) = &op.outcome else { continue };
        let Some(holder) = answer.holder.as_deref().filter(|h| !h.is_empty()) else { continue };
        let since_fault = fault.is_some_and(|fault| op.return_ns >= fault);
        if since_fault {
            transitions += u64::from(last.is_some_and(|last| last != holder));
            after = Some(holder);
        } else {
            before = Some(holder);
        }
        last = Some(holder);
    }
    Some(LeaderFacts {
        lease: lease?.to_owned(),
        clients: vec![log.name().to_owned()],
        holder_before: before.map(str::to_owned),
        holder_after: after.map(str::to_owned),
        transitions: fault.map(|_| transitions),
        overlap_ns: None,
        overlaps: Vec::new(),
        reason: Some("overlapNs: what the component itself believes is not observed".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::small::{closed, event, log};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn belief(candidate: &str, from: u64, to: u64) -> Belief {
        let lines = vec![format!("h#{from}")];
        Belief { candidate: candidate.to_owned(), from: MonoNs(from), to: MonoNs(to), ended: true, lines }
    }

    #[test]
    fn who_still_leads_when_the_record_is_closed_has_not_given_up() {
        let leading = Event::Leading { candidate: "a".to_owned(), revision: 1, transitions: 0 };
        let log = log(ClientKind::LeaderElector, vec![event(10, leading), closed(50)]);
        let held = beliefs(&[&log]).remove(0);
        assert_eq!((held.from, held.to, held.ended), (MonoNs(10), MonoNs(50), false));
    }

    #[test]
    fn one_who_takes_over_at_the_instant_at_which_the_other_gives_up_does_not_overlap() {
        let after = [belief("a", 0, 10), belief("b", 10, 20)];
        assert_eq!(overlaps(&after), []);
        let before = [belief("a", 0, 11), belief("b", 10, 20)];
        assert_eq!(total_ns(&overlaps(&before)), 1);
        let own = [belief("a", 0, 11), belief("a", 10, 20)];
        assert_eq!(overlaps(&own), [], "nobody overlaps with itself");
    }

    proptest! {
        /// Against counting instants.
        #[test]
        fn the_total_is_the_number_of_instants_at_which_two_believe(
            spans in proptest::collection::vec((0u8..4, 0u64..30, 1u64..10), 0..8),
        ) {
            let mut beliefs: Vec<Belief> = spans
                .iter()
                .map(|(who, from, long)| belief(&who.to_string(), *from, from + long))
                .collect();
            beliefs.sort_by_key(|b| (b.from, b.to));
            let two = |t: u64| {
                let now = beliefs.iter().filter(|b| b.from.0 <= t && t < b.to.0);
                now.map(|b| b.candidate.as_str()).collect::<BTreeSet<_>>().len() > 1
            };
            let counted = (0..50).filter(|t| two(*t)).count() as u64;
            prop_assert_eq!(total_ns(&overlaps(&beliefs)), counted);
        }
    }
}
