//! Asks the agent. Every request is idempotent, so a request whose answer was lost
//! with the connection is sent again, to the agent or to the one that took its place.

use super::protocol::{Request, Response};
use super::server::{MAX_LINE_BYTES, socket_path};
use super::undo::InjectionId;
use crate::component::ControlError;
use crate::unix_socket::ShortPath;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Time between two tries to reach an agent that is being restarted.
const RETRY_EVERY: Duration = Duration::from_millis(20);

/// Longest that an answer takes, apart from an undo that it waits for: a write to a slow
/// disk, or the restart of an agent.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Asks the agent of one cluster; opens a connection for each request.
#[derive(Debug, Clone)]
pub struct AgentClient {
    socket: PathBuf,
}

impl AgentClient {
    /// The agent of the cluster whose files are in `cluster_dir`.
    #[must_use]
    pub fn new(cluster_dir: &Path) -> Self {
        Self { socket: socket_path(cluster_dir) }
    }

    /// Sends a request and awaits its answer: for 30 s, and for a revert, which is answered
    /// when it has ended, longer by the time that its undo declares.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub async fn ask(&self, request: &Request) -> Result<Response, ControlError> {
        let timeout = match request {
            Request::Revert { run, injection } => {
                revert_within(run, injection, &self.request(&Request::List, ANSWER_WITHIN).await?)
            }
            _ => ANSWER_WITHIN,
        };
        self.request(request, timeout).await
    }

    /// Sends a request and awaits its answer for at most `timeout`. A revert is answered
    /// when it has ended: allow for the time that the undo declares.
    ///
    /// # Errors
    /// [`ControlError::Unreachable`] when no answer came in time; whether the request
    /// took effect is then unknown, and asking again is safe.
    pub async fn request(&self, request: &Request, timeout: Duration) -> Result<Response, ControlError> {
        let mut last = "no answer yet".to_owned();
        let attempts = async {
            loop {
                match self.exchange(request).await {
                    Ok(response) => return response,
                    Err(error) => last = error.to_string(),
                }
                tokio::time::sleep(RETRY_EVERY).await;
            }
        };
        match tokio::time::timeout(timeout, attempts).await {
            Ok(response) => Ok(response),
            Err(_) => Err(ControlError::Unreachable {
                reason: format!("the agent did not answer within {timeout:?}: {last}"),
            }),
        }
    }

    async fn exchange(&self, request: &Request) -> io::Result<Response> {
        let stream = {
            let short = ShortPath::of(&self.socket)?;
            UnixStream::connect(short.path()).await?
        };
        let (read, mut write) = stream.into_split();
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        write.write_all(&line).await?;
        let mut answer = Vec::new();
        BufReader::new(read).take(MAX_LINE_BYTES).read_until(b'\n', &mut answer).await?;
        if !answer.ends_with(b"\n") {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the agent went away before it answered",
            ));
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}

/// How long to wait for the end of an undo, by what the agent says of its injections.
fn revert_within(run: &str, injection: &InjectionId, held: &Response) -> Duration {
    let Response::Injections { injections } = held else { return ANSWER_WITHIN };
    let own = injections.iter().find(|h| h.run == run && h.injection == *injection);
    ANSWER_WITHIN + Duration::from_nanos(own.map_or(0, |h| h.within_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::protocol::{Held, HeldState};
    use crate::agent::undo::OnLapse;
    use crate::clock::MonoNs;

    #[test]
    fn a_revert_is_awaited_for_longer_by_the_time_that_its_own_undo_declares() {
        let id = InjectionId("2-loseEtcd".to_owned());
        let held = |run: &str, seconds: u64| Held {
            run: run.to_owned(),
            injection: id.clone(),
            on_lapse: OnLapse::Revert,
            state: HeldState::Armed,
            expires_ns: MonoNs(0),
            within_ns: seconds * 1_000_000_000,
        };
        let list = Response::Injections { injections: vec![held("run-1", 500), held("run-2", 90)] };
        assert_eq!(revert_within("run-2", &id, &list), ANSWER_WITHIN + Duration::from_secs(90));
        assert_eq!(revert_within("run-3", &id, &list), ANSWER_WITHIN);
    }
}
