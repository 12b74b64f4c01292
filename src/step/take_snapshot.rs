//! `takeSnapshot`: saves an etcd snapshot, outside the evidence, and verifies it.

use super::snapshot_file::SnapshotFile;
use super::spec::{SnapshotMethod, TakeSnapshot};
use super::{Snapshot, StepContext, StepError};
use crate::journal::entry::Fact;
use crate::provider::component::{ComponentId, DataSlot, Role, Tool, ToolOutput, ToolRun};
use std::path::{Path, PathBuf};

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
