//! The order of steps: what each of them finds of those before it.

use super::{Lint, Place};
use crate::fault::apf_level::{APF_LEVEL, ApfLevel};
use crate::step::take_snapshot::SnapshotMethod;

/// What the steps so far have done.
#[derive(Default)]
pub struct SoFar<'a> {
    /// Snapshots that were taken.
    pub(crate) snapshots: Vec<(&'a str, SnapshotMethod)>,
    /// The step that lost etcd, until it is restored or put back.
    pub(crate) lost: Option<usize>,
    /// etcd was restored.
    pub(crate) restored: bool,
    /// Levels that are made or changed, and not ended.
    pub(crate) levels: Vec<&'a ApfLevel>,
    /// Faults that are not ended, each with its key.
    pub(crate) open: Vec<(usize, &'static str)>,
}

impl SoFar<'_> {
    /// How the snapshot of that name was taken; `None`: there is none.
    pub(crate) fn taken(&self, name: &str) -> Option<SnapshotMethod> {
        self.snapshots.iter().find(|(taken, _)| *taken == name).map(|(_, method)| *method)
    }

    /// A fault of etcd begins.
    pub(crate) fn begins(&mut self, lint: &mut Lint<'_>, at: &Place, key: &'static str) {
        if let Some((_, open)) = self.open.iter().find(|(_, kind)| *kind != APF_LEVEL) {
            let title =
                format!("`{open}` is not ended yet, and one fault of etcd at a time can be told apart");
            lint.error(at.itself(), title, "end it before the next one begins");
        }
        self.open.push((at.index, key));
    }

    /// A step ends every fault of this kind; whether there was one.
    pub(crate) fn ends(&mut self, fault: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|(_, kind)| *kind != fault);
        self.open.len() < before
    }
}

pub(super) fn check(lint: &mut Lint<'_>) {
    let mut so_far = SoFar::default();
    for (index, step) in lint.drill.spec.steps.iter().enumerate() {
        step.kind().lint(lint, &Place::of("steps", index, step.key()), &mut so_far);
    }
    if let Some(index) = so_far.lost {
        let path = Place::of("steps", index, "loseEtcd").key("members");
        let title = "no later step ends this fault: its undo will, by putting the original data back";
        lint.warning(&path, title, "add a `restoreSnapshot` step if a restore is to be drilled");
    }
    for (index, kind) in so_far.open.into_iter().filter(|(index, _)| Some(*index) != so_far.lost) {
        let title =
            "no later step ends this fault: only the end of the run will, when nothing is recorded any more";
        let help = format!("add `- end: {{fault: {kind}}}` after it");
        lint.error(Place::of("steps", index, kind).itself(), title, help);
    }
}
