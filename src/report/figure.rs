//! How figures are written, the same everywhere: with unit and bounds.

use super::model::Objective;
use crate::check::Verdict;
use crate::check::unit::Unit;

/// A duration with millisecond resolution: `0.412 s`, `1.102 s`, `2 min 05.300 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let ms = millis(ns);
    if ms < 60_000 {
        format!("{} s", seconds(ms))
    } else {
        format!("{} min {:02}.{:03} s", ms / 60_000, ms % 60_000 / 1000, ms % 1000)
    }
}

/// A duration that the drill names, without idle zeros: `30 s`, `0.25 s`, `5 min`.
#[must_use]
pub fn round_duration(ns: u64) -> String {
    let ms = millis(ns);
    if ms >= 60_000 && ms.is_multiple_of(60_000) {
        return format!("{} min", ms / 60_000);
    }
    let text = seconds(ms);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Time since a reference instant, signed: `+1.102 s`, `−4.020 s`.
#[must_use]
pub fn offset(ns: u64, reference: u64) -> String {
    let sign = if ns < reference { '−' } else { '+' };
    format!("{sign}{}", duration(ns.abs_diff(reference)))
}

/// Milliseconds, rounded half up: bounds of an interval stay on their side to within half a millisecond.
fn millis(ns: u64) -> u64 {
    ns / 1_000_000 + u64::from(ns % 1_000_000 >= 500_000)
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A number of `unit`; nanoseconds are written as a duration.
#[must_use]
pub fn quantity(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => duration(value),
        unit => format!("{value} {}", unit.after(value)),
    }
}

/// A figure with its bounds: `1.102 s (1.052–1.152)`, `248 writes (exact)`,
/// `1.102 s (bounds unknown)`, `unknown`.
#[must_use]
pub fn bounded(observed: Option<u64>, lower: Option<u64>, upper: Option<u64>, unit: Unit) -> String {
    let bare = |v: u64| match unit {
        Unit::Nanoseconds if millis(v) < 60_000 => seconds(millis(v)),
        unit => quantity(v, unit),
    };
    match (observed, lower, upper) {
        (Some(o), Some(l), Some(u)) if l == u && o == l => format!("{} (exact)", quantity(o, unit)),
        (Some(o), Some(l), Some(u)) => format!("{} ({}–{})", quantity(o, unit), bare(l), bare(u)),
        (Some(o), _, _) => format!("{} (bounds unknown)", quantity(o, unit)),
        (None, Some(l), Some(u)) => format!("{} to {}", quantity(l, unit), quantity(u, unit)),
        (None, Some(l), None) => format!("at least {}", quantity(l, unit)),
        (None, None, Some(u)) => format!("at most {}", quantity(u, unit)),
        (None, None, None) => "unknown".to_owned(),
    }
}

/// What was observed against an objective.
#[must_use]
pub fn observed(objective: &Objective) -> String {
    bounded(objective.observed, objective.lower, objective.upper, objective.unit)
}

/// The limit that an objective sets: `at most 30 s`.
#[must_use]
pub fn target(objective: &Objective) -> String {
    match (objective.target, objective.unit) {
        (None, _) => "none set".to_owned(),
        (Some(v), Unit::Nanoseconds) => format!("at most {}", round_duration(v)),
        (Some(0), unit) => format!("no {}", unit.after(1)),
        (Some(v), unit) => format!("at most {}", quantity(v, unit)),
    }
}

/// A verdict on an objective, as a word.
#[must_use]
pub fn met(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "met",
        Verdict::Fail => "missed",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// A verdict on a run, as a word.
#[must_use]
pub fn verdict(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Pass) => "pass",
        Some(Verdict::Fail) => "fail",
        Some(Verdict::Inconclusive) => "inconclusive",
        None => "not judged",
    }
}

/// Settings as a drill file would have them in one line: `from: backup, bumpRevision: none`.
#[must_use]
pub fn settings(value: &serde_json::Value) -> String {
    use serde_json::Value;
    let nested = |v: &Value| match v {
        Value::Object(_) => format!("{{{}}}", settings(v)),
        other => settings(other),
    };
    match value {
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k}: {}", nested(v))).collect::<Vec<_>>().join(", ")
        }
        Value::Array(all) => format!("[{}]", all.iter().map(nested).collect::<Vec<_>>().join(", ")),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A size in bytes with a binary prefix: `45.2 KiB (46304 bytes)`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const STEP: u64 = 1024;
    let (divisor, unit) = if bytes >= STEP * STEP { (STEP * STEP, "MiB") } else { (STEP, "KiB") };
    let tenths = bytes * 10 / divisor;
    format!("{}.{} {unit} ({bytes} bytes)", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_form_per_range() {
        assert_eq!(duration(412_000_000), "0.412 s");
        assert_eq!(duration(1_101_600_000), "1.102 s");
        assert_eq!(duration(59_999_600_000), "1 min 00.000 s");
        assert_eq!(duration(125_300_000_000), "2 min 05.300 s");
        assert_eq!(round_duration(30_000_000_000), "30 s");
        assert_eq!(round_duration(250_000_000), "0.25 s");
        assert_eq!(round_duration(300_000_000_000), "5 min");
        assert_eq!(offset(1, 1_000_000_001), "−1.000 s");
    }

    #[test]
    fn no_figure_goes_without_its_bounds() {
        assert_eq!(
            bounded(Some(1_102_000_000), Some(1_052_000_000), Some(1_152_000_000), Unit::Nanoseconds),
            "1.102 s (1.052–1.152)"
        );
        assert_eq!(bounded(Some(248), Some(248), Some(248), Unit::Writes), "248 writes (exact)");
        assert_eq!(bounded(Some(1), None, None, Unit::Writes), "1 write (bounds unknown)");
        assert_eq!(bounded(None, Some(3), None, Unit::Clients), "at least 3 clients");
        assert_eq!(bounded(None, None, None, Unit::Nanoseconds), "unknown");
    }
}
