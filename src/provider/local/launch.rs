//! Starts the supervisor of a new cluster and hands it what must be made outside.

use super::layout::{ClusterDir, GatewaySpec};
use super::protocol::{Launch, Launched};
use super::wire::Channel;
use crate::component::ComponentId;
use crate::provider::ProviderError;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Loopback ports of the machine, one per API server, already listening.
#[derive(Debug)]
pub struct Gateways {
    /// What leads where.
    pub specs: Vec<GatewaySpec>,
    listeners: Vec<TcpListener>,
}

impl Gateways {
    /// Listens for each of `servers`: on `first_port` and the ports after it, or
    /// on ports that the kernel chooses.
    ///
    /// # Errors
    /// When a port that was asked for is in use.
    pub fn open(servers: Vec<ComponentId>, first_port: Option<u16>) -> Result<Self, ProviderError> {
        let mut opened = Self { specs: Vec::new(), listeners: Vec::new() };
        for (component, index) in servers.into_iter().zip(0_u16..) {
            let wanted = first_port.map_or(0, |port| port.saturating_add(index));
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted))
                .map_err(|error| port_error(wanted, error))?;
            let port = listener.local_addr().map_err(|error| port_error(wanted, error))?.port();
            opened.specs.push(GatewaySpec { component, port });
            opened.listeners.push(listener);
        }
        Ok(opened)
    }
}

fn port_error(port: u16, error: io::Error) -> ProviderError {
    if error.kind() == io::ErrorKind::AddrInUse {
        return ProviderError::Unavailable {
            what: format!("port {port} of 127.0.0.1 is in use"),
            hint: "choose another with `--port`, or leave it out and the kernel chooses".to_owned(),
        };
    }
    ProviderError::Io { what: format!("listen on port {port} of 127.0.0.1"), source: error }
}

/// A supervisor that serves, but ends with this handle unless told to be kept.
#[derive(Debug)]
pub struct Launching {
    channel: Channel,
}

impl Launching {
    /// Starts `program` as the supervisor of the cluster in `dir`, whose files
    /// are all there. Blocks until the components have been started.
    ///
    /// # Errors
    /// When the machine does not allow it. Nothing runs any more then.
    pub fn start(program: &Path, dir: &ClusterDir, gateways: &Gateways) -> Result<Self, ProviderError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source: io::Error| ProviderError::Io { what, source }
        };
        let (near, far) = UnixStream::pair().map_err(failed("make a socket pair"))?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(dir.supervisor_log())
            .map_err(failed("open the supervisor's log"))?;
        let status = Command::new(program)
            .arg("__supervisor")
            .arg(dir.root())
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(log.try_clone().map_err(failed("open the supervisor's log"))?)
            .stderr(log)
            .status()
            .map_err(failed("start the supervisor"))?;
        let mut channel = Channel::new(near);
        if status.success() {
            let descriptors: Vec<_> = gateways.listeners.iter().map(AsFd::as_fd).collect();
            // A supervisor that has died by itself says why below.
            let _ = channel.send(&Launch::Begin, &descriptors);
        }
        match channel.receive() {
            Ok(Some((Launched::Serving, _))) => Ok(Self { channel }),
            Ok(Some((Launched::Failed { what, hint }, _))) => Err(ProviderError::Unavailable { what, hint }),
            Ok(None) => Err(died(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(died(error)),
        }
    }

    /// The cluster is ready: it outlives this process from now on.
    ///
    /// # Errors
    /// When the supervisor has died meanwhile.
    pub fn keep(mut self) -> Result<(), ProviderError> {
        self.channel.send(&Launch::Keep, &[]).map_err(died)
    }
}

fn died(source: io::Error) -> ProviderError {
    ProviderError::Io { what: "the supervisor died while starting; see supervisor.log".to_owned(), source }
}
