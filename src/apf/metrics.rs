//! `apiserver_flowcontrol_*` as one API server shows it, and whether it agrees with itself.
//!
//! Names and labels as in `k8s.io/apiserver` `pkg/util/flowcontrol/metrics/metrics.go`, 1.29 to 1.37.

use std::collections::BTreeMap;
use thiserror::Error;

/// The metrics of one API server at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scrape {
    /// `process_start_time_seconds`: another one is another process, whose counters began at 0.
    pub process_start: Option<f64>,
    /// Priority levels by name.
    pub levels: BTreeMap<String, LevelMetrics>,
}

/// One priority level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LevelMetrics {
    /// `nominal_limit_seats`.
    pub nominal: Option<u64>,
    /// `lower_limit_seats`.
    pub lower: Option<u64>,
    /// `upper_limit_seats`.
    pub upper: Option<u64>,
    /// `current_limit_seats`.
    pub current: Option<u64>,
    /// Its requests, by FlowSchema.
    pub schemas: BTreeMap<String, SchemaMetrics>,
}

/// Requests of one FlowSchema on one level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaMetrics {
    /// `dispatched_requests_total`.
    pub dispatched: u64,
    /// `rejected_requests_total`, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// `current_inqueue_requests`.
    pub in_queue: u64,
    /// `current_executing_requests`.
    pub executing: u64,
    /// Number of observations of `request_wait_duration_seconds{execute="true"}`: dispatched, *and* timed out.
    pub waits_execute_true: u64,
    /// The same with `execute="false"`: refused at once.
    pub waits_execute_false: u64,
}

impl SchemaMetrics {
    /// Refused, whatever the reason.
    #[must_use]
    pub fn rejected_in_all(&self) -> u64 {
        self.rejected.values().sum()
    }

    fn rejected_for(&self, reason: &str) -> u64 {
        self.rejected.get(reason).copied().unwrap_or_default()
    }

    /// What was added since `before`; `None` when a counter went back.
    #[must_use]
    pub fn since(&self, before: &SchemaMetrics) -> Option<SchemaMetrics> {
        let reasons = self.rejected.keys().chain(before.rejected.keys());
        let rejected: Option<BTreeMap<String, u64>> = reasons
            .map(|reason| {
                Some((reason.clone(), self.rejected_for(reason).checked_sub(before.rejected_for(reason))?))
            })
            .collect();
        Some(SchemaMetrics {
            dispatched: self.dispatched.checked_sub(before.dispatched)?,
            rejected: rejected?,
            // Gauges are as they are.
            in_queue: self.in_queue,
            executing: self.executing,
            waits_execute_true: self.waits_execute_true.checked_sub(before.waits_execute_true)?,
            waits_execute_false: self.waits_execute_false.checked_sub(before.waits_execute_false)?,
        })
    }
}

/// A line that is no metric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the metrics is not in the text format of Prometheus: {text:?}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// Its begin.
    pub text: String,
}

/// Reads what `/metrics` answers.
///
/// # Errors
/// [`Malformed`] for a line of these metrics that can't be read; others are passed over.
pub fn read(text: &str) -> Result<Scrape, Malformed> {
    let mut scrape = Scrape::default();
    for (index, line) in text.lines().enumerate() {
        let wanted = line.starts_with(PREFIX) || line.starts_with("process_start_time_seconds");
        if !wanted {
            continue;
        }
        let sample = sample(line)
            .ok_or_else(|| Malformed { line: index + 1, text: line.chars().take(120).collect() })?;
        scrape.take(&sample);
    }
    Ok(scrape)
}

const PREFIX: &str = "apiserver_flowcontrol_";

struct Sample<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, String>,
    value: f64,
}

/// `name{label="value",…} number`, with an optional timestamp.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = inside.trim_start_matches([',', ' ']);
            if let Some(after) = inside.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, quoted) = inside.split_once("=\"")?;
            let (value, after) = unquote(quoted)?;
            labels.insert(label, value);
            inside = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name, labels, value })
}

/// A label's value up to its closing quote, and what comes after that.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

impl Scrape {
    fn take(&mut self, sample: &Sample<'_>) {
        if sample.name == "process_start_time_seconds" {
            self.process_start = Some(sample.value);
            return;
        }
        let Some(name) = sample.name.strip_prefix(PREFIX) else { return };
        let Some(level) = sample.labels.get("priority_level") else { return };
        let level = self.levels.entry(level.clone()).or_default();
        // Counts and seats are whole and not negative; a server's own nonsense is 0.
        let count = sample.value.max(0.0) as u64;
        match name {
            "nominal_limit_seats" => level.nominal = Some(count),
            "lower_limit_seats" => level.lower = Some(count),
            "upper_limit_seats" => level.upper = Some(count),
            "current_limit_seats" => level.current = Some(count),
            _ => {
                let Some(schema) = sample.labels.get("flow_schema") else { return };
                let schema = level.schemas.entry(schema.clone()).or_default();
                schema.take(name, &sample.labels, count);
            }
        }
    }
}

impl SchemaMetrics {
    fn take(&mut self, name: &str, labels: &BTreeMap<&str, String>, count: u64) {
        match name {
            "dispatched_requests_total" => self.dispatched = count,
            "rejected_requests_total" => {
                let reason = labels.get("reason").cloned().unwrap_or_default();
                self.rejected.insert(reason, count);
            }
            "current_inqueue_requests" => self.in_queue = count,
            "current_executing_requests" => self.executing = count,
            "request_wait_duration_seconds_count" => match labels.get("execute").map(String::as_str) {
                Some("true") => self.waits_execute_true = count,
                _ => self.waits_execute_false = count,
            },
            _ => {}
        }
    }
}

/// An identity that should hold and does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The identity, in words.
    pub identity: &'static str,
    /// Its left side.
    pub left: u64,
    /// Its right side.
    pub right: u64,
}

/// What clients recorded of their requests on one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Given a seat, whatever came of it.
    pub executed: u64,
    /// Refused by flow control.
    pub refused: u64,
    /// Of these, refused at once for a full queue, by the time that it took.
    pub queue_full: u64,
    /// Refused after the whole wait.
    pub timed_out: u64,
    /// Refused at once by a level that does not queue.
    pub no_seat: u64,
    /// Without an answer: they may have arrived, and may have been either.
    pub unanswered: u64,
}

/// Checks what an API server counted of one schema on one level in a phase against itself, and against what clients
/// recorded.
#[must_use]
pub fn differences(counted: &SchemaMetrics, recorded: Recorded) -> Vec<Difference> {
    let arrived = counted.dispatched + counted.rejected_in_all() + counted.in_queue;
    let timed_out = counted.rejected_for("time-out") + counted.rejected_for("cancelled");
    let at_once = counted.rejected_in_all() - timed_out;
    let mut all = Vec::new();
    let mut hold = |identity, left, right| {
        if left != right {
            all.push(Difference { identity, left, right });
        }
    };
    // Nearer to what was answered than to what was sent, where both are possible.
    let explained = |count: u64, answered: u64| count.clamp(answered, answered + recorded.unanswered);
    let answered = recorded.executed + recorded.refused;
    hold("arrivals = requests that clients recorded", arrived, explained(arrived, answered));
    let dispatched = counted.dispatched;
    hold("dispatched = executed, as clients saw it", dispatched, explained(dispatched, recorded.executed));
    let rejected = counted.rejected_in_all();
    hold("rejected = refused, as clients saw it", rejected, explained(rejected, recorded.refused));
    // Of some refusals nobody can say by the time they took which they were.
    let told = recorded.queue_full + recorded.timed_out + recorded.no_seat;
    let untold = recorded.refused.saturating_sub(told) + recorded.unanswered;
    for (identity, counted, seen) in [
        ("rejected as queue-full = refused at once", counted.rejected_for("queue-full"), recorded.queue_full),
        ("rejected as time-out = refused after their wait", timed_out, recorded.timed_out),
        (
            "rejected as concurrency-limit = refused at once",
            counted.rejected_for("concurrency-limit"),
            recorded.no_seat,
        ),
    ] {
        hold(identity, counted, counted.clamp(seen, seen + untold));
    }
    // The label says that a request had come to wait, not that it was executed.
    hold(
        "waits with execute=\"true\" = dispatched + timed out",
        counted.waits_execute_true,
        counted.dispatched + timed_out,
    );
    hold("waits with execute=\"false\" = refused at once", counted.waits_execute_false, at_once);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP apiserver_flowcontrol_dispatched_requests_total [BETA] Number of requests executed
# TYPE apiserver_flowcontrol_dispatched_requests_total counter
apiserver_flowcontrol_dispatched_requests_total{flow_schema="drill",priority_level="drill"} 8
apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} 1.2e+03
apiserver_flowcontrol_rejected_requests_total{flow_schema="drill",priority_level="drill",reason="concurrency-limit"} 27
apiserver_flowcontrol_rejected_requests_total{flow_schema="drill",priority_level="drill",reason="time-out"} 2
apiserver_flowcontrol_nominal_limit_seats{priority_level="drill"} 0
apiserver_flowcontrol_upper_limit_seats{priority_level="drill"} 0
apiserver_flowcontrol_request_wait_duration_seconds_count{execute="true",flow_schema="drill",priority_level="drill"} 10
apiserver_flowcontrol_request_wait_duration_seconds_count{execute="false",flow_schema="drill",priority_level="drill"} 27
apiserver_flowcontrol_request_wait_duration_seconds_bucket{execute="false",flow_schema="drill",priority_level="drill",le="0"} 27
apiserver_flowcontrol_seat_fair_frac 1.83
apiserver_request_total{code="429"} not-a-number
process_start_time_seconds 1.79595e+09
"#;

    fn drill(text: &str) -> SchemaMetrics {
        read(text).unwrap().levels["drill"].schemas["drill"].clone()
    }

    #[test]
    fn levels_and_schemas_are_read_and_other_metrics_passed_over() {
        let scrape = read(TEXT).unwrap();
        assert_eq!(scrape.process_start, Some(1_795_950_000.0));
        let level = &scrape.levels["drill"];
        assert_eq!((level.nominal, level.upper, level.current), (Some(0), Some(0), None));
        assert_eq!(scrape.levels["exempt"].schemas["exempt"].dispatched, 1_200);
        let schema = drill(TEXT);
        assert_eq!((schema.dispatched, schema.rejected_in_all()), (8, 29));
    }

    #[test]
    fn a_malformed_line_is_named() {
        let error = read("apiserver_flowcontrol_dispatched_requests_total{flow_schema=\"a} 8").unwrap_err();
        assert_eq!(error.line, 1);
        let escaped = r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="a\"b\\c"} 3"#;
        assert_eq!(read(escaped).unwrap().levels["a\"b\\c"].nominal, Some(3));
    }

    fn recorded(executed: u64, refused: u64, unanswered: u64) -> Recorded {
        Recorded { executed, refused, unanswered, ..Recorded::default() }
    }

    #[test]
    fn identities_hold_for_what_a_real_server_counted() {
        assert_eq!(differences(&drill(TEXT), recorded(8, 29, 0)), []);
        let arrived = differences(&drill(TEXT), recorded(8, 28, 1));
        assert_eq!(arrived, [], "one that was not answered had arrived");
        let lost = differences(&drill(TEXT), recorded(8, 29, 1));
        assert_eq!(lost, [], "one that was not answered had not arrived");
    }

    #[test]
    fn what_does_not_add_up_is_a_difference() {
        let lost = differences(&drill(TEXT), recorded(8, 30, 0));
        assert_eq!((lost[0].left, lost[0].right), (37, 38));
        assert_eq!((lost[1].left, lost[1].right), (29, 30));
        assert_eq!(differences(&drill(TEXT), recorded(9, 28, 0)).len(), 2, "the other way round");
        // Taking execute="true" for success is the trap: 10 waited, 8 were executed.
        let trapped = SchemaMetrics { waits_execute_true: 8, ..drill(TEXT) };
        assert_eq!(differences(&trapped, recorded(8, 29, 0)).len(), 1);
    }

    #[test]
    fn a_refusal_for_another_reason_than_the_time_it_took_is_a_difference() {
        let seen = Recorded { no_seat: 27, timed_out: 2, ..recorded(8, 29, 0) };
        assert_eq!(differences(&drill(TEXT), seen), []);
        let at_once = Recorded { no_seat: 0, queue_full: 27, ..seen };
        assert_eq!(differences(&drill(TEXT), at_once).len(), 2);
        // One of which nobody can say, as of a probe, may have been either.
        let one_untold = Recorded { timed_out: 1, ..seen };
        assert_eq!(differences(&drill(TEXT), one_untold), []);
    }

    #[test]
    fn a_counter_that_went_back_is_no_difference_but_another_process() {
        let before = drill(TEXT);
        let after = SchemaMetrics { dispatched: 1, ..before.clone() };
        assert_eq!(after.since(&before), None);
        assert_eq!(before.since(&before).map(|d| d.dispatched), Some(0));
    }

    #[test]
    fn what_was_counted_since_is_what_each_counter_has_gained() {
        let before = counted(&[("time-out", 2), ("queue-full", 1)], 5, 9);
        let after = counted(&[("time-out", 5), ("queue-full", 1), ("cancelled", 4)], 7, 3);
        let gained = counted(&[("time-out", 3), ("queue-full", 0), ("cancelled", 4)], 2, 3);
        assert_eq!(after.since(&before), Some(gained));
        let restarted = SchemaMetrics { rejected: [("time-out".to_owned(), 5)].into(), ..after };
        assert_eq!(restarted.since(&before), None, "a reason that is gone went back to 0");
    }

    #[test]
    fn a_number_is_read_before_the_time_that_may_follow_it() {
        let line = r#"apiserver_flowcontrol_nominal_limit_seats{priority_level="a"} 3 1795950000000"#;
        assert_eq!(read(line).unwrap().levels["a"].nominal, Some(3));
    }

    fn counted(rejected: &[(&str, u64)], dispatched: u64, in_queue: u64) -> SchemaMetrics {
        let rejected: BTreeMap<String, u64> =
            rejected.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
        let waited = |reason: &str| rejected.get(reason).copied().unwrap_or_default();
        let timed_out = waited("time-out") + waited("cancelled");
        SchemaMetrics {
            dispatched,
            in_queue,
            executing: 0,
            waits_execute_true: dispatched + timed_out,
            waits_execute_false: rejected.values().sum::<u64>() - timed_out,
            rejected,
        }
    }

    fn broken(counted: &SchemaMetrics, recorded: Recorded) -> Vec<&'static str> {
        differences(counted, recorded).iter().map(|d| d.identity).collect()
    }

    /// What still waits has arrived, and a wait that the client gave up is one that ended.
    #[test]
    fn requests_in_the_queue_have_arrived_and_cancelled_ones_have_timed_out() {
        let recorded =
            Recorded { executed: 5, refused: 4, queue_full: 1, timed_out: 3, ..Recorded::default() };
        let all = counted(&[("queue-full", 1), ("time-out", 2), ("cancelled", 1)], 5, 0);
        assert_eq!(broken(&all, recorded), Vec::<&str>::new());
        let waiting = counted(&[("queue-full", 1), ("time-out", 2), ("cancelled", 1)], 5, 2);
        assert_eq!(broken(&waiting, recorded), ["arrivals = requests that clients recorded"]);
        let answered_none = Recorded { unanswered: 2, ..recorded };
        assert_eq!(broken(&waiting, answered_none), Vec::<&str>::new());
        // Refused, but after what time nobody knows: it may be of any kind.
        let untold = Recorded { queue_full: 0, timed_out: 2, ..recorded };
        assert_eq!(broken(&all, untold), Vec::<&str>::new());
        let both = Recorded { unanswered: 1, ..untold };
        let more = counted(&[("queue-full", 3), ("time-out", 2), ("cancelled", 0)], 5, 0);
        assert_eq!(broken(&more, both), Vec::<&str>::new());
    }
}
