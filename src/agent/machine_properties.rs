//! Arbitrary sequences of requests, time and crashes against the promises that the agent
//! makes to a runner. The oracle knows only what was answered, never the machine's state.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Act {
    Arm {
        injection: u8,
        component: u8,
        on_lapse: OnLapse,
    },
    Amend {
        injection: u8,
        component: u8,
        on_lapse: OnLapse,
    },
    Renew,
    Revert {
        injection: u8,
    },
    Discharge {
        injection: u8,
    },
    Pass {
        time: u64,
    },
    /// A running undo ends.
    End {
        which: usize,
        well: bool,
    },
    /// The agent dies; `lost` entries at the end of the log that nobody was answered for never became durable.
    Crash {
        lost: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let on_lapse = || prop_oneof![Just(OnLapse::Revert), Just(OnLapse::HoldSafe), Just(OnLapse::RollForward)];
    let act = prop_oneof![
        3 => (0u8..4, 0u8..3, on_lapse())
            .prop_map(|(injection, component, on_lapse)| Act::Arm { injection, component, on_lapse }),
        2 => (0u8..4, 0u8..3, on_lapse())
            .prop_map(|(injection, component, on_lapse)| Act::Amend { injection, component, on_lapse }),
        3 => Just(Act::Renew),
        1 => (0u8..4).prop_map(|injection| Act::Revert { injection }),
        1 => (0u8..4).prop_map(|injection| Act::Discharge { injection }),
        4 => (1u64..TTL).prop_map(|time| Act::Pass { time }),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, well)| Act::End { which, well }),
        1 => (0usize..3).prop_map(|lost| Act::Crash { lost }),
    ];
    proptest::collection::vec(act, 1..60)
}

/// What a runner was told of one injection.
#[derive(Debug, Clone)]
struct Told {
    undo: Undo,
    /// Last renewal that was certainly granted.
    renewed: u64,
    /// Last one that may have been: an error says that some lease of the run has lapsed.
    maybe_renewed: u64,
    discharged: bool,
    /// An undo began at some time.
    begun: bool,
    asked_to_revert: bool,
}

struct World {
    bench: Bench,
    now: u64,
    told: BTreeMap<String, Told>,
    running: Vec<LeaseKey>,
    /// Entries from here on are not answered for.
    answered: usize,
}

impl World {
    /// Carries a decision out as the server does; the answer is given at once.
    fn take(&mut self, decision: Decision) -> Result<Answer, TestCaseError> {
        let (begin, answer) = self.bench.take(decision, self.now);
        for key in begin {
            let undo = self.bench.machine.undo(&key).unwrap().clone();
            let told = self.told.get_mut(&key.injection.0).expect("only what was armed is begun");
            prop_assert!(!told.discharged, "{key:?} was discharged and is undone");
            prop_assert_eq!(&undo, &told.undo, "not the undo that holds");
            prop_assert!(!self.running.contains(&key), "{:?} runs twice", key);
            let resumed = told.begun || told.asked_to_revert;
            let early = self.now < told.renewed + TTL * 3 / 4;
            prop_assert!(resumed || !early, "{key:?} begun long before its lease lapsed");
            told.begun = true;
            self.running.push(key);
        }
        Ok(answer)
    }

    fn tick(&mut self) -> Result<(), TestCaseError> {
        self.take(self.bench.machine.tick(MonoNs(self.now)))?;
        self.deadlines_are_kept()
    }

    /// Action starts within one TTL of the last renewal that was answered, unless a newer
    /// undo is in the way.
    fn deadlines_are_kept(&self) -> Result<(), TestCaseError> {
        let busy = self.bench.machine.busy();
        for (injection, told) in &self.told {
            let lease =
                self.bench.machine.find("r", &InjectionId(injection.clone())).expect("never forgotten");
            let overdue = lease.standing == Standing::Armed && self.now >= told.maybe_renewed + TTL;
            prop_assert!(!overdue || lease.waits_for(&busy), "{injection} is overdue");
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request) -> Result<Option<Response>, TestCaseError> {
        self.tick()?;
        if let Request::Revert { injection, .. } = request
            && let Some(told) = self.told.get_mut(&injection.0)
        {
            told.asked_to_revert = true;
        }
        let answer = self.take(self.bench.machine.request(request, MonoNs(self.now)))?;
        self.answered = self.bench.log.len();
        Ok(match answer {
            Answer::Now(response) => Some(response),
            Answer::WhenUndone(_) => None,
        })
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let name = |n: &u8| format!("i{n}");
        let undo_of =
            |n: &u8, component: &u8, on_lapse: &OnLapse| undo(&name(n), *on_lapse, &format!("c{component}"));
        match act {
            Act::Arm { injection, component, on_lapse } => {
                let undo = undo_of(injection, component, on_lapse);
                let known = self.told.contains_key(&name(injection));
                let told = Told {
                    undo: undo.clone(),
                    renewed: self.now,
                    maybe_renewed: self.now,
                    discharged: false,
                    begun: false,
                    asked_to_revert: false,
                };
                let arm = Request::Arm { run: "r".to_owned(), undo, ttl_ns: TTL };
                let done = self.ask(&arm)? == Some(Response::Done);
                prop_assert!(done || known, "a first arm is refused");
                if done {
                    self.told.entry(name(injection)).or_insert(told);
                }
            }
            Act::Amend { injection, component, on_lapse } => {
                let undo = undo_of(injection, component, on_lapse);
                if self.ask(&Request::Amend { run: "r".to_owned(), undo: undo.clone() })?
                    == Some(Response::Done)
                {
                    let told = self.told.get_mut(&name(injection)).expect("only what is armed is amended");
                    prop_assert!(!told.begun, "amended after its undo began");
                    if told.undo != undo {
                        told.renewed = self.now;
                        told.maybe_renewed = self.now;
                    }
                    told.undo = undo;
                }
            }
            Act::Renew => {
                let done = self.ask(&renew())? == Some(Response::Done);
                for told in self.told.values_mut() {
                    told.maybe_renewed = self.now;
                    if done {
                        told.renewed = self.now;
                    }
                }
            }
            Act::Revert { injection } => {
                self.ask(&revert(&name(injection)))?;
            }
            Act::Discharge { injection } => {
                if self.ask(&discharge(&name(injection)))? == Some(Response::Done) {
                    self.told
                        .get_mut(&name(injection))
                        .expect("only what is armed is discharged")
                        .discharged = true;
                }
            }
            Act::Pass { time } => {
                self.now += time;
                self.tick()?;
            }
            Act::End { which, well } if !self.running.is_empty() => {
                let key = self.running.remove(which % self.running.len());
                let outcome = if *well { Ok(()) } else { Err("no luck".to_owned()) };
                self.bench.finish(&key.injection.0, outcome, self.now);
                self.tick()?;
            }
            Act::End { .. } => {}
            Act::Crash { lost } => {
                let durable = self.bench.log.len().saturating_sub(*lost).max(self.answered);
                self.bench.log.truncate(durable);
                self.running.clear();
                self.bench.restart("b1");
                self.tick()?;
            }
        }
        Ok(())
    }

    /// Lets everything that runs end as `well` says, and all time pass.
    fn settle(&mut self, well: bool) -> Result<(), TestCaseError> {
        for _ in 0..40 {
            self.act(&Act::End { which: 0, well })?;
            self.now += TTL + RETRY_AFTER_NS;
            self.tick()?;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_armed_injection_is_ever_forgotten(acts in acts(), well in any::<bool>()) {
        let mut world =
            World { bench: Bench::new(), now: 1, told: BTreeMap::new(), running: Vec::new(), answered: 0 };
        for act in &acts {
            world.act(act)?;
        }
        world.settle(well)?;
        prop_assert!(world.running.is_empty());
        for (injection, told) in &world.told {
            let lease = world.bench.machine.find("r", &InjectionId(injection.clone())).expect("never forgotten");
            let fits = match &lease.standing {
                Standing::Discharged => told.discharged,
                Standing::Undone { .. } => told.begun && !told.discharged,
                Standing::Failed { .. } => told.begun && !told.discharged,
                Standing::Lapsed => told.undo.on_lapse == OnLapse::HoldSafe && !told.discharged,
                Standing::Armed | Standing::Undoing { .. } => false,
            };
            prop_assert!(fits, "{injection} ended as {:?}, told {told:?}", lease.standing);
        }
    }

    #[test]
    fn any_prefix_of_a_log_rebuilds_to_the_state_it_was_in(acts in acts()) {
        let mut world =
            World { bench: Bench::new(), now: 1, told: BTreeMap::new(), running: Vec::new(), answered: 0 };
        for act in &acts {
            world.act(act)?;
        }
        let armed_by = |entries: &[LogEntry]| {
            entries.iter().filter(|e| matches!(e.event, LogEvent::Armed { .. })).count()
        };
        for end in 0..=world.bench.log.len() {
            let prefix = &world.bench.log[..end];
            let rebuilt = Machine::rebuild(prefix, &BootId("b1".to_owned()));
            prop_assert_eq!(rebuilt.leases.len(), armed_by(prefix));
            let owed = rebuilt.leases.iter().filter(|l| {
                !matches!(l.standing, Standing::Discharged | Standing::Undone { .. } | Standing::Lapsed)
            });
            for lease in owed {
                // Owed and either going to be acted on, or tried often enough.
                let given_up = matches!(lease.standing, Standing::Failed { .. });
                prop_assert!(lease.due_at().is_some() || given_up, "{:?} is stuck", lease);
            }
        }
    }
}
