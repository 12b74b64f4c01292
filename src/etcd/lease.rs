//! Leases of etcd, raw: what the API server and etcd's own client build upon.

use super::client::{EtcdClient, EtcdFailure, Header};
use crate::wire::failure::FailureClass;
use etcd_client::PutOptions;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Id of a lease, written in hexadecimal as etcd's own tools do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(i64);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for LeaseId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(|id| Self(id.cast_signed()))
    }
}

/// What etcd says of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseState {
    /// Revision of the store when it was asked.
    pub revision: u64,
    /// Seconds left, rounded down.
    pub ttl_seconds: u64,
    /// Seconds that it was granted for.
    pub granted_ttl_seconds: u64,
}

/// `None` when etcd says that there is no such lease: a time to live of zero or less.
fn left(ttl: i64) -> Result<u64, EtcdFailure> {
    match u64::try_from(ttl) {
        Ok(0) | Err(_) => Err(EtcdFailure::of(FailureClass::LeaseNotFound)),
        Ok(seconds) => Ok(seconds),
    }
}

impl EtcdClient {
    /// Grants a lease. Returns its id and the store's revision, which a grant leaves alone.
    ///
    /// # Errors
    /// When there is no answer; it may have been granted all the same.
    pub async fn grant(
        &mut self,
        ttl_seconds: u64,
        deadline: Duration,
    ) -> Result<(LeaseId, LeaseState), EtcdFailure> {
        let ttl = i64::try_from(ttl_seconds).map_err(|_| EtcdFailure::of(FailureClass::Invalid))?;
        let answer = self.call(deadline, async move |mut client| client.lease_grant(ttl, None).await).await?;
        let granted = left(answer.ttl())?;
        let revision = Header::of(answer.header())?.revision;
        Ok((
            LeaseId(answer.id()),
            LeaseState { revision, ttl_seconds: granted, granted_ttl_seconds: granted },
        ))
    }

    /// Puts a key that goes when the lease does. Returns the revision of the put.
    ///
    /// # Errors
    /// [`FailureClass::LeaseNotFound`] when there is no such lease.
    pub async fn attach(
        &mut self,
        lease: LeaseId,
        key: &str,
        deadline: Duration,
    ) -> Result<u64, EtcdFailure> {
        let (key, options) = (key.to_owned(), PutOptions::new().with_lease(lease.0));
        let answer = self
            .call(deadline, async move |mut client| client.put(key, lease.to_string(), Some(options)).await)
            .await?;
        Ok(Header::of(answer.header())?.revision)
    }

    /// Keeps a lease alive, twice on one stream: the client library keeps the first answer
    /// for itself. Returns the seconds that the second one gives.
    ///
    /// # Errors
    /// [`FailureClass::LeaseNotFound`] when there is no such lease.
    pub async fn keep_alive(
        &mut self,
        lease: LeaseId,
        deadline: Duration,
    ) -> Result<LeaseState, EtcdFailure> {
        let answer = self
            .call(deadline, async move |mut client| {
                let (mut keeper, mut answers) = client.lease_keep_alive(lease.0).await?;
                keeper.keep_alive().await?;
                answers.message().await
            })
            .await?
            .ok_or_else(|| EtcdFailure::of(FailureClass::ConnectionLost))?;
        let ttl_seconds = left(answer.ttl())?;
        let revision = Header::of(answer.header())?.revision;
        Ok(LeaseState { revision, ttl_seconds, granted_ttl_seconds: ttl_seconds })
    }

    /// How long a lease has left.
    ///
    /// # Errors
    /// [`FailureClass::LeaseNotFound`] when there is no such lease.
    pub async fn time_to_live(
        &mut self,
        lease: LeaseId,
        deadline: Duration,
    ) -> Result<LeaseState, EtcdFailure> {
        let answer = self
            .call(deadline, async move |mut client| client.lease_time_to_live(lease.0, None).await)
            .await?;
        let revision = Header::of(answer.header())?.revision;
        // A lease in its last second has 0 left and exists; one that does not exist has -1.
        if answer.ttl() < 0 {
            return Err(EtcdFailure::of(FailureClass::LeaseNotFound));
        }
        Ok(LeaseState {
            revision,
            ttl_seconds: u64::try_from(answer.ttl()).unwrap_or(0),
            granted_ttl_seconds: u64::try_from(answer.granted_ttl()).unwrap_or(0),
        })
    }

    /// Gives a lease back; its keys go with it. Returns the revision after it.
    ///
    /// # Errors
    /// [`FailureClass::LeaseNotFound`] when there is no such lease.
    pub async fn revoke(&mut self, lease: LeaseId, deadline: Duration) -> Result<u64, EtcdFailure> {
        let answer = self.call(deadline, async move |mut client| client.lease_revoke(lease.0).await).await?;
        Ok(Header::of(answer.header())?.revision)
    }

    /// Every lease that exists, whoever it belongs to, and the store's revision.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn leases(&mut self, deadline: Duration) -> Result<(Vec<LeaseId>, u64), EtcdFailure> {
        let answer = self.call(deadline, async move |mut client| client.leases().await).await?;
        let ids = answer.leases().iter().map(|lease| LeaseId(lease.id())).collect();
        Ok((ids, Header::of(answer.header())?.revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_from_what_it_is_written_as() {
        for id in [LeaseId(0x694d_9a12_3456_7890), LeaseId(-2)] {
            assert_eq!(id.to_string().parse::<LeaseId>().unwrap(), id);
        }
        assert_eq!(LeaseId(0x1f).to_string(), "1f");
    }

    #[test]
    fn no_time_left_means_that_there_is_no_such_lease() {
        assert_eq!(left(7).unwrap(), 7);
        for none in [0, -1] {
            assert_eq!(left(none).unwrap_err().class, FailureClass::LeaseNotFound);
        }
    }
}
