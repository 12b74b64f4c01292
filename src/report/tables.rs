//! Every table of figures that all formats show alike.

use super::flow;
use super::holders::{self, Table};
use super::model::Report;

/// In the order in which they are shown.
pub(super) fn of(report: &Report) -> Vec<Table> {
    let restores = report.facts.etcd_restore.iter().flat_map(holders::tables);
    restores.chain(report.facts.apf.iter().flat_map(flow::tables)).collect()
}
