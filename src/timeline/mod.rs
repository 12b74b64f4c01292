//! The timeline of a run: marks, intervals and samples, as a pure function of
//! plan, journal and histories.

use crate::clock::MonoNs;
use crate::history::record::Record;
use crate::journal::entry::Entry;
use crate::plan::{Binding, Plan};
use std::collections::BTreeMap;

/// Everything that judging may look at.
#[derive(Debug, Clone)]
pub struct EvidenceInput {
    /// What was meant to happen.
    pub plan: Plan,
    /// What the cluster was; absent when the run ended before it was bound.
    pub binding: Option<Binding>,
    /// What happened to the run.
    pub journal: Vec<Entry>,
    /// What each client saw, by client name.
    pub histories: BTreeMap<String, Vec<Record>>,
}

/// A named instant with its uncertainty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Name, as objectives use it.
    pub name: String,
    /// Earliest.
    pub lower: MonoNs,
    /// Latest.
    pub upper: MonoNs,
    /// What it rests on.
    pub source: String,
}

/// A mark, or why there is none.
pub type Marked = Result<Mark, String>;
