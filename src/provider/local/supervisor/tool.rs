//! Runs etcd's tools on a member's host, with the member's identity.

use super::Supervisor;
use super::children::{Ended, pid_of};
use super::components::program_of_cluster;
use crate::component::placeholder;
use crate::component::{ComponentId, ControlError, DataSlot, Tool, ToolOutput, ToolRun};
use crate::provider::local::layout::{EtcdMember, is_safe_label};
use crate::provider::local::pki::Authority;
use std::io::{self, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

/// Runs a tool to its end.
///
/// # Errors
/// When the component is no etcd member, a placeholder is unknown, or the tool can't be executed.
pub fn run(supervisor: &Supervisor, run: &ToolRun) -> Result<ToolOutput, ControlError> {
    let program = match run.tool {
        Tool::Etcdctl => "etcdctl",
        Tool::Etcdutl => "etcdutl",
    };
    let failed =
        |reason: String| ControlError::Failed { what: format!("run {program} on {}", run.component), reason };
    let spec = supervisor.components.spec(&run.component)?;
    let member = spec.member.as_ref().ok_or_else(|| failed("it is no etcd member".to_owned()))?;
    let places = Places { supervisor, component: &run.component, member };
    let args = run
        .args
        .iter()
        .map(|arg| placeholder::substitute(arg, &|name| places.value(name)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;

    let mut command = program_of_cluster(&supervisor.spec.dir_etcd.join(program));
    let pki = |name: &str| supervisor.dir.pki_file(name);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if run.tool == Tool::Etcdctl {
        command
            .env("ETCDCTL_ENDPOINTS", &member.client_url)
            .env("ETCDCTL_CACERT", pki(&Authority::Etcd.certificate_file()))
            .env("ETCDCTL_CERT", pki("apiserver-etcd-client.crt"))
            .env("ETCDCTL_KEY", pki("apiserver-etcd-client.key"));
    }
    let host = supervisor.host(&spec.host.0).map_err(|e| failed(e.to_string()))?;
    let children = Arc::clone(&supervisor.children);
    let mut child = host.run(move || children.spawn(&mut command)).map_err(|e| failed(e.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let errors = thread::spawn(move || read_all(stderr));
    let stdout = read_all(stdout);
    let stderr = errors.join().unwrap_or_else(|_| Err(io::Error::other("reader panicked")));
    let code = match supervisor.children.wait(pid_of(&child)) {
        Ended::Code(code) => code,
        Ended::Signal(_) => -1,
    };
    let text = |read: io::Result<String>| read.map_err(|e| failed(e.to_string()));
    Ok(ToolOutput { code, stdout: text(stdout)?, stderr: text(stderr)? })
}

struct Places<'a> {
    supervisor: &'a Supervisor,
    component: &'a ComponentId,
    member: &'a EtcdMember,
}

impl Places<'_> {
    /// What `{name}` stands for.
    fn value(&self, name: &str) -> Result<String, String> {
        let own = match name.split_once(':') {
            Some(("data", label)) => {
                let slot = if label == "inUse" { DataSlot::InUse } else { DataSlot::Aside(label.to_owned()) };
                let path = self.supervisor.components.slot(self.component, &slot);
                return path.map(|p| p.display().to_string()).map_err(|e| e.to_string());
            }
            Some(("file", file)) if is_safe_label(file) => {
                return Ok(self.supervisor.dir.private().join(file).display().to_string());
            }
            Some(_) => None,
            None => match name {
                "name" => Some(&self.member.name),
                "peerUrl" => Some(&self.member.peer_url),
                "clientUrl" => Some(&self.member.client_url),
                "initialCluster" => Some(&self.member.initial_cluster),
                "token" => Some(&self.member.token),
                _ => None,
            },
        };
        own.cloned().ok_or_else(|| placeholder::unknown(name))
    }
}

fn read_all(pipe: Option<impl Read>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
