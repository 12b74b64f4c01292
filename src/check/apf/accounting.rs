//! What API servers counted, held against what clients recorded, and whether anybody else changed the level.

use super::requests::{Kind, Levels, drill_levels, facts, is_load, kinds, shares_at};
use super::servers::{Reading, readings};
use crate::apf::answer::Class;
use crate::apf::metrics::{Difference, Recorded, SchemaMetrics, differences};
use crate::clock::MonoNs;
use crate::component::ComponentId;
use crate::fault::apf_level::ApfLevel;
use crate::journal::entry::Fact;
use crate::timeline::EvidenceInput;
use crate::timeline::clients::ClientLog;

/// One level on one API server, between the first reading and the last one.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) server: ComponentId,
    /// What the server counted; or why that can't be told.
    pub(super) counted: Result<SchemaMetrics, String>,
    pub(super) differences: Vec<Difference>,
}

/// The accounts of a level.
pub(super) fn accounts(input: &EvidenceInput, logs: &[ClientLog], level: &str) -> Vec<Account> {
    let levels = Levels::of(input);
    let of_server = |(server, readings): (ComponentId, Vec<Reading>)| {
        let (first, last) = readings.first().zip(readings.last())?;
        if readings.len() < 2 {
            let counted = Err(format!("the counters of {server} were read only once"));
            return Some(Account { server, counted, differences: Vec::new() });
        }
        let counted = counted(&server, first, last);
        let recorded = recorded(input, logs, &levels, level, &server, (first.call, last.returned));
        let differences = counted.as_ref().map_or_else(|_| Vec::new(), |c| differences(c, recorded));
        Some(Account { server, counted, differences })
    };
    readings(input, level).into_iter().filter_map(of_server).collect()
}

fn counted(server: &ComponentId, first: &Reading, last: &Reading) -> Result<SchemaMetrics, String> {
    if first.process_start_ns.is_none() || first.process_start_ns != last.process_start_ns {
        return Err(format!("{server} was started again, so its counters began at 0"));
    }
    last.schema.since(&first.schema).ok_or_else(|| format!("a counter of {server} went back"))
}

/// Requests that the server answered on this level in between, and those that may have been on it.
fn recorded(
    input: &EvidenceInput,
    logs: &[ClientLog],
    levels: &Levels,
    level: &str,
    server: &ComponentId,
    (from, to): (MonoNs, MonoNs),
) -> Recorded {
    let within = |at: MonoNs| from <= at && at <= to;
    let mut recorded = Recorded::default();
    for log in logs.iter().filter(|log| is_load(log) && log.planned.target == *server) {
        let meant = super::requests::level_of(log, input).is_some_and(|l| l.name == level);
        for (_, op, kind) in kinds(log, input).filter(|(_, op, _)| within(op.call_ns)) {
            match op.exchange.as_ref().and_then(|exchange| exchange.class) {
                Some(Class::FlowControl) if levels.is_on(op, level) => refuse(&mut recorded, kind),
                Some(_) if levels.is_on(op, level) => recorded.executed += 1,
                None if meant => recorded.unanswered += 1,
                _ => {}
            }
        }
    }
    for fact in facts(input) {
        if let Fact::FlowProbed { server: asked, level: Some(uid), status, call_ns, .. } = fact
            && asked == server
            && within(*call_ns)
            && levels.is_level(uid, *call_ns, level)
        {
            *(if *status == 429 { &mut recorded.refused } else { &mut recorded.executed }) += 1;
        }
    }
    recorded
}

fn refuse(recorded: &mut Recorded, kind: Kind) {
    recorded.refused += 1;
    match kind {
        Kind::QueueFull => recorded.queue_full += 1,
        Kind::TimeOut => recorded.timed_out += 1,
        Kind::ConcurrencyLimit => recorded.no_seat += 1,
        Kind::Ok | Kind::Other | Kind::Unanswered => {}
    }
}

/// Whether API servers count with other seats than the level has by its shares.
fn contradicted(input: &EvidenceInput, level: &ApfLevel) -> Vec<String> {
    let of_reading = |server: &ComponentId, reading: &Reading| {
        let shares = shares_at(input, level, Some(reading.call));
        let borrows = level.borrowing_limit_percent.percent().is_none();
        let seats = |name: &str| reading.seats.get(name).copied();
        let fits = match (shares, seats("nominal"), seats("upper")) {
            (_, None, _) | (_, _, None) => false,
            (0, Some(nominal), Some(upper)) => nominal == 0 && (upper > 0) == borrows,
            (_, Some(nominal), Some(upper)) => 0 < nominal && nominal <= upper,
        };
        (!fits).then(|| {
            let shown = |name| seats(name).map_or_else(|| "unknown".to_owned(), |seats| seats.to_string());
            format!(
                "{server} counts with {} nominal and {} upper seats for `{}`, which has {shares} shares",
                shown("nominal"),
                shown("upper"),
                level.name
            )
        })
    };
    let all = readings(input, &level.name);
    all.iter().filter_map(|(server, readings)| readings.iter().find_map(|r| of_reading(server, r))).collect()
}

/// Why what happened on the drill's levels may not be the drill's doing alone.
pub(super) fn doubts(input: &EvidenceInput, logs: &[ClientLog]) -> Vec<String> {
    let mut doubts = Vec::new();
    for (_, level) in drill_levels(input) {
        let accounts = accounts(input, logs, &level.name);
        if accounts.is_empty() {
            doubts.push(format!("what API servers counted for `{}` was not read", level.name));
        }
        for account in &accounts {
            doubts.extend(account.counted.as_ref().err().cloned());
            doubts.extend(account.differences.iter().map(|d| {
                format!("on {}, {} does not hold: {} and {}", account.server, d.identity, d.left, d.right)
            }));
        }
        doubts.extend(changed(input, &level.name));
        if level.existing.is_none() {
            doubts.extend(contradicted(input, level));
        }
    }
    doubts
}

/// Whether somebody else changed the level or its schema.
fn changed(input: &EvidenceInput, level: &str) -> Option<String> {
    let own = |from: MonoNs, to: MonoNs| {
        let changes = facts(input).filter(|fact| {
            matches!(fact, Fact::SharesChanged { level: name, call_ns, .. }
                if name == level && from <= *call_ns && *call_ns <= to)
        });
        changes.count() as u64
    };
    for readings in readings(input, level).into_values() {
        let (first, last) = readings.first().zip(readings.last())?;
        let expected = own(first.call, last.returned);
        let pairs = [
            ("level", &first.level_is, &last.level_is, expected),
            ("schema", &first.schema_is, &last.schema_is, 0),
        ];
        for (what, before, after, changes) in pairs {
            let (Some(before), Some(after)) = (parse(before.as_deref()), parse(after.as_deref())) else {
                return Some(format!("the {what} of `{level}` was not there any more"));
            };
            // Writing what is there already does not count a generation up.
            let counted = after.1.checked_sub(before.1);
            if before.0 != after.0 || counted.is_none_or(|counted| counted > changes) {
                return Some(format!("somebody else changed the {what} of `{level}` meanwhile"));
            }
        }
    }
    None
}

/// UID and generation.
fn parse(identity: Option<&str>) -> Option<(&str, u64)> {
    let (uid, generation) = identity?.rsplit_once('/')?;
    Some((uid, generation.parse().ok()?))
}
