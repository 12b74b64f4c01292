//! Tables of figures that all formats show alike.

use super::model::Report;
use super::{holder_tables, level_tables};

/// A table; its cells are not escaped yet.
pub(super) struct Table {
    /// Heading.
    pub(super) title: &'static str,
    /// Heads of the columns.
    pub(super) columns: &'static [&'static str],
    /// Cells, as many per row as there are columns.
    pub(super) rows: Vec<Vec<String>>,
}

/// Every one, in the order in which they are shown.
pub(super) fn of(report: &Report) -> Vec<Table> {
    let restores = report.facts.etcd_restore.iter().flat_map(holder_tables::tables);
    restores.chain(report.facts.apf.iter().flat_map(level_tables::tables)).collect()
}
