//! The control socket: one thread per connection, one answer per request.

use super::Supervisor;
use super::children::{Ended, pid_of};
use super::tool;
use crate::component::{ControlError, HostId};
use crate::provider::local::protocol::{Answer, Op};
use crate::provider::local::wire::Channel;
use nix::sys::signal::Signal;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;

/// Answers requests on `socket` from now on.
pub fn start(supervisor: &Arc<Supervisor>, socket: UnixListener) {
    let supervisor = Arc::clone(supervisor);
    thread::spawn(move || {
        for stream in socket.incoming() {
            match stream {
                Ok(stream) => {
                    let supervisor = Arc::clone(&supervisor);
                    thread::spawn(move || converse(&supervisor, stream));
                }
                Err(error) => eprintln!("control socket: {error}"),
            }
        }
    });
}

fn converse(supervisor: &Supervisor, stream: UnixStream) {
    let mut channel = Channel::new(stream);
    loop {
        let (op, descriptors) = match channel.receive::<Op>() {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(error) => {
                eprintln!("control socket: {error}");
                return;
            }
        };
        let (answer, socket) = supervisor.answer(op, descriptors, channel.stream());
        let attached: Vec<_> = socket.iter().map(AsFd::as_fd).collect();
        if channel.send(&answer, &attached).is_err() {
            return;
        }
    }
}

impl Supervisor {
    fn answer(&self, op: Op, descriptors: Vec<OwnedFd>, asker: &UnixStream) -> (Answer, Option<OwnedFd>) {
        if let Op::Socket { host } = &op {
            return match self.host(&host.0).and_then(super::Host::socket) {
                Ok(socket) => (Answer::Done, Some(socket)),
                Err(error) => (refused(&format!("open a socket on {host}"), &error), None),
            };
        }
        (self.carry_out(op, descriptors, asker).unwrap_or_else(|error| Answer::Error { error }), None)
    }

    fn carry_out(
        &self,
        op: Op,
        descriptors: Vec<OwnedFd>,
        asker: &UnixStream,
    ) -> Result<Answer, ControlError> {
        let done = |()| Answer::Done;
        match op {
            Op::Status => Ok(Answer::Components { components: self.components.list() }),
            Op::Start { component } => {
                let host = &self.components.spec(&component)?.host;
                let what = format!("start {component}");
                let host = self.host(&host.0).map_err(|e| failed(&what, &e))?;
                self.components.start(&component, host).map(done)
            }
            Op::Stop { component, how } => self.components.stop(&component, how).map(done),
            Op::Pause { component } => self.components.pause(&component).map(done),
            Op::Resume { component } => self.components.resume(&component).map(done),
            Op::MoveData { component, from, to } => {
                self.components.move_data(&component, &from, &to).map(done)
            }
            Op::DataDir { component, slot } => {
                self.components.data_dir(&component, &slot).map(|path| Answer::Path { path })
            }
            Op::RunTool { run } => tool::run(self, &run).map(|output| Answer::Tool { output }),
            Op::Exec { host, argv } => self
                .exec(&host, &argv, descriptors, asker)
                .map(|code| Answer::Exited { code })
                .map_err(|e| failed(&format!("run {} on {host}", argv.join(" ")), &e)),
            Op::Socket { host } => {
                // Answered above: its answer carries a descriptor.
                Err(ControlError::Failed {
                    what: format!("open a socket on {host}"),
                    reason: "no descriptor".into(),
                })
            }
        }
    }

    fn exec(
        &self,
        host: &HostId,
        argv: &[String],
        stdio: Vec<OwnedFd>,
        asker: &UnixStream,
    ) -> io::Result<i32> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let [stdin, stdout, stderr] = <[OwnedFd; 3]>::try_from(stdio)
            .map_err(|_| invalid("the standard descriptors did not come along"))?;
        let (program, args) = argv.split_first().ok_or_else(|| invalid("no command"))?;
        let mut command = Command::new(program);
        command.args(args).stdin(stdin).stdout(stdout).stderr(stderr);
        let children = Arc::clone(&self.children);
        let pid =
            self.host(&host.0)?.run(move || children.spawn(&mut command).map(|child| pid_of(&child)))?;
        let mut watched = asker.try_clone()?;
        let killer = Arc::clone(&self.children);
        thread::spawn(move || {
            // Nothing is sent while a command runs: the read ends when the asker closes.
            if matches!(watched.read(&mut [0]), Ok(0) | Err(_)) {
                killer.signal(pid, Signal::SIGKILL);
            }
        });
        Ok(match self.children.wait(pid) {
            Ended::Code(code) => code,
            Ended::Signal(signal) => 128 + signal,
        })
    }
}

fn failed(what: &str, error: &io::Error) -> ControlError {
    ControlError::Failed { what: what.to_owned(), reason: error.to_string() }
}

fn refused(what: &str, error: &io::Error) -> Answer {
    Answer::Error { error: failed(what, error) }
}
