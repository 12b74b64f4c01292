//! What API servers said of a level: the first reading and the last one.

use super::requests::facts;
use crate::apf::metrics::SchemaMetrics;
use crate::clock::MonoNs;
use crate::component::ComponentId;
use crate::journal::entry::Fact;
use crate::timeline::EvidenceInput;
use std::collections::BTreeMap;

/// One reading of one API server.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) process_start_ns: Option<u64>,
    pub(super) seats: BTreeMap<String, u64>,
    pub(super) schema: SchemaMetrics,
    pub(super) level_is: Option<String>,
    pub(super) schema_is: Option<String>,
    pub(super) call: MonoNs,
    pub(super) returned: MonoNs,
}

/// Readings of a level by server, in order of time.
pub(super) fn readings(input: &EvidenceInput, of: &str) -> BTreeMap<ComponentId, Vec<Reading>> {
    let mut all: BTreeMap<ComponentId, Vec<Reading>> = BTreeMap::new();
    for fact in facts(input) {
        if let Fact::FlowMetrics {
            server,
            level,
            process_start_ns,
            seats,
            requests,
            level_is,
            schema_is,
            call_ns,
            return_ns,
        } = fact
            && level == of
        {
            all.entry(server.clone()).or_default().push(Reading {
                process_start_ns: *process_start_ns,
                seats: seats.clone(),
                schema: schema(requests),
                level_is: level_is.clone(),
                schema_is: schema_is.clone(),
                call: *call_ns,
                returned: *return_ns,
            });
        }
    }
    all
}

fn schema(requests: &BTreeMap<String, u64>) -> SchemaMetrics {
    let count = |name: &str| requests.get(name).copied().unwrap_or_default();
    let rejected = requests
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix("rejected:")?.to_owned(), *count)));
    SchemaMetrics {
        dispatched: count("dispatched"),
        rejected: rejected.collect(),
        in_queue: count("inQueue"),
        executing: count("executing"),
        waits_execute_true: count("waitsExecuteTrue"),
        waits_execute_false: count("waitsExecuteFalse"),
    }
}
