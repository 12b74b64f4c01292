//! A host: a thread that lives in the host's namespaces, network and name. What
//! it starts and opens belongs to the host, because children and sockets inherit
//! the namespaces of the thread that makes them.

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use rustix::system::sethostname;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// A handle on the thread; the namespace lives as long as it, or a process in it, does.
#[derive(Clone)]
pub struct Host {
    jobs: Sender<Job>,
}

impl Host {
    /// Makes the namespaces and the thread in them. The host name matters: API
    /// servers and controllers derive the names of their leases from it.
    ///
    /// # Errors
    /// When the kernel refuses either.
    pub fn create(name: &str) -> io::Result<Self> {
        let (jobs, received) = channel::<Job>();
        let (made, outcome): (SyncSender<io::Result<()>>, _) = sync_channel(1);
        let name = name.to_owned();
        thread::Builder::new().name(name.clone()).spawn(move || {
            let entered = enter(&name);
            let usable = entered.is_ok();
            if made.send(entered).is_ok() && usable {
                received.into_iter().for_each(|job| job());
            }
        })?;
        outcome.recv().map_err(|_| io::Error::other("the host's thread ended"))??;
        Ok(Self { jobs })
    }

    /// Does `job` in the host's network namespace and returns what it returns. Jobs of one
    /// host follow each other, so none may wait for long.
    ///
    /// # Errors
    /// The job's own, or that the host's thread is gone.
    pub fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (done, outcome) = sync_channel(1);
        let gone = || io::Error::other("the host's thread ended");
        let job: Job = Box::new(move || {
            // Only a caller that is gone does not listen.
            let _ = done.send(job());
        });
        self.jobs.send(job).map_err(|_| gone())?;
        outcome.recv().map_err(|_| gone())?
    }

    /// An unconnected, non-blocking IPv4 TCP socket of the host.
    ///
    /// # Errors
    /// As `socket(2)`.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.run(|| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            Ok(socket(AddressFamily::Inet, SockType::Stream, flags, None)?)
        })
    }
}

fn enter(name: &str) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS)?;
    sethostname(name.as_bytes())?;
    Ok(())
}
