//! The outside of the supervisor: what runner, agent and command line call.

use super::layout::ClusterDir;
use super::protocol::{Answer, Op, SUPERVISOR_SOCKET};
use super::wire::Channel;
use crate::component::network::Dialer;
use crate::component::{
    ComponentControl, ComponentId, ComponentStatus, ControlError, Controlled, DataSlot, HostId, StopMethod,
    ToolOutput, ToolRun,
};
use crate::unix_socket;
use futures::future::BoxFuture;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use tokio::net::TcpSocket;

/// Talks to the supervisor of one cluster; a connection per request, so that a
/// stop that takes a minute holds up nobody else.
#[derive(Debug, Clone)]
pub struct SupervisorClient {
    dir: ClusterDir,
}

impl SupervisorClient {
    /// A client of the cluster in `dir`, whether it runs or not.
    #[must_use]
    pub fn new(dir: ClusterDir) -> Self {
        Self { dir }
    }

    /// Sends one request and waits for the answer. Blocks.
    ///
    /// # Errors
    /// `Unreachable` when the supervisor does not answer; else what it says.
    pub fn ask(&self, op: &Op) -> Result<(Answer, Vec<OwnedFd>), ControlError> {
        match exchange(&self.dir, op, &[]) {
            Ok((Answer::Error { error }, _)) => Err(error),
            Ok(answer) => Ok(answer),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Runs a command on a host with this process's standard descriptors. Blocks until it has ended.
    ///
    /// # Errors
    /// When there is no such host, or the command can't be executed.
    pub fn exec(&self, host: &str, argv: Vec<String>) -> Result<i32, ControlError> {
        let op = Op::Exec { host: HostId(host.to_owned()), argv };
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        match exchange(&self.dir, &op, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]) {
            Ok((Answer::Exited { code }, _)) => Ok(code),
            Ok((answer, _)) => Err(unexpected(answer)),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn call(&self, op: Op) -> Result<Answer, ControlError> {
        self.call_with_descriptors(op).await.map(|(answer, _)| answer)
    }

    async fn call_with_descriptors(&self, op: Op) -> Result<(Answer, Vec<OwnedFd>), ControlError> {
        let client = self.clone();
        tokio::task::spawn_blocking(move || client.ask(&op))
            .await
            .map_err(|error| ControlError::Unreachable { reason: error.to_string() })?
    }

    async fn done(&self, op: Op) -> Result<(), ControlError> {
        match self.call(op).await? {
            Answer::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }
}

fn exchange(
    dir: &ClusterDir,
    op: &Op,
    descriptors: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<(Answer, Vec<OwnedFd>)> {
    let mut channel = Channel::new(unix_socket::connect(&dir.root().join(SUPERVISOR_SOCKET))?);
    channel.send(op, descriptors)?;
    channel.receive()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn unreachable(error: &io::Error) -> ControlError {
    ControlError::Unreachable { reason: error.to_string() }
}

fn unexpected(answer: Answer) -> ControlError {
    match answer {
        Answer::Error { error } => error,
        other => ControlError::Unreachable {
            reason: format!("the supervisor gave an unfitting answer: {other:?}"),
        },
    }
}

impl ComponentControl for SupervisorClient {
    fn list(&self) -> Controlled<'_, Vec<ComponentStatus>> {
        Box::pin(async {
            match self.call(Op::Status).await? {
                Answer::Components { components } => Ok(components),
                other => Err(unexpected(other)),
            }
        })
    }

    fn start<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(self.done(Op::Start { component: component.clone() }))
    }

    fn stop<'a>(&'a self, component: &'a ComponentId, how: StopMethod) -> Controlled<'a, ()> {
        Box::pin(self.done(Op::Stop { component: component.clone(), how }))
    }

    fn pause<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(self.done(Op::Pause { component: component.clone() }))
    }

    fn resume<'a>(&'a self, component: &'a ComponentId) -> Controlled<'a, ()> {
        Box::pin(self.done(Op::Resume { component: component.clone() }))
    }

    fn move_data<'a>(
        &'a self,
        component: &'a ComponentId,
        from: &'a DataSlot,
        to: &'a DataSlot,
    ) -> Controlled<'a, ()> {
        let op = Op::MoveData { component: component.clone(), from: from.clone(), to: to.clone() };
        Box::pin(self.done(op))
    }

    fn data_dir<'a>(
        &'a self,
        component: &'a ComponentId,
        slot: &'a DataSlot,
    ) -> Controlled<'a, Option<PathBuf>> {
        Box::pin(async {
            match self.call(Op::DataDir { component: component.clone(), slot: slot.clone() }).await? {
                Answer::Path { path } => Ok(path),
                other => Err(unexpected(other)),
            }
        })
    }

    fn run_tool<'a>(&'a self, run: &'a ToolRun) -> Controlled<'a, ToolOutput> {
        Box::pin(async {
            match self.call(Op::RunTool { run: run.clone() }).await? {
                Answer::Tool { output } => Ok(output),
                other => Err(unexpected(other)),
            }
        })
    }
}

impl Dialer for SupervisorClient {
    fn socket<'a>(&'a self, from: &'a HostId) -> BoxFuture<'a, io::Result<TcpSocket>> {
        Box::pin(async {
            let (_, descriptors) = self
                .call_with_descriptors(Op::Socket { host: from.clone() })
                .await
                .map_err(io::Error::other)?;
            let socket = descriptors
                .into_iter()
                .next()
                .ok_or_else(|| io::Error::other("no socket came along with the supervisor's answer"))?;
            Ok(TcpSocket::from_std_stream(std::net::TcpStream::from(socket)))
        })
    }
}
