//! Second stage of the supervisor: pid 1 of the cluster's pid namespace.
//!
//! Everything of the cluster lives below it, so its death is the cluster's.

mod agent;
mod children;
mod components;
mod fabric;
mod gateway;
mod host;
mod restart;
mod serve;
mod tool;

use super::enter::{launcher, report_failure};
use super::layout::{ClusterDir, ClusterSpec};
use super::protocol::{Launch, Launched, SUPERVISOR_SOCKET};
use super::wire::Channel;
use crate::exit::ExitCode;
use crate::unix_socket;
use children::Children;
use components::Components;
use host::Host;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{SigSet, Signal};
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

/// What the threads of the supervisor share.
struct Supervisor {
    dir: ClusterDir,
    spec: ClusterSpec,
    hosts: BTreeMap<String, Host>,
    children: Arc<Children>,
    components: Components,
}

/// Runs the second stage for the cluster in `dir`. Standard input is the socket to the launcher.
pub fn run(dir: &ClusterDir) -> ExitCode {
    // Before any thread exists, so that all of them inherit the mask. Pid 1
    // would ignore these signals otherwise.
    let mut ending = SigSet::empty();
    ending.add(Signal::SIGTERM);
    ending.add(Signal::SIGINT);
    if let Err(error) = ending.thread_block() {
        report_failure("block signals", &error.into());
        return ExitCode::Refused;
    }
    match bring_up(dir) {
        Ok(mut channel) => {
            thread::spawn(move || await_keep(&mut channel));
            // Returning from pid 1 ends every process of the cluster.
            match ending.wait() {
                Ok(signal) => eprintln!("ending on {signal}"),
                Err(error) => eprintln!("ending: {error}"),
            }
            ExitCode::Ok
        }
        Err(Aborted::LauncherGone) => ExitCode::Refused,
        Err(Aborted::Failed(what, error)) => {
            report_failure(&what, &error);
            ExitCode::Refused
        }
    }
}

enum Aborted {
    LauncherGone,
    Failed(String, io::Error),
}

fn bring_up(dir: &ClusterDir) -> Result<Channel, Aborted> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| Aborted::Failed(what, error)
    };
    let mut channel = launcher().map_err(failed("talk to the launcher"))?;
    let gateways = match channel.receive::<Launch>() {
        Ok(Some((Launch::Begin, descriptors))) => descriptors,
        _ => return Err(Aborted::LauncherGone),
    };
    own_mounts().map_err(failed("mount /proc"))?;
    let text = std::fs::read(dir.spec()).map_err(failed("read cluster.json"))?;
    let spec: ClusterSpec =
        serde_json::from_slice(&text).map_err(|e| failed("read cluster.json")(e.into()))?;
    let socket = unix_socket::listen(&dir.root().join(SUPERVISOR_SOCKET))
        .map_err(failed("open the control socket"))?;
    let children = Children::start().map_err(failed("watch over processes"))?;
    let hosts = fabric::build(&spec, &children).map_err(failed("make the cluster's network"))?;
    let components = Components::new(dir, &spec, &children);
    let supervisor = Arc::new(Supervisor { dir: dir.clone(), spec, hosts, children, components });
    supervisor.begin(socket, gateways).map_err(|(what, error)| Aborted::Failed(what, error))?;
    channel.send(&Launched::Serving, &[]).map_err(|_| Aborted::LauncherGone)?;
    Ok(channel)
}

impl Supervisor {
    fn begin(
        self: &Arc<Self>,
        socket: UnixListener,
        gateways: Vec<OwnedFd>,
    ) -> Result<(), (String, io::Error)> {
        for component in &self.spec.components {
            let host = self.host(&component.host.0).map_err(|e| ("find a host".to_owned(), e))?;
            self.components
                .start(&component.component, host)
                .map_err(|e| (format!("start {}", component.component), io::Error::other(e.to_string())))?;
        }
        agent::keep_alive(&self.dir, &self.children);
        serve::start(self, socket);
        let targets = self.spec.gateways.iter().filter_map(|g| self.spec.address(&g.component));
        for (descriptor, address) in gateways.into_iter().zip(targets) {
            gateway::start(TcpListener::from(descriptor), address);
        }
        Ok(())
    }

    fn host(&self, name: &str) -> io::Result<&Host> {
        self.hosts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.hosts.keys().map(String::as_str).collect();
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no host `{name}` in cluster `{}`; it has {}", self.spec.name, known.join(", ")),
            )
        })
    }
}

/// Until the launcher says that the cluster is ready, its end is the cluster's.
fn await_keep(channel: &mut Channel) {
    match channel.receive::<Launch>() {
        Ok(Some((Launch::Keep, _))) => {}
        _ => {
            eprintln!("ending: the launcher is gone before the cluster was ready");
            std::process::exit(1);
        }
    }
}

/// Mounts of the cluster stay in the cluster, and /proc shows its processes only.
fn own_mounts() -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)?;
    Ok(())
}
