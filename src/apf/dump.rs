//! `/debug/api_priority_and_fairness/dump_priority_levels`: how full the queues of an API server are at a moment.
//!
//! A table with commas and spaces between its columns, whose names are in its first line
//! (`k8s.io/apiserver` `pkg/util/flowcontrol/apf_controller_debug.go`, alike from 1.28 to 1.37).

use std::collections::BTreeMap;

/// Path of the table.
pub const PATH: &str = "/debug/api_priority_and_fairness/dump_priority_levels";

/// Requests of one level at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// In a queue.
    pub waiting: u64,
    /// Being executed.
    pub executing: u64,
}

/// Levels by name. What has no figures, as the level `exempt` has no queue, is left out; `None`: it is no such table.
#[must_use]
pub fn read(table: &str) -> Option<BTreeMap<String, Fill>> {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next()?.split(',').map(str::trim).collect();
    let column = |name: &str| names.iter().position(|found| *found == name);
    let (level, waiting, executing) =
        (column("PriorityLevelName")?, column("WaitingRequests")?, column("ExecutingRequests")?);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let figure = |at: usize| cells.get(at)?.parse().ok();
        let fill = Fill { waiting: figure(waiting)?, executing: figure(executing)? };
        Some(((*cells.get(level)?).to_owned(), fill))
    };
    Some(lines.filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_the_names_of_their_columns() {
        let table = "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests\n\
                     exempt,            <none>,       <none>, <none>,      <none>,          <none>,            <none>,             <none>,           <none>,           <none>\n\
                     jail,              1,            false,  false,       44,              2,                 0,                  400,              0,                6\n";
        let fill = Fill { waiting: 44, executing: 2 };
        assert_eq!(read(table), Some([("jail".to_owned(), fill)].into()));
    }

    #[test]
    fn what_is_no_such_table_is_not_taken_for_an_empty_one() {
        assert_eq!(read(""), None);
        assert_eq!(read("404 page not found"), None);
    }
}
