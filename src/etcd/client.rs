//! Reads and watches of one etcd member over one explicit connection.
//!
//! The gRPC channel is given a connection that stands already and none after
//! it, so it can't reconnect unseen; every operation has a deadline.

use crate::component::network::{Dialer, Endpoint, Identity};
use crate::wire::connection::{BadIdentity, Connector, Protocol};
use crate::wire::failure::FailureClass;
use etcd_client::{
    Channel, Client, ConnectOptions, Error, EventType, GetOptions, ResponseHeader, WatchOptions, WatchStream,
};
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error as ThisError;
use tokio::time::{Instant, timeout_at};
use tonic::Code;

/// As the API server's own etcd client: 30 s of silence, then 10 s for an answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// Largest answer that is decoded.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Why etcd gave no answer. Operations of this file are reads, so none leaves an effect in
/// doubt; those of [`super::lease`] may.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{class}: {message}")]
pub struct EtcdFailure {
    /// Class of the failure.
    pub class: FailureClass,
    /// What etcd or the transport said; escaped when shown.
    pub message: String,
}

impl EtcdFailure {
    pub(super) fn of(class: FailureClass) -> Self {
        Self { class, message: class.to_string() }
    }
}

impl From<Error> for EtcdFailure {
    fn from(error: Error) -> Self {
        let class = match &error {
            Error::GRpcStatus(status) => status_class(status),
            Error::TransportError(_) | Error::IoError(_) => FailureClass::ConnectionLost,
            // The client library's own words for an answer without time left.
            Error::LeaseKeepAliveError(why) if why.contains("not found") => FailureClass::LeaseNotFound,
            _ => FailureClass::Malformed,
        };
        Self { class, message: error.to_string() }
    }
}

fn status_class(status: &tonic::Status) -> FailureClass {
    // A status that the transport made up carries the error that it stands for.
    if std::error::Error::source(status).is_some() {
        return FailureClass::ConnectionLost;
    }
    match status.code() {
        Code::OutOfRange if status.message().contains("compacted") => FailureClass::Compacted,
        Code::OutOfRange if status.message().contains("future revision") => FailureClass::FutureRevision,
        Code::NotFound if status.message().contains("lease not found") => FailureClass::LeaseNotFound,
        Code::Unavailable => FailureClass::Unavailable,
        Code::DeadlineExceeded => FailureClass::Timeout,
        Code::PermissionDenied => FailureClass::Forbidden,
        Code::Unauthenticated => FailureClass::Unauthorized,
        Code::ResourceExhausted => FailureClass::TooManyRequests,
        Code::Internal | Code::Cancelled | Code::Unknown => FailureClass::ServerError,
        _ => FailureClass::Invalid,
    }
}

/// Where an answer comes from and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Store revision when the request was applied.
    pub revision: u64,
    /// Raft term.
    pub raft_term: u64,
    /// Member that answered.
    pub member: u64,
}

impl Header {
    pub(super) fn of(header: Option<&ResponseHeader>) -> Result<Self, EtcdFailure> {
        let header = header.ok_or_else(|| EtcdFailure::of(FailureClass::Malformed))?;
        Ok(Self {
            revision: unsigned(header.revision()),
            raft_term: header.raft_term(),
            member: header.member_id(),
        })
    }

    /// The member as etcd's own tools write it.
    #[must_use]
    pub fn member_hex(&self) -> String {
        format!("{:x}", self.member)
    }
}

/// Revisions are signed on the wire but never negative.
fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// A key of a range, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub key: Vec<u8>,
    /// Revision at which it was created.
    pub create_revision: u64,
    /// Revision at which it was last changed.
    pub mod_revision: u64,
}

/// All keys below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Its revision is the store's, also when an older one was asked for.
    pub header: Header,
    /// In key order.
    pub keys: Vec<Key>,
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Revision, term and member id.
    pub header: Header,
    /// Version of the server.
    pub version: String,
    /// Size of its database file, bytes.
    pub db_size: u64,
    /// Raft index that it has applied.
    pub raft_applied_index: u64,
    /// Member id of the leader; 0 without one.
    pub leader: u64,
}

/// A client of one member. When its connection is gone, the next operation
/// opens a new one within its own deadline; it never tries twice.
pub struct EtcdClient {
    connector: Connector,
    connection: Option<Client>,
}

impl EtcdClient {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// When the endpoint's or identity's certificates can't be read.
    pub fn new(
        dialer: Arc<dyn Dialer>,
        endpoint: &Endpoint,
        identity: &Identity,
    ) -> Result<Self, BadIdentity> {
        let connector = Connector::new(dialer, endpoint, identity, Protocol::Http2)?;
        Ok(Self { connector, connection: None })
    }

    /// Linearizable range of every key that starts with `prefix`, as of `revision` or now.
    ///
    /// # Errors
    /// [`FailureClass::Compacted`] and [`FailureClass::FutureRevision`] tell which revisions can't be read.
    pub async fn range(
        &mut self,
        prefix: &str,
        revision: Option<u64>,
        deadline: Duration,
    ) -> Result<Range, EtcdFailure> {
        let mut options = GetOptions::new().with_prefix().with_keys_only();
        if let Some(revision) = revision {
            options = options.with_revision(signed(revision)?);
        }
        let prefix = prefix.to_owned();
        let answer = self
            .call(deadline, async move |client| {
                let mut kv = client.kv_client().max_decoding_message_size(MAX_ANSWER_BYTES);
                kv.get(prefix, Some(options)).await
            })
            .await?;
        let keys = answer.kvs().iter().map(|kv| Key {
            key: kv.key().to_vec(),
            create_revision: unsigned(kv.create_revision()),
            mod_revision: unsigned(kv.mod_revision()),
        });
        Ok(Range { header: Header::of(answer.header())?, keys: keys.collect() })
    }

    /// A linearizable read of one key that need not exist: the member answers
    /// only while it is part of a quorum.
    ///
    /// # Errors
    /// When it doesn't.
    pub async fn health(&mut self, deadline: Duration) -> Result<Header, EtcdFailure> {
        let answer = self.call(deadline, async move |mut client| client.get("health", None).await).await?;
        Header::of(answer.header())
    }

    /// What the member says of itself. Its term can't be told from the answer's
    /// header alone while it has no leader.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn status(&mut self, deadline: Duration) -> Result<MemberStatus, EtcdFailure> {
        let answer = self.call(deadline, async move |mut client| client.status().await).await?;
        let header = Header { raft_term: answer.raft_term(), ..Header::of(answer.header())? };
        Ok(MemberStatus {
            header,
            version: answer.version().to_owned(),
            db_size: unsigned(answer.db_size()),
            raft_applied_index: answer.raft_applied_index(),
            leader: answer.leader(),
        })
    }

    /// Watches every key that starts with `prefix` from revision `from` on
    /// (inclusive). Returns once the member has accepted the watch, which it
    /// does for any revision: one that was compacted is cancelled right after it.
    ///
    /// # Errors
    /// When it does not answer, or cancels the watch at once.
    pub async fn watch(
        &mut self,
        prefix: &str,
        from: u64,
        deadline: Duration,
    ) -> Result<EtcdWatch, EtcdFailure> {
        let options = WatchOptions::new().with_prefix().with_start_revision(signed(from)?);
        let prefix = prefix.to_owned();
        let (stream, created) = self
            .call(deadline, async move |mut client| {
                let mut stream = client.watch(prefix, Some(options)).await?;
                let created = stream.message().await?;
                Ok((stream, created))
            })
            .await?;
        match created {
            Some(response) if response.created() && !response.canceled() => {
                Ok(EtcdWatch { stream, ready: VecDeque::new() })
            }
            Some(response) => Err(EtcdFailure {
                class: FailureClass::Invalid,
                message: response.cancel_reason().to_owned(),
            }),
            None => Err(EtcdFailure::of(FailureClass::ConnectionLost)),
        }
    }

    /// One operation on the standing connection, or on a new one. The
    /// connection is kept only when the member has answered.
    pub(super) async fn call<T, F>(
        &mut self,
        deadline: Duration,
        operation: impl FnOnce(Client) -> F,
    ) -> Result<T, EtcdFailure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let until = Instant::now() + deadline;
        let client = match self.connection.take() {
            Some(client) => client,
            None => timeout_at(until, open(&self.connector))
                .await
                .unwrap_or_else(|_| Err(EtcdFailure::of(FailureClass::Timeout)))?,
        };
        let answer = timeout_at(until, operation(client.clone()))
            .await
            .map_err(|_| EtcdFailure::of(FailureClass::Timeout))?
            .map_err(EtcdFailure::from);
        let answered = match &answer {
            Ok(_) => true,
            Err(failure) => {
                use FailureClass::{Compacted, FutureRevision, LeaseNotFound};
                matches!(failure.class, Compacted | FutureRevision | LeaseNotFound)
            }
        };
        if answered {
            self.connection = Some(client);
        }
        answer
    }
}

fn signed(revision: u64) -> Result<i64, EtcdFailure> {
    i64::try_from(revision).map_err(|_| EtcdFailure::of(FailureClass::FutureRevision))
}

/// Opens one connection and gives it to a channel that gets no other.
async fn open(connector: &Connector) -> Result<Client, EtcdFailure> {
    let stream = connector.open().await.map_err(EtcdFailure::of)?;
    let address = connector.address();
    let mut only = Some(TokioIo::new(stream));
    let give = tower::service_fn(move |_: hyper::Uri| {
        let stream = only.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(stream)
    });
    let lost = |error: tonic::transport::Error| EtcdFailure {
        class: FailureClass::ConnectionLost,
        message: error.to_string(),
    };
    // TLS is there already, so the channel must not add its own; requests still say what they travel in.
    let origin = format!("https://{address}").parse().expect("a socket address makes a valid URI");
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
        .map_err(lost)?
        .origin(origin)
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .connect_with_connector(give)
        .await
        .map_err(lost)?;
    let options = ConnectOptions::new().with_require_leader(true);
    Ok(Client::from_channel(Channel::Tonic(channel), Some(options)).await?)
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEvent {
    /// The key.
    pub key: Vec<u8>,
    /// Revision of the change.
    pub mod_revision: u64,
    /// The key was deleted.
    pub deleted: bool,
}

/// What an open watch yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchItem {
    /// A key changed.
    Changed(KeyEvent),
    /// The watch was cancelled because its next revision was compacted.
    Compacted {
        /// The oldest revision that can be watched from.
        compact_revision: u64,
    },
    /// The watch was cancelled otherwise.
    Cancelled {
        /// etcd's words.
        reason: String,
    },
    /// The member closed the stream in order.
    Ended,
}

/// An open watch.
pub struct EtcdWatch {
    stream: WatchStream,
    ready: VecDeque<KeyEvent>,
}

impl EtcdWatch {
    /// The next item. Cancel-safe.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn next(&mut self) -> Result<WatchItem, EtcdFailure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(WatchItem::Changed(event));
            }
            let Some(response) = self.stream.message().await? else { return Ok(WatchItem::Ended) };
            if response.canceled() {
                let reason = response.cancel_reason().to_owned();
                return Ok(match unsigned(response.compact_revision()) {
                    0 => WatchItem::Cancelled { reason },
                    compact_revision => WatchItem::Compacted { compact_revision },
                });
            }
            self.ready.extend(response.events().iter().filter_map(|event| {
                let kv = event.kv()?;
                Some(KeyEvent {
                    key: kv.key().to_vec(),
                    mod_revision: unsigned(kv.mod_revision()),
                    deleted: event.event_type() == EventType::Delete,
                })
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;

    #[test]
    fn what_etcd_says_of_a_revision_or_lease_is_told_from_other_refusals() {
        let lost = Status::from_error(Box::new(io::Error::other("broken pipe")));
        for (status, class) in [
            (Status::out_of_range("required revision has been compacted"), FailureClass::Compacted),
            (Status::out_of_range("required revision is a future revision"), FailureClass::FutureRevision),
            (Status::out_of_range("something else"), FailureClass::Invalid),
            (Status::not_found("etcdserver: requested lease not found"), FailureClass::LeaseNotFound),
            (Status::not_found("something else"), FailureClass::Invalid),
            (Status::unavailable("etcdserver: no leader"), FailureClass::Unavailable),
            (Status::unknown("compacted"), FailureClass::ServerError),
            (lost, FailureClass::ConnectionLost),
        ] {
            assert_eq!(status_class(&status), class, "{status}");
        }
    }

    #[test]
    fn a_lease_without_time_left_is_told_from_other_failures_to_keep_it() {
        let class = |why: &str| EtcdFailure::from(Error::LeaseKeepAliveError(why.to_owned())).class;
        assert_eq!(class("lease not found"), FailureClass::LeaseNotFound);
        assert_eq!(class("failed to create lease keeper"), FailureClass::Malformed);
    }

    #[test]
    fn no_number_below_0_is_a_revision() {
        assert_eq!([-1, 0, 1, 7].map(unsigned), [0, 0, 1, 7]);
    }

    #[test]
    fn a_revision_that_etcd_can_t_count_to_lies_in_the_future() {
        assert_eq!([0, 7, i64::MAX.unsigned_abs()].map(|n| signed(n).unwrap()), [0, 7, i64::MAX]);
        assert_eq!(signed(1 << 63).unwrap_err().class, FailureClass::FutureRevision);
    }
}
