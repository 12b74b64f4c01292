//! The ladder of recovery times: one rung per capability, both definitions.
//!
//! The rungs are not ordered: a cluster may take writes long before its
//! `/readyz` is ok, or answer LIST wrongly for ever.

use super::model::{Mark, Report};
use crate::check::unit::Unit;
use crate::fault::apf_level::APF_LEVEL;
use crate::timeline::marks;

/// Marks at which a capability is back, and what to call that.
const RUNGS: [(&str, &str); 11] = [
    (marks::ETCD_SERVING, "etcd serves"),
    (marks::API_READY, "API servers ready"),
    (marks::FIRST_GOOD_WRITE, "writes acknowledged"),
    (marks::FIRST_GOOD_GET, "GET right"),
    (marks::FIRST_TRUE_LIST, "LIST right"),
    (marks::SECRETS_READABLE, "Secrets readable"),
    (marks::ALL_WATCHES_LIVE, "watches deliver"),
    (marks::CONTROLLERS_LEAD, "controllers lead"),
    (marks::CONTROLLERS_ACT, "controllers act"),
    (marks::SCHEDULER_ACTS, "scheduler acts"),
    (marks::EVENTS_WRITTEN, "events written"),
];

/// One rung.
pub(super) struct Rung {
    /// For people.
    pub(super) label: &'static str,
    /// Name of the mark.
    pub(super) mark: &'static str,
    /// From the fault.
    pub(super) from_fault: Rise,
    /// From the restore command.
    pub(super) from_command: Rise,
}

/// A duration between two marks.
pub(super) enum Rise {
    /// Not shorter than the first, not longer than the second, nanoseconds.
    Between(u64, u64),
    /// It can't be told, and why.
    Unknown(String),
    /// The drill has no such start.
    NotApplicable,
}

impl Rise {
    /// Both bounds, the middle first: `1.102 s (1.052–1.152)`.
    pub(super) fn text(&self) -> String {
        match self {
            Rise::Between(lower, upper) => super::figure::bounded(
                Some(lower + upper.saturating_sub(*lower) / 2),
                Some(*lower),
                Some(*upper),
                Unit::Nanoseconds,
            ),
            Rise::Unknown(reason) => format!("unknown: {reason}"),
            Rise::NotApplicable => "no restore in this drill".to_owned(),
        }
    }

    /// As [`Rise::text`] where there is room for a figure only.
    pub(super) fn short(&self) -> String {
        match self {
            Rise::Between(..) => self.text(),
            Rise::Unknown(_) => "unknown".to_owned(),
            Rise::NotApplicable => "—".to_owned(),
        }
    }
}

/// Every rung that the run's marks name; none when the run has no such marks.
pub(super) fn rungs(report: &Report) -> Vec<Rung> {
    // Flow control takes nothing down that could come back.
    if !report.faults.is_empty() && report.faults.iter().all(|fault| fault.kind == APF_LEVEL) {
        return Vec::new();
    }
    let find = |name: &str| report.marks.iter().find(|m| m.name == name);
    let restores = report.steps.iter().any(|step| step.kind == "restoreSnapshot");
    RUNGS
        .iter()
        .filter_map(|(mark, label)| {
            let to = find(mark)?;
            Some(Rung {
                label,
                mark,
                from_fault: rise(find(marks::FAULT), to),
                from_command: if restores {
                    rise(find(marks::RESTORE_COMMAND), to)
                } else {
                    Rise::NotApplicable
                },
            })
        })
        .collect()
}

fn rise(from: Option<&Mark>, to: &Mark) -> Rise {
    let bounds = |m: &Mark| match (m.lower_ns, m.upper_ns) {
        (Some(lower), Some(upper)) => Ok((lower, upper)),
        _ => Err(m.reason.clone().unwrap_or_else(|| "not reached".to_owned())),
    };
    let Some(from) = from else {
        return Rise::Unknown("the run has no such start".to_owned());
    };
    match (bounds(from), bounds(to)) {
        (Ok((from_lower, from_upper)), Ok((to_lower, to_upper))) => {
            Rise::Between(to_lower.since(from_upper), to_upper.since(from_lower))
        }
        (Err(reason), _) | (_, Err(reason)) => Rise::Unknown(reason),
    }
}
