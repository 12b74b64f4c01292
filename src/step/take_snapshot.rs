//! `takeSnapshot`: saves an etcd snapshot, outside the evidence.

use super::spec::TakeSnapshot;
use super::{Snapshot, StepContext, StepError};
use crate::digest::sha256_of_file;
use crate::journal::entry::Fact;
use crate::provider::component::{Role, Tool, ToolOutput, ToolRun};
use serde::Deserialize;

/// What `etcdutl snapshot status -w json` says, as far as it is used here.
#[derive(Deserialize)]
struct Status {
    revision: u64,
}

/// Saves a snapshot from the first member and reads its revision back from the file.
pub(super) async fn execute(step: &TakeSnapshot, ctx: &mut StepContext) -> Result<(), StepError> {
    let members = ctx.components(Role::Etcd);
    let member =
        members.first().ok_or_else(|| StepError::NotSeen("the cluster has no etcd member".to_owned()))?;
    let file = format!("{}-{}.db", ctx.run, step.name);
    let placeholder = format!("{{file:{file}}}");
    let tool = |tool, args: &[&str]| ToolRun {
        component: member.clone(),
        tool,
        args: args.iter().map(|a| (*a).to_owned()).collect(),
    };
    let control = ctx.cluster.control();
    let call_ns = ctx.clock.mono();
    let saved = control.run_tool(&tool(Tool::Etcdctl, &["snapshot", "save", &placeholder])).await?;
    succeeded("etcdctl snapshot save", &saved)?;
    let return_ns = ctx.clock.mono();
    ctx.go_on()?;
    let status =
        control.run_tool(&tool(Tool::Etcdutl, &["snapshot", "status", &placeholder, "-w", "json"])).await?;
    succeeded("etcdutl snapshot status", &status)?;
    let status: Status = serde_json::from_str(&status.stdout)
        .map_err(|e| StepError::NotSeen(format!("`etcdutl snapshot status` did not answer in JSON: {e}")))?;
    let path = ctx.cluster.private_file(&file);
    let (size_bytes, sha256) = tokio::task::spawn_blocking(move || sha256_of_file(&path))
        .await
        .map_err(|e| StepError::NotSeen(e.to_string()))?
        .map_err(|e| StepError::NotSeen(format!("the snapshot file can't be read: {e}")))?;
    let (name, member) = (step.name.clone(), member.clone());
    let revision = status.revision;
    ctx.fact(Fact::SnapshotTaken { name, member, revision, size_bytes, sha256, call_ns, return_ns }).await?;
    ctx.memory.snapshots.insert(step.name.clone(), Snapshot { file, revision });
    Ok(())
}

/// Turns a bad exit into an error that carries what the tool said.
pub(super) fn succeeded(tool: &str, output: &ToolOutput) -> Result<(), StepError> {
    if output.code == 0 {
        return Ok(());
    }
    Err(StepError::Tool { tool: tool.to_owned(), code: output.code, stderr: output.stderr.trim().to_owned() })
}
