use super::*;

const INJECTION: &str = "2-apfLevel";

fn id() -> InjectionId {
    InjectionId(INJECTION.to_owned())
}

fn stamp(second: u64) -> Stamp {
    Stamp {
        at: WallTime(format!("2026-11-30T00:00:{second:02}Z")),
        mono_ns: MonoNs(second * 1_000_000_000),
        boot: BootId("boot".to_owned()),
    }
}

/// A run whose runner was gone from the injection at 2 s until somebody recovered it at 50 s.
fn journal(injected_at: u64, cause: &str) -> Vec<Entry> {
    let opened = JournalEvent::RunOpened {
        format_version: "1.0".to_owned(),
        run: "r".to_owned(),
        drill: "d".to_owned(),
        drill_digest: String::new(),
        plan_digest: String::new(),
        tool: String::new(),
        operator: String::new(),
    };
    let begun = JournalEvent::UndoStarted { injection: id(), mode: OnLapse::Revert, cause: cause.to_owned() };
    let events = [
        (0, opened),
        (injected_at, JournalEvent::Injected { injection: id() }),
        (50, begun),
        (51, JournalEvent::UndoFinished { injection: id() }),
    ];
    let entry = |(second, event): (u64, JournalEvent)| {
        let Stamp { at, mono_ns, boot } = stamp(second);
        Entry { prev: String::new(), seq: 0, at, mono_ns, boot, event }
    };
    events.map(entry).into()
}

/// The dead-man acts from 20 s to 21 s, and once more when it is asked to.
fn log(run: &str) -> Vec<LogEntry> {
    let undoing = |by_lapse| LogEvent::Undoing { run: run.to_owned(), injection: id(), by_lapse };
    let undone = || LogEvent::Undone { run: run.to_owned(), injection: id() };
    [(20, undoing(true)), (21, undone()), (50, undoing(false)), (51, undone())]
        .map(|(second, event)| LogEntry { prev: String::new(), seq: 0, stamp: stamp(second), event })
        .into()
}

fn end(journal: &[Entry], log: &[LogEntry]) -> (u64, String) {
    let span = Boundaries::of_logs(journal, log).faults.remove(0);
    assert_eq!(span.ended, span.end_verified);
    let ended = span.ended.unwrap();
    (ended.mono_ns.0 / 1_000_000_000, ended.line)
}

#[test]
fn a_fault_that_the_dead_man_undid_ended_when_its_log_says_so() {
    assert_eq!(end(&journal(2, DEAD_MAN), &log("r")), (21, "agent/agent.jsonl#2".to_owned()));
}

#[test]
fn it_did_not_end_then_when_something_was_injected_later_or_somebody_else_undid_it() {
    let asked = (51, "journal.jsonl#4".to_owned());
    assert_eq!(end(&journal(20, "recover"), &log("r")), asked, "nobody lapsed");
    assert_eq!(end(&journal(22, DEAD_MAN), &log("r")), asked, "injected after the dead-man had acted");
    assert_eq!(end(&journal(2, DEAD_MAN), &log("other")), asked, "another run's");
    assert_eq!(end(&journal(2, DEAD_MAN), &[]), asked, "no log");
}

#[test]
fn what_was_injected_in_the_instant_in_which_the_dead_man_began_is_undone_by_it() {
    assert_eq!(end(&journal(20, DEAD_MAN), &log("r")), (21, "agent/agent.jsonl#2".to_owned()));
}

#[test]
fn something_may_have_been_injected_after_the_first_of_several_attempts() {
    let mut log = log("r");
    let again = LogEntry { stamp: stamp(30), ..log[0].clone() };
    log[1].stamp = stamp(31);
    log.insert(1, again);
    assert_eq!(end(&journal(25, DEAD_MAN), &log).0, 51, "it began before the injection");
    assert_eq!(end(&journal(19, DEAD_MAN), &log).0, 31);
}

fn entry(second: u64, boot: &str, event: JournalEvent) -> Entry {
    let Stamp { at, mono_ns, .. } = stamp(second);
    Entry { prev: String::new(), seq: 0, at, mono_ns, boot: BootId(boot.to_owned()), event }
}

fn injecting(injection: &str) -> JournalEvent {
    JournalEvent::Injecting {
        injection: InjectionId(injection.to_owned()),
        kind: "loseEtcd".to_owned(),
        targets: Vec::new(),
        stop_method: None,
    }
}

fn phase(phase: Phase) -> JournalEvent {
    JournalEvent::Phase { phase }
}

#[test]
fn instants_are_compared_on_the_boot_of_the_first_injection_else_of_the_first_entry() {
    let begun = entry(9, "first", phase(Phase::Provision));
    let later = entry(8, "second", phase(Phase::Collect));
    let uninjected = Boundaries::of_logs(&[begun.clone(), later.clone()], &[]);
    assert_eq!(uninjected.boot, Some(BootId("first".to_owned())));
    assert!(uninjected.phase(Phase::Provision).is_some() && uninjected.phase(Phase::Collect).is_none());

    let injections = [entry(3, "second", injecting("a")), entry(5, "third", injecting("b"))];
    let [first, other] = injections;
    let journal = [begun, first, entry(4, "second", phase(Phase::Recovery)), later, other];
    let all = Boundaries::of_logs(&journal, &[]);
    assert_eq!(all.boot, Some(BootId("second".to_owned())));
    assert_eq!(all.last, Some(MonoNs(8_000_000_000)), "of that boot alone");
    assert_eq!(all.fault().map(|f| f.injection.0.as_str()), Some("a"));
}

#[test]
fn the_latest_instant_is_the_latest_and_not_the_last_one_written() {
    let journal = [entry(7, "boot", phase(Phase::Steps)), entry(6, "boot", phase(Phase::Recovery))];
    assert_eq!(Boundaries::of_logs(&journal, &[]).last, Some(MonoNs(7_000_000_000)));
}

#[test]
fn all_entries_of_an_injection_are_of_one_span() {
    let injected = |id: &str| JournalEvent::Injected { injection: InjectionId(id.to_owned()) };
    let events = [injecting("a"), injecting("b"), injected("a"), injected("b")];
    let journal: Vec<Entry> =
        events.into_iter().zip(0..).map(|(e, second)| entry(second, "boot", e)).collect();
    let all = Boundaries::of_logs(&journal, &[]);
    let spans: Vec<(&str, bool)> =
        all.faults.iter().map(|f| (f.injection.0.as_str(), f.injected.is_some())).collect();
    assert_eq!(spans, [("a", true), ("b", true)]);
}

#[test]
fn what_a_journal_does_not_say_of_the_fault_is_named_one_after_the_other() {
    let id = || InjectionId("a".to_owned());
    let verified = JournalEvent::InjectionVerified { injection: id(), observation: "stopped".to_owned() };
    let ended = JournalEvent::Ended { injection: id(), by_step: 4 };
    let end_verified = JournalEvent::EndVerified { injection: id(), observation: "runs".to_owned() };
    let closed = JournalEvent::RunClosed { outcome: RunOutcome::Completed, reason: None };
    let said = [
        ("no fault was injected", injecting("a")),
        ("the journal does not say that injection a returned", JournalEvent::Injected { injection: id() }),
        ("no observation verified injection a", verified),
        ("the journal does not say that injection a ended", ended),
        ("no observation verified the end of injection a", end_verified),
        ("the run did not get to collecting its evidence", phase(Phase::Collect)),
        ("the journal ends before the run was closed", closed),
    ];
    for known in 0..=said.len() {
        let events = said[..known].iter().zip(0..);
        let journal: Vec<Entry> = events.map(|((_, e), second)| entry(second, "boot", e.clone())).collect();
        let all = Boundaries::of_logs(&journal, &[]);
        // Of an end that is not known, it is not asked whether it was verified; of no fault, nothing.
        let asked = |index: usize| match known {
            0 => matches!(index, 0 | 5 | 6),
            1..=3 => index != 4,
            _ => true,
        };
        let missing = (known..said.len()).filter(|index| asked(*index)).map(|index| said[index].0);
        assert_eq!(all.missing, missing.collect::<Vec<_>>(), "after {known} entries");
    }
}

#[test]
fn what_a_step_has_ended_is_not_ended_again_by_the_undo_that_follows() {
    let id = || InjectionId("a".to_owned());
    let undoing = |cause: &str| JournalEvent::UndoStarted {
        injection: id(),
        mode: OnLapse::Revert,
        cause: cause.to_owned(),
    };
    let undone = || JournalEvent::UndoFinished { injection: id() };
    let ended = |events: Vec<JournalEvent>| {
        let journal: Vec<Entry> = events.into_iter().zip(1..).map(|(e, at)| entry(at, "boot", e)).collect();
        let span = Boundaries::of_logs(&journal, &[]).faults.remove(0);
        assert!(matches!(span.undo, Some(UndoCourse::Done { .. })));
        (span.ended.map(|m| m.mono_ns.0 / 1_000_000_000), span.ended_by)
    };
    let by_step = JournalEvent::Ended { injection: id(), by_step: 4 };
    let said = |by: &str| Some(by.to_owned());
    assert_eq!(ended(vec![injecting("a"), by_step, undoing("recover"), undone()]), (Some(2), said("step 4")));
    assert_eq!(ended(vec![injecting("a"), undoing("recover"), undone()]), (Some(3), said("undo (recover)")));
    assert_eq!(ended(vec![injecting("a"), undoing("step 5"), undone()]), (Some(3), said("step 5")));
}

#[test]
fn a_phase_that_was_entered_again_began_when_it_was_first_entered() {
    let journal = [entry(4, "boot", phase(Phase::Recovery)), entry(6, "boot", phase(Phase::Recovery))];
    let all = Boundaries::of_logs(&journal, &[]);
    assert_eq!(all.phase(Phase::Recovery).map(|m| m.mono_ns), Some(MonoNs(4_000_000_000)));
}

#[test]
fn of_several_injections_what_is_missing_of_the_first_is_named() {
    let all = Boundaries::of_logs(&[entry(1, "boot", injecting("a")), entry(2, "boot", injecting("b"))], &[]);
    assert_eq!(all.missing[0], "the journal does not say that injection a returned");
}

#[test]
fn wall_time_is_counted_from_the_last_entry_by_then_else_from_the_first() {
    // The wall clock was set forward by a minute between the second entry and the third.
    let mut journal = [1, 2, 4].map(|second| entry(second, "boot", phase(Phase::Steps)));
    journal[2].at = WallTime("2026-11-30T00:01:04Z".to_owned());
    let elsewhere = entry(3, "other", phase(Phase::Steps));
    let journal = [vec![elsewhere], journal.into()].concat();
    let wall = |at| wall_of(&journal, &BootId("boot".to_owned()), MonoNs(at)).unwrap().0;
    assert_eq!(wall(500_000_000), "2026-11-30T00:00:00.500000Z");
    assert_eq!(wall(3_999_999_000), "2026-11-30T00:00:03.999999Z");
    assert_eq!(wall(4_000_000_000), "2026-11-30T00:01:04.000000Z");
    assert_eq!(wall_of(&journal, &BootId("third".to_owned()), MonoNs(0)), None);
}
