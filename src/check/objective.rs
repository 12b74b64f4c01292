//! What an objective is to the rest of the tool. Each kind has a file of its own: its spec, what it needs of a drill,
//! what is expected of it, and its checker.

use super::{Finding, Judge};
use crate::drill::lint::{Lint, Place};
use crate::drill::spec::Drill;
use crate::plan::{FlowPrediction, PlannedObjective, Prediction};

/// What a plan knows before anything runs.
#[derive(Debug, Clone, Copy)]
pub struct Foreseen<'a> {
    /// The drill.
    pub drill: &'a Drill,
    /// What each client is predicted to see after a restore.
    pub views: &'a [Prediction],
    /// Which fates requests of loads are predicted to meet.
    pub flows: &'a [FlowPrediction],
}

/// A kind of objective.
pub trait ObjectiveKind {
    /// Name in the drill.
    fn name(&self) -> &str;
    /// Values out of their range, and what the drill's clients and steps can't measure.
    fn lint(&self, lint: &mut Lint<'_>, at: &Place);
    /// Whether it is judged by etcd's own state, which a probe then reads.
    fn rests_on_truth(&self) -> bool {
        false
    }
    /// What is expected of it, in words.
    fn predicted(&self, _: &Foreseen<'_>) -> Option<String> {
        None
    }
    /// Judges it.
    fn check(&self, judge: &Judge, planned: &PlannedObjective) -> Finding;
}
