//! `takeSnapshot`: saves an etcd snapshot, outside the evidence, and verifies it.

use super::kind::{StepDone, StepKind};
use super::snapshot_file::SnapshotFile;
use super::{Snapshot, StepContext, StepError};
use crate::component::capability::Capability;
use crate::component::{ComponentId, DataSlot, Role, Tool, ToolOutput, ToolRun};
use crate::drill::lint::{Lint, Place, SoFar};
use crate::journal::entry::Fact;
use crate::plan::{PlannedComponent, PlannedStep, of_role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Saves an etcd snapshot from the first member, and verifies it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakeSnapshot {
    /// Name by which later steps refer to the snapshot.
    #[serde(rename = "as")]
    pub name: String,
    /// How it is saved.
    #[serde(default)]
    pub method: SnapshotMethod,
}

/// How a snapshot is saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotMethod {
    /// `etcdctl snapshot save` of the running version: the server appends a SHA-256 digest.
    #[default]
    Save,
    /// A copy of the running member's database file, as a backup of its disk has it: without a digest,
    /// and without what is only in the write-ahead log yet.
    CopyDatabase,
}

impl StepKind for TakeSnapshot {
    fn lint<'d>(&'d self, lint: &mut Lint<'d>, at: &Place, so_far: &mut SoFar<'d>) {
        let path = at.key("as");
        if so_far.lost.is_some() {
            let help = "move it before `loseEtcd`";
            lint.error(&path, "no snapshot can be taken while etcd is lost", help);
        }
        if so_far.taken(&self.name).is_some() {
            let title = format!("a snapshot named `{}` was taken above", self.name);
            lint.error(&path, title, "give each snapshot its own name");
        }
        if self.name.is_empty() || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let title = format!("snapshot name `{}` is not usable", self.name);
            lint.error(&path, title, "use letters, digits and dashes");
        }
        so_far.snapshots.push((&self.name, self.method));
    }

    fn is_about_etcd(&self) -> bool {
        true
    }

    fn acts_on(&self, components: &[PlannedComponent]) -> Vec<ComponentId> {
        of_role(components, Role::Etcd).into_iter().take(1).collect()
    }

    fn requires(&self) -> Vec<Capability> {
        vec![Capability::ControlComponents, Capability::ReachEtcd]
    }

    fn execute<'a>(&'a self, _: &'a PlannedStep, ctx: &'a mut StepContext) -> StepDone<'a> {
        Box::pin(execute(self, ctx))
    }
}

/// How often a database is copied that etcd wrote to meanwhile.
const COPIES: usize = 10;

/// Saves a snapshot from the first member and reads it back.
pub(super) async fn execute(step: &TakeSnapshot, ctx: &mut StepContext) -> Result<(), StepError> {
    let members = ctx.components(Role::Etcd);
    let member =
        members.first().ok_or_else(|| StepError::NotSeen("the cluster has no etcd member".to_owned()))?;
    let file = format!("{}-{}.db", ctx.run, step.name);
    let path = ctx.cluster.private_file(&file);
    let call_ns = ctx.clock.mono();
    let (found, return_ns) = match step.method {
        SnapshotMethod::Save => {
            save(member, &file, ctx).await?;
            let return_ns = ctx.clock.mono();
            ctx.go_on()?;
            (read(path).await?, return_ns)
        }
        SnapshotMethod::CopyDatabase => (copy(member, &path, ctx).await?, ctx.clock.mono()),
    };
    let fact = Fact::SnapshotTaken {
        name: step.name.clone(),
        member: member.clone(),
        revision: found.revision,
        keys: Some(found.keys),
        sha256_ok: found.has_digest.then_some(true),
        size_bytes: found.size_bytes,
        sha256: found.sha256.clone(),
        call_ns,
        return_ns,
    };
    ctx.fact(fact).await?;
    ctx.memory.snapshots.insert(step.name.clone(), Snapshot { file, contents: found });
    Ok(())
}

async fn save(member: &ComponentId, file: &str, ctx: &StepContext) -> Result<(), StepError> {
    let args = ["snapshot", "save", &format!("{{file:{file}}}")].map(str::to_owned).to_vec();
    let run = ToolRun { component: member.clone(), tool: Tool::Etcdctl, args };
    succeeded("etcdctl snapshot save", &ctx.cluster.control().run_tool(&run).await?)
}

/// Copies the database, and again where etcd was writing to it: such a copy shows as damaged.
async fn copy(member: &ComponentId, to: &Path, ctx: &StepContext) -> Result<SnapshotFile, StepError> {
    let data = ctx.cluster.control().data_dir(member, &DataSlot::InUse).await?;
    let data = data.ok_or_else(|| StepError::NotSeen(format!("{member} has no data directory")))?;
    let database = data.join("member/snap/db");
    let mut torn = None;
    for _ in 0..COPIES {
        ctx.go_on()?;
        tokio::fs::copy(&database, to).await.map_err(|error| {
            StepError::NotSeen(format!("the database of {member} can't be copied: {error}"))
        })?;
        match read(to.to_owned()).await {
            Ok(found) => return Ok(found),
            Err(error) => torn = Some(error),
        }
    }
    Err(torn.unwrap_or_else(|| StepError::NotSeen(format!("the database of {member} was not copied"))))
}

/// Reads a private file.
async fn read(path: PathBuf) -> Result<SnapshotFile, StepError> {
    at_leisure(move || SnapshotFile::read(&path)).await
}

/// Looks at a file where that may take its time.
pub(super) async fn at_leisure<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, StepError> {
    tokio::task::spawn_blocking(look)
        .await
        .map_err(|error| StepError::NotSeen(error.to_string()))?
        .map_err(StepError::NotSeen)
}

/// Turns a bad exit into an error that carries what the tool said.
pub(super) fn succeeded(tool: &str, output: &ToolOutput) -> Result<(), StepError> {
    if output.code == 0 {
        return Ok(());
    }
    Err(StepError::Tool { tool: tool.to_owned(), code: output.code, stderr: output.stderr.trim().to_owned() })
}
