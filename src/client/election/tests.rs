use super::*;

const S: u64 = 1_000_000_000;
const RULES: Rules = Rules { lease_duration_ns: 15 * S, renew_deadline_ns: 10 * S, retry_period_ns: 2 * S };

fn at(seconds: u64) -> MonoNs {
    MonoNs(seconds * S)
}

/// A Lease that candidates write in turn.
#[derive(Clone, Default)]
struct Store {
    lease: Option<ElectionRecord>,
    version: u64,
}

impl Store {
    fn told(&self) -> Told {
        match &self.lease {
            Some(record) => Told::Lease { record: record.clone(), version: self.version.to_string() },
            None => Told::NotFound,
        }
    }

    fn carry_out(&mut self, step: &Try, version: Option<&str>) -> Told {
        match step {
            Try::Get => self.told(),
            Try::Create(record) if self.lease.is_none() => self.write(record),
            Try::Update(record) if version == Some(self.version.to_string().as_str()) => self.write(record),
            _ => Told::Failed,
        }
    }

    fn write(&mut self, record: &ElectionRecord) -> Told {
        self.version += 1;
        self.lease = Some(record.clone());
        self.told()
    }
}

/// One whole try at `now`; `None` for the store: nobody answers.
fn attempt(candidate: &mut Candidate, store: Option<&mut Store>, now: MonoNs) -> Option<Change> {
    let wall = format!("t{}", now.0);
    let mut none = Store::default();
    let (store, answers) = match store {
        Some(store) => (store, true),
        None => (&mut none, false),
    };
    let mut step = candidate.begin(now, &wall);
    loop {
        if let Try::Over(held) = step {
            return candidate.end(held, now, 0.0);
        }
        let version = candidate.version().map(str::to_owned);
        let told = if answers { store.carry_out(&step, version.as_deref()) } else { Told::Failed };
        step = candidate.go_on(&step, told, now, &wall);
    }
}

fn leads(transitions: u64) -> Option<Change> {
    Some(Change::Leads { transitions })
}

#[test]
fn the_first_candidate_makes_the_lease_and_the_second_leaves_it_alone() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    let mut b = Candidate::new(RULES, "b".to_owned(), at(0));
    assert_eq!(attempt(&mut a, Some(&mut store), at(0)), leads(0));
    assert_eq!(a.due(), at(0), "a new leader renews at once");
    assert_eq!(attempt(&mut b, Some(&mut store), at(1)), None);
    assert_eq!(b.due(), at(3));
    assert_eq!(attempt(&mut a, Some(&mut store), at(2)), None, "a renewal changes no belief");
    assert_eq!(a.due(), at(4));
    assert_eq!(a.leads_until(), Some(at(14)));
}

#[test]
fn a_follower_takes_over_after_the_lease_duration_of_its_own_time_and_counts_the_transition() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    let mut b = Candidate::new(RULES, "b".to_owned(), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    // `a` is gone. `b` sees its record for the first time only now.
    assert_eq!(attempt(&mut b, Some(&mut store), at(100)), None);
    assert_eq!(attempt(&mut b, Some(&mut store), at(114)), None);
    assert_eq!(attempt(&mut b, Some(&mut store), at(115)), leads(1));
    assert_eq!(store.lease.unwrap().holder, "b");
}

#[test]
fn a_leader_believes_until_a_whole_renew_deadline_after_its_next_try_was_due() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    for now in [2, 4, 6, 8, 10] {
        assert_eq!(attempt(&mut a, None, at(now)), None, "at {now}");
        assert_eq!(a.due(), at(now + 2));
    }
    assert_eq!(a.expire(at(11)), None);
    assert_eq!(a.expire(at(12)), Some(Change::Lost));
    assert_eq!(a.leads_until(), None);
}

#[test]
fn a_leader_whose_own_older_record_comes_back_carries_on() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    let snapshot = store.clone();
    attempt(&mut a, Some(&mut store), at(2));
    store = snapshot;
    assert_eq!(attempt(&mut a, Some(&mut store), at(4)), None);
    assert_eq!(a.leads_until(), Some(at(16)), "renewed by the second, informed update");
    assert_eq!(store.lease.unwrap().renew_time, format!("t{}", 4 * S));
}

#[test]
fn a_restore_that_brings_back_an_earlier_leader_makes_two_of_them() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    let mut b = Candidate::new(RULES, "b".to_owned(), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    let snapshot = store.clone();
    // `a` steps down and `b` takes over, after the snapshot.
    let released = a.release("t").unwrap();
    store.write(&released);
    a.stepped_down(at(1), 6 * S);
    assert_eq!(attempt(&mut b, Some(&mut store), at(2)), leads(1));
    store = snapshot;
    assert_eq!(attempt(&mut b, Some(&mut store), at(4)), None, "it can't renew: the record names `a`");
    assert!(b.leads_until().is_some(), "but goes on believing");
    assert_eq!(attempt(&mut a, Some(&mut store), at(7)), leads(0), "`a` finds the record its own");
    assert!(b.leads_until().unwrap() > at(7), "both lead");
    assert_eq!(b.expire(at(14)), Some(Change::Lost));
}

#[test]
fn a_conflict_is_no_reason_to_believe_anything_else() {
    let mut store = Store::default();
    let mut a = Candidate::new(RULES, "a".to_owned(), at(0));
    attempt(&mut a, Some(&mut store), at(0));
    store.version += 1;
    assert_eq!(attempt(&mut a, Some(&mut store), at(2)), None);
    assert_eq!(a.leads_until(), Some(at(14)), "read again and renewed");
}

#[test]
fn a_followers_pause_is_stretched_by_up_to_twelve_tenths() {
    assert_eq!(stretched(2 * S, 0.0), 2 * S);
    assert_eq!(stretched(2 * S, 1.0), 4_400_000_000);
}
