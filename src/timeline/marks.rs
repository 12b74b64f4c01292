//! The named instants that objectives measure between.

use super::clients::ClientLog;
use super::lanes::Lane;
use super::sustained::{After, Recovery, Sample, State, first_sustained};
use super::{Mark, Marked, Restored, Timeline};
use crate::clock::MonoNs;
use crate::drill::spec::Sustained;
use crate::history::kind::ClientKind;
use crate::history::record::Event;
use crate::journal::entry::{Entry, JournalEvent};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// The instant of the fault.
pub const FAULT: &str = "fault";
/// The first failed sample after it, of any client that was well off before.
pub const DETECTED: &str = "detected";
/// The restore command was given.
pub const RESTORE_COMMAND: &str = "restoreCommand";
/// etcd answers linearizable ranges again.
pub const ETCD_SERVING: &str = "etcdServing";
/// Every API server's readyz is ok again.
pub const API_READY: &str = "apiReady";
/// Ledger writes are acknowledged again.
pub const FIRST_GOOD_WRITE: &str = "firstGoodWrite";
/// Quorum GETs are right again.
pub const FIRST_GOOD_GET: &str = "firstGoodGet";
/// LISTs are equal to etcd's state again.
pub const FIRST_TRUE_LIST: &str = "firstTrueList";
/// Secrets are read and listed again.
pub const SECRETS_READABLE: &str = "secretsReadable";
/// Leader-elected components renew their leases again.
pub const CONTROLLERS_LEAD: &str = "controllersLead";
/// The controller manager acts on Deployments again.
pub const CONTROLLERS_ACT: &str = "controllersAct";
/// The scheduler judges Pods again.
pub const SCHEDULER_ACTS: &str = "schedulerActs";
/// Events are acknowledged again.
pub const EVENTS_WRITTEN: &str = "eventsWritten";
/// Every watcher has delivered an object that was acknowledged after the restore.
pub const ALL_WATCHES_LIVE: &str = "allWatchesLive";
/// The restored timeline is past every revision of the lost one.
pub const REVISION_PASSED: &str = "revisionPassedLost";

/// What comes back after a fault: a mark, and whose samples say when.
struct Capability {
    mark: &'static str,
    kind: ClientKind,
    /// When it is back where several clients say so.
    combine: Combine,
    /// What becomes of the mark in a drill without such a client.
    unmeasured: Unmeasured,
}

#[derive(Clone, Copy)]
enum Combine {
    First,
    Last,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unmeasured {
    /// It is named, with the reason why there is none.
    Named,
    /// Nobody speaks of it.
    Silent,
}

const fn back(mark: &'static str, kind: ClientKind, combine: Combine, unmeasured: Unmeasured) -> Capability {
    Capability { mark, kind, combine, unmeasured }
}

const CAPABILITIES: [Capability; 10] = [
    back(ETCD_SERVING, ClientKind::EtcdTruth, Combine::First, Unmeasured::Named),
    back(API_READY, ClientKind::ApiReady, Combine::Last, Unmeasured::Named),
    back(FIRST_GOOD_WRITE, ClientKind::LedgerWriter, Combine::Last, Unmeasured::Named),
    back(FIRST_GOOD_GET, ClientKind::GetReader, Combine::Last, Unmeasured::Named),
    back(FIRST_TRUE_LIST, ClientKind::ListReader, Combine::Last, Unmeasured::Named),
    back(SECRETS_READABLE, ClientKind::SecretReader, Combine::Last, Unmeasured::Silent),
    back(CONTROLLERS_LEAD, ClientKind::LeaderLease, Combine::Last, Unmeasured::Named),
    back(CONTROLLERS_ACT, ClientKind::Deployer, Combine::Last, Unmeasured::Silent),
    back(SCHEDULER_ACTS, ClientKind::PodCreator, Combine::Last, Unmeasured::Silent),
    back(EVENTS_WRITTEN, ClientKind::EventWriter, Combine::Last, Unmeasured::Silent),
];

/// Marks by name, or why there is none, and what recovery marks rest on.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// By name, in order of name.
    pub by_name: BTreeMap<String, Marked>,
    /// For recovery marks: also what holds when there is none.
    pub recoveries: BTreeMap<String, Recovery>,
}

impl Marks {
    /// A mark.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(&self, name: &str) -> Marked {
        self.by_name.get(name).cloned().unwrap_or_else(|| Err(format!("there is no mark `{name}`")))
    }
}

/// Finds every mark of a run.
#[must_use]
pub fn marks(timeline: &Timeline, plan: &Plan, journal: &[Entry]) -> Marks {
    let mut marks = Marks::default();
    let fault = fault(timeline);
    marks.by_name.insert(FAULT.to_owned(), fault.clone());
    marks.by_name.insert(RESTORE_COMMAND.to_owned(), restore_command(timeline));
    if let Ok(fault) = &fault {
        marks.by_name.insert(DETECTED.to_owned(), detected(&timeline.lanes, fault));
        for capability in &CAPABILITIES {
            capability.find(timeline, fault, plan.limits.sustained, &mut marks);
        }
    }
    if let Some(restored) = &timeline.restored {
        watches_live(timeline, restored, &mut marks);
        marks.by_name.insert(REVISION_PASSED.to_owned(), passed(restored));
    }
    for entry in journal {
        if let JournalEvent::Mark { name, lower_ns, upper_ns, source } = &entry.event {
            // What the evidence establishes stands; a mark in the journal only adds to it.
            marks.by_name.entry(name.clone()).or_insert_with(|| {
                Ok(Mark { name: name.clone(), lower: *lower_ns, upper: *upper_ns, source: source.clone() })
            });
        }
    }
    marks
}

impl Capability {
    fn find(&self, timeline: &Timeline, fault: &Mark, rule: Sustained, marks: &mut Marks) {
        let name = self.mark;
        let each: Vec<(String, Recovery)> = timeline
            .lanes
            .iter()
            .filter(|lane| lane.kind == self.kind)
            .map(|lane| (lane.client.clone(), recovery(name, lane, timeline, fault, rule)))
            .collect();
        if each.is_empty() && self.unmeasured == Unmeasured::Silent {
            return;
        }
        if each.len() > 1 {
            for (client, one) in &each {
                let name = format!("{name}:{client}");
                let mark = one.mark.clone().map(|m| Mark { name: name.clone(), ..m });
                marks.by_name.insert(name, mark);
            }
        }
        let all = combined(name, self.kind, each, self.combine, fault.lower);
        marks.by_name.insert(name.to_owned(), all.mark.clone());
        marks.recoveries.insert(name.to_owned(), all);
    }
}

fn fault(timeline: &Timeline) -> Marked {
    let fault = timeline.boundaries.fault().ok_or("no fault was injected")?;
    let begin = fault.injecting.as_ref().ok_or("no fault was injected")?;
    let end = fault
        .injected
        .as_ref()
        .filter(|m| m.boot == begin.boot)
        .ok_or("the journal does not say when the injection had taken effect")?;
    Ok(Mark {
        name: FAULT.to_owned(),
        lower: begin.mono_ns,
        upper: end.mono_ns,
        source: format!("{} to {}", begin.line, end.line),
    })
}

fn restore_command(timeline: &Timeline) -> Marked {
    let restore = timeline.boundaries.restore()?;
    Ok(Mark {
        name: RESTORE_COMMAND.to_owned(),
        lower: restore.command_ns,
        upper: restore.command_ns,
        source: restore.moment.line.clone(),
    })
}

fn detected(lanes: &[Lane], fault: &Mark) -> Marked {
    lanes
        .iter()
        .flat_map(|lane| failures_since(lane, fault.lower))
        .min_by_key(|s| (s.ret, s.call))
        .map(|s| Mark {
            name: DETECTED.to_owned(),
            lower: s.call,
            upper: s.ret,
            source: s.line.clone().unwrap_or_default(),
        })
        .ok_or_else(|| "no client noticed anything".to_owned())
}

/// Failed samples since `begin`. A client that was failing before says nothing of it until it has been well again.
fn failures_since(lane: &Lane, begin: MonoNs) -> impl Iterator<Item = &Sample> {
    let fails = |sample: &Sample| matches!(sample.state, State::Bad(_) | State::Wrong(_) | State::Unknown(_));
    let (before, since) = lane.samples.split_at(lane.samples.partition_point(|s| s.call < begin));
    let failed_before = before.iter().rfind(|s| fails(s) || s.state.is_good()).is_some_and(fails);
    since.iter().skip_while(move |s| failed_before && !s.state.is_good()).filter(move |s| fails(s))
}

fn recovery(name: &str, lane: &Lane, timeline: &Timeline, fault: &Mark, rule: Sustained) -> Recovery {
    let floor = timeline.end_floor();
    let after =
        After { lower: fault.lower, upper: fault.upper, floor: floor.clone().unwrap_or(MonoNs(u64::MAX)) };
    let mut found = first_sustained(name, &lane.samples, after, rule);
    if let Err(reason) = floor {
        found.mark = Err(reason);
    }
    // All of etcd was gone: whoever was answered rightly was answered by the restored one.
    if let Some(restored) = &timeline.restored {
        found.not_before = found.not_before.max(restored.since);
        found.mark =
            found.mark.map(|mark| Mark { lower: mark.lower.max(restored.since).min(mark.upper), ..mark });
    }
    found
}

/// Joins the recoveries of several clients of a kind: the first of them (any
/// etcd member serves) or the last (every API server must be ready).
fn combined(
    name: &str,
    kind: ClientKind,
    each: Vec<(String, Recovery)>,
    combine: Combine,
    fault: MonoNs,
) -> Recovery {
    if each.is_empty() {
        return Recovery { mark: Err(format!("no client of kind {kind:?} observed it")), not_before: fault };
    }
    let not_before = each.iter().map(|(_, r)| r.not_before);
    match combine {
        Combine::First => {
            let not_before = not_before.min().unwrap_or(fault);
            let failed = each.iter().find_map(|(_, r)| r.mark.clone().err());
            let mark = each
                .into_iter()
                .filter_map(|(_, r)| r.mark.ok())
                .min_by_key(|m| (m.upper, m.lower))
                .ok_or_else(|| failed.unwrap_or_default());
            Recovery { mark, not_before }
        }
        Combine::Last => {
            let not_before = not_before.max().unwrap_or(fault);
            let mut last: Option<Mark> = None;
            for (client, one) in each {
                match one.mark {
                    Err(reason) => {
                        return Recovery { mark: Err(format!("{client}: {reason}")), not_before };
                    }
                    Ok(mark) => last = Some(later(name, last, mark)),
                }
            }
            Recovery { mark: last.ok_or_else(String::new), not_before }
        }
    }
}

/// A watcher is live once it delivers an object that was acknowledged on the restored timeline.
fn watches_live(timeline: &Timeline, restored: &Restored, marks: &mut Marks) {
    let mut last: Option<Mark> = None;
    let mut never: Option<String> = None;
    for watch in &timeline.watches {
        let name = format!("watchLive:{}", watch.client);
        match watch.first_live.clone() {
            Some((lower, upper, source)) => {
                let mark = Mark { name: name.clone(), lower: lower.max(restored.since), upper, source };
                last = Some(later(ALL_WATCHES_LIVE, last, mark.clone()));
                marks.by_name.insert(name, Ok(mark));
            }
            None => {
                let reason =
                    format!("{} delivered no object that was acknowledged after the restore", watch.client);
                never.get_or_insert(reason.clone());
                marks.by_name.insert(name, Err(reason));
            }
        }
    }
    let all = match never {
        Some(reason) => Err(reason),
        None => last.ok_or_else(|| "there is no watcher".to_owned()),
    };
    marks.by_name.insert(ALL_WATCHES_LIVE.to_owned(), all);
}

/// The instant at which both marks have happened.
fn later(name: &str, so_far: Option<Mark>, mark: Mark) -> Mark {
    match so_far {
        None => Mark { name: name.to_owned(), ..mark },
        Some(so_far) => Mark {
            name: name.to_owned(),
            lower: so_far.lower.max(mark.lower),
            upper: so_far.upper.max(mark.upper),
            source: if mark.upper > so_far.upper { mark.source } else { so_far.source },
        },
    }
}

/// The first event after the restore that carries an object acknowledged after
/// it: the last event or the restore before it, and the event itself.
#[must_use]
pub fn first_live(log: &ClientLog, restored: &Restored) -> Option<(MonoNs, MonoNs, String)> {
    let mut before = restored.since;
    for (index, event) in log.events().filter(|(_, e)| e.at_ns >= restored.since) {
        match event.event {
            Event::Put { id, .. } if restored.acked_after.contains(&id) => {
                return Some((before, event.at_ns, log.line(index)));
            }
            _ => before = event.at_ns,
        }
    }
    None
}

fn passed(restored: &Restored) -> Marked {
    let head = restored.lost_head.ok_or("no revision was seen before the loss")?;
    if restored.base >= head {
        return Err(format!("the restored timeline starts at {}, past the old {head}", restored.base));
    }
    let truth = restored.truth.as_ref().map_err(Clone::clone)?;
    let (lower, upper) = truth
        .passed(head, restored.since)
        .ok_or_else(|| format!("the restored timeline was not seen to pass revision {head}"))?;
    Ok(Mark { name: REVISION_PASSED.to_owned(), lower, upper, source: "etcd's own revision".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::boundaries::Boundaries;
    use super::super::small;
    use super::*;
    use crate::drill::values::Span;

    fn lane(client: &str, samples: &[(u64, u64, State)]) -> Lane {
        let sample = |(call, ret, state): &(u64, u64, State)| Sample {
            call: MonoNs(*call),
            ret: MonoNs(*ret),
            state: state.clone(),
            line: Some(format!("{client}#{call}")),
        };
        let samples = samples.iter().map(sample).collect();
        Lane { client: client.to_owned(), kind: ClientKind::GetReader, samples }
    }

    fn bad() -> State {
        State::Bad("refused".to_owned())
    }

    fn detected_by(lanes: &[Lane]) -> Result<String, String> {
        let fault =
            Mark { name: FAULT.to_owned(), lower: MonoNs(100), upper: MonoNs(110), source: String::new() };
        detected(lanes, &fault).map(|mark| mark.source)
    }

    #[test]
    fn a_client_that_failed_before_the_fault_does_not_detect_it_until_it_was_well_again() {
        let well = lane("well", &[(90, 91, State::Good), (130, 131, bad())]);
        let ill = lane("ill", &[(80, 81, State::Good), (90, 91, bad()), (101, 102, bad())]);
        assert_eq!(detected_by(&[ill.clone(), well.clone()]), Ok("well#130".to_owned()));
        assert!(detected_by(&[ill]).is_err());
        let healed = lane("healed", &[(90, 91, bad()), (101, 102, State::Good), (104, 105, bad())]);
        assert_eq!(detected_by(&[healed, well]), Ok("healed#104".to_owned()));
    }

    #[test]
    fn who_gives_up_first_detects_it_whoever_asked_first() {
        let slow = lane("slow", &[(101, 200, State::Unknown("timeout".to_owned())), (102, 103, bad())]);
        assert_eq!(detected_by(&[slow]), Ok("slow#102".to_owned()));
        let gap = lane("gap", &[(95, 99, State::Unobserved("gap".to_owned())), (120, 121, bad())]);
        assert_eq!(
            detected_by(&[gap]),
            Ok("gap#120".to_owned()),
            "a client that did not look was not failing"
        );
    }

    #[test]
    fn what_failed_from_the_begin_of_the_fault_on_may_be_its_doing() {
        let at = |call| lane("reader", &[(80, 81, State::Good), (call, 101, bad())]);
        assert!(detected_by(&[at(99)]).is_err());
        assert_eq!(detected_by(&[at(100)]), Ok("reader#100".to_owned()));
    }

    fn mark(source: &str, lower: u64, upper: u64) -> Mark {
        let name = source.to_owned();
        Mark { lower: MonoNs(lower), upper: MonoNs(upper), source: name.clone(), name }
    }

    #[test]
    fn several_clients_are_well_again_with_the_first_or_with_the_last_of_them() {
        let each = || {
            let one = |name: &str, mark: Marked, not_before| {
                (name.to_owned(), Recovery { mark, not_before: MonoNs(not_before) })
            };
            vec![
                one("b", Ok(mark("b", 140, 150)), 130),
                one("a", Ok(mark("a", 120, 145)), 115),
                one("c", Ok(mark("c", 110, 160)), 105),
            ]
        };
        let all = |each, combine| combined("x", ClientKind::GetReader, each, combine, MonoNs(100));
        let first = all(each(), Combine::First);
        assert_eq!((first.mark.unwrap(), first.not_before.0), (mark("a", 120, 145), 105));
        let last = all(each(), Combine::Last);
        let expected = Mark { name: "x".to_owned(), ..mark("c", 140, 160) };
        assert_eq!((last.mark.unwrap(), last.not_before.0), (expected, 130));
        let mut one_is_not = each();
        one_is_not[1].1.mark = Err("refused".to_owned());
        assert_eq!(all(one_is_not.clone(), Combine::First).mark, Ok(mark("b", 140, 150)));
        assert_eq!(all(one_is_not, Combine::Last).mark, Err("a: refused".to_owned()));
    }

    #[test]
    fn of_clients_that_are_well_again_at_once_the_first_is_quoted() {
        let both = later("x", Some(mark("a", 110, 150)), mark("b", 120, 150));
        assert_eq!(both, Mark { name: "x".to_owned(), ..mark("a", 120, 150) });
        let both = later("x", Some(mark("a", 110, 150)), mark("b", 105, 151));
        assert_eq!(both, Mark { name: "x".to_owned(), ..mark("b", 110, 151) });
    }

    #[test]
    fn each_capability_is_back_when_clients_of_its_kind_say_so() {
        let timeline = Timeline {
            boundaries: Boundaries { faults: vec![small::fault(100, Some(100))], ..on_boot() },
            writes: Vec::new(),
            restored: None,
            lanes: CAPABILITIES
                .iter()
                .zip(1..)
                .map(|(capability, n)| Lane {
                    kind: capability.kind,
                    ..lane(capability.mark, &[(100, 101, bad()), (100 + n, 200 + n, State::Good)])
                })
                .collect(),
            marks: Marks::default(),
            watches: Vec::new(),
        };
        let fault = fault(&timeline).unwrap();
        for (capability, n) in CAPABILITIES.iter().zip(1..) {
            let mut marks = Marks::default();
            let once = Sustained { samples: 1, over: Span(std::time::Duration::ZERO) };
            capability.find(&timeline, &fault, once, &mut marks);
            let found = marks.get(capability.mark).unwrap();
            assert_eq!((found.lower.0, found.upper.0), (100, 200 + n), "{}", capability.mark);
            assert_eq!(marks.by_name.len(), 1, "{}", capability.mark);
        }
    }

    fn on_boot() -> Boundaries {
        Boundaries { boot: Some(small::moment(0).boot), ..Boundaries::default() }
    }

    #[test]
    fn a_watch_is_live_with_the_first_new_object_it_delivers_from_the_restore_on() {
        let mut restored = small::restored(Vec::new());
        restored.acked_after = [7, 8].into();
        let first = |events: &[(u64, u64)]| {
            let events = events.iter().map(|(at, id)| small::put(*at, *id, 11)).collect();
            first_live(&small::log(ClientKind::Watcher, events), &restored)
                .map(|(from, to, _)| (from.0, to.0))
        };
        assert_eq!(first(&[(99, 7)]), None);
        assert_eq!(first(&[(99, 7), (100, 8), (101, 7)]), Some((100, 100)));
        assert_eq!(first(&[(110, 1), (120, 7), (130, 8)]), Some((110, 120)));
    }

    #[test]
    fn a_timeline_that_begins_at_the_old_revision_does_not_pass_it() {
        let ranges = vec![small::range(110, 111, 10, &[]), small::range(120, 121, 12, &[])];
        let mut restored = small::restored(ranges);
        restored.lost_head = Some(10);
        assert_eq!(passed(&restored), Err("the restored timeline starts at 10, past the old 10".to_owned()));
        restored.lost_head = Some(11);
        let found = passed(&restored).unwrap();
        assert_eq!((found.lower.0, found.upper.0), (110, 121));
    }
}
