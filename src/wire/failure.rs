//! Why an operation had no good answer, in words that checkers and reports compare.

use std::fmt;

/// Class of a failed or unanswered operation; its kebab-case name is what histories hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureClass {
    /// Nothing listens: the connection was refused.
    Refused,
    /// No route, network down, or another error before the connection stood.
    Unreachable,
    /// TLS was not agreed upon, or the certificate was not accepted.
    Tls,
    /// The connection broke.
    ConnectionLost,
    /// No whole answer before the client's deadline, or the server says its own has passed (504).
    Timeout,
    /// The client was told to end.
    Stopped,
    /// 404.
    NotFound,
    /// 409 with reason AlreadyExists.
    AlreadyExists,
    /// 409 otherwise.
    Conflict,
    /// 410: the resourceVersion or continuation is too old.
    Gone,
    /// 429 while the API server's cache is filled: "storage is (re)initializing".
    Reinitializing,
    /// 429 otherwise: flow control.
    TooManyRequests,
    /// 504 with cause ResourceVersionTooLarge: the server has not got that far.
    TooLargeResourceVersion,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// Any other 4xx.
    Invalid,
    /// Any other 5xx.
    ServerError,
    /// The answer can't be read as what was asked for.
    Malformed,
    /// etcd: the revision asked for was compacted.
    Compacted,
    /// etcd: the revision asked for has not been reached.
    FutureRevision,
    /// etcd: the member answers but can't serve, as without a leader.
    Unavailable,
    /// etcd, also through an API server: the lease does not exist.
    LeaseNotFound,
}

impl FailureClass {
    /// The name in histories.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::ConnectionLost => "connection-lost",
            Self::Timeout => "timeout",
            Self::Stopped => "stopped",
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Reinitializing => "reinitializing",
            Self::TooManyRequests => "too-many-requests",
            Self::TooLargeResourceVersion => "too-large-resource-version",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Invalid => "invalid",
            Self::ServerError => "server-error",
            Self::Malformed => "malformed",
            Self::Compacted => "compacted",
            Self::FutureRevision => "future-revision",
            Self::Unavailable => "unavailable",
            Self::LeaseNotFound => "lease-not-found",
        }
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
