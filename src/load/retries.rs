//! Retries that client libraries make behind their users' backs.
//!
//! * `client-go` (`rest/with_retry.go`, 0.30 to 0.37): 429 and any 5xx that have a `Retry-After`, up to ten times, each
//!   time after so many seconds. Its limiter of 5 requests per second is not part of this.
//! * `kube` (5.0, `default_retry`): 429, 503 and 504, up to 15 times, after 5 ms doubling to 1000 s with jitter, and never
//!   before `Retry-After` is over.

use super::exchange::Exchanged;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whose retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetriesLike {
    /// client-go, over HTTP/2.
    ClientGo,
    /// The kube crate, over HTTP/1.1.
    Kube,
}

/// Longest pause of the kube crate.
const KUBE_LONGEST: Duration = Duration::from_secs(1000);
/// Its first one.
const KUBE_FIRST: Duration = Duration::from_millis(5);

impl RetriesLike {
    /// How long the library waits before it sends the request again; `None`: it does not. `before` attempts were made
    /// before this one; `die` is in [0, 1).
    #[must_use]
    pub fn pause(self, before: u64, exchanged: &Exchanged, die: f64) -> Option<Duration> {
        let status = exchanged.status?;
        let asked = exchanged.seen.retry_after_seconds.map(Duration::from_secs);
        match self {
            RetriesLike::ClientGo => {
                let retried = before < 10 && (status == 429 || (500..600).contains(&status));
                asked.filter(|_| retried)
            }
            RetriesLike::Kube => {
                let retried = before < 15 && matches!(status, 429 | 503 | 504);
                let factor = 2_u32.saturating_pow(u32::try_from(before).unwrap_or(u32::MAX));
                let backoff = KUBE_FIRST.saturating_mul(factor).min(KUBE_LONGEST);
                // Jitter: up to twice as long.
                let backoff = backoff.mul_f64(1.0 + die);
                retried.then(|| backoff.max(asked.unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::Exchange;

    fn answered(status: u16, retry_after: Option<u64>) -> Exchanged {
        let seen = Exchange { retry_after_seconds: retry_after, ..Exchange::default() };
        Exchanged { status: Some(status), failure: None, next_page: None, seen }
    }

    #[test]
    fn client_go_goes_by_retry_after_alone() {
        let pause =
            |before, status, after| RetriesLike::ClientGo.pause(before, &answered(status, after), 0.5);
        assert_eq!(pause(0, 429, Some(2)), Some(Duration::from_secs(2)));
        assert_eq!(pause(0, 429, None), None, "nobody said when");
        assert_eq!(pause(9, 503, Some(1)), Some(Duration::from_secs(1)));
        assert_eq!(pause(10, 429, Some(1)), None, "ten retries were made");
        assert_eq!(pause(0, 200, Some(1)), None);
        assert_eq!(pause(0, 404, Some(1)), None);
    }

    #[test]
    fn kube_backs_off_and_never_comes_before_retry_after() {
        let pause = |before, status, after| RetriesLike::Kube.pause(before, &answered(status, after), 0.0);
        assert_eq!(pause(0, 429, None), Some(Duration::from_millis(5)));
        assert_eq!(pause(3, 503, None), Some(Duration::from_millis(40)));
        assert_eq!(pause(3, 429, Some(4)), Some(Duration::from_secs(4)));
        assert_eq!(pause(15, 429, Some(1)), None);
        assert_eq!(pause(0, 500, Some(1)), None, "not one of its statuses");
    }

    #[test]
    fn without_an_answer_nothing_is_sent_again() {
        let lost = Exchanged::failed(crate::wire::failure::FailureClass::ConnectionLost, None);
        assert_eq!(RetriesLike::ClientGo.pause(0, &lost, 0.0), None);
        assert_eq!(RetriesLike::Kube.pause(0, &lost, 0.0), None);
    }
}
