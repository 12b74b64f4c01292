//! Priority levels, as API servers validate them, so that a drill is not refused once it runs.

use super::{APF_LEVEL, ApfLevel, Existing, LimitResponse};
use crate::drill::lint::{Lint, Place, SoFar, is_kebab};
use crate::drill::suggest;
use crate::fault::Fault;
use crate::step::kind::StepKind;
use std::sync::Arc;

/// As the plan can do sums with.
const MOST_SHARES: u32 = 10_000;
/// `borrowingLimitPercent` is an int32.
const MOST_PERCENT: u32 = i32::MAX as u32;
/// `pkg/apis/flowcontrol/validation/validation.go`: the most queues, and the entropy that a hash has for a hand.
const MOST_QUEUES: u32 = 10_000_000;
const MOST_ENTROPY_BITS: f64 = 60.0;

/// Bits that it takes to choose a hand (`RequiredEntropyBits` in `pkg/util/shufflesharding`).
fn entropy_bits(queues: u32, hand_size: u32) -> f64 {
    (f64::from(queues).log2() * f64::from(hand_size)).ceil()
}

/// Shares of a level, at its begin or later.
pub fn shares_in_range(lint: &mut Lint<'_>, path: &str, shares: u32) {
    if shares > MOST_SHARES {
        lint.error(path, format!("`shares: {shares}` is out of range"), format!("write 0 to {MOST_SHARES}"));
    }
}

fn spec(lint: &mut Lint<'_>, at: &Place, s: &ApfLevel) {
    let path = |key: &str| at.key(key);
    if !is_kebab(&s.name) || s.name.len() > 30 {
        let title = format!("`{}` is not a kebab-case name of at most 30 characters", s.name);
        lint.error(&path("name"), title, "lower-case letters, digits and single dashes, as `jail`");
    }
    if s.lendable_percent > 100 {
        let title = format!("`lendablePercent: {}` is more than there is", s.lendable_percent);
        lint.error(&path("lendablePercent"), title, "write 0 to 100");
    }
    if !(2..=9899).contains(&s.precedence) {
        let title = format!("`precedence: {}` is out of range", s.precedence);
        lint.error(&path("precedence"), title, "write 2 to 9899; at 1 is `exempt`, at 9900 `global-default`");
    }
    shares_in_range(lint, &path("shares"), s.shares);
    if s.borrowing_limit_percent.percent().is_some_and(|percent| percent > MOST_PERCENT) {
        let title = "`borrowingLimitPercent` is more than an API server takes";
        lint.error(
            &path("borrowingLimitPercent"),
            title,
            format!("write 0 to {MOST_PERCENT}, or `unlimited`"),
        );
    }
    if let LimitResponse::Queue(q) = &s.limit_response
        && (q.hand_size == 0 || q.queue_length_limit == 0 || q.hand_size > q.queues)
    {
        let title = "every figure of a queue is 1 or more, and a hand is dealt from the queues there are";
        let help = "as `queue: {queues: 1, handSize: 1, queueLengthLimit: 50}`";
        lint.error(&path("limitResponse"), title, help);
    }
    if let LimitResponse::Queue(q) = &s.limit_response
        && (q.queues > MOST_QUEUES || entropy_bits(q.queues, q.hand_size) > MOST_ENTROPY_BITS)
    {
        let title = "API servers deal no hand from so many queues";
        let help = format!(
            "at most {MOST_QUEUES} queues, and hands that take no more than {MOST_ENTROPY_BITS} bits to choose"
        );
        lint.error(&path("limitResponse"), title, help);
    }
    if s.shares == 0 && s.borrowing_limit_percent.percent() != Some(0) {
        let title = match s.borrowing_limit_percent.percent() {
            None => {
                "a level of no shares that may borrow has seats as soon as it asks for them: it is no jail"
            }
            Some(_) => "a level of no shares has no seats to take a percentage of, so it borrows nothing",
        };
        let help = "leave it out for 0, unless that is what is to be shown";
        lint.warning(&path("borrowingLimitPercent"), title, help);
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
    let parts_begin_well = level.split('.').all(|part| part.starts_with(|c: char| c.is_ascii_alphanumeric()));
    if level.len() > 253 || !level.chars().all(part_of_name) || !parts_begin_well {
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

impl StepKind for ApfLevel {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        spec(lint, at, self);
        known_clients(lint, &at.key("clients"), &self.clients);
        if let Some(other) = so_far.levels.iter().find(|other| ties(other, self)) {
            let title = format!("`{}` has the same precedence and clients in common", other.name);
            let help = "the lower `precedence` decides; give each its own";
            lint.error(&at.key("precedence"), title, help);
        }
        if so_far.levels.iter().any(|level| level.name == self.name) {
            let title = format!("a level named `{}` was made above", self.name);
            lint.error(&at.key("name"), title, "give each level its own name");
        }
        if let Some(name) = level_changed(self)
            && so_far.levels.iter().any(|other| level_changed(other) == Some(name))
        {
            let title = format!("`{name}` is changed above already");
            let help = "put `- end: {fault: apfLevel}` before it, or change its shares by `apfShares`";
            lint.error(&at.key("existing.level"), title, help);
        }
        so_far.levels.push(self);
        so_far.open.push((at.index, APF_LEVEL));
    }

    fn fault(&self) -> Option<Arc<dyn Fault>> {
        Some(Arc::new(self.clone()))
    }
}

/// Which of two schemas takes a request would hang on their names.
fn ties(one: &ApfLevel, other: &ApfLevel) -> bool {
    one.precedence == other.precedence && one.clients.iter().any(|client| other.clients.contains(client))
}

/// Name of the cluster's own level that is changed.
fn level_changed(level: &ApfLevel) -> Option<&str> {
    level.existing.as_ref().map(|existing| existing.level.as_str())
}

/// Clients that a level is for.
fn known_clients(lint: &mut Lint<'_>, path: &str, names: &[String]) {
    let known: Vec<&str> = lint.drill.spec.clients.iter().map(|client| client.name()).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let help = suggest::hint(name, "clients", &known).unwrap_or_default();
        lint.error(path, format!("the drill has no client `{name}`"), help);
    }
}
