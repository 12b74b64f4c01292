//! Sustained good: so many consecutive good samples over at least so long.

use super::Mark;
use crate::clock::MonoNs;
use crate::drill::spec::Sustained;

/// What one observation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// Refused.
    Bad(String),
    /// Answered as if all were well, but not with what etcd has.
    Wrong(String),
    /// The service gave no answer: it can't be told what it did.
    Unknown(String),
    /// We did not look, or have nothing to hold the answer against.
    Unobserved(String),
}

impl State {
    /// Good.
    #[must_use]
    pub fn is_good(&self) -> bool {
        matches!(self, State::Good)
    }
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Begin.
    pub call: MonoNs,
    /// End.
    pub ret: MonoNs,
    /// What it says.
    pub state: State,
    /// The record; absent for a gap.
    pub line: Option<String>,
}

/// When something was first good again, and what can be said if it never was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Begin of the first stretch of sustained good after the fault.
    pub mark: Result<Mark, String>,
    /// Sustained good cannot have begun before this, whatever gaps may hide.
    pub not_before: MonoNs,
}

/// The fault that recovery is measured from.
#[derive(Debug, Clone, Copy)]
pub struct After {
    /// The fault began no earlier.
    pub lower: MonoNs,
    /// The fault began no later: only samples sent after this count.
    pub upper: MonoNs,
    /// The disturbance cannot have ended before this: a stretch that was over by
    /// then was the calm before the loss was felt.
    pub floor: MonoNs,
}

/// Finds the first stretch of sustained good. `samples` are sorted by call.
///
/// The mark reaches from the call of the last bad or unknown sample to the
/// return of the first good one. An interval without observation before the
/// stretch does not raise the lower end: the service may have recovered in it.
#[must_use]
pub fn first_sustained(name: &str, samples: &[Sample], after: After, rule: Sustained) -> Recovery {
    let mut last_not_good = after.lower;
    let mut not_before: Option<MonoNs> = None;
    let mut first: Option<&Sample> = None;
    let mut count = 0u32;
    let mut seen = false;
    let mut not_seen: Option<&str> = None;
    for sample in
        samples.iter().filter(|s| s.call >= after.upper || (s.line.is_none() && s.ret > after.upper))
    {
        match &sample.state {
            State::Good => {
                seen = true;
                count += 1;
                let begin = *first.get_or_insert(sample);
                let long_enough = sample.call.since(begin.call) >= rule.over.as_ns();
                if count >= rule.samples && long_enough && sample.ret > after.floor {
                    let mark = Mark {
                        name: name.to_owned(),
                        lower: last_not_good,
                        upper: begin.ret,
                        source: begin.line.clone().unwrap_or_default(),
                    };
                    return Recovery { mark: Ok(mark), not_before: not_before.unwrap_or(last_not_good) };
                }
            }
            State::Bad(_) | State::Wrong(_) | State::Unknown(_) => {
                seen = true;
                last_not_good = sample.call;
                (first, count) = (None, 0);
            }
            State::Unobserved(why) => {
                // A stretch may hide in here, if it is long enough for one.
                if sample.ret.since(sample.call) >= rule.over.as_ns() && sample.ret > after.floor {
                    not_before = not_before.or(Some(last_not_good));
                }
                not_seen = Some(why);
                (first, count) = (None, 0);
            }
        }
    }
    let reason = match (seen, first) {
        (false, _) => match not_seen {
            Some(why) => format!("nothing was observed after the fault: {why}"),
            None => "nothing was observed after the fault".to_owned(),
        },
        (true, Some(_)) => format!(
            "good again at the end, but not for {} samples over {} before the record ends",
            rule.samples, rule.over
        ),
        (true, None) => {
            format!("not good for {} samples over {} in all of the record", rule.samples, rule.over)
        }
    };
    Recovery { mark: Err(reason), not_before: not_before.unwrap_or(last_not_good) }
}

/// A paced client that goes quiet for longer than this many intervals left a gap.
pub const GAP_INTERVALS: u64 = 3;

/// Puts an unobserved sample wherever no operation was under way for longer than
/// [`GAP_INTERVALS`] intervals. `samples` are sorted by call and stay so.
#[must_use]
pub fn with_gaps(samples: Vec<Sample>, every_ns: Option<u64>, until: Option<MonoNs>) -> Vec<Sample> {
    let Some(every) = every_ns else { return samples };
    let limit = every.saturating_mul(GAP_INTERVALS);
    let mut out: Vec<Sample> = Vec::with_capacity(samples.len());
    let mut busy_until: Option<MonoNs> = None;
    let gap = |from: MonoNs, to: MonoNs| Sample {
        call: from,
        ret: to,
        state: State::Unobserved(format!("no operation for {} ms", to.since(from) / 1_000_000)),
        line: None,
    };
    for sample in samples {
        if let Some(end) = busy_until
            && sample.call.since(end) > limit
        {
            out.push(gap(end, sample.call));
        }
        busy_until = busy_until.max(Some(sample.ret));
        out.push(sample);
    }
    if let (Some(end), Some(until)) = (busy_until, until)
        && until.since(end) > limit
    {
        out.push(gap(end, until));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::values::Span;

    fn sample(call: u64, ret: u64, state: State) -> Sample {
        Sample { call: MonoNs(call), ret: MonoNs(ret), state, line: Some(format!("h#{call}")) }
    }

    fn bad() -> State {
        State::Bad("refused".to_owned())
    }

    const AFTER: After = After { lower: MonoNs(90), upper: MonoNs(100), floor: MonoNs(100) };

    fn rule(samples: u32, over_ns: u64) -> Sustained {
        Sustained { samples, over: Span(std::time::Duration::from_nanos(over_ns)) }
    }

    #[test]
    fn the_mark_reaches_from_the_last_bad_call_to_the_first_good_return() {
        let samples = vec![
            sample(50, 55, State::Good),
            sample(110, 115, bad()),
            sample(120, 125, State::Good),
            sample(130, 135, State::Unknown("timeout".to_owned())),
            sample(140, 147, State::Good),
            sample(150, 155, State::Good),
            sample(160, 165, State::Good),
        ];
        let found = first_sustained("x", &samples, AFTER, rule(3, 20)).mark.unwrap();
        assert_eq!((found.lower, found.upper), (MonoNs(130), MonoNs(147)));
        assert!(first_sustained("x", &samples, AFTER, rule(4, 20)).mark.is_err());
        assert!(first_sustained("x", &samples, AFTER, rule(3, 21)).mark.is_err());
    }

    #[test]
    fn a_gap_breaks_a_stretch_and_widens_the_mark() {
        let samples =
            vec![sample(110, 115, bad()), sample(120, 121, State::Good), sample(180, 181, State::Good)];
        let samples = with_gaps(samples, Some(10), None);
        assert_eq!(samples.len(), 4);
        let found = first_sustained("x", &samples, AFTER, rule(1, 0)).mark.unwrap();
        assert_eq!((found.lower, found.upper), (MonoNs(110), MonoNs(121)));
        let late = After { floor: MonoNs(150), ..AFTER };
        let found = first_sustained("x", &samples, late, rule(1, 0)).mark.unwrap();
        assert_eq!(
            (found.lower, found.upper),
            (MonoNs(110), MonoNs(181)),
            "it may have been good in the gap"
        );
    }

    #[test]
    fn what_a_gap_may_hide_is_not_held_against_the_service() {
        let mut samples = vec![sample(110, 115, bad()), sample(300, 301, bad())];
        samples.extend((31..40).map(|i| sample(i * 10, i * 10 + 1, State::Good)));
        let recovery = first_sustained("x", &with_gaps(samples, Some(10), None), AFTER, rule(3, 20));
        assert_eq!(recovery.mark.unwrap().lower, MonoNs(300));
        assert_eq!(recovery.not_before, MonoNs(110));
    }

    #[test]
    fn a_stretch_that_is_over_before_the_disturbance_can_have_ended_is_no_recovery() {
        let mut samples: Vec<_> = (11..20).map(|i| sample(i * 10, i * 10 + 1, State::Good)).collect();
        samples.push(sample(200, 201, bad()));
        samples.extend((31..40).map(|i| sample(i * 10, i * 10 + 1, State::Good)));
        let after = After { floor: MonoNs(250), ..AFTER };
        let found = first_sustained("x", &samples, after, rule(3, 20)).mark.unwrap();
        assert_eq!((found.lower, found.upper), (MonoNs(200), MonoNs(311)));
    }

    #[test]
    fn an_operation_that_takes_long_is_no_gap_but_a_silent_end_is() {
        let samples = vec![sample(100, 400, State::Good), sample(405, 410, State::Good)];
        assert_eq!(with_gaps(samples.clone(), Some(10), Some(MonoNs(415))).len(), 2);
        assert_eq!(with_gaps(samples.clone(), Some(10), Some(MonoNs(500))).len(), 3);
        assert_eq!(with_gaps(samples, None, Some(MonoNs(500))).len(), 2);
    }

    fn gap(call: u64, ret: u64) -> Sample {
        Sample { line: None, ..sample(call, ret, State::Unobserved("asleep".to_owned())) }
    }

    #[test]
    fn what_was_sent_in_the_last_instant_of_the_injection_counts() {
        let found = |call| {
            let early = After { floor: MonoNs(90), ..AFTER };
            first_sustained("x", &[sample(call, 105, State::Good)], early, rule(1, 0)).mark.map(|m| m.upper)
        };
        assert_eq!(found(100), Ok(MonoNs(105)));
        assert_eq!(found(99), Err("nothing was observed after the fault".to_owned()));
    }

    #[test]
    fn fewer_good_samples_than_asked_for_are_no_recovery() {
        let good = [sample(110, 111, State::Good), sample(120, 121, State::Good)];
        let why = |samples: &[Sample]| first_sustained("x", samples, AFTER, rule(3, 0)).mark.unwrap_err();
        let at_the_end = "good again at the end, but not for 3 samples over 0s before the record ends";
        assert_eq!(why(&good), at_the_end);
        let after_a_gap = [gap(101, 109), good[0].clone(), good[1].clone()];
        assert_eq!(why(&after_a_gap), at_the_end);
        let after_a_bad_one = [sample(101, 102, bad()), good[0].clone(), good[1].clone()];
        assert_eq!(why(&after_a_bad_one), at_the_end);
        let with_a_gap = [good[0].clone(), gap(112, 119), good[1].clone(), sample(130, 131, State::Good)];
        assert_eq!(why(&with_a_gap), at_the_end);
        let not_good = "not good for 3 samples over 0s in all of the record";
        assert_eq!(why(&[good[0].clone(), sample(120, 121, bad())]), not_good);
    }

    #[test]
    fn a_gap_that_lasts_beyond_the_injection_is_why_nothing_was_observed() {
        let why = |ret| first_sustained("x", &[gap(50, ret)], AFTER, rule(1, 0)).mark.unwrap_err();
        assert_eq!(why(100), "nothing was observed after the fault");
        assert_eq!(why(101), "nothing was observed after the fault: asleep");
    }

    #[test]
    fn a_stretch_that_ends_as_the_disturbance_does_was_still_the_calm_before_it() {
        let found = |ret| {
            let after = After { floor: MonoNs(200), ..AFTER };
            let samples = [sample(110, 111, State::Good), sample(150, ret, State::Good)];
            first_sustained("x", &samples, after, rule(2, 0)).mark.is_ok()
        };
        assert!(!found(199) && !found(200) && found(201));
    }

    #[test]
    fn a_gap_hides_a_recovery_if_it_lasts_as_long_as_one_and_beyond_the_disturbance() {
        let not_before = |from, to, floor| {
            let after = After { floor: MonoNs(floor), ..AFTER };
            let samples = [sample(110, 111, bad()), gap(from, to), sample(300, 301, bad())];
            first_sustained("x", &samples, after, rule(3, 20)).not_before.0
        };
        assert_eq!(not_before(120, 139, 100), 300, "too short");
        assert_eq!(not_before(120, 140, 100), 110);
        assert_eq!(not_before(120, 140, 139), 110);
        assert_eq!(not_before(120, 140, 140), 300, "over with the disturbance");
        assert_eq!(not_before(120, 130, 200), 300, "neither");
    }

    #[test]
    fn a_client_is_quiet_once_it_has_left_out_more_than_three_intervals() {
        let samples = |next| vec![sample(100, 101, State::Good), sample(next, next + 1, State::Good)];
        assert_eq!(with_gaps(samples(131), Some(10), None).len(), 2);
        let found = with_gaps(samples(132), Some(10), None);
        assert_eq!((found[1].call, found[1].ret, &found[1].line), (MonoNs(101), MonoNs(132), &None));
        assert_eq!(with_gaps(samples(131), Some(10), Some(MonoNs(162))).len(), 2);
        let found = with_gaps(samples(131), Some(10), Some(MonoNs(163)));
        assert_eq!((found[2].call, found[2].ret), (MonoNs(132), MonoNs(163)));
    }
}
