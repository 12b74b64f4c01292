//! The order of steps: what is restored was saved and lost before.

use super::super::spec::{Client, Step};
use super::super::suggest;
use super::{Lint, client_name, objectives, step_key, step_path};
use crate::fault::apf_level::{APF_LEVEL, ApfLevel};
use crate::fault::lose_members::MemberLoss;
use crate::step::restart::Which;
use crate::step::spec::{EncryptionKey, End, RestoreSnapshot, RunLoad, SnapshotMethod, Until};

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
                if state.taken(&s.name).is_some() {
                    let title = format!("a snapshot named `{}` was taken above", s.name);
                    lint.error(&path, title, "give each snapshot its own name");
                }
                if s.name.is_empty() || !s.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                    let title = format!("snapshot name `{}` is not usable", s.name);
                    lint.error(&path, title, "use letters, digits and dashes");
                }
                state.snapshots.push((&s.name, s.method));
            }
            Step::LoseEtcd(_) => {
                if state.lost.is_some() {
                    let help = "restore etcd with `restoreSnapshot` before it is lost again";
                    lint.error(&step_path(i, step, "members"), "etcd is lost already", help);
                } else {
                    state.begin(lint, i, step);
                }
                state.lost = Some(i);
            }
            Step::MemberLoss(fault) => {
                members(lint, i, step, fault);
                state.begin(lint, i, step);
            }
            Step::QuorumLoss(_) => state.begin(lint, i, step),
            Step::End(end) => state.end(lint, i, step, end),
            Step::RestoreSnapshot(s) => restore(lint, &mut state, i, step, s),
            Step::Observe(s) => {
                if s.until == Until::RevisionPassedLost && !state.restored {
                    let title = "`revisionPassedLost` can only hold after a `restoreSnapshot`";
                    let help = "put this step after `restoreSnapshot`";
                    lint.error(&step_path(i, step, "until"), title, help);
                }
            }
            Step::ApfLevel(level) => {
                known_clients(lint, i, step, &level.clients);
                if let Some(other) = state.made.iter().find(|other| ties(other, level)) {
                    let title = format!("`{}` has the same precedence and clients in common", other.name);
                    let help = "the lower `precedence` decides; give each its own";
                    lint.error(&step_path(i, step, "precedence"), title, help);
                }
                if state.names().any(|name| name == level.name) {
                    let title = format!("a level named `{}` was made above", level.name);
                    lint.error(&step_path(i, step, "name"), title, "give each level its own name");
                }
                if let Some(name) = changed(level)
                    && state.made.iter().any(|other| changed(other) == Some(name))
                {
                    let title = format!("`{name}` is changed above already");
                    let help =
                        "put `- end: {fault: apfLevel}` before it, or change its shares by `apfShares`";
                    lint.error(&step_path(i, step, "existing.level"), title, help);
                }
                state.made.push(level);
                state.open.push((i, step_key(step)));
            }
            Step::ApfShares(shares) => {
                let names: Vec<&str> = state.names().collect();
                if !names.contains(&shares.level.as_str()) {
                    let help = suggest::hint(&shares.level, "levels made before", &names)
                        .unwrap_or_else(|| "put it after the `apfLevel` that makes the level".to_owned());
                    let title = format!("no earlier step makes a level named `{}`", shares.level);
                    lint.error(&step_path(i, step, "level"), title, help);
                }
            }
            Step::Load(load) => {
                let path = step_path(i, step, "clients");
                if load.clients.is_empty() {
                    lint.error(&path, "no load is named", "name `load` clients, as `[jailed]`");
                }
                let begun = |client: &Client| matches!(client, Client::Load(_) | Client::RetryingLoad(_));
                objectives::loads(lint, &path, &load.clients, begun);
                in_time(lint, i, step, load);
            }
            Step::Hold(_) => {}
        }
    }
    if let Some(i) = state.lost {
        let path = step_path(i, &lint.drill.spec.steps[i], "members");
        let title = "no later step ends this fault: its undo will, by putting the original data back";
        lint.warning(&path, title, "add a `restoreSnapshot` step if a restore is to be drilled");
    }
    for (i, kind) in state.open.into_iter().filter(|(i, _)| Some(*i) != state.lost) {
        let title =
            "no later step ends this fault: only the end of the run will, when nothing is recorded any more";
        lint.error(
            &format!("spec.steps[{i}].{kind}"),
            title,
            format!("add `- end: {{fault: {kind}}}` after it"),
        );
    }
}

/// Which of two schemas takes a request would hang on their names.
fn ties(one: &ApfLevel, other: &ApfLevel) -> bool {
    one.precedence == other.precedence && one.clients.iter().any(|client| other.clients.contains(client))
}

/// Name of the cluster's own level that is changed.
fn changed(level: &ApfLevel) -> Option<&str> {
    level.existing.as_ref().map(|existing| existing.level.as_str())
}

/// Clients that a level is for.
fn known_clients(lint: &mut Lint<'_>, i: usize, step: &Step, names: &[String]) {
    let path = step_path(i, step, "clients");
    let known: Vec<&str> = lint.drill.spec.clients.iter().map(client_name).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let help = suggest::hint(name, "clients", &known).unwrap_or_default();
        lint.error(&path, format!("the drill has no client `{name}`"), help);
    }
}

/// A load that can't come to its end, or be sent, within its step.
fn in_time(lint: &mut Lint<'_>, i: usize, step: &Step, begun: &RunLoad) {
    for load in begun.clients.iter().filter_map(|name| lint.drill.load(name)) {
        let lasts = load.arrivals.duration();
        if lasts > begun.at_most {
            let title =
                format!("`{}` sends for {lasts}, and the step fails after {}", load.name, begun.at_most);
            lint.error(&step_path(i, step, "atMost"), title, format!("write `atMost: {lasts}` or more"));
        }
    }
}

/// One member of several, by its name.
fn members(lint: &mut Lint<'_>, i: usize, step: &Step, fault: &MemberLoss) {
    let count = lint.drill.spec.cluster.topology.etcd;
    let path = step_path(i, step, "member");
    let names: Vec<String> = (1..=count).map(|n| format!("etcd-{n}")).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    if !known.contains(&fault.member.0.as_str()) {
        let help = suggest::hint(&fault.member.0, "etcd members", &known).unwrap_or_default();
        lint.error(&path, format!("the cluster has no etcd member `{}`", fault.member), help);
    } else if count < 3 {
        let title = "the loss of the only member is the loss of the quorum";
        lint.error(&path, title, "use `quorumLoss: {}`, or set `topology.etcd: 3`");
    }
}

/// What the steps so far have done.
#[derive(Default)]
struct State<'a> {
    snapshots: Vec<(&'a str, SnapshotMethod)>,
    lost: Option<usize>,
    restored: bool,
    /// Levels that are made or changed, and not ended.
    made: Vec<&'a ApfLevel>,
    /// Faults that are not ended, each with its key.
    open: Vec<(usize, &'static str)>,
}

impl<'a> State<'a> {
    /// Names of the levels that are made or changed, and not ended.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.made.iter().map(|level| level.name.as_str())
    }

    fn taken(&self, name: &str) -> Option<SnapshotMethod> {
        self.snapshots.iter().find(|(taken, _)| *taken == name).map(|(_, method)| *method)
    }

    fn begin(&mut self, lint: &mut Lint<'_>, i: usize, step: &Step) {
        let key = step_key(step);
        let path = format!("spec.steps[{i}].{key}");
        if let Some((_, open)) = self.open.iter().find(|(_, kind)| *kind != APF_LEVEL) {
            let title =
                format!("`{open}` is not ended yet, and one fault of etcd at a time can be told apart");
            lint.error(&path, title, "end it before the next one begins");
        }
        self.open.push((i, key));
    }

    fn end(&mut self, lint: &mut Lint<'_>, i: usize, step: &Step, end: &End) {
        let before = self.open.len();
        self.open.retain(|(_, kind)| *kind != end.fault);
        if self.open.len() == before {
            let open: Vec<&str> = self.open.iter().map(|(_, kind)| *kind).collect();
            let help = suggest::hint(&end.fault, "faults that are not ended", &open)
                .unwrap_or_else(|| "put it after the step that injects the fault".to_owned());
            let title = format!("no fault `{}` is there to be ended", end.fault);
            lint.error(&step_path(i, step, "fault"), title, help);
        }
        if end.fault == "loseEtcd" {
            self.lost = None;
        }
        if end.fault == APF_LEVEL {
            self.made.clear();
        }
    }
}

fn restore(lint: &mut Lint<'_>, state: &mut State<'_>, i: usize, step: &Step, s: &RestoreSnapshot) {
    let from = step_path(i, step, "from");
    if state.lost.take().is_none() {
        let title = "nothing to restore: no `loseEtcd` step stands before this one";
        lint.error(&from, title, "add `- loseEtcd: {members: all}` before it");
    }
    state.open.retain(|(_, kind)| *kind != "loseEtcd");
    state.restored = true;
    match (state.taken(&s.from), s.skip_hash_check) {
        (None, _) => {
            let names: Vec<&str> = state.snapshots.iter().map(|(name, _)| *name).collect();
            let help = suggest::hint(&s.from, "snapshots taken before", &names)
                .unwrap_or_else(|| format!("add `- takeSnapshot: {{as: {}}}` before `loseEtcd`", s.from));
            lint.error(&from, format!("no earlier step takes a snapshot named `{}`", s.from), help);
        }
        (Some(SnapshotMethod::CopyDatabase), false) => {
            let title =
                format!("`{}` is a copy of a database: it has no digest, and etcdutl refuses it", s.from);
            let help = "take it with `method: save`, or accept that nothing shows it to be whole: `skipHashCheck: true`";
            lint.error(&from, title, help);
        }
        (Some(SnapshotMethod::Save), true) => {
            let title = format!("`{}` has a digest, which `skipHashCheck` leaves unchecked", s.from);
            lint.warning(&step_path(i, step, "skipHashCheck"), title, "leave `skipHashCheck` out");
        }
        (Some(_), _) => {}
    }
    restarts(lint, i, step, s);
    key(lint, i, step, s);
}

/// Only an API server that starts reads its key, and only one that encrypts has one.
fn key(lint: &mut Lint<'_>, i: usize, step: &Step, s: &RestoreSnapshot) {
    if s.encryption_key == EncryptionKey::Present {
        return;
    }
    let path = step_path(i, step, "encryptionKey");
    if lint.drill.spec.cluster.encryption_at_rest.is_none() {
        let title = "the cluster encrypts nothing, so there is no key to be lost";
        lint.error(&path, title, "add `encryptionAtRest: {provider: secretbox}` to `cluster`");
    }
    if s.restart.api_servers != Which::All {
        let title = "an API server that keeps running keeps its key in memory";
        lint.error(&path, title, "set `restart: {apiServers: true}`");
    }
}

/// What is to be restarted is there.
fn restarts(lint: &mut Lint<'_>, i: usize, step: &Step, s: &RestoreSnapshot) {
    let components = crate::plan::components(lint.drill.spec.cluster.topology);
    for (role, key, which) in s.restart.by_role() {
        let path = step_path(i, step, &format!("restart.{key}"));
        let there: Vec<&str> =
            components.iter().filter(|c| c.role == role).map(|c| c.component.0.as_str()).collect();
        match which {
            Which::All if there.is_empty() => {
                let title = format!("`{key}: true` restarts nothing: the topology has none");
                lint.warning(&path, title, format!("set `topology.{key}`, or leave this out"));
            }
            Which::Named(names) => {
                for name in names.iter().filter(|name| !there.contains(&name.0.as_str())) {
                    let help = suggest::hint(&name.0, "there are", &there)
                        .unwrap_or_else(|| format!("set `topology.{key}`, or leave it out"));
                    lint.error(&path, format!("the cluster has no `{name}` among its {key}"), help);
                }
            }
            Which::All | Which::None => {}
        }
    }
}
