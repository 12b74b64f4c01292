//! Priority levels, as API servers validate them, so that a drill is not refused once it runs.

use super::super::spec::{ApfLevel, Step};
use super::{Lint, is_kebab, step_path};
use crate::fault::apf_level::{Existing, LimitResponse};

pub(super) fn check(lint: &mut Lint<'_>, i: usize, step: &Step, s: &ApfLevel) {
    let path = |key: &str| step_path(i, step, key);
    if !is_kebab(&s.name) || s.name.len() > 30 {
        let title = format!("`{}` is not a kebab-case name of at most 30 characters", s.name);
        lint.error(&path("name"), title, "lower-case letters, digits and single dashes, as `jail`");
    }
    if s.lendable_percent > 100 {
        let title = format!("`lendablePercent: {}` is more than there is", s.lendable_percent);
        lint.error(&path("lendablePercent"), title, "write 0 to 100");
    }
    if !(2..=9999).contains(&s.precedence) {
        let title = format!("`precedence: {}` is out of range", s.precedence);
        lint.error(&path("precedence"), title, "write 2 to 9999; below 2 and at 10000 are mandatory schemas");
    }
    if let LimitResponse::Queue(q) = &s.limit_response
        && (q.hand_size == 0 || q.queue_length_limit == 0 || q.hand_size > q.queues)
    {
        let title = "every figure of a queue is 1 or more, and a hand is dealt from the queues there are";
        let help = "as `queue: {queues: 1, handSize: 1, queueLengthLimit: 50}`";
        lint.error(&path("limitResponse"), title, help);
    }
    if s.shares == 0 && s.borrowing_limit_percent.percent().is_none() {
        let title =
            "a level of no shares that may borrow has seats as soon as it asks for them: it is no jail";
        lint.warning(
            &path("borrowingLimitPercent"),
            title,
            "leave it out for 0, unless that is what is to be shown",
        );
    }
    if let Some(existing) = &s.existing {
        changed(lint, existing, path);
    } else if s.clients.is_empty() {
        let title = "a level without clients limits nobody";
        lint.error(&path("clients"), title, "name clients of the drill, as `[jailed]`");
    }
}

/// A level of the cluster, which is not the drill's alone.
fn changed(lint: &mut Lint<'_>, existing: &Existing, path: impl Fn(&str) -> String) {
    let Existing { level, confirm } = existing;
    let part_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
    if level.is_empty() || level.len() > 253 || !level.chars().all(part_of_name) {
        let title = format!("`{}` is no name of a PriorityLevelConfiguration", level.escape_debug());
        lint.error(&path("existing.level"), title, "`kubectl get prioritylevelconfigurations` lists them");
    }
    if ["exempt", "catch-all"].contains(&level.as_str()) {
        let title = format!("`{level}` is mandatory: API servers undo every change of it within a minute");
        lint.error(
            &path("existing.level"),
            title,
            "make a level of the drill's own by leaving `existing` out",
        );
    }
    if confirm != level {
        let title = format!("`confirm` does not repeat the name `{}`", level.escape_debug());
        let help =
            "everybody whose requests go to the level is hit: write its name a second time if that is meant";
        lint.error(&path("existing.confirm"), title, help);
    }
}
