use super::*;
use crate::agent::undo::OnLapse;
use crate::clock::Stamp;
use crate::clock::WallTime;
use crate::component::StopMethod;

const TTL: u64 = 1_000;

pub(super) fn stamp(now: u64) -> Stamp {
    Stamp { at: WallTime("t".to_owned()), mono_ns: MonoNs(now), boot: BootId("b1".to_owned()) }
}

fn undo(injection: &str, on_lapse: OnLapse, component: &str) -> Undo {
    let component = ComponentId(component.to_owned());
    let ops = vec![UndoOp::Stop { component, how: StopMethod::Kill }];
    Undo { injection: InjectionId(injection.to_owned()), on_lapse, ops, within_ns: 10 }
}

fn arm(injection: &str, on_lapse: OnLapse, component: &str) -> Request {
    Request::Arm { run: "r".to_owned(), undo: undo(injection, on_lapse, component), ttl_ns: TTL }
}

fn revert(injection: &str) -> Request {
    Request::Revert { run: "r".to_owned(), injection: InjectionId(injection.to_owned()) }
}

fn discharge(injection: &str) -> Request {
    Request::Discharge { run: "r".to_owned(), injection: InjectionId(injection.to_owned()) }
}

fn renew() -> Request {
    Request::Renew { run: "r".to_owned() }
}

fn key(injection: &str) -> LeaseKey {
    LeaseKey { run: "r".to_owned(), injection: InjectionId(injection.to_owned()) }
}

/// A machine with its log, without files.
struct Bench {
    machine: Machine,
    log: Vec<LogEntry>,
}

impl Bench {
    fn new() -> Self {
        Self { machine: Machine { leases: Vec::new() }, log: Vec::new() }
    }

    fn take(&mut self, decision: Decision, now: u64) -> (Vec<LeaseKey>, Answer) {
        for (keep, event) in decision.events {
            self.record(event, keep, now);
        }
        (decision.begin, decision.answer)
    }

    fn record(&mut self, event: LogEvent, keep: Keep, now: u64) {
        self.machine.apply(&stamp(now), &event, keep);
        if keep != Keep::Memory {
            let seq = self.log.len() as u64;
            self.log.push(LogEntry { prev: String::new(), seq, stamp: stamp(now), event });
        }
    }

    fn ask(&mut self, request: &Request, now: u64) -> Response {
        match self.take(self.machine.request(request, MonoNs(now)), now).1 {
            Answer::Now(response) => response,
            Answer::WhenUndone(key) => panic!("{key:?} is to be waited for"),
        }
    }

    fn tick(&mut self, now: u64) -> Vec<LeaseKey> {
        self.take(self.machine.tick(MonoNs(now)), now).0
    }

    fn finish(&mut self, injection: &str, outcome: Result<(), String>, now: u64) {
        self.record(Machine::finished(&key(injection), outcome), Keep::Attempt, now);
    }

    fn states(&self) -> Vec<HeldState> {
        self.machine.leases.iter().map(|l| l.held().state).collect()
    }

    fn restart(&mut self, boot: &str) {
        self.machine = Machine::rebuild(&self.log, &BootId(boot.to_owned()));
    }
}

fn refused(response: &Response) -> bool {
    matches!(response, Response::Error { .. })
}

#[test]
fn arming_again_is_done_once_and_another_undo_is_refused() {
    let mut bench = Bench::new();
    assert_eq!(bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0), Response::Done);
    assert_eq!(bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 1), Response::Done);
    assert!(refused(&bench.ask(&arm("a", OnLapse::Revert, "etcd-2"), 2)));
    assert_eq!(bench.log.len(), 1);
}

#[test]
fn a_lease_lapses_one_ttl_after_its_last_renewal_and_no_sooner() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.ask(&renew(), TTL - 1), Response::Done);
    assert_eq!(bench.machine.next_wake(), Some(MonoNs(2 * TTL - 1)));
    assert_eq!(bench.tick(2 * TTL - 2), []);
    assert_eq!(bench.tick(2 * TTL - 1), [key("a")]);
    assert!(refused(&bench.ask(&renew(), 2 * TTL)));
    bench.finish("a", Ok(()), 2 * TTL);
    assert_eq!(bench.states(), [HeldState::Undone { by_lapse: true }]);
    assert_eq!(bench.machine.next_wake(), None);
}

#[test]
fn renewing_one_run_leaves_another_to_lapse() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    let other = undo("a", OnLapse::Revert, "etcd-2");
    bench.ask(&Request::Arm { run: "s".to_owned(), undo: other, ttl_ns: TTL }, 0);
    bench.ask(&renew(), 500);
    let begun = bench.tick(TTL);
    assert_eq!(begun, [LeaseKey { run: "s".to_owned(), ..key("a") }]);
}

#[test]
fn renewals_are_recorded_only_when_the_log_would_otherwise_lapse_a_quarter_early() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    for now in (10..=2 * TTL).step_by(10) {
        assert_eq!(bench.ask(&renew(), now), Response::Done);
    }
    assert_eq!(bench.log.len(), 1 + 8);
    bench.restart("b1");
    let wake = bench.machine.next_wake().unwrap().0;
    assert!((2 * TTL + TTL * 3 / 4..=3 * TTL).contains(&wake), "{wake}");
}

#[test]
fn holding_safe_runs_nothing_but_can_still_be_reverted_or_discharged() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::HoldSafe, "etcd-1"), 0);
    bench.ask(&arm("b", OnLapse::HoldSafe, "etcd-2"), 0);
    assert_eq!(bench.tick(TTL), []);
    assert_eq!(bench.states(), [HeldState::Lapsed, HeldState::Lapsed]);
    assert_eq!(bench.machine.next_wake(), None);
    assert_eq!(bench.take(bench.machine.request(&revert("a"), MonoNs(TTL)), TTL).0, [key("a")]);
    assert_eq!(bench.ask(&discharge("b"), TTL), Response::Done);
}

#[test]
fn after_an_amend_only_the_new_undo_exists_and_after_lapse_none_is_accepted() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    let forward = undo("a", OnLapse::RollForward, "kube-apiserver-1");
    let amend = Request::Amend { run: "r".to_owned(), undo: forward.clone() };
    assert_eq!(bench.ask(&amend, 900), Response::Done);
    assert_eq!(bench.ask(&amend, 900), Response::Done);
    bench.restart("b1");
    assert_eq!(bench.tick(900 + TTL), [key("a")]);
    assert_eq!(bench.machine.undo(&key("a")), Some(&forward));
    let late = Request::Amend { run: "r".to_owned(), undo: undo("a", OnLapse::Revert, "etcd-9") };
    assert!(refused(&bench.ask(&late, 901 + TTL)));
}

#[test]
fn a_discharged_injection_is_never_undone() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.ask(&discharge("a"), 1), Response::Done);
    assert_eq!(bench.ask(&discharge("a"), 2), Response::Done);
    assert_eq!(bench.ask(&revert("a"), 3), Response::Done);
    assert_eq!(bench.tick(10 * TTL), []);
}

#[test]
fn what_is_being_undone_can_not_be_discharged() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    bench.tick(TTL);
    assert!(refused(&bench.ask(&discharge("a"), TTL)));
    bench.finish("a", Ok(()), TTL);
    assert!(refused(&bench.ask(&discharge("a"), TTL)));
}

#[test]
fn reverting_answers_with_the_one_undo_that_was_carried_out() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.take(bench.machine.request(&revert("a"), MonoNs(5)), 5).0, [key("a")]);
    let second = bench.machine.request(&revert("a"), MonoNs(6));
    assert_eq!((second.begin, second.answer), (vec![], Answer::WhenUndone(key("a"))));
    bench.finish("a", Ok(()), 9);
    let done = Response::Reverted { started_ns: MonoNs(5), finished_ns: MonoNs(9) };
    assert_eq!(bench.ask(&revert("a"), 20), done);
    assert!(refused(&bench.ask(&revert("never armed"), 20)));
}

#[test]
fn what_was_undone_on_lapse_is_undone_anew_on_request_once() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.tick(TTL), [key("a")]);
    bench.finish("a", Ok(()), TTL + 1);
    let now = TTL + 2;
    assert_eq!(bench.take(bench.machine.request(&revert("a"), MonoNs(now)), now).0, [key("a")]);
    bench.finish("a", Ok(()), now + 1);
    let done = Response::Reverted { started_ns: MonoNs(now), finished_ns: MonoNs(now + 1) };
    assert_eq!(bench.ask(&revert("a"), now + 2), done);
}

#[test]
fn a_failing_undo_is_tried_a_few_times_by_itself_and_then_only_on_request() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    let mut now = TTL;
    for _ in 0..LAPSE_TRIES {
        assert_eq!(bench.tick(now), [key("a")]);
        bench.finish("a", Err("no luck".to_owned()), now);
        assert_eq!(bench.tick(now + RETRY_AFTER_NS - 1), []);
        now += RETRY_AFTER_NS;
    }
    assert_eq!(bench.tick(now * 100), []);
    assert_eq!(bench.machine.next_wake(), None);
    assert_eq!(bench.states(), [HeldState::UndoFailed { reason: "no luck".to_owned() }]);
    assert_eq!(bench.take(bench.machine.request(&revert("a"), MonoNs(now)), now).0, [key("a")]);
}

#[test]
fn an_undo_that_failed_on_request_is_tried_again_once_its_run_falls_silent() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    bench.take(bench.machine.request(&revert("a"), MonoNs(5)), 5);
    bench.finish("a", Err("no luck".to_owned()), 10);
    assert_eq!(bench.ask(&renew(), 20), Response::Done);
    assert_eq!(bench.tick(TTL + 19), []);
    assert_eq!(bench.tick(TTL + 20), [key("a")]);
}

#[test]
fn an_undo_that_was_under_way_is_begun_again_by_the_next_agent() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 0);
    bench.take(bench.machine.request(&revert("a"), MonoNs(5)), 5);
    bench.restart("b1");
    assert_eq!(bench.tick(6), [key("a")]);
    bench.finish("a", Ok(()), 7);
    assert_eq!(bench.states(), [HeldState::Undone { by_lapse: false }]);
}

#[test]
fn a_reboot_makes_every_undo_due_at_once() {
    let mut bench = Bench::new();
    bench.ask(&arm("a", OnLapse::Revert, "etcd-1"), 1_000_000);
    bench.ask(&arm("b", OnLapse::Revert, "etcd-2"), 1_000_000);
    bench.take(bench.machine.request(&revert("a"), MonoNs(1_000_001)), 1_000_001);
    bench.finish("a", Ok(()), 1_000_002);
    bench.restart("b2");
    assert_eq!(bench.tick(1), [key("b")]);
    // Instants of another boot are not passed on.
    assert_eq!(bench.ask(&revert("a"), 2), Response::Done);
}

#[test]
fn undos_of_common_components_run_one_after_another_newest_first() {
    let mut bench = Bench::new();
    bench.ask(&arm("older", OnLapse::Revert, "etcd-1"), 0);
    bench.ask(&arm("apart", OnLapse::Revert, "etcd-2"), 0);
    bench.ask(&arm("newer", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.tick(TTL), [key("newer"), key("apart")]);
    assert_eq!(bench.tick(TTL + 1), []);
    assert_eq!(bench.machine.next_wake(), None);
    assert!(refused(&bench.ask(&revert("older"), TTL + 1)));
    let amend = Request::Amend { run: "r".to_owned(), undo: undo("older", OnLapse::HoldSafe, "etcd-3") };
    assert!(refused(&bench.ask(&amend, TTL + 1)));
    bench.finish("newer", Ok(()), TTL + 2);
    assert_eq!(bench.tick(TTL + 3), [key("older")]);
}

#[test]
fn an_undo_that_asks_the_api_begins_when_those_of_components_have_ended() {
    let mut bench = Bench::new();
    let paths = vec!["/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/a".to_owned()];
    let ops = vec![UndoOp::RemoveObjects { servers: Vec::new(), run: "r".to_owned(), paths }];
    let level = Undo { ops, ..undo("level", OnLapse::Revert, "") };
    bench.ask(&Request::Arm { run: "r".to_owned(), undo: level, ttl_ns: TTL }, 0);
    bench.ask(&arm("loss", OnLapse::Revert, "etcd-1"), 0);
    assert_eq!(bench.tick(TTL), [key("loss")]);
    assert_eq!(bench.tick(TTL + 1), []);
    assert!(refused(&bench.ask(&revert("level"), TTL + 1)));
    bench.finish("loss", Err("once".to_owned()), TTL + 2);
    // It does not wait for one that is only owed.
    assert_eq!(bench.tick(TTL + 3), [key("level")]);
}

#[path = "machine_properties.rs"]
mod properties;
