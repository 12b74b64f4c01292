//! The order of steps: what is restored was saved and lost before.

use super::super::spec::Step;
use super::super::suggest;
use super::{Lint, step_path};
use crate::step::spec::{RestoreSnapshot, Until};

pub(super) fn check(lint: &mut Lint<'_>) {
    let mut state = State::default();
    for (i, step) in lint.drill.spec.steps.iter().enumerate() {
        match step {
            Step::TakeSnapshot(s) => {
                let path = step_path(i, step, "as");
                if state.lost.is_some() {
                    let help = "move it before `loseEtcd`";
                    lint.error(&path, "no snapshot can be taken while etcd is lost", help);
                }
                if state.snapshots.contains(&s.name.as_str()) {
                    let title = format!("a snapshot named `{}` was taken above", s.name);
                    lint.error(&path, title, "give each snapshot its own name");
                }
                if s.name.is_empty() || !s.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                    let title = format!("snapshot name `{}` is not usable", s.name);
                    lint.error(&path, title, "use letters, digits and dashes");
                }
                state.snapshots.push(&s.name);
            }
            Step::LoseEtcd(_) => {
                if state.lost.is_some() {
                    let help = "restore etcd with `restoreSnapshot` before it is lost again";
                    lint.error(&step_path(i, step, "members"), "etcd is lost already", help);
                }
                state.lost = Some(i);
            }
            Step::RestoreSnapshot(s) => restore(lint, &mut state, i, step, s),
            Step::Observe(s) => {
                if s.until == Until::RevisionPassedLost && !state.restored {
                    let title = "`revisionPassedLost` can only hold after a `restoreSnapshot`";
                    let help = "put this step after `restoreSnapshot`";
                    lint.error(&step_path(i, step, "until"), title, help);
                }
            }
            Step::Hold(_) => {}
        }
    }
    if let Some(i) = state.lost {
        let path = step_path(i, &lint.drill.spec.steps[i], "members");
        let title = "no later step ends this fault: its undo will, by putting the original data back";
        lint.warning(&path, title, "add a `restoreSnapshot` step if a restore is to be drilled");
    }
}

/// What the steps so far have done.
#[derive(Default)]
struct State<'a> {
    snapshots: Vec<&'a str>,
    lost: Option<usize>,
    restored: bool,
}

fn restore(lint: &mut Lint<'_>, state: &mut State<'_>, i: usize, step: &Step, s: &RestoreSnapshot) {
    let from = step_path(i, step, "from");
    if state.lost.take().is_none() {
        let title = "nothing to restore: no `loseEtcd` step stands before this one";
        lint.error(&from, title, "add `- loseEtcd: {members: all}` before it");
    }
    state.restored = true;
    if !state.snapshots.contains(&s.from.as_str()) {
        let help = suggest::hint(&s.from, "snapshots taken before", &state.snapshots)
            .unwrap_or_else(|| format!("add `- takeSnapshot: {{as: {}}}` before `loseEtcd`", s.from));
        lint.error(&from, format!("no earlier step takes a snapshot named `{}`", s.from), help);
    }
    let topology = lint.drill.spec.cluster.topology;
    let idle = [
        ("controllerManagers", s.restart.controller_managers, topology.controller_managers),
        ("schedulers", s.restart.schedulers, topology.schedulers),
    ];
    for (key, restart, count) in idle {
        if restart && count == 0 {
            let path = step_path(i, step, &format!("restart.{key}"));
            let title = format!("`{key}: true` restarts nothing: the topology has none");
            lint.warning(&path, title, format!("set `topology.{key}`, or leave this out"));
        }
    }
}
